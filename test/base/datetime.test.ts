import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  isMicros,
  formatIso,
  parseMicros,
  narrowed,
  parseTimestamp,
} from '../../src/base/datetime.ts'

const range = {
  noInvalidDate: true,
  min: new Date('0001-01-01T00:00:00.000Z'),
  max: new Date('9999-12-31T23:59:59.999Z'),
}

test('dates and times of each year are what the machine takes them for, and come back', () => {
  fc.assert(
    fc.property(fc.date(range), fc.integer({ min: 0, max: 999 }), (date, rest) => {
      const text = date.toISOString().replace('Z', `${String(rest).padStart(3, '0')}Z`)
      const micros = parseMicros(text)
      expect(micros).toBe(narrowed(BigInt(date.getTime()) * 1000n + BigInt(rest)))
      expect(isMicros(micros)).toBe(true)
      expect(formatIso(micros ?? 0)).toBe(text)
    }),
    { seed: 7, numRuns: 2000 },
  )
})

test.each([
  ['0001-01-01', -62_135_596_800_000_000n],
  ['9999-12-31T23:59:59.999999Z', 253_402_300_799_999_999n],
  ['1684-07-28T00:12:25.259009Z', -9_007_199_254_740_991],
  ['1684-07-28T00:12:25.259008Z', -9_007_199_254_740_992n],
  ['2255-06-05T23:47:34.740991Z', 9_007_199_254_740_991],
  ['2255-06-05T23:47:34.740992Z', 9_007_199_254_740_992n],
  ['2016-02-29', 1_456_704_000_000_000],
  ['2016-02-29 01:02:03.000004+05:30', 1_456_687_923_000_004],
  ['2026-01-01T00:00Z', 1_767_225_600_000_000],
  ['2026-01-01T02:00:00+02:00', 1_767_225_600_000_000],
  ['2025-12-31t19:00:00.5-05:00', 1_767_225_600_500_000],
  ['2026-01-01T00:00:00.1234567Z', 1_767_225_600_123_456],
])('%s is %s', (text, micros) => {
  expect(parseMicros(text)).toBe(micros)
})

test.each([
  ...['', 'now', '2026', '2026-1-1', '2026-02-30', '2015-02-29', '2026-13-01', '2016-01-00'],
  ...['2026-01-01T25:00Z', '2016-01-01T24:00:00Z', '2026-01-01T00:00', '2026-01-01T00:00:60Z'],
  ...['1767225600', '2026-01-01T00:00:00+99:00', '2026-01-01T00:00:00+01:60', '+12026-01-01'],
  ...['2026-01-01T00:00.5Z', '0000-12-31', '0001-01-01T00:00:00+00:01'],
  ...['9999-12-31T23:59:59-00:01', ' 2026-01-01', '2026-01-01T00:00:00Z\n'],
])('%j is not a time', (text) => {
  expect(parseMicros(text)).toBeUndefined()
  expect(parseTimestamp(text)).toBeUndefined()
})

test('a moment of a log is a number from 1970 on', () => {
  expect(parseTimestamp('2026-01-01')).toBe(1_767_225_600_000_000)
  expect(parseTimestamp('1969-12-31')).toBeUndefined()
  expect(parseTimestamp('2300-01-01')).toBeUndefined()
})

test.each([
  [-1, '1969-12-31T23:59:59.999999Z'],
  [-1_000, '1969-12-31T23:59:59.999000Z'],
  [-86_400_000_000, '1969-12-31T00:00:00.000000Z'],
  [0, '1970-01-01T00:00:00.000000Z'],
  [1_767_225_600_000_001, '2026-01-01T00:00:00.000001Z'],
  [-62_135_596_800_000_000n, '0001-01-01T00:00:00.000000Z'],
])('%s is written as %s', (time, text) => {
  expect(formatIso(time)).toBe(text)
})

test.each([2 ** 53, 0.5, Number.NaN, 5n, 253_402_300_800_000_000n, '5', null])(
  '%s is no count of microseconds',
  (value) => {
    expect(isMicros(value)).toBe(false)
  },
)
