/**
 * Reading a global index: the groups that a query concerns, merged by the keys of their entries, page
 * by page. An entry that it finds was right a moment ago. It reads the row to know whether it still
 * is (IDX-2).
 */
import { checkPlaces } from '../base/arguments.ts'
import { present } from '../base/assert.ts'
import { compareBytes, latin1 } from '../base/bytes.ts'
import { mapConcurrently } from '../base/concurrency.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import { wordsFor } from '../base/words.ts'
import { type KeyRange } from '../group/outcome.ts'
import { keyAfter } from '../txn/key-range.ts'
import type { StoredRow } from '../txn/reads.ts'
import { globalEntriesMax, groupsReadAtOnceMax, scanRowsDefault } from './limits.ts'
import type { CompiledGlobal, CompiledSchema, CompiledTable } from './compiled.ts'
import { cursorAt, keyAt, type Scanned } from './cursor.ts'
import { decodeEntry, entryWriter } from './entries.ts'
import { EntryBook, readDistinct } from './entry-book.ts'
import { decodeGlobalKey, groupsOfValue, indexGroups } from './global-entries.ts'
import { isGone } from './expiry.ts'
import { groupContext, type GroupContext } from './group-context.ts'
import { stampBytes, stampedEntry } from './index-batcher.ts'
import { checkIndexed, readMembers } from './key-check.ts'
import { isBounds, rangeOfQuery } from './key-query.ts'
import type { Page } from '../base/page.ts'
import type { ScanOptions } from './read-rows.ts'
import type { DecodedEntryKey } from './row-key.ts'
import type { Values } from './row-check.ts'
import { RowStamp } from './row-stamp.ts'

/** Rows in the order of their keys, and the timestamp of the view. */
export interface RowsAt {
  readonly rows: readonly (StoredRow | undefined)[]
  readonly asOf: Timestamp | undefined
}

/** Rows of any group, at the level that the read asks for. */
export interface GroupReads {
  scan(
    group: GroupId,
    range: KeyRange,
    reverse: boolean,
    limit: number,
  ): Promise<readonly StoredRow[]>
  getAt(group: GroupId, keys: readonly Uint8Array[]): Promise<RowsAt>
  /** The same for another call, with as much time again. */
  anew(): GroupReads
}

export interface GlobalOptions extends ScanOptions {
  /** Leaves out entries that do not fit their rows any more: each row is read. */
  readonly verify?: boolean
}

export interface GlobalEntryPage extends Page<Values> {
  /** The row of each entry that is still one of that row; of entries from one place to before another. */
  rows(from?: number, to?: number): Promise<readonly Values[]>
}

interface FoundEntry {
  readonly stored: StoredRow
  readonly decoded: DecodedEntryKey
}

/** An entry that its row has, both as they are now. */
interface Fitting {
  readonly found: FoundEntry
  readonly fresh: Pick<StoredRow, 'value' | 'timestamp'>
  readonly row: Values
}

export class GlobalIndexReads {
  readonly #schema: CompiledSchema
  readonly #table: CompiledTable
  readonly #index: CompiledGlobal
  readonly #reads: GroupReads

  constructor(
    schema: CompiledSchema,
    table: CompiledTable,
    index: CompiledGlobal,
    reads: GroupReads,
  ) {
    this.#schema = schema
    this.#table = table
    this.#index = index
    this.#reads = reads
  }

  async page(query: unknown, options: GlobalOptions): Promise<GlobalEntryPage> {
    const { found, cursor } = await this.#found(query, options)
    // TTL-1: the row says when its entry expires.
    if (options.verify !== true && this.#table.expiry === undefined) {
      return {
        items: found.map(({ stored, decoded }) => this.#entry(decoded, stored)),
        cursor,
        // The program may work on a page for long before this call.
        rows: async (from, to) => {
          checkPlaces('rows', from, to)
          return rowsIn(await this.#fitting(found.slice(from, to), this.#reads.anew()))
        },
      }
    }
    const fitting = await this.#fitting(found, this.#reads)
    return {
      items: fitting.map(({ found: { decoded }, fresh }) => this.#entry(decoded, fresh)),
      cursor,
      rows: async (from, to) => {
        checkPlaces('rows', from, to)
        return rowsIn(fitting.slice(from, to))
      },
    }
  }

  async #found(
    query: unknown,
    options: ScanOptions,
  ): Promise<{ readonly found: readonly FoundEntry[]; readonly cursor: string | undefined }> {
    const { reverse = false, limit = scanRowsDefault, cursor } = options
    checkLimit(limit)
    const table = this.#table
    const index = this.#index
    const where = `index ${index.name}`
    const asked = readMembers(query, index.queryNames, () => where)
    const place = { writer: entryWriter(index), where }
    const { range } = rangeOfQuery(undefined, table, index, asked, place)
    const { schema, number } = index
    const scanned = { what: `index of ${schema}`, number, range, reverse, group: '' }
    const rest = cursor === undefined ? range : restAfter(scanned, cursor)
    const pages = await inTurns(this.#groupsFor(asked), (group) =>
      this.#reads.scan(group, rest, reverse, limit),
    )
    const merged = merge(pages, reverse)
    const found = merged.slice(0, limit).map((stored) => {
      const decoded = decodeGlobalKey(table, index, stored.key)
      return { stored, decoded: decoded ?? notAnEntry(index) }
    })
    const last = found.at(-1)?.stored.key
    const hasMore = merged.length > limit || pages.some((page) => page.length === limit)
    return { found, cursor: hasMore && last !== undefined ? cursorAt(scanned, last) : undefined }
  }

  /** One, or those that a value is spread over, when the query names it; all of them otherwise. */
  #groupsFor(query: Readonly<Record<string, unknown>>): readonly GroupId[] {
    const index = this.#index
    const part = index.parts[index.shardPlace]
    if (part === undefined) return indexGroups(index)
    const value = query[part.name]
    if (value === undefined || isBounds(value)) return indexGroups(index)
    // Entries lie by values as they are stored: one that is given may be another of the same meaning.
    return groupsOfValue(index, checkIndexed(part, value, `index ${index.name}`))
  }

  #entry(
    decoded: DecodedEntryKey,
    { value, timestamp }: Pick<StoredRow, 'value' | 'timestamp'>,
  ): Values {
    const held = value.subarray(stampBytes)
    return RowStamp.put(decodeEntry(this.#table, decoded, held), timestamp)
  }

  /** Of the entries those whose rows still have them, with the rows as they are now. */
  async #fitting(found: readonly FoundEntry[], reads: GroupReads): Promise<readonly Fitting[]> {
    const byGroup = new Map<GroupId, FoundEntry[]>()
    for (const one of found) {
      const group = rootContext(this.#schema, this.#table, one.decoded.values).group
      const others = byGroup.get(group)
      if (others === undefined) byGroup.set(group, [one])
      else others.push(one)
    }
    const fitting = new Map<FoundEntry, Fitting>()
    await inTurns([...byGroup], async ([group, entries]) => {
      const keys = entries.map(({ decoded }) => decoded.rowKey)
      let asOf: Timestamp | undefined
      const rows = await readDistinct(keys, async (distinct) => {
        const read = await reads.getAt(group, distinct)
        asOf = read.asOf
        return read.rows
      })
      const book = new EntryBook(this.#table, this.#index)
      for (const [place, one] of entries.entries()) {
        const fits = this.#fit(one, rows[place], asOf, book)
        if (fits !== undefined) fitting.set(one, fits)
      }
    })
    return found.flatMap((one) => fitting.get(one) ?? [])
  }

  #fit(
    found: FoundEntry,
    there: StoredRow | undefined,
    asOf: Timestamp | undefined,
    book: EntryBook,
  ): Fitting | undefined {
    if (there === undefined) return undefined
    const row = { table: this.#table, values: found.decoded.values, stored: there }
    if (isGone(row, asOf)) return undefined
    const { timestamp = 0 } = there
    const { row: values, entries } = book.of(there, found.decoded.values)
    const entry = entries.get(latin1(found.stored.key))
    if (entry === undefined) return undefined
    const fresh = { value: stampedEntry(timestamp, entry.value), timestamp }
    if (!RowStamp.isOn(values)) RowStamp.put(values, timestamp)
    return { found, fresh, row: values }
  }
}

function rowsIn(fitting: readonly Fitting[]): readonly Values[] {
  return fitting.map(({ row }) => row)
}

/** The group of the row with this key, by part. */
export function rootContext(
  schema: CompiledSchema,
  table: CompiledTable,
  values: readonly unknown[],
): GroupContext {
  const root = present(schema.tables.get(table.root), 'TAB-2: a table has its root')
  const key = Object.fromEntries(root.key.map(({ name }, place) => [name, values[place]]))
  return groupContext(schema, root, key)
}

/** Some at a time, in their order. */
export function inTurns<From, To>(
  items: readonly From[],
  work: (item: From) => Promise<To>,
): Promise<readonly To[]> {
  return mapConcurrently(items, groupsReadAtOnceMax, work)
}

function merge(pages: readonly (readonly StoredRow[])[], reverse: boolean): readonly StoredRow[] {
  const [only] = pages
  if (only !== undefined && pages.length === 1) return only
  const all = pages.flat().sort((a, b) => compareBytes(a.key, b.key))
  return reverse ? all.reverse() : all
}

function restAfter(scanned: Scanned, cursor: string): KeyRange {
  const { gte, lt } = scanned.range
  const key = keyAt(scanned, cursor)
  return scanned.reverse ? { gte, lt: key } : { gte: keyAfter(key), lt }
}

function checkLimit(limit: number): void {
  if (Number.isInteger(limit) && limit >= 1 && limit <= globalEntriesMax) return
  const of = { limit: 'globalEntriesMax', limitValue: globalEntriesMax }
  const detail = Number.isFinite(limit) ? { ...of, actual: limit } : of
  const message = `limit is ${wordsFor(limit)}; expected a whole number from 1 to ${globalEntriesMax}`
  throw new StoreError('invalid', message, detail)
}

function notAnEntry({ name }: CompiledGlobal): never {
  const message = `index ${name} has an entry of another form than its schema says`
  throw new StoreError('schema-mismatch', message)
}
