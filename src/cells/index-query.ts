/**
 * A query of an index over cells: the shard field's value, filters on other fields, an order, a page.
 * The entries of one value are in one place, by the second field; what a filter on that leaves out is
 * not read. Another order than that takes all entries of the value, up to a bound.
 *
 * A page ends before its limit where the values of its entries are as much as an answer holds.
 */
import { equalBytes } from '../base/bytes.ts'
import { formatIso, narrowed } from '../base/datetime.ts'
import { StoreError } from '../base/errors.ts'
import { otherUnitOf, type OtherUnit } from '../base/given-time.ts'
import { pageItemsMax } from '../base/limits.ts'
import type { Pace as RequestPace } from '../ports/pace.ts'
import type { Tables } from '../tables/tables.ts'
import { answerBytesMax } from '../txn/limits.ts'
import {
  batchConcurrencyMax,
  cellReadWork,
  indexPageRows,
  indexPageWork,
  indexScanMax,
  indexSortBytesMax,
  indexSortMax,
  packedPartWork,
  shardReadWork,
  sortedEntryWork,
} from './limits.ts'
import { mapPaced } from './pool.ts'
import { scanPlace, type IndexedEntry } from './indexed-table.ts'
import type { IndexDefinition, NumberedIndex } from './index-definition.ts'
import { fieldValues, encodePlace, isAging, type FieldValues, type IndexRow } from './index-row.ts'
import {
  compareValues,
  indexValue,
  indexValueOfText,
  isNumberText,
  sortBytes,
  type IndexValue,
} from './index-values.ts'
import { cursorAt, makeOrder, startAt } from './sorted-page.ts'

export const indexComparisons = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte'] as const
export type IndexComparison = (typeof indexComparisons)[number]

export interface IndexFilter {
  readonly field: string
  readonly comparison: IndexComparison
  readonly value: IndexValue
}

export interface IndexQuery {
  readonly where: readonly IndexFilter[]
  /** By this field, instead of by the second one. */
  readonly order?: string
  readonly reverse: boolean
  readonly cursor?: string
  readonly limit: number
  /** Leaves out what is not so any more. */
  readonly verify: boolean
}

export interface FoundEntry {
  readonly rowKey: string
  readonly values: FieldValues
}

export interface FoundPage {
  readonly entries: readonly FoundEntry[]
  readonly cursor?: string
}

interface Filter {
  readonly place: number
  readonly comparison: IndexComparison
  readonly value: IndexValue
}

export interface QueryParts {
  readonly tables: Tables
  readonly definition: NumberedIndex
  readonly level: 'current' | 'snapshot'
  /** The entry of the row by its cells as they are now. */
  reread(rowKey: string): Promise<IndexRow | undefined>
  /** The time that is left for the query, which may take many reads; throws when none is left. */
  leftMs(): number
  readonly pace?: RequestPace | undefined
}

export async function queryIndex(parts: QueryParts, query: IndexQuery): Promise<FoundPage> {
  if (!Number.isInteger(query.limit) || query.limit < 1 || query.limit > pageItemsMax) {
    throw new StoreError('invalid', `limit is a whole number from 1 to ${pageItemsMax}`)
  }
  const { definition } = parts
  const filters = query.where.map((filter) => toFilter(definition, filter))
  const shard = filters.find(({ place, comparison }) => place === 0 && comparison === 'eq')
  if (shard === undefined) {
    const name = definition.fields[0]?.field ?? ''
    const message = `index ${definition.name}: name the value of its shard field, ${name}: entries are looked for in one place only`
    throw new StoreError('invalid', message)
  }
  const range = sortRange(definition, filters)
  const place = encodePlace(definition, shard.value)
  const scan = new Scan(parts, query, { place, range, filters })
  const orderPlace = query.order === undefined ? 1 : placeNamed(definition, query.order)
  return orderPlace === 1 || orderPlace === 0 ? scan.inPlace() : scan.sorted(orderPlace)
}

/** With the bytes that its values have. */
interface Weighed {
  readonly entry: FoundEntry
  readonly bytes: number
}

/** Entries looked at first, when nothing is known of their size. */
const firstEntries = 64

/** How many entries to look at next: no more than fit into these bytes by estimate. */
class Pace {
  #count = 0
  #bytes = 0

  note(items: readonly IndexedEntry[]): void {
    this.#count += items.length
    this.#bytes += items.reduce((sum, { fields }) => sum + fields.length, 0)
  }

  next(wanted: number, bytesLeft: number): number {
    const mean = Math.max(1, this.#bytes / Math.max(1, this.#count))
    return Math.min(wanted, indexPageRows, Math.floor(bytesLeft / mean) + 1)
  }
}

interface Where {
  readonly place: Uint8Array
  readonly range: { readonly gte?: Uint8Array; readonly lte?: Uint8Array }
  readonly filters: readonly Filter[]
}

class Scan {
  readonly #parts: QueryParts
  readonly #query: IndexQuery
  readonly #where: Where

  constructor(parts: QueryParts, query: IndexQuery, where: Where) {
    this.#parts = parts
    this.#query = query
    this.#where = where
  }

  /** In stored order; the number bounds the entries that one page reads. */
  async inPlace(): Promise<FoundPage> {
    const { limit } = this.#query
    const entries: FoundEntry[] = []
    const pace = new Pace()
    let { cursor } = this.#query
    let bytesLeft = answerBytesMax
    let size = Math.min(limit, firstEntries)
    for (let scanned = 0; scanned < indexScanMax;) {
      const page = await this.#page(cursor, size)
      pace.note(page.items)
      const fitting = this.#fitting(page.items)
      const bytes = sumBytes(fitting)
      const room = limit - entries.length
      // The next page begins behind the last entry of this one: it must not hold more.
      if (fitting.length > room) {
        size = room
        continue
      }
      if (bytes > bytesLeft && entries.length > 0) break
      if (bytes > bytesLeft && fitting.length > 1) {
        size = Math.ceil(size / 2)
        continue
      }
      entries.push(...fitting.map(({ entry }) => entry))
      bytesLeft -= bytes
      cursor = page.cursor
      scanned += size
      if (cursor === undefined) return { entries }
      if (entries.length >= limit || bytesLeft <= 0) break
      // Where filters leave much out, few entries at a time would take a read for each.
      const isFiltered = fitting.length < page.items.length
      size = pace.next(isFiltered ? 2 * size : limit - entries.length, bytesLeft)
    }
    return cursor === undefined ? { entries } : { entries, cursor }
  }

  async sorted(place: number): Promise<FoundPage> {
    const { limit, reverse, cursor } = this.#query
    const type = this.#parts.definition.fields[place]?.type ?? 'string'
    const sorting = { place, type, reverse }
    const order = makeOrder(sorting)
    const found = await this.#all()
    await this.#spend(found.length * sortedEntryWork)
    const all = found.sort((a, b) => order(a.entry, b.entry))
    const sorted = all.map(({ entry }) => entry)
    const start = startAt(sorted, cursor, sorting)
    const entries = fullPage(all.slice(start, start + limit))
    const last = entries.at(-1)
    const isEnd = last === undefined || start + entries.length === all.length
    return isEnd ? { entries } : { entries, cursor: cursorAt(last, sorting) }
  }

  async #all(): Promise<Weighed[]> {
    const all: Weighed[] = []
    const pace = new Pace()
    let bytesLeft = indexSortBytesMax
    let size = firstEntries
    for (let cursor: string | undefined; ;) {
      const page = await this.#page(cursor, size)
      pace.note(page.items)
      const fitting = this.#fitting(page.items)
      all.push(...fitting)
      bytesLeft -= sumBytes(fitting)
      if (all.length > indexSortMax) throw tooMany(this.#parts.definition)
      if (bytesLeft < 0) throw tooLarge(this.#parts.definition)
      cursor = page.cursor
      if (cursor === undefined) return all
      size = pace.next(pageItemsMax, bytesLeft)
    }
  }

  async #spend(work: number): Promise<void> {
    const turn = this.#parts.pace?.spend(work)
    if (turn !== undefined) await turn
  }

  async #page(cursor: string | undefined, limit: number): ReturnType<typeof scanPlace> {
    // Verified entries are read with their rows.
    const { verify: isVerified } = this.#query
    await this.#spend(indexPageWork + limit * (isVerified ? cellReadWork : packedPartWork))
    const { tables, level, leftMs } = this.#parts
    const { order, reverse, verify } = this.#query
    const { place, range } = this.#where
    const isInPlace = order === undefined || placeNamed(this.#parts.definition, order) < 2
    const page = await scanPlace(tables, place, range, {
      level,
      timeoutMs: leftMs(),
      verify,
      limit,
      reverse: isInPlace && reverse,
      ...(cursor !== undefined && { cursor }),
    })
    return { ...page, items: await this.#living(page.items) }
  }

  /** TTL-3: an entry of a cell that expires is there for as long as its row's cells say the same. */
  async #living(items: readonly IndexedEntry[]): Promise<readonly IndexedEntry[]> {
    const { definition, reread, pace } = this.#parts
    const aging = items.filter(({ fields }) => isAging(definition, fields))
    if (aging.length === 0) return items
    const paid = { most: batchConcurrencyMax, pace, computeCost: () => shardReadWork }
    const now = await mapPaced(aging, paid, ({ row_key: rowKey }) => reread(rowKey))
    return items.flatMap((entry) => {
      const place = aging.indexOf(entry)
      if (place < 0) return [entry]
      const row = now[place]
      const isThere = row !== undefined && this.#isIn(row) && equalBytes(row.sort, entry.sort)
      return isThere ? [{ ...entry, fields: row.fields }] : []
    })
  }

  #isIn({ place }: IndexRow): boolean {
    return equalBytes(place, this.#where.place)
  }

  #fitting(items: readonly IndexedEntry[]): readonly Weighed[] {
    const { definition } = this.#parts
    return items.flatMap(({ row_key: rowKey, fields }) => {
      const values = fieldValues(definition, fields)
      const fits = this.#where.filters.every((filter) => isMet(filter, values))
      return fits ? [{ entry: { rowKey, values }, bytes: fields.length }] : []
    })
  }
}

function sumBytes(weighed: readonly Weighed[]): number {
  return weighed.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** As many as an answer holds, and one in any case. */
function fullPage(found: readonly Weighed[]): readonly FoundEntry[] {
  let bytesLeft = answerBytesMax
  const over = found.findIndex(({ bytes }, place) => (bytesLeft -= bytes) < 0 && place > 0)
  return found.slice(0, over < 0 ? found.length : over).map(({ entry }) => entry)
}

function placeNamed({ name, fields }: IndexDefinition, field: string): number {
  const place = fields.findIndex((one) => one.field === field)
  if (place >= 0) return place
  const known = fields.map((one) => one.field).join(', ')
  throw new StoreError('invalid', `index ${name} has no field ${field}, only ${known}`)
}

function toFilter(definition: IndexDefinition, { field, comparison, value }: IndexFilter): Filter {
  const place = placeNamed(definition, field)
  const type = definition.fields[place]?.type ?? 'string'
  const asText = typeof value === 'string' ? indexValueOfText(type, value) : undefined
  const known = indexValue(type, typeof value === 'bigint' ? narrowed(value) : value) ?? asText
  const slip = type === 'datetime' && isRange(comparison) ? slipOf(value, known) : undefined
  if (slip !== undefined) {
    const message = `index ${definition.name}: ${field} is compared to ${shown(value)}, which looks like ${slip.unit}; a datetime is microseconds since 1970, or a text: for that moment of 1970 give ${formatIso(slip.micros)}`
    throw new StoreError('invalid', message)
  }
  if (known !== undefined) return { place, comparison, value: known }
  const message = `index ${definition.name}: ${field} is of type ${type}, and ${shown(value)} is no value of it`
  throw new StoreError('invalid', message)
}

/** An entry's own value may be asked for; compared to it by size, entries of another unit are all found, or none. */
function isRange(comparison: IndexComparison): boolean {
  return comparison !== 'eq' && comparison !== 'ne'
}

/** A bigint, and a time in words, say the moment that they mean. */
function slipOf(
  given: IndexValue,
  known: IndexValue | undefined,
): (OtherUnit & { readonly micros: number }) | undefined {
  const isNumber = typeof given === 'number' || (typeof given === 'string' && isNumberText(given))
  const other = isNumber && typeof known === 'number' ? otherUnitOf(known) : undefined
  return other && { ...other, micros: Number(known) }
}

function shown(value: IndexValue): string {
  return typeof value === 'bigint' ? `${value}n` : JSON.stringify(value).slice(0, 80)
}

/** Entries outside of it fit no filter on the second field; inside are others too. */
function sortRange(definition: IndexDefinition, filters: readonly Filter[]): Where['range'] {
  const type = definition.fields[1]?.type
  if (type === undefined) return {}
  let range: Where['range'] = {}
  for (const { place, comparison, value } of filters) {
    if (place !== 1 || comparison === 'ne') continue
    const bytes = sortBytes(type, value)
    if (comparison === 'eq') return { gte: bytes, lte: bytes }
    range = comparison.startsWith('g') ? { ...range, gte: bytes } : { ...range, lte: bytes }
  }
  return range
}

/** An absent value is neither less nor more than anything, and not equal to it. */
function isMet({ place, comparison, value }: Filter, values: FieldValues): boolean {
  const held = values[place] ?? null
  if (held === null) return comparison === 'ne'
  const order = compareValues(held, value)
  switch (comparison) {
    case 'eq':
      return order === 0
    case 'ne':
      return order !== 0
    case 'gt':
      return order > 0
    case 'gte':
      return order >= 0
    case 'lt':
      return order < 0
    case 'lte':
      return order <= 0
  }
}

function tooMany({ name }: IndexDefinition): StoreError {
  const message = `index ${name}: more than ${indexSortMax} entries would have to be sorted; filter them, or order by the second field`
  const detail = { limit: 'indexSortMax', limitValue: indexSortMax }
  return new StoreError('too-large', message, detail)
}

function tooLarge({ name }: IndexDefinition): StoreError {
  const message = `index ${name}: the values of the entries to be sorted are too large together; filter them, or order by the second field`
  const detail = { limit: 'indexSortBytesMax', limitValue: indexSortBytesMax }
  return new StoreError('too-large', message, detail)
}
