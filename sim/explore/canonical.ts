/**
 * Equal states get equal texts, whatever order things happened in, and equal texts one number.
 *
 * A map counts as ordered unless its name is listed as never traversed in order. A name that is
 * missing here costs states, never a wrong answer.
 */
import { assert, present } from '../../src/base/assert.ts'
import { compareText, latin1, sha256 } from '../../src/base/bytes.ts'

/** Maps and sets that the core only looks things up in, counts, or takes the maximum of. */
const unordered: ReadonlySet<string> = new Set([
  ...['records', 'decisions', 'forwarded', 'acceptances', 'refusals'],
  ...['counters', 'sessions', 'outcomes', 'disk'],
  ...['proposals', 'chosen', 'states', 'floors'],
  ...['listed', 'by', 'acknowledged', 'grants', 'ignored', 'groups', 'revocations'],
  'restoring',
  'seals',
])

/** A value's text: plain data, bytes, maps and sets; anything else is refused. */
export function canonicalText(value: unknown): string {
  return encodeText(value, '')
}

function encodeText(value: unknown, name: string): string {
  switch (typeof value) {
    case 'number':
      return `${value};`
    case 'string':
      return `${value.length}"${value}`
    case 'boolean':
      return value ? '+' : '-'
    case 'undefined':
      return '_'
    case 'object':
      return value === null ? '_' : textOfObject(value, name)
    default:
      throw new Error(`a state holds a ${typeof value}, which has no text`)
  }
}

function textOfObject(value: object, name: string): string {
  if (value instanceof Uint8Array) return `${value.length}b${latin1(value)}`
  if (Array.isArray(value)) return `[${value.map((one) => encodeText(one, '')).join('')}]`
  if (value instanceof Map) {
    const rows = [...value].map(([key, one]) => encodeText(key, '') + encodeText(one, ''))
    return `{${ordered(rows, name).join('')}}`
  }
  if (value instanceof Set) {
    return `(${ordered(
      [...value].map((one) => encodeText(one, '')),
      name,
    ).join('')})`
  }
  const isPlain = Object.getPrototypeOf(value) === Object.prototype
  assert(isPlain, 'explore: a state holds an object of a class, which has no text')
  const rows = Object.entries(value).sort(([a], [b]) => compareText(a, b))
  const present = rows.filter(([, one]) => one !== undefined)
  return `<${present.map(([key, one]) => `${key}=${encodeText(one, key)}`).join('')}>`
}

function ordered(rows: string[], name: string): string[] {
  return unordered.has(name) ? rows.sort(compareText) : rows
}

/** 128 bits of a text, as a short one. */
export function computeDigest(text: string): string {
  return latin1(sha256(text).subarray(0, 16))
}

/** One number for each of many equal things, dense from 0. */
export class Interner<T> {
  readonly #numberByDigest = new Map<string, number>()
  readonly #things: T[] = []

  get count(): number {
    return this.#things.length
  }

  /** The number of the thing with this text; it is kept when it is the first. */
  number(text: string, thing: T): number {
    const digest = computeDigest(text)
    const known = this.#numberByDigest.get(digest)
    if (known !== undefined) return known
    const next = this.#things.length
    this.#numberByDigest.set(digest, next)
    this.#things.push(thing)
    return next
  }

  at(number: number): T {
    return present(this.#things[number], 'explore: a number stands for nothing')
  }
}
