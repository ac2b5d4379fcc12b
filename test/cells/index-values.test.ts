/** Values of indexed fields: their order in the index is the one that filters and sorting go by. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareBytes } from '../../src/base/bytes.ts'
import { isMicros, narrowed, type Micros } from '../../src/base/datetime.ts'
import {
  askedOfBytes,
  compareValues,
  indexValue,
  indexValueOfText,
  microsOfBytes,
  packable,
  sortBytes,
} from '../../src/cells/index-values.ts'
import { encodePart } from '../../src/tables/key-codec.ts'

const times: fc.Arbitrary<Micros | null> = fc.oneof(
  fc.constant(null),
  fc.bigInt({ min: -62_135_596_800_000_000n, max: 253_402_300_799_999_999n }).map(narrowed),
  fc.bigInt({ min: -(2n ** 53n) - 3n, max: -(2n ** 53n) + 3n }).map(narrowed),
  fc.bigInt({ min: 2n ** 53n - 3n, max: 2n ** 53n + 3n }).map(narrowed),
)

test('texts compare as their bytes in the index do, also beyond the first 65,536 code points', () => {
  const unit = fc.constantFrom('a', '\ud7ff', '\uff5e', '😀', '𐀀')
  const text = fc.string({ unit, maxLength: 8 })
  fc.assert(
    fc.property(text, text, (a, b) => {
      const order = compareBytes(sortBytes('string', a), sortBytes('string', b))
      expect(Math.sign(compareValues(a, b))).toBe(Math.sign(order))
    }),
    { seed: 1, numRuns: 500 },
  )
})

test('times of years 1 to 9999 compare as their bytes in the index do, absent ones first', () => {
  fc.assert(
    fc.property(times, times, (a, b) => {
      const order = compareBytes(sortBytes('datetime', a), sortBytes('datetime', b))
      expect(Math.sign(compareValues(a, b))).toBe(Math.sign(order))
    }),
    { seed: 1, numRuns: 2000 },
  )
})

test('bytes of times that a number holds are those of whole numbers, as they are stored since ever', () => {
  const part = { name: '', kind: 'integer', direction: 'asc' } as const
  fc.assert(
    fc.property(fc.maxSafeInteger(), (micros) => {
      const bytes = Buffer.concat([Uint8Array.of(1), encodePart(part, micros)])
      expect(sortBytes('datetime', micros)).toEqual(bytes)
    }),
    { seed: 1 },
  )
})

test('times come back from what is packed', () => {
  fc.assert(
    fc.property(times, (micros) => {
      const packed = packable(micros)
      expect(packed instanceof Uint8Array ? microsOfBytes(packed) : packed).toBe(micros)
      expect(micros === null || isMicros(micros)).toBe(true)
    }),
    { seed: 1 },
  )
  const asked = packable(1_700_000_000_123n)
  expect(asked instanceof Uint8Array && askedOfBytes(asked)).toBe(1_700_000_000_123n)
  expect(askedOfBytes(Buffer.alloc(7))).toBeUndefined()
  expect(askedOfBytes(Buffer.alloc(8, 0x7f))).toBeUndefined()
  expect(microsOfBytes(Buffer.alloc(7))).toBeUndefined()
  expect(microsOfBytes(Buffer.alloc(8))).toBeUndefined()
  expect(microsOfBytes(Buffer.alloc(8, 0xff))).toBeUndefined()
})

test.each([
  ['0000-01-01', undefined],
  ['9999-12-31T23:59:59-00:01', undefined],
  [2 ** 53, undefined],
  [-62_135_596_800_000_001n, undefined],
  [5n, undefined],
  ['9999-12-31', 253_402_214_400_000_000n],
  [-253_402_214_400_000_000n / 10n, -25_340_221_440_000_000n],
])('a datetime of %s is %s', (given, value) => {
  expect(indexValue('datetime', given)).toBe(value)
})

test.each([
  ['253402214400000000', 253_402_214_400_000_000n],
  ['-25340221440000000', -25_340_221_440_000_000n],
  ['-1', -1],
  ['999999999999999999', undefined],
  ['1e3', 1000],
  ['1.5e0', undefined],
  ['+5', undefined],
  ['0x10', undefined],
])('a datetime of the text %s is %s', (text, value) => {
  expect(indexValueOfText('datetime', text)).toBe(value)
})

test.each([
  ['double', '9007199254740992', 9007199254740992],
  ['double', '9007199254740993', undefined],
  ['double', '9007199254740993.0', undefined],
  ['double', '6.0221407599999999e+23', 6.02214076e23],
  ['double', '0.1', 0.1],
  ['double', '1e400', undefined],
  ['double', '1e-400', undefined],
  ['integer', '9007199254740991', 9007199254740991],
  ['integer', '9007199254740993', undefined],
  ['integer', '1e3', 1000],
  ['integer', '3e0', 3],
  ['integer', '3.0', 3],
  ['integer', '+3', undefined],
  ['integer', '03', undefined],
  ['double', '3e0', 3],
  ['double', '0x10', undefined],
  ['integer', '1.5', undefined],
] as const)('a %s of the text %s is %s', (type, text, value) => {
  expect(indexValueOfText(type, text)).toBe(value)
})
