/**
 * Keeping indexes with the cells: in the transaction that writes a cell, what its row has in each index
 * is made anew from the latest cells of the index's columns (CELL-2), whatever order they come in. From
 * there it goes its way as any entry of a global index (`../tables/SPEC.md`).
 */
import { assert } from '../base/assert.ts'
import type { GroupReader, GroupTransaction } from '../tables/types.ts'
import { unpackBody, type Json } from './body.ts'
import type { CellName, ShardName } from './cell.ts'
import { putIndexed } from './indexed-table.ts'
import { latestLiving } from './living.ts'
import { listColumns, storedName, type NumberedIndex } from './index-definition.ts'
import { buildIndexRow, type IndexRow } from './index-row.ts'

/** A cell that the same transaction is about to write. */
export interface ComingCell extends CellName {
  readonly body: Uint8Array
  readonly ttl: number | undefined
}

/** The bodies of the latest cells, by column, and the columns whose latest cell expires. */
interface Latest {
  readonly bodies: Map<string, Json>
  readonly aging: Set<string>
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
  const latest = (await latestLiving(rows, of, { rowKey, column }))?.cell
  if (latest !== undefined && latest.refKey >= refKey) return new Map()
  const isNewest = latest === undefined || latest.refKey < refKey
  assert(isNewest, 'IDX-7: what an index has of a row is made from the latest cells')
  const found: Latest = { bodies: new Map(), aging: new Set() }
  note(found, column, coming)
  const columns = new Set(definitions.flatMap(listColumns))
  columns.delete(column)
  await addLatest(rows, of, rowKey, columns, found)
  return rowsBy(definitions, found)
}

/** Of the cells that are there. */
export async function buildIndexRows(
  rows: GroupReader,
  of: ShardName,
  rowKey: string,
  definitions: readonly NumberedIndex[],
): Promise<IndexRows> {
  const found: Latest = { bodies: new Map(), aging: new Set() }
  await addLatest(rows, of, rowKey, new Set(definitions.flatMap(listColumns)), found)
  return rowsBy(definitions, found)
}

export async function putIndexRows(
  tx: GroupTransaction,
  of: ShardName,
  rowKey: string,
  rows: IndexRows,
): Promise<void> {
  for (const [index, row] of rows) await putIndexed(tx, of, { index, rowKey }, row)
}

function rowsBy(definitions: readonly NumberedIndex[], { bodies, aging }: Latest): IndexRows {
  return new Map(
    definitions.map((one) => {
      const ages = listColumns(one).some((column) => aging.has(column))
      return [storedName(one), buildIndexRow(one, bodies, ages)]
    }),
  )
}

function note(
  { bodies, aging }: Latest,
  column: string,
  { body, ttl }: { readonly body: Uint8Array; readonly ttl: number | undefined },
): void {
  const value = unpackBody(body)
  if (value !== undefined) bodies.set(column, value)
  if (ttl !== undefined) aging.add(column)
}

async function addLatest(
  rows: GroupReader,
  of: ShardName,
  rowKey: string,
  columns: ReadonlySet<string>,
  found: Latest,
): Promise<void> {
  for (const column of columns) {
    const latest = await latestLiving(rows, of, { rowKey, column })
    if (latest !== undefined) note(found, column, { body: latest.cell.body, ttl: latest.ttl })
  }
}
