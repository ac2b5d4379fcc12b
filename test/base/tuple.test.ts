/** Order-preserving tuples: the bytes compare as the tuples do, and come back as what they were. */
import { expect, test } from 'vitest'
import * as fc from 'fast-check'
import { compareBytes } from '../../src/base/bytes.ts'
import { afterPrefix, decodeTuple, encodeTuple, type TupleElement } from '../../src/base/tuple.ts'

const seeded = { seed: 20_110_109, numRuns: 500 }

const wellFormedText = fc.string({ unit: 'binary', maxLength: 12 })
/** Zero bytes and 0xff are what the escaping is about: draw them often. */
const rawBytes = fc
  .array(fc.oneof(fc.constantFrom(0, 1, 0xfe, 0xff), fc.nat(255)), { maxLength: 12 })
  .map((values) => Uint8Array.from(values))
const element: fc.Arbitrary<TupleElement> = fc.oneof(rawBytes, wellFormedText, fc.maxSafeInteger())
const tuple = fc.array(element, { maxLength: 4 })

/** The order that is promised, written as naively as it can be. */
function compareTuples(a: readonly TupleElement[], b: readonly TupleElement[]): number {
  for (const [i, left] of a.entries()) {
    const right = b[i]
    if (right === undefined) return 1
    const order = compareElements(left, right)
    if (order !== 0) return order
  }
  return a.length - b.length
}

function compareElements(a: TupleElement, b: TupleElement): number {
  if (kindRank(a) !== kindRank(b)) return kindRank(a) - kindRank(b)
  if (typeof a === 'number' || typeof b === 'number') return Number(a) - Number(b)
  return compareBytes(Buffer.from(a), Buffer.from(b))
}

function kindRank(value: TupleElement): number {
  return typeof value === 'number' ? 2 : typeof value === 'string' ? 1 : 0
}

function comparable(value: TupleElement): string | number {
  return typeof value === 'object' ? Buffer.from(value).toString('hex') : value
}

test('tuple: bytes compare as the tuples do', () => {
  fc.assert(
    fc.property(tuple, tuple, (a, b) => {
      const order = compareBytes(encodeTuple(a), encodeTuple(b))
      expect(Math.sign(order)).toBe(Math.sign(compareTuples(a, b)))
    }),
    seeded,
  )
})

test('tuple: bytes compare as the tuples do where two differ in one place only', () => {
  fc.assert(
    fc.property(tuple, element, element, tuple, (head, a, b, tail) => {
      const order = compareBytes(
        encodeTuple([...head, a, ...tail]),
        encodeTuple([...head, b, ...tail]),
      )
      const differs = compareElements(a, b)
      expect(Math.sign(order)).toBe(Math.sign(differs))
    }),
    seeded,
  )
})

test('tuple: decoding gives the encoded elements back', () => {
  fc.assert(
    fc.property(tuple, (elements) => {
      const back = decodeTuple(encodeTuple(elements))
      expect(back?.map(comparable)).toEqual(elements.map(comparable))
    }),
    seeded,
  )
})

test('tuple: the encoding of a prefix is a prefix of the encoding', () => {
  fc.assert(
    fc.property(tuple, tuple, (head, tail) => {
      const prefix = encodeTuple(head)
      const whole = encodeTuple([...head, ...tail])
      expect(Buffer.from(whole.subarray(0, prefix.length)).equals(prefix)).toBe(true)
    }),
    seeded,
  )
})

test('tuple: bytes that decode are the bytes that their elements encode to', () => {
  const nearlyTuples = fc.oneof(
    rawBytes,
    tuple.map(encodeTuple),
    fc.tuple(tuple.map(encodeTuple), rawBytes).map(([head, tail]) => Buffer.concat([head, tail])),
    fc
      .tuple(fc.constantFrom(0x10, 0x20, 0x30), rawBytes)
      .map(([kind, tail]) => Buffer.from([kind, ...tail])),
    fc
      .tuple(fc.constantFrom(0x10, 0x20), rawBytes)
      .map(([kind, tail]) => Buffer.from([kind, ...tail, 0, 1])),
  )
  fc.assert(
    fc.property(nearlyTuples, (bytes) => {
      const elements = decodeTuple(bytes)
      if (elements !== undefined)
        expect(Buffer.from(encodeTuple(elements)).equals(bytes)).toBe(true)
    }),
    { ...seeded, numRuns: 3000 },
  )
})

test('tuple: half an element, an unknown kind and a bad escape are no tuple', () => {
  for (const bytes of [
    [0x10],
    [0x20, 0x61, 0],
    [0x20, 0xfe, 0, 1],
    [0x20, 0xed, 0xa0, 0x80, 0, 1],
    [0x30, 1, 2, 3],
    [0x11, 0, 1],
    [0x10, 0, 2],
    [0x10, 0, 1, 0],
    [0x30, 0, 0, 0, 0, 0, 0, 0, 0],
    [0x30, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
  ]) {
    expect(decodeTuple(Uint8Array.from(bytes)), bytes.join(' ')).toBeUndefined()
  }
})

test('tuple: a number that is no safe integer is a bug', () => {
  for (const value of [0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    expect(() => encodeTuple([value])).toThrow('tuple: a number in a key is a safe integer')
  }
})

test('tuple: text with half a surrogate pair is a bug', () => {
  for (const value of ['\ud83d', 'a\udc00', '\udc00\ud83d']) {
    expect(() => encodeTuple([value])).toThrow('tuple: text in a key is whole characters')
  }
  expect(decodeTuple(encodeTuple(['\u{1f600}\ufffd']))).toEqual(['\u{1f600}\ufffd'])
})

test('tuple: the key after a prefix is above all that start with it and below all else above', () => {
  fc.assert(
    fc.property(rawBytes, rawBytes, rawBytes, (prefix, rest, other) => {
      const end = afterPrefix(prefix)
      const inside = Buffer.concat([prefix, rest])
      if (end === undefined) {
        expect(prefix.every((byte) => byte === 0xff)).toBe(true)
        return
      }
      expect(compareBytes(inside, end)).toBeLessThan(0)
      const startsWith = Buffer.from(other.subarray(0, prefix.length)).equals(prefix)
      if (compareBytes(other, prefix) > 0 && !startsWith) {
        expect(compareBytes(other, end)).toBeGreaterThanOrEqual(0)
      }
    }),
    { ...seeded, numRuns: 2000 },
  )
})
