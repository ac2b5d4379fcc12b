/** JSON Lines: one JSON value a line, kept exactly or refused. */
import { parseJsonText } from '../cells/json-text.ts'
import type { Line } from './load-lines.ts'
import { rejected, type Row, type RowParser } from './load-rows.ts'

export function jsonlRows(): RowParser {
  return { push: (line) => [rowOf(line)], end: () => [] }
}

function rowOf(line: Line): Row {
  if (line.kind === 'unreadable') return rejected(line.number, line.reason)
  if (line.text.trim() === '') return { kind: 'blank', line: line.number }
  const parsed = parseJsonText(line.text)
  if (!parsed.ok) return rejected(line.number, parsed.reason)
  return { kind: 'row', line: line.number, body: parsed.value, chars: line.text.length }
}
