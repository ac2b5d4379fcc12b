/**
 * What the change of a row brings onto the worklist of its group for global indexes: entries that it
 * takes away, and those that it makes or makes anew.
 */
import type { CompiledGlobal, CompiledTable } from './compiled.ts'
import { entriesOf, isSameEntry, noEntries, tooLong, type Entry } from './entries.ts'
import { groupOfEntry } from './global-entries.ts'
import { worklistRowOf, globalEntryBytesMax, type WorklistRow } from './index-worklist.ts'
import type { Values } from './row-check.ts'
import { decodeRow, fieldOf } from './row-value.ts'

/** A row as this version of the schema reads it, and as it is stored. */
export interface WholeRow {
  readonly row: Values
  readonly bytes: Uint8Array
}

export function globalChangesOf(
  table: CompiledTable,
  before: WholeRow | undefined,
  after: WholeRow | undefined,
): readonly WorklistRow[] {
  if (table.globals.length === 0) return []
  const [old, now] = [before && newestRow(table, before), after && newestRow(table, after)]
  return table.globals.flatMap((index) => changesOf(table.newest ?? table, index, old, now))
}

/** As the version of the indexes reads it, which may know properties that this one does not. */
function newestRow(table: CompiledTable, { row, bytes }: WholeRow): Values {
  const { newest, sequence } = table
  if (newest === undefined) return row
  const key = table.key.map(({ name }) => fieldOf(row, name))
  const whole = decodeRow(newest, key, bytes)
  // A number that is still to come is in no bytes.
  return sequence === undefined ? whole : { ...whole, [sequence.name]: row[sequence.name] }
}

function changesOf(
  table: CompiledTable,
  index: CompiledGlobal,
  before: Values | undefined,
  after: Values | undefined,
): readonly WorklistRow[] {
  const old = before === undefined ? noEntries : entriesOf(table, index, before)
  const now = after === undefined ? noEntries : entriesOf(table, index, after)
  const rows: WorklistRow[] = []
  for (const [key, entry] of old) {
    // A row of before the index may have values that are too long for it: of these there is no entry.
    if (before === undefined || now.has(key) || !fitsIndex(entry)) continue
    rows.push(goneOf(table, index, before, entry))
  }
  for (const [key, entry] of now) {
    const same = old.get(key)
    if (after === undefined || (same !== undefined && isSameEntry(same, entry))) continue
    rows.push(madeOf(table, index, after, entry))
  }
  return rows
}

function goneOf(
  table: CompiledTable,
  index: CompiledGlobal,
  row: Values,
  entry: Entry,
): WorklistRow {
  const target = groupOfEntry(table, index, row, entry)
  return worklistRowOf({ target, key: entry.key, value: undefined })
}

/** An entry that is there, whether or not it was before. */
export function madeOf(
  table: CompiledTable,
  index: CompiledGlobal,
  row: Values,
  entry: Entry,
): WorklistRow {
  if (!fitsIndex(entry)) {
    throw tooLong(entry.key, `an entry of index ${index.name}`, globalEntryBytesMax)
  }
  const target = groupOfEntry(table, index, row, entry)
  return worklistRowOf({ target, key: entry.key, value: entry.value }, entry.slots)
}

export function fitsIndex({ key }: Entry): boolean {
  return key.length <= globalEntryBytesMax
}
