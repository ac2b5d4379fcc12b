import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { isDecimal, losesDigits, losesDigitsAsFloat, parseWhole } from '../../src/base/decimal.ts'

test.each([
  ...['9007199254740993', '9007199254740993.0', '-9007199254740993', '9.007199254740993e15'],
  ...['10000000000000001', '900719925474099300e-2', '12345678901234567890', '1e400', '-1e400'],
  ...[
    '9.007199254740993e15',
    '12345678901234567',
    '1.2345678901234567891e19',
    `1${'0'.repeat(400)}`,
  ],
  ...[
    '10000000000000000000001',
    '123456789012345677',
    '123456789012345670',
    '1234567890123456789012e0',
  ],
])('a double loses digits of %s', (text) => {
  expect(losesDigits(text)).toBe(true)
})

test.each([
  ...['0', '-0', '0.0e5', '0.1', '1e23', '1.5e300', '9007199254740992', '9007199254740991'],
  ...['1152921504606846976', '1152921504606847000', '12345678901234567000', '1e16', '3.0e0'],
  ...['0.30000000000000004', '0.1000000000000000055511151231257827', '123456789012345.678901'],
  ...['10000000000000000', '5e-324', '1.7976931348623157e308'],
  // As C and numpy print doubles, by %.17g and by %.18e.
  ...['9.9999999999999992e+22', '6.0221407599999999e+23', '6.022140759999999870e+23'],
  ...['1.234567890123456676e+20', '1.000000000000000000e+20', '-9.9999999999999992E+22'],
  // Fractions.
  ...['9007199254740993.5', '12345678901234567.5'],
])('a double says what %s says', (text) => {
  expect(losesDigits(text)).toBe(false)
})

test('a double that other programs print with 17 digits or more loses nothing', () => {
  const doubles = fc.double({ noNaN: true, noDefaultInfinity: true })
  fc.assert(
    fc.property(doubles, fc.integer({ min: 16, max: 40 }), (value, digits) => {
      expect(losesDigits(value.toExponential(digits))).toBe(false)
      expect(losesDigits(value.toPrecision(digits + 1))).toBe(false)
    }),
    { seed: 3, numRuns: 5000 },
  )
})

test('a printed double loses no digits, and an integer loses them only if its double differs', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      expect(losesDigits(`${value}`)).toBe(false)
    }),
    { seed: 3, numRuns: 2000 },
  )
  fc.assert(
    fc.property(fc.bigInt({ min: 2n ** 53n, max: 2n ** 63n }), (value) => {
      const isKept = BigInt(Number(value)) === value || String(Number(value)) === String(value)
      for (const text of [`${value}`, `${value}.0`, `${value}0e-1`, `+${value}`]) {
        expect(losesDigits(text)).toBe(!isKept)
      }
    }),
    { seed: 3, numRuns: 2000 },
  )
})

test.each([
  ['7', 7n],
  ['-7', -7n],
  ['+7', 7n],
  ['007', 7n],
  ['-0', 0n],
  ['1815.0', 1815n],
  ['1e3', 1000n],
  ['1500e-2', 15n],
  ['9223372036854775807', 9223372036854775807n],
  ['1.5', undefined],
  ['1e999999999', undefined],
  ['0e999999999', 0n],
  ...['', '.', '-', 'e5', '1_000', '0x10', ' 7', '7 ', '1,5', '١', 'Infinity', 'NaN'].map(
    (text) => [text, undefined] as const,
  ),
] as const)('the whole number that %j means is %s', (text, value) => {
  expect(parseWhole(text)).toBe(value)
})

test('isDecimal accepts decimal numbers and refuses all other texts', () => {
  for (const text of ['.5', '5.', '1e3', '-1.5E-7']) expect(isDecimal(text), text).toBe(true)
  for (const text of ['', '.', '1_000', '0x10', ' 7', '١', 'Infinity', '1e', '--1', '1.2.3'])
    expect(isDecimal(text), text).toBe(false)
})

test.each([
  [16_777_217, true],
  [16_777_216, false],
  [3e10, false],
  [123_456_789, true],
  [0.1, false],
  [1e-60, true],
  [1e300, false],
  [0, false],
])('whether a float of 32 bits loses digits of %s: %s', (value, isLost) => {
  expect(losesDigitsAsFloat(value)).toBe(isLost)
})
