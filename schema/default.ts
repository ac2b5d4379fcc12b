/**
 * Defaults (`DEFAULT 5`): what a row has that was written without the property, be it by an insert
 * or before the property was added. They are kept as JSON has them and turned into values here.
 */
import { otherUnitOf } from '../src/base/given-time.ts'
import { losesDigits, losesDigitsAsFloat } from '../src/base/decimal.ts'
import { wordsFor } from '../src/base/words.ts'
import type { PropertyDefault, PropertyKind, ScalarKind } from './model.ts'
import { isText, isUuid } from './values.ts'

/** A value as the model keeps it; a value without such a form gives one that no type takes. */
export function toLiteral(value: unknown): PropertyDefault {
  if (typeof value === 'string' || typeof value === 'boolean') return value
  // JSON has no negative zero.
  if (typeof value === 'number') return value === 0 ? 0 : value
  if (typeof value === 'bigint') return value.toString()
  return value instanceof Uint8Array ? encodeHex(value) : noLiteral
}

/** A stand-in for a default that the model has no form for; no type takes it. */
export const noLiteral: number = Number.NaN

/** A default as its writer gave it, for the message about one that does not fit. */
export interface GivenDefault {
  readonly words: string
  readonly hint?: string
}

/** Of properties, and of what is declared for them: the model keeps literals alone. */
const givenDefaults = new WeakMap<object, GivenDefault>()

export function keepGiven(property: object, given: GivenDefault | undefined): void {
  if (given !== undefined) givenDefaults.set(property, given)
}

export function findGivenDefault(property: object): GivenDefault | undefined {
  return givenDefaults.get(property)
}

/** Undefined where the literal says it itself. */
export function givenValue(
  kind: ScalarKind,
  value: unknown,
  literal: PropertyDefault,
): GivenDefault | undefined {
  const words = wordsFor(value)
  const hint = typeHint(kind, value)
  if (hint !== undefined) return { words, hint }
  const isShown = ['string', 'boolean', 'number'].includes(typeof value)
  const isFinite = typeof literal !== 'number' || Number.isFinite(literal)
  return isShown && isFinite ? undefined : { words }
}

/** Where JavaScript has two types for one number. */
function typeHint(kind: ScalarKind, value: unknown): string | undefined {
  if (kind === 'int64') {
    if (typeof value === 'string') return 'int64 takes a bigint: 5n'
    return Number.isSafeInteger(value) ? `int64 takes a bigint: ${wordsFor(value)}n` : undefined
  }
  const isOfNumbers = ['int32', 'integer', 'float', 'double'].includes(kind)
  return isOfNumbers && typeof value === 'bigint' ? `${kind} takes a number: ${value}` : undefined
}

/** A number as it is written in a text; one that would change is no default. */
export function writtenNumber(
  kind: ScalarKind,
  text: string,
): { readonly literal: PropertyDefault; readonly given: GivenDefault } {
  const isWhole = /^[+-]?\d+$/.test(text)
  if (kind === 'int64' && isWhole) {
    const literal = BigInt(text.replace('+', '')).toString()
    return { literal, given: { words: text } }
  }
  const value = Number(text)
  const changed = changedNumber(kind, text, value)
  if (changed === undefined) return { literal: toLiteral(value), given: { words: text } }
  const isNumber = kind === 'float' || kind === 'double'
  const hint = isNumber && Number.isFinite(value) ? { hint: `it would become ${changed}` } : {}
  return { literal: noLiteral, given: { words: text, ...hint } }
}

/** The value that is left of a number that loses digits; undefined when it loses none. */
function changedNumber(kind: ScalarKind, text: string, value: number): number | undefined {
  if (losesDigits(text)) return value
  return kind === 'float' && losesDigitsAsFloat(value) ? Math.fround(value) : undefined
}

/** The value of a checked default. */
export function decodeLiteral(
  kind: PropertyKind,
  literal: PropertyDefault,
): string | number | boolean | bigint | Uint8Array {
  if (kind === 'int64') return BigInt(literal)
  // There is one zero.
  if (typeof literal === 'number') return literal + 0
  return kind === 'bytes' ? decodeHex(String(literal)) : literal
}

const int64Most = 2n ** 63n - 1n
const floatMost = 3.4028234663852886e38

/** How a type's values are held to its rule: the same by which rows are checked (`src/tables/scalar.ts`). */
interface Fit {
  /** Does the literal stand for a value of this type? */
  readonly fits: (literal: PropertyDefault) => boolean
  /** The values that fit, in words. */
  readonly words: string
}

export const fitByKind: Readonly<Record<PropertyKind, Fit>> = {
  string: { fits: isText, words: 'it is a text in quotes, of whole characters' },
  bytes: {
    fits: (literal) => typeof literal === 'string' && /^(?:[0-9a-f]{2})*$/.test(literal),
    words: 'it is hexadecimal digits in quotes: "00ff"',
  },
  bool: { fits: (literal) => typeof literal === 'boolean', words: 'it is true or false' },
  int32: {
    fits: (literal) => Number.isInteger(literal) && literal === (Number(literal) | 0),
    words: 'it is a whole number from -2147483648 to 2147483647',
  },
  int64: {
    fits: (literal) => typeof literal === 'string' && isInt64(literal),
    words: 'it is a whole number from -9223372036854775808 to 9223372036854775807',
  },
  integer: {
    fits: Number.isSafeInteger,
    words: 'it is a whole number from -9007199254740991 to 9007199254740991',
  },
  float: {
    fits: (literal) => Number.isFinite(literal) && Math.abs(Number(literal)) <= floatMost,
    words: 'it is a number of 32 bits',
  },
  double: { fits: Number.isFinite, words: 'it is a number of 64 bits' },
  timestamp: {
    fits: (literal) => Number.isSafeInteger(literal) && otherUnitOf(literal) === undefined,
    words:
      'it is microseconds since 1970, a whole number within the years 1684 to 2255, and no seconds or milliseconds',
  },
  uuid: {
    fits: (literal) => typeof literal === 'string' && isUuid(literal),
    words: 'it is a UUID in small letters, in quotes',
  },
  json: { fits: () => false, words: 'json has no default' },
  sequence: { fits: () => false, words: 'its number is given when a row is committed' },
  message: { fits: () => false, words: 'give its fields defaults' },
}

/** The one form in which digits are kept, so that equal numbers are equal texts. */
function isInt64(digits: string): boolean {
  if (!/^-?\d{1,19}$/.test(digits)) return false
  const value = BigInt(digits)
  return value.toString() === digits && value <= int64Most && value >= -int64Most - 1n
}

function encodeHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function decodeHex(hex: string): Uint8Array {
  const pairs = hex.match(/../g) ?? []
  return Uint8Array.from(pairs, (pair) => Number.parseInt(pair, 16))
}
