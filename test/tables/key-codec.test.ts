/** Values in keys: their bytes order as they do, come back, and never begin one another. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareBytes } from '../../src/base/bytes.ts'
import type { KeyPart } from '../../src/tables/compiled.ts'
import { encodePart } from '../../src/tables/key-codec.ts'
import { KeyReader } from '../../src/tables/key-reader.ts'
import { scalarKinds, type Direction, type PropertyKind } from '../../schema/model.ts'
import { compareValues, float32, keyValueByKind } from './values.ts'

const kinds = scalarKinds.filter((kind) => kind !== 'json')

const cases = kinds.flatMap((kind): readonly (readonly [PropertyKind, Direction])[] => [
  [kind, 'asc'],
  [kind, 'desc'],
])

test.each(cases)('TAB-1: %s %s: bytes order as values do, and come back', (kind, direction) => {
  const part: KeyPart = { name: 'p', kind, direction }
  const value = keyValueByKind(kind)
  fc.assert(
    fc.property(value, value, fc.uint8Array({ maxLength: 4 }), (a, b, tail) => {
      const [x, y] = [encodePart(part, a), encodePart(part, b)]
      const expected = compareValues(a, b) * (direction === 'asc' ? 1 : -1) + 0
      expect(Math.sign(compareBytes(x, y))).toBe(expected)
      const behind = Buffer.concat([Buffer.from([7]), x, tail])
      const reader = new KeyReader(behind, 1)
      expect(reader.part(part)).toEqual(a)
      expect(reader.at).toBe(1 + x.length)
      // Ends by itself: what follows never changes which comes first.
      if (expected !== 0) {
        expect(compareBytes(behind.subarray(1), y) < 0).toBe(expected < 0)
        expect(y.subarray(0, x.length).equals(x)).toBe(false)
      }
    }),
  )
})

test.each(cases)(
  'TAB-1: %s %s: an absent part decodes as absent and sorts before all values',
  (kind, direction) => {
    const part: KeyPart = { name: 'p', kind, direction, mayBeAbsent: true }
    const value = fc.option(keyValueByKind(kind), { nil: undefined })
    fc.assert(
      fc.property(value, value, (a, b) => {
        const [x, y] = [encodePart(part, a), encodePart(part, b)]
        const expected = compareValues(a, b) * (direction === 'asc' ? 1 : -1) + 0
        expect(Math.sign(compareBytes(x, y))).toBe(expected)
        const reader = new KeyReader(x, 0)
        expect(reader.part(part)).toEqual(a ?? null)
        expect(reader.isAtEnd).toBe(true)
        if (expected !== 0) expect(y.subarray(0, x.length).equals(x)).toBe(false)
      }),
    )
  },
)

test('TAB-1: bytes that are cut off have no value', () => {
  for (const kind of kinds) {
    const part: KeyPart = { name: 'p', kind, direction: 'asc' }
    const [value] = fc.sample(keyValueByKind(kind), 1)
    const bytes = encodePart(part, value)
    for (let length = 0; length < bytes.length; length++) {
      expect(new KeyReader(bytes.subarray(0, length), 0).part(part)).toBeUndefined()
    }
  }
})

test('TAB-1: the corners of each range of numbers are in order', () => {
  const corners: Readonly<Partial<Record<PropertyKind, readonly unknown[]>>> = {
    int32: [-(2 ** 31), -1, 0, 1, 2 ** 31 - 1],
    int64: [-(2n ** 63n), -1n, 0n, 1n, 2n ** 63n - 1n],
    integer: [-(2 ** 53 - 1), -(2 ** 32), -1, 0, 1, 2 ** 32, 2 ** 53 - 1],
    double: [-Number.MAX_VALUE, -1, -Number.MIN_VALUE, 0, Number.MIN_VALUE, 1, Number.MAX_VALUE],
    float: [-float32.max, -1, -float32.least, 0, float32.least, 1, float32.max],
    string: ['', '\0', '\0a', '\u0001', 'a', 'a\0', 'ab', '\uffff', '😀'],
  }
  for (const kind of kinds) {
    const part: KeyPart = { name: 'p', kind, direction: 'asc' }
    const bytes = (corners[kind] ?? []).map((value) => encodePart(part, value))
    expect(bytes.toSorted(compareBytes)).toEqual(bytes)
  }
})
