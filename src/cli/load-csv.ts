/**
 * CSV with a header (RFC 4180). Fields stay text exactly as they are, blank ones included: a loader
 * that guesses types loses leading zeros.
 *
 * Lines are gathered while a quote is open. When what was gathered turns out not to be a record,
 * its first line is rejected and the others are looked at again: a stray quote costs one line, where
 * a CSV parser on its own would swallow the file up to the next quote.
 */
import { parse } from 'csv-parse/sync'
import { lineBytesMax, type Line, type TextLine } from './load-lines.ts'
import { rejected, UnusableFile, type Row, type RowParser } from './load-rows.ts'

/** A quoted field may run over so many lines. */
export const recordLinesMax = 200
const recordCharsMax = lineBytesMax

const unclosed = `a quote is not closed before the end or within ${recordLinesMax} lines`

export class CsvRows implements RowParser {
  #header: readonly string[] | undefined
  /** Lines of a record whose quote is open. */
  #open: TextLine[] = []
  #openQuotes = 0
  #openChars = 0

  push(line: Line): readonly Row[] {
    if (line.kind === 'text') return this.#take(line)
    const rows = this.#giveUpAll()
    if (this.#header === undefined) throw new UnusableFile(`the header: ${line.reason}`)
    return [...rows, rejected(line.number, line.reason)]
  }

  end(): readonly Row[] {
    const rows = this.#giveUpAll()
    if (this.#header !== undefined) return rows
    throw new UnusableFile('it is empty: a CSV starts with a header')
  }

  #take(line: TextLine): readonly Row[] {
    const quotes = countQuotes(line.text)
    if (this.#open.length === 0 && line.text === '') return [{ kind: 'blank', line: line.number }]
    if (this.#open.length === 0 && quotes === 0) {
      return this.#row(line, line.text.split(','), line.text.length)
    }
    this.#open.push(line)
    this.#openQuotes += quotes
    this.#openChars += line.text.length
    if (this.#openQuotes % 2 === 0) return this.#close()
    const isTooMuch = this.#open.length >= recordLinesMax || this.#openChars > recordCharsMax
    return isTooMuch ? this.#giveUp(unclosed) : []
  }

  #close(): readonly Row[] {
    const last = this.#open.length - 1
    const text = this.#open.map((line, i) => line.text + (i < last ? line.ending : '')).join('')
    const fields = quotedFields(text)
    if (!fields.ok) return this.#giveUp(fields.reason)
    const [first] = this.#clear()
    return first === undefined ? [] : this.#row(first, fields.values, text.length)
  }

  #row(first: TextLine, fields: readonly string[], chars: number): readonly Row[] {
    const header = this.#header
    if (header === undefined) {
      this.#header = headerOf(fields)
      return []
    }
    if (fields.length !== header.length) {
      const reason = `has ${fields.length} fields; the header has ${header.length}`
      return [rejected(first.number, reason)]
    }
    const body = Object.fromEntries(header.map((name, i) => [name, fields[i] ?? '']))
    return [{ kind: 'row', line: first.number, body, chars }]
  }

  /** Rejects the first open line and goes through the others again. */
  #giveUp(reason: string): readonly Row[] {
    const [first, ...others] = this.#clear()
    if (first === undefined) return []
    if (this.#header === undefined) {
      throw new UnusableFile(`the header (line ${first.number}): ${reason}`)
    }
    return [rejected(first.number, reason), ...others.flatMap((line) => this.#take(line))]
  }

  #giveUpAll(): readonly Row[] {
    const rows: Row[] = []
    while (this.#open.length > 0) rows.push(...this.#giveUp(unclosed))
    return rows
  }

  /** The open lines, which are open no more. */
  #clear(): readonly TextLine[] {
    const lines = this.#open
    this.#open = []
    this.#openQuotes = 0
    this.#openChars = 0
    return lines
  }
}

function countQuotes(text: string): number {
  let count = 0
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at + 1)) count += 1
  return count
}

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
