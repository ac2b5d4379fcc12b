/** The values of properties that TypeScript has no word of its own for. */
import { microsOfGiven } from '../src/base/given-time.ts'
import { isDate, wordsFor } from '../src/base/words.ts'
import { SchemaError } from './problem.ts'

/** Microseconds since 1970, a safe integer. */
export type Timestamp = number

/** A UUID in its text form, lower case; `crypto.randomUUID()` gives one. */
export type Uuid = `${string}-${string}-${string}-${string}-${string}`

/** A value that JSON can say. */
export type JsonValue =
  null | boolean | number | string | readonly JsonValue[] | { readonly [name: string]: JsonValue }

/** `T` when JSON can carry it as it is; a date, function or bigint inside becomes words there. */
export type JsonMembers<T> = { readonly [Name in keyof T]: JsonMember<T[Name]> }

type JsonMember<T> = T extends null | undefined | boolean | number | string
  ? T
  : T extends bigint | symbol | Date | Uint8Array | ((...given: never[]) => unknown)
    ? 'JSON has no form for this type'
    : JsonMembers<T>

const halfPair = /\p{Surrogate}/u

/** Whole characters of Unicode, any of them: half of a surrogate pair has no bytes to be stored as. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && !halfPair.test(value)
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export function isUuid(text: string): text is Uuid
export function isUuid(value: unknown): value is Uuid
export function isUuid(value: unknown): value is Uuid {
  return typeof value === 'string' && uuidPattern.test(value)
}

export function isTimestamp(value: unknown): value is Timestamp {
  return Number.isSafeInteger(value)
}

/** A date's moment; a date counts milliseconds only. Throws `invalid` for what is none. */
export function timestampOf(date: Date): Timestamp {
  const micros = microsOfGiven(date)
  if (isDate(date) && micros !== undefined) return micros
  const message = `the date is ${wordsFor(date)}; expected a Date of the years 1684 to 2255`
  throw new SchemaError('timestampOf', [{ kind: 'bad-option', message, at: [] }])
}
