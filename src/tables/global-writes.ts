/**
 * The indexes that a change of a row keeps, and what it brings onto the worklist of its group for global
 * ones: entries that it takes away, and those that it makes or makes anew.
 */
import { keyBytesMax } from '../base/limits.ts'
import {
  isGlobal,
  type CompiledGlobal,
  type CompiledIndex,
  type CompiledTable,
} from './compiled.ts'
import { buildEntries, isSameEntry, noEntries, tooLong, type Entry } from './entries.ts'
import { groupOfEntry } from './global-entries.ts'
import { encodeEntryState, globalEntryBytesMax, type WorklistRow } from './index-worklist.ts'
import type { Values } from './row-check.ts'
import { decodeRow, readField } from './row-value.ts'

/** A row as this version of the schema reads it, and as it is stored. */
export interface WholeRow {
  readonly row: Values
  readonly bytes: Uint8Array
}

/** The table by which a changed row's indexes are kept: of the newest version that is known here. */
export function keptBy(table: CompiledTable): CompiledTable {
  return table.newest ?? table
}

/** As the version of these indexes reads it, which may know properties that this one does not. */
export function rowFor(table: CompiledTable, whole: WholeRow | undefined): Values | undefined {
  const { newest, sequence } = table
  if (whole === undefined || newest === undefined) return whole?.row
  const { row, bytes } = whole
  const key = table.key.map(({ name }) => readField(row, name))
  const read = decodeRow(newest, key, bytes)
  // A number that is still to come is in no bytes.
  return sequence === undefined ? read : { ...read, [sequence.name]: row[sequence.name] }
}

/** `table`: that by which they are kept, and rows as it reads them. */
export function buildGlobalChanges(
  table: CompiledTable,
  before: Values | undefined,
  after: Values | undefined,
): readonly WorklistRow[] {
  if (table.globals.length === 0) return []
  return table.globals.flatMap((index) => buildChanges(table, index, before, after))
}

function buildChanges(
  table: CompiledTable,
  index: CompiledGlobal,
  before: Values | undefined,
  after: Values | undefined,
): readonly WorklistRow[] {
  const old = before === undefined ? noEntries : buildEntries(table, index, before)
  const now = after === undefined ? noEntries : buildEntries(table, index, after)
  const rows: WorklistRow[] = []
  for (const [key, entry] of old) {
    // A row of before the index may have values that are too long for it: of these there is no entry.
    if (before === undefined || now.has(key) || !fitsIndex(index, entry)) continue
    rows.push(buildRemoval(table, index, before, entry))
  }
  for (const [key, entry] of now) {
    const same = old.get(key)
    if (after === undefined || (same !== undefined && isSameEntry(same, entry))) continue
    rows.push(buildAddition(table, index, after, entry))
  }
  return rows
}

function buildRemoval(
  table: CompiledTable,
  index: CompiledGlobal,
  row: Values,
  entry: Entry,
): WorklistRow {
  const target = groupOfEntry(table, index, row, entry)
  return encodeEntryState({ target, key: entry.key, value: undefined })
}

/** An entry that is there, whether or not it was before. */
export function buildAddition(
  table: CompiledTable,
  index: CompiledGlobal,
  row: Values,
  entry: Entry,
): WorklistRow {
  if (!fitsIndex(index, entry)) {
    throw tooLong(entry.key, `an entry of index ${index.name}`, globalEntryBytesMax)
  }
  const target = groupOfEntry(table, index, row, entry)
  return encodeEntryState({ target, key: entry.key, value: entry.value }, entry.slots)
}

/** An entry of a global index goes by a worklist, where its key is longer. */
export function fitsIndex(index: CompiledIndex, { key }: Entry): boolean {
  return key.length <= (isGlobal(index) ? globalEntryBytesMax : keyBytesMax)
}
