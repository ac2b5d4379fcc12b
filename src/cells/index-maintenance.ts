/**
 * Keeping indexes with the cells: in the transaction that writes a cell, what its row has in each index
 * is made anew from the latest cells of the index's columns (CELL-2), whatever order they come in. From
 * there it goes its way as any entry of a global index (`../tables/SPEC.md`).
 */
import { assert } from '../base/assert.ts'
import type { GroupReader, GroupTransaction } from '../tables/types.ts'
import { unpackBody, type Json } from './body.ts'
import type { CellName, ShardName } from './cell.ts'
import { putIndexed, scanColumn } from './cell-table.ts'
import { listColumns, storedName, type NumberedIndex } from './index-definition.ts'
import { buildIndexRow, type IndexRow } from './index-row.ts'

/** A cell that the same transaction is about to write. */
export interface ComingCell extends CellName {
  readonly body: Uint8Array
}

/** The index rows to write for a row, by the names under which the indexes are stored. */
export type IndexRows = ReadonlyMap<string, IndexRow | undefined>

/** Before the cell is written: nothing when it does not become the latest of its column. */
export async function indexRowsWith(
  rows: GroupReader,
  of: ShardName,
  coming: ComingCell,
  definitions: readonly NumberedIndex[],
): Promise<IndexRows> {
  const { rowKey, column, refKey } = coming
  const latest = await readLatest(rows, of, rowKey, column)
  if (latest !== undefined && latest.refKey >= refKey) return new Map()
  const isNewest = latest === undefined || latest.refKey < refKey
  assert(isNewest, 'IDX-7: what an index has of a row is made from the latest cells')
  const bodies = new Map<string, Json>()
  const own = unpackBody(coming.body)
  if (own !== undefined) bodies.set(column, own)
  const columns = new Set(definitions.flatMap(listColumns))
  columns.delete(column)
  await addLatest(rows, of, rowKey, columns, bodies)
  return rowsBy(definitions, bodies)
}

/** Of the cells that are there. */
export async function buildIndexRows(
  rows: GroupReader,
  of: ShardName,
  rowKey: string,
  definitions: readonly NumberedIndex[],
): Promise<IndexRows> {
  const bodies = new Map<string, Json>()
  await addLatest(rows, of, rowKey, new Set(definitions.flatMap(listColumns)), bodies)
  return rowsBy(definitions, bodies)
}

export async function putIndexRows(
  tx: GroupTransaction,
  of: ShardName,
  rowKey: string,
  rows: IndexRows,
): Promise<void> {
  for (const [index, row] of rows) await putIndexed(tx, of, { index, rowKey }, row)
}

function rowsBy(
  definitions: readonly NumberedIndex[],
  bodies: ReadonlyMap<string, Json>,
): IndexRows {
  return new Map(definitions.map((one) => [storedName(one), buildIndexRow(one, bodies)]))
}

async function addLatest(
  rows: GroupReader,
  of: ShardName,
  rowKey: string,
  columns: ReadonlySet<string>,
  bodies: Map<string, Json>,
): Promise<void> {
  for (const column of columns) {
    const latest = await readLatest(rows, of, rowKey, column)
    const body = latest && unpackBody(latest.body)
    if (body !== undefined) bodies.set(column, body)
  }
}

async function readLatest(
  rows: GroupReader,
  of: ShardName,
  rowKey: string,
  column: string,
): Promise<{ readonly refKey: number; readonly body: Uint8Array } | undefined> {
  const page = await scanColumn(rows, of, { rowKey, column }, { reverse: true, limit: 1 })
  return page.items[0]?.cell
}
