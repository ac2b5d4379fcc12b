/**
 * Lines as rows: JSON Lines, or CSV with a header (RFC 4180). A line that cannot be a row becomes a
 * rejection with its number; the next line starts afresh, so one stray quote costs one line.
 *
 * CSV fields stay text exactly as they are, blank ones included: a loader that guesses types loses
 * leading zeros. Several rows may be equal; that is for their keys to tell apart.
 */
import { parse } from 'csv-parse/sync'
import type { Json } from '../cells/body.ts'
import { parseJsonText } from '../cells/json-text.ts'
import { lineBytesMax, type Line } from './cells-load-lines.ts'

export type Row =
  | { readonly kind: 'row'; readonly line: number; readonly body: Json; readonly chars: number }
  | { readonly kind: 'rejected'; readonly line: number; readonly reason: string }
  | { readonly kind: 'blank'; readonly line: number }

export interface RowParser {
  push(line: Line): readonly Row[]
  end(): readonly Row[]
}

/** Thrown when nothing of a file can be rows: it has no usable header. */
export class UnusableFile extends Error {
  override readonly name = 'UnusableFile'
}

export type RowFormat = 'csv' | 'jsonl'

export function rowParser(format: RowFormat): RowParser {
  return format === 'csv' ? csvParser() : { push: (line) => [jsonRow(line)], end: () => [] }
}

function jsonRow(line: Line): Row {
  if (line.kind === 'unreadable') return rejected(line.number, line.reason)
  if (line.text.trim() === '') return { kind: 'blank', line: line.number }
  const parsed = parseJsonText(line.text)
  if (!parsed.ok) return rejected(line.number, parsed.reason)
  return { kind: 'row', line: line.number, body: parsed.value, chars: line.text.length }
}

function rejected(line: number, reason: string): Row {
  return { kind: 'rejected', line, reason }
}

/** A quoted field may run over so many lines; a stray quote would otherwise swallow the file. */
export const recordLinesMax = 200
const recordCharsMax = lineBytesMax

/**
 * Gathers the lines of a record while a quote is open. When what is gathered turns out not to be a
 * record, its first line is rejected and the others are looked at again.
 */
function csvParser(): RowParser {
  let header: readonly string[] | undefined
  let open: TextLine[] = []
  let openQuotes = 0
  let openChars = 0

  function row(first: TextLine, fields: readonly string[], chars: number): readonly Row[] {
    if (header === undefined) {
      header = headerOf(fields)
      return []
    }
    if (fields.length !== header.length) {
      const reason = `has ${fields.length} fields; the header has ${header.length}`
      return [rejected(first.number, reason)]
    }
    const body = Object.fromEntries(header.map((name, i) => [name, fields[i] ?? '']))
    return [{ kind: 'row', line: first.number, body, chars }]
  }
  function take(line: TextLine): readonly Row[] {
    const quotes = countQuotes(line.text)
    if (open.length === 0 && line.text === '') return [{ kind: 'blank', line: line.number }]
    if (open.length === 0 && quotes === 0) {
      return row(line, line.text.split(','), line.text.length)
    }
    open.push(line)
    openQuotes += quotes
    openChars += line.text.length
    if (openQuotes % 2 === 0) return close()
    const isTooMuch = open.length >= recordLinesMax || openChars > recordCharsMax
    return isTooMuch ? giveUp(unclosed) : []
  }
  function close(): readonly Row[] {
    const text = open.map((part) => part.text).join('\n')
    const fields = quotedFields(text)
    if (!fields.ok) return giveUp(fields.reason)
    const [first] = open
    clear()
    return first === undefined ? [] : row(first, fields.values, text.length)
  }
  /** Rejects the first open line and goes through the others again. */
  function giveUp(reason: string): readonly Row[] {
    const [first, ...others] = open
    clear()
    if (first === undefined) return []
    if (header === undefined) throw new UnusableFile(`the header (line ${first.number}): ${reason}`)
    return [rejected(first.number, reason), ...others.flatMap(take)]
  }
  function giveUpAll(): readonly Row[] {
    const rows: Row[] = []
    while (open.length > 0) rows.push(...giveUp(unclosed))
    return rows
  }
  function clear(): void {
    open = []
    openQuotes = 0
    openChars = 0
  }
  return {
    push: (line) => {
      if (line.kind === 'text') return take(line)
      const rows = giveUpAll()
      if (header === undefined) throw new UnusableFile(`the header: ${line.reason}`)
      return [...rows, rejected(line.number, line.reason)]
    },
    end: () => {
      const rows = giveUpAll()
      if (header === undefined) throw new UnusableFile('it is empty: a CSV starts with a header')
      return rows
    },
  }
}

function countQuotes(text: string): number {
  let count = 0
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at + 1)) count += 1
  return count
}

type TextLine = Line & { readonly kind: 'text' }

const unclosed = `a quote is not closed before the end or within ${recordLinesMax} lines`

function headerOf(fields: readonly string[]): readonly string[] {
  const twice = fields.find((name, i) => fields.indexOf(name) !== i)
  if (fields.includes('')) throw new UnusableFile('the header (line 1) has a column without a name')
  if (twice !== undefined) throw new UnusableFile(`the header (line 1) names "${twice}" twice`)
  return fields
}

type Fields =
  | { readonly ok: true; readonly values: readonly string[] }
  | { readonly ok: false; readonly reason: string }

/** The fields of one record that has quotes in it. */
function quotedFields(text: string): Fields {
  try {
    const records: unknown = parse(text, { relax_column_count: true })
    const values: unknown = Array.isArray(records) && records.length === 1 ? records[0] : undefined
    if (Array.isArray(values) && values.every((value) => typeof value === 'string')) {
      return { ok: true, values }
    }
    return { ok: false, reason: 'quotes are not placed as CSV has them' }
  } catch (error) {
    // The library numbers lines from the start of the record, which would mislead.
    const message = error instanceof Error ? error.message : ''
    return { ok: false, reason: `not CSV: ${message.replace(/ (at|on) line \d+/g, '').trim()}` }
  }
}
