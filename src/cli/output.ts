/**
 * Data goes to stdout, talk to stderr, so that a pipe carries data alone. Colour only for people:
 * on a terminal, and not when NO_COLOR is set.
 */
import { styleText } from 'node:util'
import { formatIso } from '../base/datetime.ts'

/** A line of data. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Resolves when all that was printed is written, or has failed and been told of by the stream's `error`. */
export function writtenOut(): Promise<void> {
  return new Promise((resolve) => {
    // The stream reports the error of a write a moment after it.
    process.stdout.write('', () => setImmediate(resolve))
  })
}

/** A bigint is printed as text: readers of JSON take numbers for doubles. */
export function printJson(value: unknown): void {
  print(
    JSON.stringify(value, (_name, one: unknown) => (typeof one === 'bigint' ? String(one) : one)),
  )
}

/** A value that has a time, as JSON: the time as HTTP has it. */
export function timed<Value extends { readonly createdAt: number }>(
  value: Value,
): Omit<Value, 'createdAt'> & { readonly createdAt: string } {
  return { ...value, createdAt: formatIso(value.createdAt) }
}

/** A line of talk. */
export function say(text: string): void {
  process.stderr.write(`${text}\n`)
}

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

/** Styled for stderr. */
export function styled(style: Style, text: string): string {
  return mayStyle(process.stderr.isTTY) ? styleText(style, text) : text
}

/** Styled for stdout. */
export function styledData(style: Style, text: string): string {
  return mayStyle(process.stdout.isTTY) ? styleText(style, text) : text
}

function mayStyle(isTerminal: boolean): boolean {
  const { NO_COLOR: noColor, TERM: term } = process.env
  return isTerminal && (noColor === undefined || noColor === '') && term !== 'dumb'
}

/** 96000 as `96,000`. */
export function grouped(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** `1 row`, `2 rows`, `96,000 rows`. */
export function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** `1 flush`, `2 flushes`. */
export function countFlushes(count: number): string {
  return `${grouped(count)} ${count === 1 ? 'flush' : 'flushes'}`
}

/** Milliseconds as people say them: `340 ms`, `2.1 s`, `3 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 120_000) return `${(ms / 1000).toFixed(1)} s`
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`
}

const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** Bytes as people say them: `512 B`, `3.4 MiB`, `120 GiB`. */
export function byteText(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < byteUnits.length - 1) {
    value /= 1024
    unit += 1
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1
  return `${value.toFixed(digits)} ${byteUnits[unit] ?? ''}`
}

/** Columns padded to their widest text; the last one is left ragged. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = []
  for (const row of rows) {
    for (const [i, text] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, text.length)
  }
  const lines = rows.map((row) =>
    row.map((text, i) => (i < row.length - 1 ? text.padEnd(widths[i] ?? 0) : text)).join('  '),
  )
  return lines.join('\n')
}
