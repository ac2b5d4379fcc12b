import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { isoOf, timestampOf } from '../../src/gateway/iso-time.ts'

test('a time keeps its microseconds both ways', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_000_000_000_000_000 }), (timestamp) => {
      expect(timestampOf(isoOf(timestamp))).toBe(timestamp)
    }),
    { seed: 1 },
  )
  expect(isoOf(1_767_225_600_000_001)).toBe('2026-01-01T00:00:00.000001Z')
})

test.each([
  [-1, '1969-12-31T23:59:59.999999Z'],
  [-1_000, '1969-12-31T23:59:59.999000Z'],
  [-86_400_000_000, '1969-12-31T00:00:00.000000Z'],
  [0, '1970-01-01T00:00:00.000000Z'],
])(
  'a time before 1970, as an indexed field may be, is written like any other: %i',
  (time, text) => {
    expect(isoOf(time)).toBe(text)
  },
)

test('offsets, dates and short times are understood', () => {
  const newYear = 1_767_225_600_000_000
  for (const text of ['2026-01-01', '2026-01-01T00:00Z', '2026-01-01T02:00:00+02:00']) {
    expect(timestampOf(text)).toBe(newYear)
  }
  expect(timestampOf('2025-12-31t19:00:00.5-05:00')).toBe(newYear + 500_000)
})

test.each([
  ...['', 'now', '2026', '2026-1-1', '2026-02-30', '2026-13-01', '2026-01-01T25:00Z'],
  ...['2026-01-01T00:00', '2026-01-01 00:00Z', '2026-01-01T00:00:00.1234567Z', '1969-12-31'],
  ...['1767225600', '2026-01-01T00:00:00+99:00', '2026-01-01T00:00:60Z'],
])('what is no time is none: %s', (text) => {
  expect(timestampOf(text)).toBeUndefined()
})
