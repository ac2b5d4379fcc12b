/**
 * A cell's body: JSON, as MessagePack where it is stored or sent, deflated above a size. Two bodies are equal when their
 * canonical JSON (RFC 8785) is; a hash of that text is stored beside the bytes.
 *
 * Some values are refused, because they would not come back as they were given. These are values that JSON
 * cannot express (undefined, NaN, dates, class instances), strings that are not well-formed Unicode, and
 * nesting deeper than `bodyDepthMax`. -0 comes back as 0, as RFC 8785 writes it. A member named `__proto__`
 * is a member like any other, here and on the way out.
 *
 * The text is made here and not by a library: those at hand call a member named `toJSON`, or leave
 * the members of such an object unsorted, and do not bound the depth.
 */
import { Packr } from 'msgpackr/pack'
import { asBuffer, compareText, sha256 } from '../base/bytes.ts'
import { errorText } from '../base/error-text.ts'
import { StoreError } from '../base/errors.ts'
import { copyOfJson, type JsonFault } from '../base/json-copy.ts'
import { cellBytesMax } from '../base/limits.ts'
import { pack, unpack } from '../base/pack.ts'
import { isReadable } from '../base/readable.ts'
import { isDate, wordsFor } from '../base/words.ts'
import { problem, type Problem } from '../base/problem.ts'
import { packedBytes, storedBytes, unpackedBytes } from './body-bytes.ts'

export type Json =
  null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

/** Arrays and objects inside one another. */
export const bodyDepthMax = 100
export const bodyHashBytes = 16

/** The most bytes that a body of `cellBytesMax` canonical characters packs to, and then some. */
export const packedBodyBytesMax: number = 3 * cellBytesMax

export interface PackedBody {
  readonly bytes: Uint8Array
  readonly hash: Uint8Array
}

export type BodyResult =
  | { readonly kind: 'ok'; readonly body: PackedBody }
  | { readonly kind: 'problem'; readonly problem: Problem }

/** Packs what a caller gave as JSON; whether it is JSON is looked at, whatever its type says. */
export function packBody(value: Json): BodyResult {
  // The copy that was checked is the one that is packed.
  const copy = copyOfJson(value, { depthMax: bodyDepthMax, charsMax: cellBytesMax })
  if (copy.kind === 'too-long') return tooLarge(copy.chars)
  if (copy.kind === 'fault') return refusedBody(copy.fault)
  const text = canonicalJson(copy.value)
  if (text.kind === 'problem') return text
  return { kind: 'ok', body: { bytes: storedBytes(pack(copy.value)), hash: hashText(text.text) } }
}

/** Checks packed bytes that came from outside. */
export function checkBody(bytes: Uint8Array): BodyResult {
  const unpacked = Math.max(bytes.length, unpackedBytes(bytes))
  if (unpacked > packedBodyBytesMax) return tooLarge(unpacked)
  const text = canonicalJson(decode(bytes))
  if (text.kind === 'problem') return text
  return { kind: 'ok', body: { bytes, hash: hashText(text.text) } }
}

/** The JSON of a body's bytes; undefined when they are not JSON's. */
export function unpackBody(bytes: Uint8Array): Json | undefined {
  const value = decode(bytes)
  return isJson(value, 0) ? value : undefined
}

function isJson(value: unknown, depth: number): value is Json {
  if (value === null) return true
  if (typeof value !== 'object') {
    return ['boolean', 'string'].includes(typeof value) || Number.isFinite(value)
  }
  if (depth >= bodyDepthMax) return false
  if (Array.isArray(value)) return value.every((one) => isJson(one, depth + 1))
  return isPlainObject(value) && Object.values(value).every((one) => isJson(one, depth + 1))
}

const mapPackr = new Packr({ useRecords: false, mapsAsObjects: false, structuredClone: false })

/** msgpackr renames a member `__proto__` when it makes objects; then maps are made and converted. */
function decode(stored: Uint8Array): unknown {
  const bytes = packedBytes(stored, packedBodyBytesMax)
  if (bytes === undefined) return undefined
  if (!asBuffer(bytes).includes('__proto__')) return unpack(bytes)
  try {
    const value: unknown = mapPackr.unpack(bytes)
    return fromMaps(value, 0)
  } catch {
    // Malformed bytes are a value here, as in `unpack`.
    return undefined
  }
}

function fromMaps(value: unknown, depth: number): unknown {
  if (depth > bodyDepthMax) return undefined
  if (Array.isArray(value)) return value.map((one: unknown) => fromMaps(one, depth + 1))
  if (!(value instanceof Map)) return value
  const members = [...value].map(([name, member]: [unknown, unknown]): [string, unknown] => [
    String(name),
    fromMaps(member, depth + 1),
  ])
  // Unlike assignment, this defines a `__proto__` as a member of the object's own.
  return Object.fromEntries(members)
}

function hashText(text: string): Uint8Array {
  return sha256(text).subarray(0, bodyHashBytes)
}

type Canonical =
  | { readonly kind: 'ok'; readonly text: string }
  | { readonly kind: 'problem'; readonly problem: Problem }

/** RFC 8785 text of a value, or why it cannot be a body. */
export function canonicalJson(value: unknown): Canonical {
  const writer = new CanonicalWriter()
  const reason = writer.write(value, 0)
  if (reason !== undefined) {
    return { kind: 'problem', problem: problem('invalid', `the body is refused: it ${reason}`) }
  }
  if (writer.isTooLong) return tooLarge(writer.chars)
  const text = writer.parts.join('')
  const bytes = Buffer.byteLength(text)
  return bytes > cellBytesMax ? tooLarge(bytes) : { kind: 'ok', text }
}

function tooLarge(actual: number): { readonly kind: 'problem'; readonly problem: Problem } {
  const message = `the body has more than ${cellBytesMax} bytes as JSON; split it into several cells`
  const detail = { limit: 'cellBytesMax', limitValue: cellBytesMax, actual }
  return { kind: 'problem', problem: problem('too-large', message, detail) }
}

const loneSurrogate = /\p{Surrogate}/u

class CanonicalWriter {
  readonly parts: string[] = []
  chars = 0

  /** Nothing more is written then: a small input must not be made to grow without end. */
  get isTooLong(): boolean {
    return this.chars > cellBytesMax
  }

  /** Why the value cannot be written; undefined when it was, or when the text is too long. */
  write(value: unknown, depth: number): string | undefined {
    if (this.isTooLong) return undefined
    if (value === null || typeof value === 'boolean') return this.#text(String(value))
    if (typeof value === 'number') return this.#number(value)
    if (typeof value === 'string') return this.#string(value)
    if (depth >= bodyDepthMax) return `is nested deeper than ${bodyDepthMax} levels`
    if (Array.isArray(value)) return this.#array(value, depth)
    if (isPlainObject(value)) return this.#object(value, depth)
    return `holds ${nameKind(value)}, which JSON has no word for`
  }

  #text(text: string): undefined {
    this.parts.push(text)
    this.chars += text.length
  }

  #number(value: number): string | undefined {
    if (!Number.isFinite(value)) return `holds the number ${value}, which JSON has no word for`
    return this.#text(JSON.stringify(value))
  }

  #string(value: string): string | undefined {
    const text = JSON.stringify(value)
    // Half a pair is written as an escape, so only a text that grew can hold one.
    const isSuspect = text.length > value.length + 2
    if (isSuspect && loneSurrogate.test(value)) return 'holds a string that is not Unicode'
    return this.#text(text)
  }

  #array(values: readonly unknown[], depth: number): string | undefined {
    this.#text('[')
    for (let i = 0; i < values.length && !this.isTooLong; i++) {
      if (i > 0) this.#text(',')
      const reason = this.write(values[i], depth + 1)
      if (reason !== undefined) return reason
    }
    return this.#text(']')
  }

  #object(members: Readonly<Record<string, unknown>>, depth: number): string | undefined {
    let separator = '{'
    for (const name of Object.keys(members).sort(compareText)) {
      if (this.isTooLong) return undefined
      this.#text(separator)
      separator = ','
      const refused = this.#string(name)
      if (refused !== undefined) return refused
      this.#text(':')
      const reason = this.write(members[name], depth + 1)
      if (reason !== undefined) return reason
    }
    return this.#text(separator === '{' ? '{}' : '}')
  }
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function refusedBody({ path, part, kind, detail, cause }: JsonFault): BodyResult {
  const where = path === '' ? 'it' : path.replace(/^\./, '')
  const wrong = problem(
    'invalid',
    `the body is refused: ${where} ${faultWords(kind, part, detail)}`,
  )
  if (kind !== 'thrown') return { kind: 'problem', problem: wrong }
  throw new StoreError('invalid', `${wrong.message}: ${errorText(cause)}`, {}, { cause })
}

function faultWords(kind: JsonFault['kind'], part: unknown, detail: unknown): string {
  switch (kind) {
    case 'number':
      return `holds the number ${String(part)}, which JSON has no word for`
    case 'text':
      return 'holds a string that is not Unicode'
    case 'deep':
      return `is nested deeper than ${bodyDepthMax} levels`
    case 'hidden':
      return `holds ${String(detail)}, which JSON has no word for`
    case 'length':
      return `holds a list whose length is ${wordsFor(detail)}`
    case 'thrown':
      return 'cannot be read'
    case 'other':
      return `holds ${nameKind(part)}, which JSON has no word for`
  }
}

function nameKind(value: unknown): string {
  if (typeof value !== 'object') return value === undefined ? 'undefined' : `a ${typeof value}`
  if (!isReadable(value)) return 'a proxy that was revoked'
  if (isDate(value) || value instanceof Promise) return wordsFor(value)
  return value instanceof Uint8Array ? 'bytes' : 'an object that is not plain'
}
