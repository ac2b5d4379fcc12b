import { expect, test } from 'vitest'
import { microsOfGiven, otherUnitOf, propertyTime, storeTime } from '../../src/base/given-time.ts'

const date = new Date('2026-01-31T08:30:00.001Z')
const micros = date.getTime() * 1000

test('a moment is a Date, or microseconds as a number or a bigint', () => {
  for (const given of [date, micros, BigInt(micros)]) {
    expect(microsOfGiven(given)).toBe(micros)
    expect(propertyTime(given, 'table Photo: at')).toBe(micros)
    expect(storeTime(given, 'db.read: at')).toBe(micros)
  }
  expect(Object.is(microsOfGiven(-0), 0)).toBe(true)
  for (const none of [
    new Date(Number.NaN),
    1.5,
    Number.NaN,
    '2026-01-31',
    null,
    undefined,
    2n ** 60n,
    {},
  ]) {
    expect(microsOfGiven(none)).toBeUndefined()
    expect(() => propertyTime(none, 'table Photo: at')).toThrow('expected a Date, or microseconds')
    expect(() => storeTime(none, 'db.read: at')).toThrow('expected a Date, or microseconds')
  }
})

test('a number that looks like milliseconds is refused as a time of a property', () => {
  const ms = date.getTime()
  expect(otherUnitOf(ms)).toEqual({ unit: 'milliseconds', factor: 1000 })
  expect(() => propertyTime(ms, 'table Photo: at')).toThrow(
    `table Photo: at is ${ms}, which looks like milliseconds; expected a Date, or microseconds since 1970: multiply it by 1000, or give ${ms}n for that moment of the year 1970`,
  )
  // The moment of 1970 can be said, and whole minutes of it are not in doubt.
  expect(propertyTime(BigInt(ms), 'at')).toBe(ms)
  expect(propertyTime(1_767_000_000_000, 'at')).toBe(1_767_000_000_000)
  expect(() => propertyTime(1_700_000_000_000, 'at')).toThrow('looks like milliseconds')
  // Dates of birth, and times of programs that begin with 0.
  const times = [0, 5, -5, 946_684_799, 4_102_444_800, 86_400_000_000]
  for (const given of [...times, 946_684_799_999, 4_102_444_800_001]) {
    expect(propertyTime(given, 'at')).toBe(given)
  }
})

test('a number that looks like seconds is refused as a time of a property', () => {
  const seconds = 1_769_848_200
  expect(otherUnitOf(seconds)).toEqual({ unit: 'seconds', factor: 1_000_000 })
  expect(() => propertyTime(seconds, 'table Photo: at')).toThrow(
    `table Photo: at is ${seconds}, which looks like seconds; expected a Date, or microseconds since 1970: multiply it by 1000000, or give ${seconds}n for that moment of the year 1970`,
  )
  for (const given of [946_684_800, 1_700_000_000, 4_102_444_799]) {
    expect(() => propertyTime(given, 'at')).toThrow('looks like seconds')
    expect(propertyTime(BigInt(given), 'at')).toBe(given)
  }
})

test('a number that looks like seconds or milliseconds is refused as a time of a store', () => {
  const ms = date.getTime()
  expect(() => storeTime(ms, 'db.read: at')).toThrow(
    `db.read: at is ${ms}, which looks like milliseconds; expected a Date, or microseconds since 1970`,
  )
  expect(() => storeTime(BigInt(ms), 'db.read: at')).toThrow('looks like milliseconds')
  expect(() => storeTime(Math.floor(ms / 1000), 'at')).toThrow('looks like seconds')
  expect(() => storeTime(-1, 'at')).toThrow('at is -1; expected')
  expect(storeTime(0, 'at')).toBe(0)
  expect(storeTime(Number.MAX_SAFE_INTEGER, 'at')).toBe(Number.MAX_SAFE_INTEGER)
  expect(storeTime(new Date(0), 'at')).toBe(0)
})
