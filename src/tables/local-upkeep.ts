/**
 * The upkeep of a local or inline index in one group: entries and rows are there together, so each step is a
 * transaction, or a read at one moment, of that group alone.
 */
import type { GroupId, Timestamp } from '../base/ids.ts'
import { latin1 } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type { KeyRange } from '../group/outcome.ts'
import { upkeepBounds } from '../indexes/limits.ts'
import { indexFaultsMax, type IndexFault, type IndexReport } from '../indexes/report.ts'
import { keyAfter, prefixRange } from '../txn/key-range.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { runRead } from '../txn/run-read.ts'
import { runTransaction } from '../txn/run.ts'
import type { Reads, ScanPage } from '../txn/reads.ts'
import { checkEntries, checkRows, type AddFault } from './check-indexes.ts'
import { entryWriter, type Entry } from './entries.ts'
import { EntryBook, readDistinct } from './entry-book.ts'
import type { GroupContext } from './group-context.ts'
import {
  findContext,
  fittingEntries,
  isOfGlobal,
  rowIn,
  rowRange,
  type UpkeepParts,
} from './index-parts.ts'
import { decodeEntryKey, filledKey, keyInWords } from './row-key.ts'

/** Says that the group is filled: see `index-gate.ts`. */
export async function markFilled(
  { port, index, options }: UpkeepParts,
  group: GroupId,
): Promise<void> {
  await runTransaction(port, group, options, async (transaction) => {
    transaction.put(filledKey(index), Uint8Array.of(1))
  })
}

/** A row of before a unique index may have a value that another one has. */
export async function checkAlone(
  transaction: RawTransaction,
  { index, schema, table }: UpkeepParts,
  { key, uniqueBytes, values }: Entry,
): Promise<void> {
  // Rows without a value share none.
  if (values.includes(undefined)) return
  const prefix = key.subarray(0, uniqueBytes)
  const { rows } = await transaction.scan({ ...prefixRange(prefix), limit: 2 })
  if (rows.every((row) => latin1(row.key) === latin1(key))) return
  const names = index.parts.map(({ name }) => name).join(', ')
  const words = values.map((value) => JSON.stringify(value) ?? String(value)).join(', ')
  const message = `index ${index.name} is unique, and two rows of ${table.name} have the same ${names} (${words}); change one of them and build the index again, or drop it: trilithon index drop --schema ${schema.name} ${index.name}`
  throw new StoreError('already-exists', message)
}

/** Takes entries out that no row has; resolves with how many. */
export async function removeInGroup(parts: UpkeepParts, context: GroupContext): Promise<number> {
  const { port, table, index, options } = parts
  let removed = 0
  for (let rest: KeyRange | undefined = prefixRange(entryWriter(index).bytes); rest;) {
    const range: KeyRange = rest
    const { value } = await runTransaction(port, context.group, options, async (transaction) => {
      const page = await transaction.scan({ ...range, limit: pickLimit(parts) })
      const places = page.rows.flatMap(({ key }) => decodeEntryKey(context, key) ?? [])
      const keys = places.map(({ rowKey }) => rowKey)
      const rows = await readDistinct(keys, (distinct) => transaction.getMany(distinct))
      const book = new EntryBook(table, index)
      const wrong = page.rows.filter(({ key }, at) => {
        const [stored, place] = [rows[at], places[at]]
        return !(stored && place && book.of(stored, place.values).entries.has(latin1(key)))
      })
      for (const { key } of wrong) transaction.delete(key)
      transaction.takePosition()
      return { count: wrong.length, rest: findRest(range, page) }
    })
    removed += value.count
    rest = value.rest
  }
  return removed
}

/** Takes out all entries, and the mark of a local index; resolves with how many entries. */
export async function clearInGroup(parts: UpkeepParts, group: GroupId): Promise<number> {
  const { port, index, options } = parts
  const range = { ...prefixRange(entryWriter(index).bytes), limit: pickLimit(parts) }
  for (let cleared = 0; ;) {
    const { value: page } = await runTransaction(port, group, options, async (transaction) => {
      const found = await transaction.scan(range)
      for (const { key } of found.rows) transaction.delete(key)
      if (found.isWhole && !isOfGlobal(parts)) transaction.delete(filledKey(index))
      return found
    })
    cleared += page.rows.length
    if (page.isWhole) return cleared
  }
}

/** The result of comparing a group, and a moment as of which it was so at the latest. */
export interface Compared extends IndexReport {
  readonly asOf: Timestamp
}

/** Each page is read at a moment of its own, at which the entries are those of the rows. */
export async function compareInGroup(parts: UpkeepParts, group: GroupId): Promise<Compared> {
  const { index, table } = parts
  const context = findContext(parts, group)
  const faults: IndexFault[] = []
  if (context === undefined) return { rows: 0, entries: 0, asOf: 0, faults }
  const add: AddFault = (kind, of, key) => {
    if (of !== index || faults.length >= indexFaultsMax) return
    faults.push({ kind, index: of.name, entry: keyInWords(context, key) })
  }
  const rows = await forEachPage(parts, group, rowRange, async (reads, page) => {
    const found = page.rows.filter((stored) => {
      const row = rowIn(table, context, stored)
      // Too long values go to the report.
      if (row !== undefined) fittingEntries(parts, row)
      return row !== undefined
    })
    await checkRows(reads, context, found, add)
    return found.length
  })
  const range = prefixRange(entryWriter(index).bytes)
  const entries = await forEachPage(parts, group, range, async (reads, page) => {
    await checkEntries(reads, context, page.rows, add)
    return page.rows.length
  })
  return { rows: rows.count, entries: entries.count, asOf: entries.asOf, faults }
}

async function forEachPage(
  parts: UpkeepParts,
  group: GroupId,
  whole: KeyRange,
  work: (reads: Reads, page: ScanPage) => Promise<number>,
): Promise<{ readonly count: number; readonly asOf: Timestamp }> {
  const { port, options } = parts
  let [count, asOf] = [0, 0]
  for (let rest: KeyRange | undefined = whole; rest;) {
    const range: KeyRange = rest
    const from = { kind: 'current' } as const
    const { value, view } = await runRead(port, group, from, options, async (reads) => {
      const page = await reads.scan({ ...range, limit: pickLimit(parts) })
      return { some: await work(reads.rows, page), rest: findRest(range, page) }
    })
    count += value.some
    asOf = view?.asOf ?? asOf
    rest = value.rest
  }
  return { count, asOf }
}

function findRest({ lt }: KeyRange, { rows, isWhole }: ScanPage): KeyRange | undefined {
  const last = rows.at(-1)
  return isWhole || last === undefined ? undefined : { gte: keyAfter(last.key), lt }
}

function pickLimit({ rowsAtOnce }: UpkeepParts): number {
  return rowsAtOnce ?? upkeepBounds.changesAtOnceMax
}
