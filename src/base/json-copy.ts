/**
 * A copy of JSON that a program gives, made in one walk that reads each part once. So the program stores
 * what it has checked, also of getters and proxies that answer differently the second time.
 */
import { readElements, hiddenIn, isReadable } from './readable.ts'
import { isPlain } from './words.ts'

export type JsonCopy =
  null | boolean | number | string | readonly JsonCopy[] | { readonly [name: string]: JsonCopy }

/** Why a value is no JSON, and the part of it that is none. */
export interface JsonFault {
  /** From the value to the part: `.a[0]`; nothing for the value itself. */
  readonly path: string
  readonly part: unknown
  readonly kind: 'other' | 'number' | 'text' | 'deep' | 'hidden' | 'length' | 'thrown'
  /** The hidden member, in words, or the length that the part claims. */
  readonly detail?: unknown
  /** The error that reading it threw. */
  readonly cause?: unknown
}

export interface JsonBounds {
  /** Lists and objects inside one another. */
  readonly depthMax: number
  /** The text has at least as many characters as are counted. */
  readonly charsMax: number
}

export type JsonResult =
  | { readonly kind: 'ok'; readonly value: JsonCopy }
  | { readonly kind: 'fault'; readonly fault: JsonFault }
  | { readonly kind: 'too-long'; readonly chars: number }

class Refused extends Error {
  readonly fault: JsonFault

  constructor(fault: JsonFault) {
    super(fault.kind)
    this.fault = fault
  }
}

class TooLong extends Error {}

const halfPair = /\p{Surrogate}/u

export function copyOfJson(value: unknown, bounds: JsonBounds): JsonResult {
  const copier = new Copier(bounds)
  try {
    return { kind: 'ok', value: copier.copy(value, 0, '') }
  } catch (error) {
    if (error instanceof Refused) return { kind: 'fault', fault: error.fault }
    if (error instanceof TooLong) return { kind: 'too-long', chars: copier.chars }
    throw error
  }
}

class Copier {
  readonly #bounds: JsonBounds
  chars = 0

  constructor(bounds: JsonBounds) {
    this.#bounds = bounds
  }

  copy(value: unknown, depth: number, path: string): JsonCopy {
    if (typeof value === 'string') return this.#text(value, value, path)
    this.#count(1)
    if (value === null || typeof value === 'boolean') return value
    if (typeof value === 'number') {
      if (Number.isFinite(value)) return value
      throw new Refused({ path, part: value, kind: 'number' })
    }
    if (typeof value !== 'object' || !isReadable(value)) {
      throw new Refused({ path, part: value, kind: 'other' })
    }
    if (depth >= this.#bounds.depthMax) throw new Refused({ path, part: value, kind: 'deep' })
    return Array.isArray(value) ? this.#list(value, depth, path) : this.#object(value, depth, path)
  }

  /** At least as many characters are in the text; a small value must not be made to grow without end. */
  #count(chars: number): void {
    this.chars += chars
    if (this.chars > this.#bounds.charsMax) throw new TooLong()
  }

  #text(text: string, part: unknown, path: string): string {
    this.#count(text.length + 2)
    if (!halfPair.test(text)) return text
    throw new Refused({ path, part, kind: 'text' })
  }

  #list(list: readonly unknown[], depth: number, path: string): JsonCopy {
    const { length, elements } = reading(list, path, () => {
      const hidden = hiddenIn(list)
      if (hidden !== undefined) {
        throw new Refused({ path, part: list, kind: 'hidden', detail: hidden })
      }
      const said = list.length
      if (said > this.#bounds.charsMax) throw new TooLong()
      return { length: said, elements: readElements(list) }
    })
    if (elements === undefined) {
      throw new Refused({ path, part: list, kind: 'length', detail: length })
    }
    return elements.map((one, place) => this.copy(one, depth + 1, `${path}[${place}]`))
  }

  #object(value: object, depth: number, path: string): JsonCopy {
    if (!isPlain(value)) throw new Refused({ path, part: value, kind: 'other' })
    const names = reading(value, path, () => {
      const hidden = hiddenIn(value)
      if (hidden !== undefined) {
        throw new Refused({ path, part: value, kind: 'hidden', detail: hidden })
      }
      return Object.keys(value)
    })
    const members = names.map((name): [string, JsonCopy] => {
      const at = `${path}.${name}`
      const member = reading(undefined, at, (): unknown => Reflect.get(value, name))
      return [this.#text(name, value, path), this.copy(member, depth + 1, at)]
    })
    return Object.fromEntries(members)
  }
}

/**
 * Reads a part of a value. An error that a getter or a proxy's handler throws there becomes a refusal with
 * its place.
 */
function reading<Value>(part: unknown, path: string, read: () => Value): Value {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof Refused || cause instanceof TooLong) throw cause
    throw new Refused({ path, part, kind: 'thrown', cause })
  }
}
