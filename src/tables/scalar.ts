/**
 * Decides what is a value of each type, and words the error for one that is not. Values come from
 * applications, also from those in JavaScript, so nothing is taken for granted.
 */
import { losesDigitsAsFloat } from '../base/decimal.ts'
import { copyBytes } from '../base/bytes.ts'
import { errorText } from '../base/error-text.ts'
import { StoreError } from '../base/errors.ts'
import { microsOfGiven, propertyTime } from '../base/given-time.ts'
import { copyOfJson } from '../base/json-copy.ts'
import { transactionBytesMax } from '../base/limits.ts'
import { isBytes, isReadable } from '../base/readable.ts'
import { wordsFor } from '../base/words.ts'
import type { PropertyKind } from '../../schema/model.ts'
import { isText, isUuid } from '../../schema/values.ts'

/** Lists and objects inside one another in a value of type json. */
export const jsonDepthMax = 64
/** Characters of a value of type json as text. */
const jsonCharsMax = transactionBytesMax

const int64Most = 2n ** 63n - 1n
const floatMost = 3.4028234663852886e38

interface Scalar {
  readonly accepts: (value: unknown) => boolean
  readonly words: string
}

const scalarByKind: Readonly<Record<Exclude<PropertyKind, 'message'>, Scalar>> = {
  string: { accepts: isText, words: 'a string of whole characters' },
  bytes: { accepts: isBytes, words: 'a Uint8Array' },
  bool: { accepts: (value) => typeof value === 'boolean', words: 'true or false' },
  int32: {
    accepts: (value) => typeof value === 'number' && value === (value | 0),
    words: 'a whole number from -2147483648 to 2147483647',
  },
  int64: {
    accepts: (value) => typeof value === 'bigint' && value <= int64Most && value >= -int64Most - 1n,
    words: 'a bigint of 64 bits, such as 5n',
  },
  integer: {
    accepts: Number.isSafeInteger,
    words: 'a whole number from -9007199254740991 to 9007199254740991',
  },
  float: {
    accepts: (value) => typeof value === 'number' && isFloat(value),
    words:
      'a finite number of 32 bits, which round a fraction, and lose no other digit of it (16777216, 3e10, not 16777217)',
  },
  double: { accepts: Number.isFinite, words: 'a finite number' },
  timestamp: {
    accepts: (value) => microsOfGiven(value) !== undefined,
    words: 'a Date, or microseconds since 1970',
  },
  uuid: {
    accepts: (value) => typeof value === 'string' && isUuid(value),
    words: 'a UUID in small letters',
  },
  json: {
    accepts: () => true,
    words: `JSON: null, booleans, finite numbers, strings, lists and plain objects of them, ${jsonDepthMax} deep at most, without members that are hidden or that symbols name`,
  },
  sequence: { accepts: isCount, words: 'a number that was given, a whole one from 1' },
}

/** The value as it is stored; throws `invalid`. `where` is 'table Photo: photo_id'. */
export function checkScalar(
  kind: Exclude<PropertyKind, 'message'>,
  value: unknown,
  where: string,
): unknown {
  if (kind === 'timestamp') return propertyTime(value, where)
  const { accepts, words } = scalarByKind[kind]
  if (!isReadable(value) || !accepts(value)) throw wrongValue(where, value, words)
  // The caller may no longer change the stored value.
  if (kind === 'json') return checkedJson(value, where, words)
  if (value instanceof Uint8Array) return copyBytes(value)
  // Equal values are equal bytes: there is one zero, and a float is what 32 bits keep of it.
  if (typeof value === 'number') return (kind === 'float' ? Math.fround(value) : value) + 0
  return value
}

/** A getter, or the handler of a proxy, threw as the value was read. */
export function unreadable(where: string, cause: unknown): StoreError {
  return new StoreError('invalid', `${where} cannot be read: ${errorText(cause)}`, {}, { cause })
}

export function wrongValue(where: string, value: unknown, words: string): StoreError {
  return new StoreError('invalid', `${where} is ${wordsFor(value)}; expected ${words}`)
}

function checkedJson(value: unknown, where: string, words: string): unknown {
  const copy = copyOfJson(value, { depthMax: jsonDepthMax, charsMax: jsonCharsMax })
  if (copy.kind === 'ok') return copy.value
  if (copy.kind === 'too-long') {
    const message = `${where} has more than ${jsonCharsMax} characters as JSON, which no transaction holds`
    const detail = { limit: 'transactionBytesMax', limitValue: jsonCharsMax, actual: copy.chars }
    throw new StoreError('too-large', message, detail)
  }
  const { path, part, kind, detail, cause } = copy.fault
  const place = `${where}${path}`
  if (kind === 'thrown') throw unreadable(place, cause)
  if (kind === 'length') {
    throw new StoreError('invalid', `${place} is a list whose length is ${wordsFor(detail)}`)
  }
  throw wrongValue(place, part, words)
}

/** A fraction is rounded to what 32 bits keep. A number that would lose digits, or all of a small one, is not taken. */
function isFloat(value: number): boolean {
  return Number.isFinite(value) && Math.abs(value) <= floatMost && !losesDigitsAsFloat(value)
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1
}
