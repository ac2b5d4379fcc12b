/**
 * What is a value of each type, and what to say when it is not. Values come from applications, also
 * from those in JavaScript, so nothing is taken for granted.
 */
import { copyOf } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import { microsOfGiven, propertyTime } from '../base/given-time.ts'
import { hiddenIn, isBytes, isReadable } from '../base/readable.ts'
import { isPlain, wordsFor } from '../base/words.ts'
import type { PropertyKind } from '../../schema/model.ts'
import { isText, isUuid } from '../../schema/values.ts'

/** Lists and objects inside one another in a value of type json. */
export const jsonDepthMax = 64
/** Elements of one list in a value of type json: more are more than a transaction holds. */
export const jsonElementsMax = 4_194_304

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
    accepts: (value) =>
      typeof value === 'number' && Number.isFinite(value) && Math.abs(value) <= floatMost,
    words: 'a finite number of 32 bits',
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
    accepts: (value) => isJson(value, 0),
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
  // What is stored is not the caller's to change any more.
  if (value instanceof Uint8Array) return copyOf(value)
  if (kind === 'json') return copyOfJson(value)
  // Equal values are equal bytes: there is one zero, and a float is what 32 bits keep of it.
  if (typeof value === 'number') return (kind === 'float' ? Math.fround(value) : value) + 0
  return value
}

export function wrongValue(where: string, value: unknown, words: string): StoreError {
  return new StoreError('invalid', `${where} is ${wordsFor(value)}; expected ${words}`)
}

function copyOfJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOfJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, copyOfJson(one)]))
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1
}

function isJson(value: unknown, depth: number): boolean {
  if (depth > jsonDepthMax) return false
  if (value === null || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value === 'string') return isText(value)
  if (typeof value !== 'object' || !isReadable(value) || hiddenIn(value) !== undefined) return false
  // `every` would pass over holes.
  if (Array.isArray(value)) {
    return (
      value.length <= jsonElementsMax && Array.from(value).every((one) => isJson(one, depth + 1))
    )
  }
  if (!isPlain(value)) return false
  return Object.entries(value).every(([name, one]) => isText(name) && isJson(one, depth + 1))
}
