/**
 * The filters of a query on the fields of an index over cells, as programs and the command line give them.
 */
import { isMicros, formatIso, narrowed } from '../base/datetime.ts'
import { readGiven } from '../base/arguments.ts'
import { isText } from '../../schema/values.ts'
import { StoreError } from '../base/errors.ts'
import { otherUnitOf } from '../base/given-time.ts'
import { hiddenIn } from '../base/readable.ts'
import { isDate, isPlain, wordsFor } from '../base/words.ts'
import { indexComparisons, type IndexComparison, type IndexFilter } from '../cells/index-query.ts'
import type { IndexAnswer } from '../cells/operation.ts'
import type { IndexValue } from '../cells/index-values.ts'

/** A value that a field is compared to; a Date is for fields of the type datetime. */
export type GivenIndexValue = IndexValue | Date

/** A value, or comparisons: `{ city_uuid: '…', trip_created_at: { gte: '2016-01-01T00:00:00Z' } }`. */
export type IndexWhere = Readonly<
  Record<string, GivenIndexValue | Readonly<Partial<Record<IndexComparison, GivenIndexValue>>>>
>

const comparisonWords = indexComparisons.join(', ')
const valueWords = 'a string, a number, true or false, or in a program a bigint or a Date'

/** The filters, each part read once. */
export interface AskedFilters {
  readonly filters: readonly IndexFilter[]
  /** The fields that are compared to a Date. */
  readonly dates: ReadonlySet<string>
}

/**
 * Throws `invalid` for a value that is no filter: the query would ignore it, and find more entries than its caller
 * wants. A field that is named and undefined is none either. `where` is 'index trips_by_city'.
 */
export function checkFilters(given: IndexWhere, where: string): AskedFilters {
  return filtersOfGiven(given, where)
}

/** The same of anything. */
export function filtersOfGiven(asked: unknown, where: string): AskedFilters {
  const fields = readMembers(asked, where, 'the query')
  if (fields === undefined) {
    const words = 'an object of fields, each with a value or comparisons'
    throw wrong(where, 'the query', asked, words)
  }
  const dates = new Set<string>()
  const filters = fields.flatMap(([field, one]): readonly IndexFilter[] => {
    const compared = readMembers(one, where, field)
    if (compared?.length === 0) {
      throw wrong(where, field, one, `${valueWords}, or comparisons: ${comparisonWords}`, 'empty')
    }
    if (isDate(one) || compared?.some(([, value]) => isDate(value)) === true) dates.add(field)
    if (compared === undefined) {
      return [{ field, comparison: 'eq', value: checkValue(where, field, one) }]
    }
    return compared.map(([name, value]) => ({
      field,
      comparison: parseComparison(where, field, name),
      value: checkValue(where, `${field}.${name}`, value),
    }))
  })
  return { filters, dates }
}

/** The members of an object, and undefined of any other value. A comparison that is passed over would be another question. */
function readMembers(
  value: unknown,
  where: string,
  place: string,
): readonly (readonly [string, unknown])[] | undefined {
  if (typeof value !== 'object' || value === null || !isPlain(value)) return undefined
  return readGiven(`${where}: ${place}`, () => {
    const hidden = hiddenIn(value)
    if (hidden === undefined) return Object.entries(value)
    throw new StoreError('invalid', `${where}: ${place} has ${hidden}; leave it out`)
  })
}

function parseComparison(where: string, field: string, name: string): IndexComparison {
  const known = indexComparisons.find((one) => one === name)
  if (known !== undefined) return known
  // All of them: the nearest to `ge` is `ne`, which asks for nearly the opposite.
  const message = `${where}: ${field}: there is no comparison ${JSON.stringify(name)}; there are ${comparisonWords}`
  throw new StoreError('invalid', message)
}

function checkValue(where: string, place: string, value: unknown): IndexValue {
  switch (typeof value) {
    case 'string':
      // Half of a surrogate pair is in no entry: the query would find nothing, and say nothing.
      if (isText(value)) return value
      throw wrong(where, place, value, 'a string of whole characters')
    case 'boolean':
      return value
    case 'bigint': {
      const exact = narrowed(value)
      // As a number it would look like a slip.
      if (otherUnitOf(exact) !== undefined) return value
      if (isMicros(exact)) return exact
      throw wrong(where, place, value, 'a bigint of microseconds of the years 1 to 9999')
    }
    case 'number':
      if (Number.isFinite(value)) return value
      throw wrong(where, place, value, 'a finite number')
    default:
      return formatTime(where, place, value)
  }
}

/** A date goes as the text of its time, which is no value of a number's field. */
function formatTime(where: string, place: string, value: unknown): IndexValue {
  if (isDate(value)) {
    const micros = readMicros(value)
    if (micros !== undefined) return formatIso(micros)
    throw wrong(where, place, value, 'a Date of the years 1 to 9999')
  }
  throw wrong(where, place, value, `${valueWords}, or an object of comparisons: ${comparisonWords}`)
}

function readMicros(date: Date): number | bigint | undefined {
  const ms = date.getTime()
  const micros = Number.isNaN(ms) ? undefined : narrowed(BigInt(ms) * 1000n)
  return isMicros(micros) ? micros : undefined
}

/** Throws `invalid` where a date was compared to a field of another type; only the answer knows types. */
export function checkDates(
  dates: ReadonlySet<string>,
  { fields, types }: Pick<IndexAnswer, 'fields' | 'types'>,
  where: string,
): void {
  for (const field of dates) {
    const type = types[fields.indexOf(field)]
    if (type === 'datetime') continue
    const message = `${where}: ${field} is of type ${type ?? 'none'}, and a Date is a value of the type datetime`
    throw new StoreError('invalid', message)
  }
}

function wrong(
  where: string,
  place: string,
  value: unknown,
  words: string,
  shown: string = wordsFor(value),
): StoreError {
  return new StoreError('invalid', `${where}: ${place} is ${shown}; expected ${words}`)
}
