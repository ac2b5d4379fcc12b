/**
 * Compares the entries of a group with its rows, at one moment (IDX-1): which entries are missing,
 * left over, or hold something else than their row says.
 */
import { asBuffer, latin1 } from '../base/bytes.ts'
import { indexFaultsMax, type IndexFault, type IndexReport } from '../indexes/report.ts'
import { prefixRange } from '../txn/key-range.ts'
import type { Reads, StoredRow } from '../txn/reads.ts'
import { scanRowsDefault } from './limits.ts'
import type { CompiledIndex } from './compiled.ts'
import { buildEntries, type Entry } from './entries.ts'
import { EntryBook, readDistinct } from './entry-book.ts'
import { fitsIndex } from './global-writes.ts'
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

/** Of these indexes. */
type Picked = (index: CompiledIndex) => boolean

export async function compareIndexes(
  reads: Reads,
  context: GroupContext,
  isCompared: Picked = () => true,
): Promise<IndexReport> {
  const faults: IndexFault[] = []
  const add = (kind: IndexFault['kind'], index: CompiledIndex, key: Uint8Array): void => {
    if (faults.length >= indexFaultsMax || !isCompared(index)) return
    faults.push({ kind, index: index.name, entry: keyInWords(context, key) })
  }
  let rows = 0
  for await (const page of readPages(reads, rowSpace)) {
    rows += page.length
    await checkRows(reads, context, page, add)
  }
  let entries = 0
  for await (const page of readPages(reads, entrySpace)) {
    entries += page.length
    await checkEntries(reads, context, page, add)
  }
  return { rows, entries, faults }
}

export type AddFault = (kind: IndexFault['kind'], index: CompiledIndex, key: Uint8Array) => void

async function* readPages(reads: Reads, space: number): AsyncGenerator<readonly StoredRow[]> {
  const range = prefixRange(Buffer.from([space]))
  for (let from = range.gte; ;) {
    const { rows, isWhole } = await reads.scan({ gte: from, lt: range.lt, limit: scanRowsDefault })
    yield rows
    const last = rows.at(-1)
    if (isWhole || last === undefined) return
    from = Buffer.concat([last.key, Buffer.alloc(1)])
  }
}

/** Checks that the entries of these rows are there, with the content that the rows demand. */
export async function checkRows(
  reads: Reads,
  context: GroupContext,
  rows: readonly StoredRow[],
  add: AddFault,
): Promise<void> {
  const said = rows.flatMap((stored) => entriesSaid(context, stored))
  // Of all rows at once: over a network, asking row by row takes minutes for a large group.
  const there = await reads.getMany(said.map(({ entry }) => entry.key))
  for (const [place, { index, entry }] of said.entries()) {
    const found = there[place]
    if (found === undefined) add('missing', index, entry.key)
    else if (!asBuffer(found.value).equals(entry.value)) add('other-content', index, entry.key)
  }
}

function entriesSaid(
  context: GroupContext,
  stored: StoredRow,
): readonly { readonly index: CompiledIndex; readonly entry: Entry }[] {
  const found = decodeRowKey(context, stored.key)
  if (found === undefined) return []
  const { table, values } = found
  const row = decodeRow(table, values, stored.value)
  return table.indexes.flatMap((index) =>
    [...buildEntries(table, index, row).values()]
      .filter((entry) => fitsIndex(index, entry))
      .map((entry) => ({ index, entry })),
  )
}

/** Every entry is one of the row that it names. */
export async function checkEntries(
  reads: Reads,
  context: GroupContext,
  entries: readonly StoredRow[],
  add: AddFault,
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
    if (!has) add('left-over', index, key)
  }
}
