/**
 * Values of indexed fields: what a cell's JSON says as a value of the declared type, or nothing; how
 * two of them compare; and bytes in the same order.
 */
import { compareCodePoints } from '../base/bytes.ts'
import { losesDigits } from '../base/decimal.ts'
import { isMicros, parseMicros, narrowed, type Micros } from '../base/datetime.ts'
import { encodePart, int64Shift } from '../tables/key-codec.ts'
import type { PropertyKind } from '../../schema/model.ts'

export const indexTypes = ['uuid', 'string', 'integer', 'double', 'boolean', 'datetime'] as const
export type IndexType = (typeof indexTypes)[number]

export function isIndexType(text: string): text is IndexType {
  return indexTypes.some((type) => type === text)
}

/** As it is compared; a datetime is microseconds since 1970, a bigint where a number would lose digits. */
export type IndexValue = string | number | bigint | boolean

/** Longer ones are in the entry, and no part of its place. */
export const sortBytesMax = 256

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Undefined for what is absent, or of another type than declared. */
export function indexValue(type: IndexType, given: unknown): IndexValue | undefined {
  switch (type) {
    case 'string':
      return typeof given === 'string' ? given : undefined
    case 'uuid':
      return parseUuid(given)
    case 'integer':
      return Number.isSafeInteger(given) ? Number(given) : undefined
    case 'double':
      return typeof given === 'number' && Number.isFinite(given) ? given + 0 : undefined
    case 'boolean':
      return typeof given === 'boolean' ? given : undefined
    case 'datetime':
      if (typeof given === 'string') return parseMicros(given)
      return isMicros(given) ? given : undefined
  }
}

function parseUuid(given: unknown): string | undefined {
  const text = typeof given === 'string' ? given.toLowerCase() : ''
  return uuidPattern.test(text) ? text : undefined
}

const numberPattern = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i

/** As JSON writes numbers: `3e0` and `3.0` are 3; `0x10`, `+7` and ` 7` are none. */
export function isNumberText(text: string): boolean {
  return numberPattern.test(text)
}

/** Rounded, it would be another value that entries are compared to. */
function isKept(text: string): boolean {
  return isNumberText(text) && !losesDigits(text)
}

/** From the text of a query in a URL or of a program; undefined for a number that would lose digits. */
export function indexValueOfText(type: IndexType, text: string): IndexValue | undefined {
  const isNumber = type === 'integer' || type === 'double'
  if (isNumber) return isKept(text) ? indexValue(type, Number(text)) : undefined
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : undefined
  if (type !== 'datetime' || !isNumberText(text)) return indexValue(type, text)
  // More digits than a number holds are years before 1684 and after 2255.
  if (/^-?\d{1,18}$/.test(text)) return indexValue(type, narrowed(BigInt(text)))
  return isKept(text) ? indexValue(type, Number(text)) : undefined
}

/** As `sortBytes` compare, however long the values are; absent ones come first. */
export function compareValues(a: IndexValue | null, b: IndexValue | null): number {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null)
  if (typeof a === 'string' && typeof b === 'string') return compareCodePoints(a, b)
  if (typeof a === 'bigint' || typeof b === 'bigint') return Number(a > b) - Number(a < b)
  return Number(a) - Number(b)
}

const kinds: Readonly<Record<Exclude<IndexType, 'datetime'>, PropertyKind>> = {
  uuid: 'uuid',
  string: 'string',
  integer: 'integer',
  double: 'double',
  boolean: 'bool',
}

/** Bytes that order as the values do, as far as they go; absent ones are first. */
export function sortBytes(type: IndexType, value: IndexValue | null): Uint8Array {
  if (value === null) return Uint8Array.of(0)
  if (type === 'datetime') return timeBytes(BigInt(value))
  const part = { name: '', kind: kinds[type], direction: 'asc' } as const
  const bytes = Buffer.concat([Uint8Array.of(1), encodePart(part, value)])
  return bytes.subarray(0, sortBytesMax)
}

/** The least number that is exact, before which years are not those of numbers. */
const earlyBefore = -(2n ** 53n)

/** A time of before 1684 is behind what is absent and ahead of all that numbers hold exactly. */
function timeBytes(micros: bigint): Uint8Array {
  const isEarly = micros < earlyBefore
  const bytes = Buffer.alloc(isEarly ? 10 : 9)
  bytes.set(isEarly ? [0, 0xff] : [1])
  bytes.writeBigUInt64BE(micros + (isEarly ? int64Shift : -earlyBefore), bytes.length - 8)
  return bytes
}

/** As it is packed, in an entry and on the wire: a bigint is its eight bytes. */
export function packable(
  value: IndexValue | null,
): Exclude<IndexValue, bigint> | Uint8Array | null {
  if (typeof value !== 'bigint') return value
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(value)
  return bytes
}

/** Undefined for eight bytes that are no such time. */
export function microsOfBytes(bytes: Uint8Array): Micros | undefined {
  const micros = bigintOfBytes(bytes)
  return isMicros(micros) ? micros : undefined
}

/** The same for a query's value, where a bigint may also be one that a number holds. */
export function askedOfBytes(bytes: Uint8Array): bigint | undefined {
  const micros = bigintOfBytes(bytes)
  return micros !== undefined && isMicros(narrowed(micros)) ? micros : undefined
}

function bigintOfBytes(bytes: Uint8Array): bigint | undefined {
  return bytes.length === 8 ? Buffer.from(bytes).readBigInt64BE() : undefined
}
