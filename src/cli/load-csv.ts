/**
 * CSV with a header (RFC 4180). Fields stay text exactly as they are: a loader that guesses types loses
 * leading zeros. A blank field that is not quoted is what the reader asks for: `""`, or no value.
 *
 * Lines are gathered while a quote is open. When what was gathered turns out not to be a record,
 * its first line is rejected and the others are looked at again: a stray quote costs one line, where
 * a CSV parser on its own would swallow the file up to the next quote.
 */
import { parse } from 'csv-parse/sync'
import { lineBytesMax, type Line, type TextLine } from './load-lines.ts'
import { counted } from './output.ts'
import { checkHeader, refuseFirstLine } from './load-csv-header.ts'
import { nulInside, rejected, secondMark, type Row, type RowParser } from './load-rows.ts'
import { UnusableFile } from './unusable-file.ts'

/** The most lines that a quoted field may run over. */
export const recordLinesMax = 200
const recordCharsMax = lineBytesMax

/** Null for a blank field without quotes. */
type Field = string | null

/** The value in a body for a blank field without quotes. */
export type Blank = '' | null

const byteOrderMark = '\uFEFF'
const loneReturn = 'a CR stands alone in it, outside of quotes: lines end with LF or CR LF'
const unclosed = `a quote is not closed before the end or within ${recordLinesMax} lines`

export class CsvRows implements RowParser {
  readonly #blank: Blank
  readonly #isOneColumn: boolean
  #header: readonly string[] | undefined
  /** Lines of a record whose quote is open. */
  #open: TextLine[] = []
  #openQuotes = 0
  #openChars = 0

  /** `isOneColumn`: its header names one column, whatever separators are in the name. */
  constructor(blank: Blank, isOneColumn: boolean = false) {
    this.#blank = blank
    this.#isOneColumn = isOneColumn
  }

  push(line: Line): readonly Row[] {
    if (line.kind === 'unreadable') return this.#refuse(line.number, line.reason)
    return line.text.includes('\0') ? this.#refuse(line.number, nulInside) : this.#take(line)
  }

  end(): readonly Row[] {
    const rows = this.#giveUpAll()
    if (this.#header !== undefined) return rows
    throw new UnusableFile('it is empty: a CSV starts with a header')
  }

  /** Refuses a line without looking at it, and the record that was open before it. */
  #refuse(number: number, reason: string): readonly Row[] {
    const rows = this.#giveUpAll()
    if (this.#header === undefined) throw new UnusableFile(`the header (line ${number}): ${reason}`)
    return [...rows, rejected(number, reason)]
  }

  #take(line: TextLine): readonly Row[] {
    const { text, number } = line
    const quotes = countQuotes(text)
    if (this.#open.length === 0) {
      if (text === '') return [{ kind: 'blank', line: number }]
      if (this.#header === undefined && refuseFirstLine(text) === 'skip') return []
      if (text.startsWith(byteOrderMark)) return [rejected(number, secondMark)]
      if (quotes === 0 && text.includes('\r')) return [rejected(number, loneReturn)]
      if (quotes === 0) return this.#row(line, plainFields(text), text.length)
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

  #row(first: TextLine, fields: readonly Field[], chars: number): readonly Row[] {
    const header = this.#header
    if (header === undefined) {
      this.#header = checkHeader(
        fields.map((name) => name ?? ''),
        first,
        this.#isOneColumn,
      )
      return []
    }
    if (fields.length !== header.length) {
      const reason = `has ${counted(fields.length, 'field')}; the header has ${header.length}`
      return [rejected(first.number, reason)]
    }
    if (fields.length > 1 && fields.every((field, i) => field === header[i])) {
      return [rejected(first.number, 'it repeats the header: another file may begin here')]
    }
    const body = Object.fromEntries(header.map((name, i) => [name, fields[i] ?? this.#blank]))
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

function plainFields(text: string): readonly Field[] {
  return text.split(',').map((field) => (field === '' ? null : field))
}

function countQuotes(text: string): number {
  let count = 0
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at + 1)) count += 1
  return count
}

type Fields =
  | { readonly ok: true; readonly values: readonly Field[] }
  | { readonly ok: false; readonly reason: string }

/** The fields of one record that has quotes in it. */
function quotedFields(text: string): Fields {
  try {
    let hasLoneReturn = false
    const records: unknown = parse(text, {
      relax_column_count: true,
      record_delimiter: '\n',
      cast: (value: string, { quoting }) => {
        hasLoneReturn ||= !quoting && value.includes('\r')
        return value === '' && !quoting ? null : value
      },
    })
    if (hasLoneReturn) return { ok: false, reason: loneReturn }
    const values: unknown = Array.isArray(records) && records.length === 1 ? records[0] : undefined
    if (Array.isArray(values) && values.every(isField)) return { ok: true, values }
    return { ok: false, reason: 'quotes are not placed as CSV has them' }
  } catch (error) {
    return { ok: false, reason: `not CSV: ${wordsFor(error)}` }
  }
}

const wordsByCode: Readonly<Record<string, string>> = {
  CSV_INVALID_CLOSING_QUOTE: 'behind a closing quote comes neither a comma nor the end of the line',
  INVALID_OPENING_QUOTE: 'a quote stands inside a field that has no quotes around it',
}

function wordsFor(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (Object.hasOwn(wordsByCode, code)) return wordsByCode[code] ?? ''
  // The library numbers lines from the start of the record, which would mislead.
  const message = error instanceof Error ? error.message : String(error)
  return message.replace(/ (at|on) line \d+/g, '').trim()
}

function isField(value: unknown): value is Field {
  return value === null || typeof value === 'string'
}
