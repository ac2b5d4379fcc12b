/**
 * Moments as programs give them: a Date, or microseconds since 1970 as a number or a bigint. Most clocks
 * count milliseconds or seconds; taken as microseconds their numbers are moments of January 1970. Where the
 * program cannot mean such a moment, the library refuses it and does not take it for another time.
 */
import { StoreError } from './errors.ts'
import type { Timestamp } from './ids.ts'
import { isDate, wordsFor } from './words.ts'

/** Forms in which programs may give a moment. */
export type GivenTime = Timestamp | bigint | Date

/** Microseconds since 1970; undefined for what is no moment that a safe integer can say. */
export function microsOfGiven(value: unknown): Timestamp | undefined {
  const micros = isDate(value) ? value.getTime() * 1000 : value
  const number = typeof micros === 'bigint' ? Number(micros) : micros
  if (typeof number !== 'number' || !Number.isSafeInteger(number)) return undefined
  // There is one zero.
  return number + 0
}

/** 2000-01-01 and 2100-01-01, in milliseconds. */
const fromMs = 946_684_800_000
const untilMs = 4_102_444_800_000
const microsPerMinute = 60_000_000

/** A unit that clocks give, and that is not the unit of moments here. */
export interface OtherUnit {
  readonly unit: 'seconds' | 'milliseconds'
  /** A number of this unit times this is microseconds. */
  readonly factor: number
}

/**
 * The unit in which clocks of this century give such a number; undefined where microseconds may be meant.
 * Taken as microseconds, their seconds are moments of the first 69 minutes of 1970, which no program means.
 * Their milliseconds are moments between 11 January and 17 February 1970: there whole minutes are days and
 * hours that people do write.
 */
export function otherUnitOf(value: unknown): OtherUnit | undefined {
  if (typeof value !== 'number') return undefined
  if (value >= fromMs / 1000 && value < untilMs / 1000) {
    return { unit: 'seconds', factor: 1_000_000 }
  }
  const isMs = value >= fromMs && value < untilMs && value % microsPerMinute !== 0
  return isMs ? { unit: 'milliseconds', factor: 1000 } : undefined
}

/** The moment of a property. Throws `invalid`; `where` is 'table Photo: taken_at'. */
export function propertyTime(value: unknown, where: string): Timestamp {
  const other = otherUnitOf(value)
  if (other !== undefined) {
    const words = wordsFor(value)
    const message = `${where} is ${words}, which looks like ${other.unit}; expected a Date, or microseconds since 1970: multiply it by ${other.factor}, or give ${words}n for that moment of the year 1970`
    throw new StoreError('invalid', message)
  }
  const micros = microsOfGiven(value)
  if (micros !== undefined) return micros
  const words =
    'a Date, or microseconds since 1970: a whole number, or a bigint, within the years 1684 to 2255'
  throw new StoreError('invalid', `${where} is ${wordsFor(value)}; expected ${words}`)
}

/** The same as seconds, and as microseconds. */
const fromSeconds = fromMs / 1000
const fromMicros = fromMs * 1000

/**
 * A moment that a store may have seen: 0, or one of this century, or at least none that a clock gives in
 * another unit. Throws `invalid`; `where` is 'db.read: at'.
 */
export function storeTime(value: unknown, where: string): Timestamp {
  const micros = microsOfGiven(value)
  if (micros === undefined || micros < 0) {
    const words = 'a Date, or microseconds since 1970: a whole number from 0, or a bigint'
    throw new StoreError('invalid', `${where} is ${wordsFor(value)}; expected ${words}`)
  }
  if (isDate(value) || micros < fromSeconds || micros >= fromMicros) return micros
  const unit = micros < fromMs ? 'seconds' : 'milliseconds'
  const message = `${where} is ${wordsFor(value)}, which looks like ${unit}; expected a Date, or microseconds since 1970`
  throw new StoreError('invalid', message)
}
