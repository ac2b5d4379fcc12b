/**
 * Values of indexed fields: what a cell's JSON says as a value of the declared type, or nothing; how
 * two of them compare; and bytes in the same order.
 */
import { compareCodePoints } from '../base/bytes.ts'
import { microsOf } from './datetime.ts'
import { encodePart } from '../tables/key-codec.ts'
import type { PropertyKind } from '../../schema/model.ts'

export const indexTypes = ['uuid', 'string', 'integer', 'double', 'boolean', 'datetime'] as const
export type IndexType = (typeof indexTypes)[number]

export function isIndexType(text: string): text is IndexType {
  return indexTypes.some((type) => type === text)
}

/** As it is compared and stored; a datetime is microseconds since 1970. */
export type IndexValue = string | number | boolean

/** Longer ones are in the entry, and no part of its place. */
export const sortBytesMax = 256

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Undefined for what is absent, or of another type than declared. */
export function indexValue(type: IndexType, given: unknown): IndexValue | undefined {
  switch (type) {
    case 'string':
      return typeof given === 'string' ? given : undefined
    case 'uuid':
      return uuidOf(given)
    case 'integer':
      return Number.isSafeInteger(given) ? Number(given) : undefined
    case 'double':
      return typeof given === 'number' && Number.isFinite(given) ? given + 0 : undefined
    case 'boolean':
      return typeof given === 'boolean' ? given : undefined
    case 'datetime':
      if (typeof given === 'string') return microsOf(given)
      return Number.isSafeInteger(given) ? Number(given) : undefined
  }
}

function uuidOf(given: unknown): string | undefined {
  const text = typeof given === 'string' ? given.toLowerCase() : ''
  return uuidPattern.test(text) ? text : undefined
}

/** From the text of a query in a URL or on a command line. */
export function indexValueOfText(type: IndexType, text: string): IndexValue | undefined {
  const isNumber = type === 'integer' || type === 'double'
  if (isNumber) return text.trim() === '' ? undefined : indexValue(type, Number(text))
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : undefined
  if (type === 'datetime' && /^\d+$/.test(text)) return indexValue(type, Number(text))
  return indexValue(type, text)
}

/** As `sortBytes` compare, however long the values are; absent ones come first. */
export function compareValues(a: IndexValue | null, b: IndexValue | null): number {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null)
  if (typeof a === 'string' && typeof b === 'string') return compareCodePoints(a, b)
  return Number(a) - Number(b)
}

const kinds: Readonly<Record<IndexType, PropertyKind>> = {
  uuid: 'uuid',
  string: 'string',
  integer: 'integer',
  double: 'double',
  boolean: 'bool',
  datetime: 'integer',
}

/** Bytes that order as the values do, as far as they go; absent ones are first. */
export function sortBytes(type: IndexType, value: IndexValue | null): Uint8Array {
  if (value === null) return Uint8Array.of(0)
  const part = { name: '', kind: kinds[type], direction: 'asc' } as const
  const bytes = Buffer.concat([Uint8Array.of(1), encodePart(part, value)])
  return bytes.subarray(0, sortBytesMax)
}
