/** Times in JSON: RFC 3339 in UTC with microseconds, `2026-01-31T08:30:00.000001Z`. */
import type { Timestamp } from '../base/ids.ts'

export function isoOf(timestamp: Timestamp): string {
  // Rounded down, before 1970 too: what is left over is never negative.
  const millis = Math.floor(timestamp / 1000)
  const micros = String(timestamp - millis * 1000).padStart(3, '0')
  return new Date(millis).toISOString().replace('Z', `${micros}Z`)
}

const pattern = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,6}))?(Z|[+-]\d\d:\d\d))?$/i

/** A date, or a date and time with its offset, as microseconds; undefined for anything else. */
export function timestampOf(text: string): Timestamp | undefined {
  const found = pattern.exec(text)
  if (found === null) return undefined
  const [, day = '', time = '00:00:00', fraction = '', offset = 'Z'] = found
  const millis = Date.parse(`${day}T${time}${offset.toUpperCase()}`)
  if (Number.isNaN(millis) || millis < 0 || !isRealDay(day)) return undefined
  return millis * 1000 + Number(fraction.padEnd(6, '0'))
}

/** `Date` takes the 30th of February for the 2nd of March. */
function isRealDay(day: string): boolean {
  return new Date(Date.parse(`${day}T00:00:00Z`)).toISOString().startsWith(day)
}
