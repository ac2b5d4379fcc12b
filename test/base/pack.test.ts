/** MessagePack: packed values come back, bytes that are not one value are undefined. */
import { expect, test } from 'vitest'
import * as fc from 'fast-check'
import { pack, unpack, type Packable } from '../../src/base/pack.ts'

const seeded = { seed: 20_110_109, numRuns: 500 }

const leaf: fc.Arbitrary<Packable> = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true }),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.uint8Array({ maxLength: 40 }),
)
const { value } = fc.letrec<{ value: Packable }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(fc.string({ unit: 'binary', maxLength: 8 }), tie('value'), { maxKeys: 5 }),
  ),
}))

/** Byte strings come back as Buffers and -0 as 0: neither is a difference here. */
function plain(one: unknown): unknown {
  if (one instanceof Uint8Array) return { bytes: Buffer.from(one).toString('hex') }
  if (Array.isArray(one)) return one.map(plain)
  if (typeof one === 'number') return one + 0
  if (typeof one !== 'object' || one === null) return one
  return Object.entries(one)
    .map(([key, inner]): [string, unknown] => [key, plain(inner)])
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
}

test('pack: unpacking gives the packed value back', () => {
  fc.assert(
    fc.property(value, (one) => {
      expect(plain(unpack(pack(one)))).toEqual(plain(one))
    }),
    seeded,
  )
})

test('pack: the same value has the same bytes', () => {
  fc.assert(
    fc.property(value, (one) => {
      expect(pack(one).equals(pack(structuredClone(one)))).toBe(true)
    }),
    seeded,
  )
})

test('pack: undefined becomes nil', () => {
  expect(unpack(pack([undefined, 1]))).toEqual([null, 1])
})

test('pack: bytes packed before are not overwritten by what is packed after', () => {
  const packed = [1, 2, 3].map((one) => pack([one, 'x'.repeat(one * 1000)]))
  expect(packed.map((bytes) => unpack(bytes))).toEqual(
    [1, 2, 3].map((one) => [one, 'x'.repeat(one * 1000)]),
  )
})

test('pack: an object may have 65,536 members and leaves later packing unchanged', () => {
  const many = Object.fromEntries(Array.from({ length: 65_536 }, (_, i) => [String(i), i]))
  const before = pack({ a: 1 })
  expect(unpack(pack([many, { a: 1 }]))).toEqual([many, { a: 1 }])
  expect(pack({ a: 1 }).equals(before)).toBe(true)
})

test('pack: garbage is a value or undefined, never an exception', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      expect(() => unpack(bytes)).not.toThrow()
    }),
    { ...seeded, numRuns: 20_000 },
  )
})

test('pack: no bytes, half a value and a value with more after it are undefined', () => {
  fc.assert(
    fc.property(value, fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 8 }), (one, at, more) => {
      const bytes = pack(one)
      expect(unpack(bytes.subarray(0, at % bytes.length))).toBeUndefined()
      expect(unpack(Buffer.concat([bytes, more]))).toBeUndefined()
    }),
    { ...seeded, numRuns: 2000 },
  )
})

test('pack: a length beyond the bytes that are there allocates nothing and is undefined', () => {
  const lengths = [
    [0xdd, 0xff, 0xff, 0xff, 0xff],
    [0xdf, 0xff, 0xff, 0xff, 0xff],
    [0xc6, 0xff, 0xff, 0xff, 0xff],
    [0xdb, 0xff, 0xff, 0xff, 0xff, 0x61],
  ]
  for (const bytes of lengths) expect(unpack(Uint8Array.from(bytes))).toBeUndefined()
})
