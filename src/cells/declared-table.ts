/**
 * The datastores that were declared: rows of one group. Only declaring and listing ask for them. A put goes by the name of its
 * datastore, and asks nothing (CELL-9).
 *
 *   DatastoreList       (list)         one row's name: `declared`
 *   DeclaredDatastore   (list, base)
 */
import { t } from '../../schema/property.ts'
import { table, type Table } from '../../schema/table.ts'
import type { Timestamp } from '../base/ids.ts'
import type { Page } from '../base/page.ts'
import { rootKey, type RootKey } from '../tables/tables.ts'
import type { GroupReader, GroupTransaction } from '../tables/types.ts'

const listTable = table('DatastoreList', { list: t.string() }).key('list').root()

const declaredTable = table('DeclaredDatastore', {
  list: t.string(),
  base: t.string(),
  // The name that says the form: `trips.64.region-eu`.
  datastore: t.string(),
  declared_at: t.timestamp(),
})
  .key('list', 'base')
  .in(listTable)

export const declaredTables: readonly Table[] = [listTable, declaredTable]

const list = 'declared'

export const declaredKey: RootKey = rootKey(listTable, { list })

export interface DeclaredRow {
  readonly base: string
  readonly datastore: string
  readonly declared_at: Timestamp
}

export function getDeclared(rows: GroupReader, base: string): Promise<DeclaredRow | undefined> {
  return rows.get(declaredTable, { list, base })
}

/** In the order of their names. */
export function scanDeclared(
  rows: GroupReader,
  cursor: string | undefined,
): Promise<Page<DeclaredRow>> {
  return rows.scan(declaredTable, { list }, cursor === undefined ? {} : { cursor })
}

export function putDeclared(tx: GroupTransaction, row: DeclaredRow): Promise<void> {
  return tx.put(declaredTable, { list, ...row })
}
