/**
 * Compares the entries of a group with its rows, at one moment (IDX-1): which entries are missing,
 * left over, or hold something else than their row says.
 */
import { bufferOf, latin1 } from '../base/bytes.ts'
import { prefixRange } from '../txn/key-range.ts'
import type { Reads, StoredRow } from '../txn/reads.ts'
import { scanRowsDefault } from './limits.ts'
import type { CompiledIndex } from './compiled.ts'
import { entriesOf, type Entry } from './entries.ts'
import { EntryBook, readDistinct } from './entry-book.ts'
import type { GroupContext } from './group-context.ts'
import {
  decodeEntryKey,
  decodeRowKey,
  entrySpace,
  keyInWords,
  rowSpace,
  writeRowKey,
} from './row-key.ts'
import { decodeRow } from './row-value.ts'

/** Faults listed; a report of more helps nobody. */
export const indexFaultsMax = 1000

export interface IndexFault {
  readonly kind: 'missing' | 'left-over' | 'other-content'
  readonly index: string
  /** The entry, in words. */
  readonly entry: string
}

export interface IndexReport {
  readonly rows: number
  readonly entries: number
  /** At most `indexFaultsMax`. */
  readonly faults: readonly IndexFault[]
}

export async function compareIndexes(reads: Reads, context: GroupContext): Promise<IndexReport> {
  const faults: IndexFault[] = []
  const add = (kind: IndexFault['kind'], index: string, key: Uint8Array): void => {
    if (faults.length < indexFaultsMax)
      faults.push({ kind, index, entry: keyInWords(context, key) })
  }
  let rows = 0
  for await (const page of pagesOf(reads, rowSpace)) {
    rows += page.length
    await checkRows(reads, context, page, add)
  }
  let entries = 0
  for await (const page of pagesOf(reads, entrySpace)) {
    entries += page.length
    await checkEntries(reads, context, page, add)
  }
  return { rows, entries, faults }
}

type Add = (kind: IndexFault['kind'], index: string, key: Uint8Array) => void

async function* pagesOf(reads: Reads, space: number): AsyncGenerator<readonly StoredRow[]> {
  const range = prefixRange(Buffer.from([space]))
  for (let from = range.gte; ;) {
    const { rows, isWhole } = await reads.scan({ gte: from, lt: range.lt, limit: scanRowsDefault })
    yield rows
    const last = rows.at(-1)
    if (isWhole || last === undefined) return
    from = Buffer.concat([last.key, Buffer.alloc(1)])
  }
}

/** What the rows say is there, with the content that they say. */
async function checkRows(
  reads: Reads,
  context: GroupContext,
  rows: readonly StoredRow[],
  add: Add,
): Promise<void> {
  const said = rows.flatMap((stored) => entriesSaid(context, stored))
  // Of all rows at once: over a network, asking row by row takes minutes for a large group.
  const there = await reads.getMany(said.map(({ entry }) => entry.key))
  for (const [place, { index, entry }] of said.entries()) {
    const found = there[place]
    if (found === undefined) add('missing', index, entry.key)
    else if (!bufferOf(found.value).equals(entry.value)) add('other-content', index, entry.key)
  }
}

function entriesSaid(
  context: GroupContext,
  stored: StoredRow,
): readonly { readonly index: string; readonly entry: Entry }[] {
  const found = decodeRowKey(context, stored.key)
  if (found === undefined) return []
  const { table, values } = found
  const row = decodeRow(table, values, stored.value)
  return table.indexes.flatMap((index) =>
    [...entriesOf(table, index, row).values()].map((entry) => ({ index: index.name, entry })),
  )
}

/** Every entry is one of the row that it names. */
async function checkEntries(
  reads: Reads,
  context: GroupContext,
  entries: readonly StoredRow[],
  add: Add,
): Promise<void> {
  const known = entries.flatMap(({ key }) => {
    const entry = decodeEntryKey(context, key)
    const table = context.schema.tables.get(entry?.index.table ?? '')
    return entry === undefined || table === undefined ? [] : [{ key, entry, table }]
  })
  const keys = known.map(({ entry, table }) => writeRowKey(table, entry.values).bytes)
  const rows = await readDistinct(keys, (distinct) => reads.getMany(distinct))
  const books = new Map<CompiledIndex, EntryBook>()
  for (const [place, { key, entry, table }] of known.entries()) {
    const stored = rows[place]
    const { index } = entry
    const book = books.get(index) ?? new EntryBook(table, index)
    books.set(index, book)
    const has = stored !== undefined && book.of(stored, entry.values).entries.has(latin1(key))
    if (!has) add('left-over', entry.index.name, key)
  }
}
