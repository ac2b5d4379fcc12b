/** The first line of a CSV: the names of its columns, or why the file is no CSV with a header. */
import type { TextLine } from './load-lines.ts'
import { UnusableFile } from './unusable-file.ts'

/** The line that spreadsheets of some countries write ahead of the header: `sep=;`. */
const separatorLine = /^"?sep=(.?)"?$/i
const separators: Readonly<Record<string, string>> = {
  ';': 'semicolons',
  '\t': 'tabs',
  '|': 'bars',
}

/** Throws for a line that begins no CSV; `skip` for one that only says that commas separate fields. */
export function refuseFirstLine(text: string): 'skip' | 'header' {
  const separator = separatorLine.exec(text)?.[1]
  if (separator === ',') return 'skip'
  if (separator !== undefined) {
    throw new UnusableFile(`its first line, "${text}", says that not commas separate its fields`)
  }
  if (text.includes('\r')) {
    const advice = "tr '\\r' '\\n' < FILE makes them LF"
    throw new UnusableFile(`its lines end with CR alone, or with CR CR LF; ${advice}`)
  }
  if (/^\s*(\{|\[\s*(\{|$))/.test(text)) {
    throw new UnusableFile('it begins as JSON does; files of JSON lines are named .jsonl')
  }
  return 'header'
}

/**
 * The names of the columns. `line` is where they begin. One name with a separator in it is mostly a file of other
 * separators, or of lines that are quoted as a whole: it is taken where it cannot be that, or `isOneColumn` says so.
 */
export function checkHeader(
  names: readonly string[],
  line: TextLine,
  isOneColumn: boolean = false,
): readonly string[] {
  const where = `the header (line ${line.number})`
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (names.some((name) => name.trim() === '')) {
    throw new UnusableFile(`${where} has a column without a name`)
  }
  if (twice !== undefined) throw new UnusableFile(`${where} names "${twice}" twice`)
  const [only = '', second] = names
  if (isOneColumn && second !== undefined) {
    const text = `${where} has ${names.length} columns, and --one-column says it has one: a name with a comma stands in quotes`
    throw new UnusableFile(text)
  }
  if (isOneColumn || second !== undefined) return names
  const other = Object.keys(separators).find((mark) => line.text.includes(mark))
  // A name in quotes is meant to be one.
  if (other !== undefined && line.text === only) {
    const text = `${where} is one column, "${only}": fields are separated by commas, not by ${separators[other]} (--one-column, or quotes around the name, if it is one)`
    throw new UnusableFile(text)
  }
  // Some programs take a line of a CSV for one field, and quote it once more. Behind a comma of prose is a blank.
  if (/,(?! )/.test(only)) {
    const text = `${where} is one column, "${only}": quotes stand around all of the line (--one-column, if it is one)`
    throw new UnusableFile(text)
  }
  return names
}
