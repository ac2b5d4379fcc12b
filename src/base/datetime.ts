/**
 * Dates and times in words (RFC 3339) as microseconds since 1970 and back, by arithmetic alone: for cells, for
 * HTTP, for the command line. Years 1 to 9999, which is as many as four digits name.
 */
import type { Timestamp } from './ids.ts'

/**
 * Microseconds since 1970; negative before it. A number where it is a safe integer (years 1684 to 2255), and a
 * bigint where a number would lose the last digits.
 */
export type Micros = number | bigint

/** A `T` or a blank between date and time; digits after the sixth of a fraction are cut off. */
const pattern =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6})\d*)?)?(?:Z|([+-])(\d\d):(\d\d)))?$/i

const microsPerSecond = 1_000_000n
const secondsPerDay = 86_400

/** Undefined for what is no date, and no date and time with its offset. */
export function parseMicros(text: string): Micros | undefined {
  const found = pattern.exec(text)
  if (found === null) return undefined
  const [year = 0, month = 0, day = 0] = found.slice(1, 4).map(Number)
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return undefined
  const seconds = readSeconds(found)
  const offset = readOffset(found)
  if (seconds === undefined || offset === undefined) return undefined
  const whole = daysBefore(year, month, day) * secondsPerDay + seconds - offset
  const fraction = (found[7] ?? '').padEnd(6, '0')
  const micros = narrowed(BigInt(whole) * microsPerSecond + BigInt(fraction))
  return isMicros(micros) ? micros : undefined
}

/** The same for a moment of a log, which began after 1970. */
export function parseTimestamp(text: string): Timestamp | undefined {
  const micros = parseMicros(text)
  return typeof micros === 'number' && micros >= 0 ? micros : undefined
}

/** In UTC with microseconds: `2026-01-31T08:30:00.000001Z`. */
export function formatIso(micros: Micros): string {
  // By seconds, of which there are few enough for numbers. Rounded down, before 1970 too.
  const exact = BigInt(micros)
  const rest = ((exact % microsPerSecond) + microsPerSecond) % microsPerSecond
  const seconds = Number((exact - rest) / microsPerSecond)
  const days = Math.floor(seconds / secondsPerDay)
  const ofDay = seconds - days * secondsPerDay
  const time = [Math.floor(ofDay / 3_600), Math.floor(ofDay / 60) % 60, ofDay % 60].map(twoDigits)
  return `${formatDate(days)}T${time.join(':')}.${String(rest).padStart(6, '0')}Z`
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0')
}

/** A number where it is exact. */
export function narrowed(micros: bigint): Micros {
  const number = Number(micros)
  return Number.isSafeInteger(number) ? number : micros
}

const least = -62_135_596_800_000_000n
const most = 253_402_300_799_999_999n

/** Of years 1 to 9999, and a number just where one is exact. */
export function isMicros(value: unknown): value is Micros {
  if (typeof value === 'number') return Number.isSafeInteger(value)
  return typeof value === 'bigint' && value >= least && value <= most && narrowed(value) === value
}

/** Of the day. A part that was not matched is undefined. */
function readSeconds(found: readonly string[]): number | undefined {
  const [hour = 0, minute = 0, second = 0] = found.slice(4, 7).map((part) => Number(part ?? 0))
  const isTime = hour <= 23 && minute <= 59 && second <= 59
  return isTime ? hour * 3_600 + minute * 60 + second : undefined
}

/** Seconds ahead of UTC. */
function readOffset(found: readonly string[]): number | undefined {
  const [sign, hours = '0', minutes = '0'] = found.slice(8)
  if (Number(hours) > 23 || Number(minutes) > 59) return undefined
  const seconds = Number(hours) * 3_600 + Number(minutes) * 60
  return sign === '-' ? -seconds : seconds
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

const monthDays = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const

function daysIn(year: number, month: number): number {
  return month === 2 && isLeap(year) ? 29 : (monthDays[month - 1] ?? 0)
}

/** From the first of January 1970; negative before it. */
function daysBefore(year: number, month: number, day: number): number {
  let days = daysBeforeYear(year)
  for (let one = 1; one < month; one++) days += daysIn(year, one)
  return days + day - 1
}

function daysBeforeYear(year: number): number {
  const before = year - 1
  const leaps = Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400)
  return (year - 1970) * 365 + leaps - leapsBefore1970
}

const leapsBefore1970 = 477

/** The date `days` days after the first of January 1970. */
function formatDate(days: number): string {
  // The mean year is 365.2425 days long: this is the year, or one beside it.
  let year = 1970 + Math.floor(days / 365.2425)
  while (daysBeforeYear(year) > days) year -= 1
  while (daysBeforeYear(year + 1) <= days) year += 1
  let left = days - daysBeforeYear(year)
  let month = 1
  for (; left >= daysIn(year, month); month++) left -= daysIn(year, month)
  return `${String(year).padStart(4, '0')}-${twoDigits(month)}-${twoDigits(left + 1)}`
}
