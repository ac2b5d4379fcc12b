/** Values of every type of the schema language, drawn by fast-check. */
import * as fc from 'fast-check'
import { compareBytes } from '../../src/base/bytes.ts'
import type { PropertyKind } from '../../schema/model.ts'

export const float32 = { max: 3.4028234663852886e38, least: 2 ** -149 }

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 6 }),
  fc.string({ unit: fc.constantFrom('\0', '\u0001', 'a', 'ÿ', '\u{ffff}', '😀'), maxLength: 5 }),
)

/** Few values, so that some are equal, and wide ones. */
const safe = fc.oneof(fc.maxSafeInteger(), fc.integer({ min: -3, max: 3 }))
const finite = { noNaN: true, noDefaultInfinity: true } as const

/** A value that may be in a key or an index. */
export function keyValueByKind(kind: PropertyKind): fc.Arbitrary<unknown> {
  switch (kind) {
    case 'string':
      return text
    case 'bytes':
      return fc.oneof(
        fc.uint8Array({ maxLength: 5 }),
        fc.array(fc.constantFrom(0, 1, 255), { maxLength: 4 }).map((list) => Uint8Array.from(list)),
      )
    case 'bool':
      return fc.boolean()
    case 'int32':
      return fc.oneof(fc.integer(), fc.integer({ min: -2, max: 2 }))
    case 'int64':
      return fc.oneof(
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        fc.bigInt({ min: -2n, max: 2n }),
      )
    case 'float':
      return fc.float(finite).map((value) => value + 0)
    case 'double':
      return fc.double(finite).map((value) => value + 0)
    case 'uuid':
      return fc.uuid()
    case 'sequence':
      return fc.oneof(
        fc.integer({ min: 1, max: 5 }),
        fc.maxSafeNat().map((count) => count + (count === 0 ? 1 : 0)),
      )
    default:
      return safe
  }
}

/** Any JSON, as it is after a trip through its text. */
const jsonValue = fc.jsonValue({ maxDepth: 3 }).map((value): unknown => {
  const same: unknown = JSON.parse(JSON.stringify(value))
  return same
})

/** A value of a property that is no message. */
export function valueByKind(kind: PropertyKind): fc.Arbitrary<unknown> {
  return kind === 'json' ? jsonValue : keyValueByKind(kind)
}

/** The order of two values of one type: -1, 0 or 1. */
/** Absent comes first. */
export function compareValues(a: unknown, b: unknown): number {
  if (a === undefined || b === undefined) return Number(b === undefined) - Number(a === undefined)
  if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b)
  if (typeof a === 'string' && typeof b === 'string') {
    return compareBytes(Buffer.from(a), Buffer.from(b))
  }
  if (typeof a === 'bigint' && typeof b === 'bigint') return a < b ? -1 : a > b ? 1 : 0
  return Math.sign(Number(a) - Number(b))
}
