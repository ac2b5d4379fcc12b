/**
 * Checks the parts of a URL: path segments and query parameters. A parameter that is not known, given twice,
 * or not of its form is an error: ignoring it would answer another question.
 */
import { datastoreProblem, isColumn, isRowKey, nameProblem } from '../cells/cell.ts'
import { problem } from '../base/problem.ts'
import { isShardOf, shardWords } from '../cells/shard.ts'
import { parseTimestamp } from '../base/datetime.ts'
import { HttpProblem, refuse } from './problems.ts'

export function parseRowKey(text: string): string {
  if (!isRowKey(text)) throw new HttpProblem(invalidName({ rowKey: text }))
  return text.toLowerCase()
}

export function parseColumn(text: string): string {
  if (!isColumn(text)) throw new HttpProblem(invalidName({ column: text }))
  return text
}

function invalidName(name: Parameters<typeof nameProblem>[0]): ReturnType<typeof problem> {
  return nameProblem(name) ?? problem('invalid', 'this names no cell')
}

export function parseRefKey(text: string): number {
  return wholeNumber(text, 'the ref key')
}

export function parseDatastore(text: string): string {
  const wrong = datastoreProblem(text)
  if (wrong !== undefined) throw new HttpProblem(wrong)
  return text
}

/** `datastore` was checked. */
export function parseShard(datastore: string, text: string): number {
  const shard = wholeNumber(text, 'the shard')
  if (isShardOf(datastore, shard)) return shard
  return refuse(`there is no shard ${shard}; ${shardWords(datastore)}`)
}

/** Digits only: neither sign, fraction nor exponent; at most 2^53 - 1. */
export function wholeNumber(text: string, what: string): number {
  const value = Number(text)
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(value)) return value
  const given = JSON.stringify(text.slice(0, 80))
  return refuse(`${what} must be a whole number from 0 to 2^53 - 1; ${given} is not`)
}

/** The parameters of a query, each of which must be among those known. */
export class Query {
  readonly #values: ReadonlyMap<string, string>

  /** Throws where there is any. */
  static none(url: string): Query {
    return new Query(url, [])
  }

  constructor(url: string, known: readonly string[]) {
    const values = new Map<string, string>()
    for (const [name, value] of new URL(url).searchParams) {
      const given = JSON.stringify(name.slice(0, 80))
      if (known.length === 0) refuse('this request takes no parameters')
      if (!known.includes(name))
        refuse(`there is no parameter ${given} here, only ${known.join(', ')}`)
      if (values.has(name)) refuse(`the parameter ${given} is given twice`)
      values.set(name, value)
    }
    this.#values = values
  }

  get names(): readonly string[] {
    return [...this.#values.keys()]
  }

  has(name: string): boolean {
    return this.#values.has(name)
  }

  text(name: string): string | undefined {
    return this.#values.get(name)
  }

  number(name: string): number | undefined {
    const text = this.#values.get(name)
    return text === undefined ? undefined : wholeNumber(text, name)
  }

  flag(name: string): boolean {
    const text = this.#values.get(name)
    if (text === undefined || text === 'false') return false
    return text === 'true' ? true : refuse(`${name} must be true or false`)
  }

  time(name: string): number | undefined {
    const text = this.#values.get(name)
    return text === undefined ? undefined : parseTime(text, name)
  }
}

export function parseTime(text: string, what: string): number {
  const example = '2026-01-31T08:30:00.000001Z'
  return (
    parseTimestamp(text) ?? refuse(`${what} must be a time such as ${example}, from 1970 to 2255`)
  )
}
