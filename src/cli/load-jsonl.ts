/** JSON Lines: one JSON value a line, kept exactly or refused. */
import { parseJsonText } from '../base/json-text.ts'
import type { Json } from '../cells/body.ts'
import type { Line, TextLine } from './load-lines.ts'
import { nulInside, rejected, secondMark, type Row, type RowParser } from './load-rows.ts'
import { UnusableFile } from './unusable-file.ts'

const advice = 'JSON lines have one value a line (jq -c . FILE, or jq -c .[] FILE, makes them)'

export class JsonlRows implements RowParser {
  /** A first line that is a list of objects: with no line behind it, it is the file's rows and not one of them. */
  #held: Row | undefined
  #hasBegun = false

  push(line: Line): readonly Row[] {
    const row = this.#toRow(line)
    const rows = this.#held === undefined || row.kind === 'blank' ? [] : [this.#held]
    if (rows.length > 0) this.#held = undefined
    const isFirst = !this.#hasBegun && row.kind !== 'blank'
    if (isFirst) this.#hasBegun = true
    if (isFirst && row.kind === 'row' && isListOfObjects(row.body)) {
      this.#held = row
      return rows
    }
    return [...rows, row]
  }

  end(): readonly Row[] {
    if (this.#held === undefined) return []
    throw new UnusableFile(`its only line is a list of objects; ${advice}`)
  }

  #toRow(line: Line): Row {
    if (line.kind === 'unreadable') return rejected(line.number, line.reason)
    const { text, number } = line
    if (text.trim() === '') return { kind: 'blank', line: number }
    const parsed = parseJsonText(text)
    if (parsed.ok) return { kind: 'row', line: number, body: parsed.value, chars: text.length }
    if (!this.#hasBegun && goesOn(text)) {
      throw new UnusableFile(
        `line ${number} begins a value that goes on in the lines below; ${advice}`,
      )
    }
    return rejected(number, pickReason(line, parsed.reason))
  }
}

/** Whether a text is the beginning of JSON that is laid out over several lines: of a list, or an opening brace. */
function goesOn(text: string): boolean {
  const trimmed = text.trim()
  if (trimmed === '{') return true
  if (!trimmed.startsWith('[')) return false
  let depth = 0
  for (const [mark] of trimmed.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
    depth += '[{'.includes(mark) ? 1 : ']}'.includes(mark) ? -1 : 0
  }
  return depth > 0
}

function pickReason({ text }: TextLine, reason: string): string {
  if (text.startsWith('\uFEFF')) return secondMark
  if (text.includes('\0')) return nulInside
  if (text.includes('\r')) return `${reason}; a CR stands alone in it: lines end with LF or CR LF`
  if (/after JSON at/.test(reason)) return `${reason}: each value has a line of its own`
  return reason
}

function isListOfObjects(body: Json): boolean {
  if (!Array.isArray(body) || body.length === 0) return false
  return body.every((one: Json) => typeof one === 'object' && one !== null && !Array.isArray(one))
}
