/**
 * Reading tables of one group: rows by key, scans, a row with all below it, indexes. What a
 * transaction and a read-only handle have in common; types are put on in `handles.ts`.
 */
import type { Page } from '../base/page.ts'
import { checkPlaces } from '../base/arguments.ts'
import { present } from '../base/assert.ts'
import { latin1 } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type { Timestamp } from '../base/ids.ts'
import { unknownWord } from '../base/suggest.ts'
import { wordsFor } from '../base/words.ts'
import { type KeyRange } from '../group/outcome.ts'
import { keyAfter, prefixRange } from '../txn/key-range.ts'
import type { Reads, StoredRow } from '../txn/reads.ts'
import { inlineEntriesMax, scanRowsDefault, scanRowsMax } from './limits.ts'
import type { CompiledIndex, CompiledTable } from './compiled.ts'
import { cursorAt, keyAt, type Scanned } from './cursor.ts'
import { decodeEntry, entryWriter } from './entries.ts'
import { EntryBook, readDistinct } from './entry-book.ts'
import { checkRoot, type GroupContext } from './group-context.ts'
import type { IndexGate } from './index-gate.ts'
import { isGone } from './expiry.ts'
import { rangeOfQuery } from './key-query.ts'
import {
  decodeEntryKey,
  decodeRowKey,
  encodeRowKey,
  rowSpace,
  writerIn,
  type DecodedEntryKey,
} from './row-key.ts'
import type { Values } from './row-check.ts'
import { RowStamp } from './row-stamp.ts'
import { decodeRow } from './row-value.ts'

export interface ScanOptions {
  readonly reverse?: boolean
  /** Rows at most in one page; default 1,000, at most 20,000. */
  readonly limit?: number
  /** Where an earlier page of the same scan ended. */
  readonly cursor?: string
}

export interface TableRow {
  readonly table: string
  readonly row: Values
}

/** An entry as it is stored, and its key read. */
interface FoundEntry {
  readonly stored: StoredRow
  readonly decoded: DecodedEntryKey
}

/** Of a page, and the key behind which the next one begins. */
interface Placed<Item> {
  readonly item: Item
  readonly key: Uint8Array
}

export interface EntryPage extends Page<Values> {
  /** The row of each entry that is still one of that row; of entries from one place to before another. */
  rows(from?: number, to?: number): Promise<readonly Values[]>
}

export class RowReads {
  readonly context: GroupContext
  readonly #reads: Reads
  readonly #gate: IndexGate | undefined

  /** `gate`: of indexes that come and go; without it all of them are ready. */
  constructor(reads: Reads, context: GroupContext, gate?: IndexGate) {
    this.context = context
    this.#reads = reads
    this.#gate = gate
  }

  table(name: string): CompiledTable {
    const { tables, name: schema } = this.context.schema
    const table = tables.get(name)
    if (table !== undefined) return table
    const known = [...tables.keys()]
    throw new StoreError('invalid', `schema ${schema}: ${unknownWord('table', name, known)}`)
  }

  get(table: CompiledTable, key: unknown): Promise<Values | undefined> {
    if (table.expiry !== undefined) return this.getMany(table, [key]).then(([row]) => row)
    const { bytes, values } = encodeRowKey(this.context, table, key)
    return this.#reads.getMany([bytes]).then(([row]) => row && this.#decodeRow(table, values, row))
  }

  async getMany(
    table: CompiledTable,
    keys: readonly unknown[],
  ): Promise<readonly (Values | undefined)[]> {
    const encoded = keys.map((key, place) => this.#encoded(table, key, place))
    const rows = await this.#reads.getMany(encoded.map(({ bytes }) => bytes))
    const asOf = await this.#moment(table.expiry !== undefined)
    return rows.map((stored, index) => {
      const values = encoded[index]?.values ?? []
      if (stored === undefined || isGone({ table, values, stored }, asOf)) return undefined
      return this.#decodeRow(table, values, stored)
    })
  }

  /** An error in one of several keys names the place of that key. */
  #encoded(table: CompiledTable, key: unknown, place: number): ReturnType<typeof encodeRowKey> {
    try {
      return encodeRowKey(this.context, table, key)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      const more = 'cause' in error ? { cause: error.cause } : {}
      const message = `getMany: keys[${place}]: ${error.message}`
      throw new StoreError(error.code, message, error.detail, more)
    }
  }

  /** When a row or an entry that this gave was written; undefined: by this transaction, later. */
  timestampOf(given: object): Timestamp | undefined {
    if (typeof given === 'object' && given !== null && RowStamp.isOn(given))
      return RowStamp.of(given)
    throw new StoreError('invalid', 'timestampOf is asked for a row that no handle has read')
  }

  /** Of the view, which this opens. */
  async asOf(): Promise<Timestamp | undefined> {
    return (await this.#reads.view()).asOf
  }

  #decodeRow(table: CompiledTable, key: readonly unknown[], stored: StoredRow): Values {
    return RowStamp.put(decodeRow(table, key, stored.value), stored.timestamp)
  }

  scan(table: CompiledTable, query: unknown, options: ScanOptions): Promise<Page<Values>> {
    checkRoot(this.context, table)
    const place = { writer: writerIn(rowSpace), where: `table ${table.name}` }
    const { range, isExact } = rangeOfQuery(this.context, table, table, query, place)
    // Below a row stand those of other tables.
    const exact = isExact ? { gte: range.gte, lt: keyAfter(range.gte) } : range
    const { number } = table
    const scanned = { what: 'rows', number, range: exact } as const
    return this.#pages(scanned, options, table.expiry !== undefined, (stored, asOf) => {
      const found = decodeRowKey(this.context, stored.key)
      if (found?.table !== table || isGone({ ...found, stored }, asOf)) return undefined
      return this.#decodeRow(table, found.values, stored)
    })
  }

  /** A row and all below it, depth first; rows of tables that this version does not know are left out. */
  scanTree(table: CompiledTable, key: unknown, options: ScanOptions): Promise<Page<TableRow>> {
    const { bytes } = encodeRowKey(this.context, table, key)
    const { number } = table
    const scanned = { what: 'tree', number, range: prefixRange(bytes) } as const
    const { hasExpiry } = this.context.schema
    return this.#pages(scanned, options, hasExpiry, (stored, asOf) => {
      const found = decodeRowKey(this.context, stored.key)
      if (found === undefined || isGone({ ...found, stored }, asOf)) return undefined
      return { table: found.table.name, row: this.#decodeRow(found.table, found.values, stored) }
    })
  }

  async index(
    table: CompiledTable,
    name: string,
    query: unknown,
    options: ScanOptions,
  ): Promise<EntryPage> {
    const index = this.#findIndex(table, name)
    await this.#gate?.(index, this.#reads)
    const { items: found, cursor } = await this.#entries(table, index, query, options)
    let items: readonly Values[] | undefined
    return {
      // A caller that wants the rows does not look at the entries.
      get items() {
        items ??= found.map((one) => toEntry(table, one))
        return items
      },
      cursor,
      rows: async (from, to) => {
        checkPlaces('rows', from, to)
        return this.#readRows(table, index, found.slice(from, to))
      },
    }
  }

  /** The row, with the entries of an inline index that belong to it. */
  async getWith(
    into: CompiledTable,
    key: unknown,
    table: CompiledTable,
    name: string,
  ): Promise<Values | undefined> {
    const index = this.#findIndex(table, name)
    if (index.into !== into.name) {
      const message = `index ${name}: its entries do not appear in rows of ${into.name}`
      throw new StoreError('invalid', message)
    }
    const { values } = encodeRowKey(this.context, into, key)
    await this.#gate?.(index, this.#reads)
    const row = await this.get(into, key)
    if (row === undefined) return undefined
    const named = index.parts
      .slice(0, values.length)
      .map((part, place) => [part.name, values[place]])
    const query: unknown = Object.fromEntries(named)
    const page = await this.#entries(table, index, query, { limit: inlineEntriesMax })
    if (page.cursor !== undefined) {
      const message = `index ${name}: a row has more than ${inlineEntriesMax} entries; read them by index(), page by page`
      const detail = { limit: 'inlineEntriesMax', limitValue: inlineEntriesMax }
      throw new StoreError('too-large', message, detail)
    }
    const whole = { ...row, [name]: page.items.map((one) => toEntry(table, one)) }
    return RowStamp.put(whole, this.timestampOf(row))
  }

  #findIndex(table: CompiledTable, name: string): CompiledIndex {
    const index = table.indexes.find((one) => one.name === name)
    if (index !== undefined) return index
    if (table.globals.some((one) => one.name === name)) {
      const message = `table ${table.name}: index "${name}" is global; db.index(…) reads it, over all groups`
      throw new StoreError('invalid', message)
    }
    const known = table.indexes.map((one) => one.name)
    const message = `table ${table.name}: ${unknownWord('local or inline index', name, known)}`
    throw new StoreError('invalid', message)
  }

  #entries(
    table: CompiledTable,
    index: CompiledIndex,
    query: unknown,
    options: ScanOptions,
  ): Promise<Page<FoundEntry>> {
    checkRoot(this.context, table)
    const place = { writer: entryWriter(index), where: `index ${index.name}` }
    const { range } = rangeOfQuery(this.context, table, index, query, place)
    const { number } = index
    const decode = (stored: StoredRow): FoundEntry => {
      const decoded = decodeEntryKey(this.context, stored.key)
      if (decoded === undefined) throw notAnEntry(index)
      return { stored, decoded }
    }
    const scanned = { what: 'index', number, range } as const
    if (table.expiry === undefined) return this.#pages(scanned, options, false, decode)
    return this.#lookedAt(scanned, options, async (rows) => {
      const living = await this.#living(table, rows.map(decode))
      return living.map((item) => ({ item, key: item.stored.key }))
    })
  }

  /** TTL-1: an entry is there for as long as its row, and that says when it expires. */
  async #living(
    table: CompiledTable,
    entries: readonly FoundEntry[],
  ): Promise<readonly FoundEntry[]> {
    const keys = entries.map(({ decoded }) => decoded.rowKey)
    const rows = await readDistinct(keys, (distinct) => this.#reads.getMany(distinct))
    const asOf = await this.#moment(true)
    return entries.filter(({ decoded: { values } }, place) => {
      const stored = rows[place]
      return stored === undefined || !isGone({ table, values, stored }, asOf)
    })
  }

  /**
   * At one view an entry has its row (IDX-2). Without one it is looked at again, and so is that of a row
   * which this transaction has written: it may have changed since the entry was read.
   */
  async #readRows(
    table: CompiledTable,
    index: CompiledIndex,
    found: readonly FoundEntry[],
  ): Promise<readonly Values[]> {
    const keys = found.map(({ decoded }) => decoded.rowKey)
    const there = await readDistinct(keys, (distinct) => this.#reads.getMany(distinct))
    const book = new EntryBook(table, index)
    const { asOf } = await this.#reads.view()
    const rows: Values[] = []
    const without: Uint8Array[] = []
    for (const [place, { stored, decoded }] of found.entries()) {
      const one = there[place]
      if (one === undefined) without.push(stored.key)
      if (one === undefined) continue
      if (isGone({ table, values: decoded.values, stored: one }, asOf)) continue
      const { row, entries } = book.of(one, decoded.values)
      if (!RowStamp.isOn(row)) RowStamp.put(row, one.timestamp)
      const isOfView = asOf !== undefined && one.timestamp !== undefined
      if (isOfView || entries.has(latin1(stored.key))) rows.push(row)
    }
    if (asOf !== undefined) await this.#checkGone(index, without)
    return rows
  }

  /** Entries without rows: who deletes a row in this transaction deletes them along with it. */
  async #checkGone(index: CompiledIndex, keys: readonly Uint8Array[]): Promise<void> {
    const left = await this.#reads.getMany(keys)
    if (left.some((entry) => entry !== undefined)) throw leftOver(index)
  }

  /** The timestamp of the view, where rows expire. */
  async #moment(expires: boolean): Promise<Timestamp | undefined> {
    return expires ? (await this.#reads.view()).asOf : undefined
  }

  /** One page of what `decode` makes of rows; where it gives nothing, a row is passed over. */
  #pages<Item>(
    scanned: Pick<Scanned, 'what' | 'number' | 'range'>,
    options: ScanOptions,
    expires: boolean,
    decode: (row: StoredRow, asOf: Timestamp | undefined) => Item | undefined,
  ): Promise<Page<Item>> {
    return this.#lookedAt(scanned, options, async (rows) => {
      const asOf = await this.#moment(expires)
      return rows.flatMap((row) => {
        const item = decode(row, asOf)
        return item === undefined ? [] : [{ item, key: row.key }]
      })
    })
  }

  async #lookedAt<Item>(
    { what, number, range }: Pick<Scanned, 'what' | 'number' | 'range'>,
    options: ScanOptions,
    look: (rows: readonly StoredRow[]) => Promise<readonly Placed<Item>[]>,
  ): Promise<Page<Item>> {
    const { reverse = false, limit = scanRowsDefault, cursor } = options
    checkPageLimit(limit)
    const scanned = { what, number, range, reverse, group: this.context.group }
    let rest = cursor === undefined ? range : afterKey(range, keyAt(scanned, cursor), reverse)
    const items: Item[] = []
    for (let asked = limit; ; asked = Math.min(asked * 2, scanRowsMax)) {
      const { gte, lt } = rest
      const page = await this.#reads.scan({ gte, lt, reverse, limit: asked })
      for (const { item, key } of await look(page.rows)) {
        items.push(item)
        if (items.length === limit) return { items, cursor: cursorAt(scanned, key) }
      }
      if (page.isWhole) return { items, cursor: undefined }
      rest = afterKey(rest, present(page.rows.at(-1), 'TAB-4: a page has rows').key, reverse)
    }
  }
}

function toEntry(table: CompiledTable, { stored, decoded }: FoundEntry): Values {
  return RowStamp.put(decodeEntry(table, decoded, stored.value), stored.timestamp)
}

function afterKey(range: KeyRange, key: Uint8Array, reverse: boolean): KeyRange {
  return reverse ? { gte: range.gte, lt: key } : { gte: keyAfter(key), lt: range.lt }
}

function checkPageLimit(limit: number): void {
  if (!Number.isInteger(limit) || limit < 1) {
    throw new StoreError('invalid', `limit is ${wordsFor(limit)}; expected a whole number from 1`)
  }
  if (limit <= scanRowsMax) return
  const detail = { limit: 'scanRowsMax', limitValue: scanRowsMax, actual: limit }
  const message = `limit is ${limit}, at most ${scanRowsMax}; go on with the page's cursor`
  throw new StoreError('too-large', message, detail)
}

function leftOver({ name }: CompiledIndex): StoreError {
  const message = `IDX-2: index ${name} has an entry of no row; checkIndexes lists them`
  return new StoreError('corrupt', message)
}

function notAnEntry({ name }: CompiledIndex): StoreError {
  return new StoreError(
    'schema-mismatch',
    `index ${name} has an entry of another form than its schema says`,
  )
}
