/** Spans of time as a schema says them: `30 DAYS` in the text, `'30 days'` in TypeScript. */
import type { Expiry } from './model.ts'

const secondsByUnit = { seconds: 1, minutes: 60, hours: 3_600, days: 86_400 } as const

export type TtlUnit = keyof typeof secondsByUnit

/** `30 days`. A whole number. */
export type Ttl = `${number} ${TtlUnit}`

/** The longest first; `DAY` is taken for `DAYS`. */
export const ttlUnits: readonly TtlUnit[] = ['days', 'hours', 'minutes', 'seconds']

export function secondsIn(count: number, unit: TtlUnit): number {
  return count * secondsByUnit[unit]
}

/** Undefined for what is no span of time. */
export function parseTtl(text: string): number | undefined {
  const [, digits = '', word = ''] = /^(\d{1,12}) ([a-z]+)$/.exec(text) ?? []
  const unit = ttlUnits.find((one) => one === word || one === `${word}s`)
  return unit === undefined ? undefined : secondsIn(Number(digits), unit)
}

/** In the longest unit of which it is a whole number: `30 DAYS`. */
export function ttlText(seconds: number): string {
  const unit = ttlUnits.find((one) => seconds % secondsByUnit[one] === 0) ?? 'seconds'
  return `${seconds / secondsByUnit[unit]} ${unit.toUpperCase()}`
}

/** The clause of a table. */
export function expiryText(expiry: Expiry): string {
  return expiry.kind === 'at' ? `EXPIRES AT ${expiry.property}` : `TTL ${ttlText(expiry.seconds)}`
}
