/** Dates and times in cells (RFC 3339) as microseconds since 1970, by arithmetic alone. */

const pattern =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d))?(?:\.(\d{1,6})\d*)?(?:Z|([+-])(\d\d):(\d\d)))?$/i

/** Undefined for what is no date, and no date and time with its offset. */
export function microsOf(text: string): number | undefined {
  const found = pattern.exec(text)
  if (found === null) return undefined
  const [, year = 0, month = 0, day = 0] = found.map(Number)
  const seconds = secondsOf(found)
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return undefined
  if (seconds === undefined) return undefined
  const [fraction = ''] = found.slice(7)
  const whole = daysBefore(year, month, day) * 86_400 + seconds - offsetOf(found)
  return whole * 1_000_000 + Number(fraction.padEnd(6, '0'))
}

/** What was not matched is not there. */
function numberOf(part: string | undefined): number {
  return Number(part ?? 0)
}

/** Of the day. */
function secondsOf(found: readonly string[]): number | undefined {
  const [hour = 0, minute = 0, second = 0] = found.slice(4, 7).map(numberOf)
  const isTime = hour <= 23 && minute <= 59 && second <= 59
  return isTime ? hour * 3_600 + minute * 60 + second : undefined
}

/** Seconds ahead of UTC. */
function offsetOf(found: readonly string[]): number {
  const [sign, hours = '0', minutes = '0'] = found.slice(8)
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
  const before = year - 1
  const leaps = Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400)
  let days = (year - 1970) * 365 + leaps - leapsBefore1970
  for (let one = 1; one < month; one++) days += daysIn(year, one)
  return days + day - 1
}

const leapsBefore1970 = 477
