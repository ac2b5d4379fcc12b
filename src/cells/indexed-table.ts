/**
 * The entries of a shard's rows in indexes over cells, as rows of a table below it, and the global index that
 * brings them together.
 *
 *   Indexed (datastore, shard, index_name, row_key)
 */
import { t } from '../../schema/property.ts'
import { table, type Table } from '../../schema/table.ts'
import { isUuid, type Uuid } from '../../schema/values.ts'
import { assert } from '../base/assert.ts'
import type { Page } from '../base/page.ts'
import type { ScanOptions } from '../tables/read-rows.ts'
import type { GlobalIndexOptions, Tables } from '../tables/tables.ts'
import type { GroupReader, GroupTransaction } from '../tables/types.ts'
import type { ShardName } from './cell.ts'
import { firstShardTable } from './trigger-schema.ts'

/**
 * The entries that the shard's rows have in indexes over cells: a row each, kept with the cells that it is
 * of.
 */
const indexedTable = table('Indexed', {
  datastore: t.string(),
  shard: t.int32(),
  index_name: t.string(),
  row_key: t.uuid(),
  place: t.bytes(),
  sort: t.bytes(),
  fields: t.bytes(),
})
  .key('datastore', 'shard', 'index_name', 'row_key')
  .in(firstShardTable)
  .globalIndex('IndexedByPlace', ['place', 'sort'], { storing: ['fields'], shards: 256 })

export const indexedTables: readonly Table[] = [indexedTable]

/** The entry of a row in an index: the place of its entry, its order there, and its fields. */
export interface IndexedRow {
  readonly place: Uint8Array
  readonly sort: Uint8Array
  readonly fields: Uint8Array
}

export interface IndexedEntry extends Pick<IndexedRow, 'sort' | 'fields'> {
  readonly row_key: Uuid
}

export async function putIndexed(
  tx: GroupTransaction,
  { datastore, shard }: ShardName,
  { index, rowKey }: { readonly index: string; readonly rowKey: string },
  row: IndexedRow | undefined,
): Promise<void> {
  const name = { index_name: index, row_key: toUuid(rowKey) }
  if (row === undefined) return tx.delete(indexedTable, { datastore, shard, ...name })
  return tx.put(indexedTable, { datastore, shard, ...name, ...row })
}

/** The entry of a row in an index, by the shard that the row is in. */
export async function getIndexed(
  rows: GroupReader,
  { datastore, shard }: ShardName,
  index: string,
  rowKey: string,
): Promise<IndexedRow | undefined> {
  const key = { datastore, shard, index_name: index, row_key: toUuid(rowKey) }
  return rows.get(indexedTable, key)
}

/** Entries at a place, by their second fields. */
export function scanPlace(
  tables: Tables,
  place: Uint8Array,
  sort: { readonly gte?: Uint8Array; readonly lte?: Uint8Array },
  options: GlobalIndexOptions,
): Promise<Page<IndexedEntry>> {
  // Without bounds: a range that has none is refused.
  const query = Object.keys(sort).length === 0 ? { place } : { place, sort }
  return tables.index(indexedTable, 'IndexedByPlace', query, options)
}

/** A row that has something in an index, by the shard that it is in. */
export interface IndexedName {
  readonly index: string
  readonly rowKey: string
}

/** A page of them; of all indexes, when none is named. */
export async function scanIndexed(
  rows: GroupReader,
  of: ShardName,
  index: string | undefined,
  options: ScanOptions,
): Promise<Page<IndexedName>> {
  const named = index === undefined ? {} : { index_name: index }
  const query = { datastore: of.datastore, shard: of.shard, ...named }
  const page = await rows.scan(indexedTable, query, options)
  const items = page.items.map((row) => ({ index: row.index_name, rowKey: row.row_key }))
  return { ...page, items }
}

/** As tables take it: in lower case. */
export function toUuid(rowKey: string): Uuid {
  const lower = rowKey.toLowerCase()
  assert(isUuid(lower), 'cells: a row key was not checked')
  return lower
}
