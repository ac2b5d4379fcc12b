/**
 * The indexes that a datastore has, and the TTLs of its columns: rows of a group of its own, and of a copy of it on each other replica set
 * (`index-copies.ts`).
 *
 *   Datastore        (datastore)               or the name of a copy
 *   IndexDefinition  (datastore, index_name)
 *   ColumnTtl        (datastore, column)
 *
 * IDX-8  Definitions never go back to an older version.
 */
import { t } from '../../schema/property.ts'
import { table, type Table } from '../../schema/table.ts'
import { assert } from '../base/assert.ts'
import type { Timestamp } from '../base/ids.ts'
import { rootKey, type RootKey } from '../tables/tables.ts'
import type { GroupReader, GroupTransaction } from '../tables/types.ts'

const datastoreTable = table('Datastore', {
  datastore: t.string(),
  // Of the definitions below it: rises with each change.
  version: t.integer().optional(),
})
  .key('datastore')
  .root()

const definitionTable = table('IndexDefinition', {
  datastore: t.string(),
  index_name: t.string(),
  definition: t.string(),
  declared_at: t.timestamp(),
  is_building: t.bool(),
  // The version that declared it, and the one that changed it last.
  number: t.integer().optional(),
  version: t.integer().optional(),
  // Every replica set knows what is said here, since `declared_at`.
  is_known: t.bool().optional(),
  is_dropping: t.bool().optional(),
  // Shards below this number have no entry of it left.
  cleared_to: t.integer().optional(),
  // Every writer keeps it, and it is being filled from the cells that are there.
  is_filling: t.bool().optional(),
})
  .key('datastore', 'index_name')
  .in(datastoreTable)

const ttlTable = table('ColumnTtl', {
  datastore: t.string(),
  column: t.string(),
  // Seconds that the cells put from now on live.
  ttl: t.integer(),
})
  .key('datastore', 'column')
  .in(datastoreTable)

export const definitionTables: readonly Table[] = [datastoreTable, definitionTable]
export const ttlTables: readonly Table[] = [ttlTable]
export const datastoreTableName: string = datastoreTable.name

/** Names the group of a datastore's own rows, or of a copy of them. */
export function datastoreKey(datastore: string): RootKey {
  return rootKey(datastoreTable, { datastore })
}

export interface DefinitionRow {
  readonly datastore: string
  readonly index_name: string
  /** As JSON. */
  readonly definition: string
  readonly declared_at: Timestamp
  readonly is_building: boolean
  readonly number?: number
  readonly version?: number
  readonly is_known?: boolean
  readonly is_dropping?: boolean
  readonly cleared_to?: number
  readonly is_filling?: boolean
}

/** Seconds that a cell of the column lives. */
export interface TtlRow {
  readonly column: string
  readonly ttl: number
}

/** As one group has them. */
export interface DefinitionRows {
  readonly version: number
  readonly rows: readonly DefinitionRow[]
  readonly ttls: readonly TtlRow[]
}

/** `name`: of the datastore, or of a copy of its definitions. */
export async function scanDefinitions(rows: GroupReader, name: string): Promise<DefinitionRows> {
  const own = await rows.get(datastoreTable, { datastore: name })
  const page = await rows.scan(definitionTable, { datastore: name })
  const ttls = await rows.scan(ttlTable, { datastore: name })
  return { version: own?.version ?? 0, rows: page.items, ttls: ttls.items }
}

export async function putDefinitions(
  tx: GroupTransaction,
  name: string,
  { version, rows, ttls }: DefinitionRows,
): Promise<void> {
  const before = await scanDefinitions(tx, name)
  assert(before.version <= version, 'IDX-8: definitions never go back to an older version')
  const names = new Set(rows.map((row) => row.index_name))
  for (const { index_name } of before.rows) {
    if (!names.has(index_name)) await tx.delete(definitionTable, { datastore: name, index_name })
  }
  for (const row of rows) await tx.put(definitionTable, { ...row, datastore: name })
  const columns = new Set(ttls.map(({ column }) => column))
  for (const { column } of before.ttls) {
    if (!columns.has(column)) await tx.delete(ttlTable, { datastore: name, column })
  }
  for (const { column, ttl } of ttls) await tx.put(ttlTable, { datastore: name, column, ttl })
  await tx.put(datastoreTable, { datastore: name, version })
}
