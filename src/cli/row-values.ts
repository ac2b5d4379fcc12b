/**
 * Values of files in the form that their type has in a row: JSON has no bigints, bytes or times, and CSV only
 * texts. A value without any form of its type is left as it is, and the check of the row names it. A value
 * that would change on the way is refused here, where the text is still known.
 */
import type { Json } from '../cells/body.ts'
import { parseJsonText } from '../base/json-text.ts'
import type { Property, ScalarKind } from '../../schema/model.ts'
import { formatIso, parseMicros } from '../base/datetime.ts'
import { isDecimal, losesDigits, losesDigitsAsFloat, parseWhole } from '../base/decimal.ts'
import { StoreError } from '../base/errors.ts'
import { otherUnitOf } from '../base/given-time.ts'
import type { RowFormat } from './load-rows.ts'
import { isList } from './row-sources.ts'

/** A query's JSON names rows that are there, whatever number their moments are. */
export type ValueFormat = RowFormat | 'query'

/** Whether a field of a CSV has no value: a quoted blank is one only for strings and bytes, and in no list. */
export function isLeftBlank({ presence, type }: Property, value: Json | undefined): boolean {
  if (value !== '') return value === null
  return presence === 'repeated' || (type.kind !== 'string' && type.kind !== 'bytes')
}

/** The elements, and how they are given. A list of one is written without brackets often enough. */
export function parseList(
  value: Json,
  format: ValueFormat,
): { readonly list: readonly Json[]; readonly format: ValueFormat } {
  if (isList(value)) return { list: value, format }
  if (format === 'jsonl' || typeof value !== 'string') return { list: [value], format }
  const parsed = value.trimStart().startsWith('[') ? parseJsonText(value) : undefined
  const list = parsed?.ok === true && isList(parsed.value) ? parsed.value : undefined
  // A text may have brackets of its own, as in `[untitled]`.
  return list === undefined ? { list: [value], format } : { list, format: 'jsonl' }
}

/** The JSON that a field of a CSV holds; throws `invalid` for other text. */
export function jsonOfText(value: Json, where: string): Json {
  if (typeof value !== 'string') return value
  const parsed = parseJsonText(value)
  if (parsed.ok) return parsed.value
  throw refused(where, value, `in a CSV it is JSON text, and this is ${parsed.reason}`)
}

export function parseScalar(
  kind: ScalarKind,
  value: Json,
  where: string,
  format: ValueFormat,
): unknown {
  switch (kind) {
    case 'int64':
      return formed(value, parseInt64(value, where), where, 'a whole number of 64 bits')
    case 'int32':
    case 'integer':
      return parseWholeNumber(value)
    case 'float':
    case 'double':
      return parseFloating(kind, value, where)
    case 'timestamp':
      if (format !== 'query') checkUnit(value, where)
      return formed(value, parseTime(value), where, timeWords)
    case 'bool':
      return parseBool(value)
    case 'bytes':
      return formed(value, parseBytes(value), where, 'hexadecimal digits, two for each byte')
    case 'uuid':
      return typeof value === 'string' ? value.toLowerCase() : value
    case 'json':
      return format === 'csv' ? jsonOfText(value, where) : value
    default:
      return value
  }
}

/** Reports a text that has no form of the type in the words of files: rows of programs have other forms. */
function formed(value: Json, form: unknown, where: string, words: string): unknown {
  if (typeof value !== 'string' || form !== value) return form
  throw new StoreError('invalid', `${where} is ${shown(value)}; expected ${words}`)
}

const timeWords =
  'a time such as 2026-01-31T12:00:00Z within the years 1684 to 2255, or microseconds since 1970'

function parseInt64(value: Json, where: string): unknown {
  if (typeof value === 'string') {
    const whole = parseWhole(value)
    return whole !== undefined && BigInt.asIntN(64, whole) === whole ? whole : value
  }
  if (typeof value !== 'number' || !Number.isInteger(value)) return value
  if (Number.isSafeInteger(value)) return BigInt(value)
  // Which digits the file has is not known any more.
  const reason = `is a number beyond ${Number.MAX_SAFE_INTEGER}; write it in quotes, which keeps its digits`
  throw new StoreError('invalid', `${where} ${reason}`)
}

/** A text that is beyond what a number holds stays a text. */
function parseWholeNumber(value: Json): unknown {
  const whole = typeof value === 'string' ? parseWhole(value) : undefined
  const number = Number(whole)
  return whole !== undefined && Number.isSafeInteger(number) ? number : value
}

function parseFloating(kind: 'float' | 'double', value: Json, where: string): unknown {
  const isText = typeof value === 'string'
  if (isText && !isDecimal(value)) return value
  if (isText && losesDigits(value))
    throw refused(where, value, `a ${kind} does not hold all its digits`)
  const number = isText ? Number(value) : value
  if (kind === 'double' || typeof number !== 'number' || !losesDigitsAsFloat(number)) return number
  throw refused(where, value, 'a float does not hold all its digits, a double does')
}

/**
 * Microseconds, or RFC 3339. A time that numbers of microseconds do not reach stays a text. Words say the moment
 * that they mean; where their number would look like another unit, a bigint says the same.
 */
function parseTime(value: Json): unknown {
  if (typeof value !== 'string') return value
  const isNumber = isDigits(value)
  const time = isNumber ? Number(value) : parseMicros(value)
  if (typeof time !== 'number' || !Number.isSafeInteger(time)) return value
  return isNumber || otherUnitOf(time) === undefined ? time : BigInt(time)
}

function isDigits(text: string): boolean {
  return /^[+-]?\d+$/.test(text)
}

/** Throws `invalid` for a number that clocks give in another unit. */
function checkUnit(value: Json, where: string): void {
  const number = typeof value === 'string' && isDigits(value) ? Number(value) : value
  const other = otherUnitOf(number)
  if (other === undefined) return
  const reason = `it looks like ${other.unit}, and numbers are microseconds since 1970: multiply it by ${other.factor}, or write ${formatIso(Number(number))} for that moment of the year 1970`
  throw refused(where, value, reason)
}

/** As JSON and others write it: `true`, `True`, `TRUE`. */
function parseBool(value: Json): unknown {
  const text = typeof value === 'string' ? value.toLowerCase() : ''
  return text === 'true' ? true : text === 'false' ? false : value
}

function parseBytes(value: Json): unknown {
  const isHex = typeof value === 'string' && /^(?:[0-9a-f]{2})*$/i.test(value)
  return isHex ? Buffer.from(value, 'hex') : value
}

const shownCharsMax = 40

function refused(where: string, value: Json, reason: string): StoreError {
  return new StoreError('invalid', `${where} is ${shown(value)}: ${reason}`)
}

function shown(value: Json): string {
  const text = JSON.stringify(value)
  return text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}…` : text
}
