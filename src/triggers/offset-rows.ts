/**
 * Rows of triggers in a shard's own group: how far each has come, and the cells it has put aside. They are of
 * the schema of cells (`../cells/trigger-schema.ts`), beside them, so that they change in one transaction.
 */
import type { Row } from '../../schema/infer.ts'
import { isUuid } from '../../schema/values.ts'
import { assert } from '../base/assert.ts'
import type { GroupReader, GroupTransaction } from '../tables/types.ts'
import type { CellName, ShardName } from '../cells/cell.ts'
import { markedTable, offsetTable } from '../cells/trigger-schema.ts'

/** A trigger, in the service that has it. */
export interface TriggerName {
  readonly service: string
  readonly trigger: string
}

/** How far a trigger has come in a shard. */
export interface Offset {
  /** Of the assignment under which it may be moved, and to whom that gave the shard. */
  readonly generation: number
  readonly owner: string
  /** The added id after which to go on. */
  readonly after: number
  /** Cells of the shard that are put aside. */
  readonly marked: number
  readonly revision: number
}

/** A cell that was put aside. */
export interface MarkedCell extends CellName {
  readonly addedId: number
  readonly attempts: number
  /** Why, in words. */
  readonly error: string
  /** Whether it is to be handled again. */
  readonly isRetried: boolean
}

export async function getOffset(
  rows: GroupReader,
  of: ShardName,
  name: TriggerName,
): Promise<Offset | undefined> {
  const row = await rows.get(offsetTable, {
    datastore: of.datastore,
    shard: of.shard,
    ...named(name),
  })
  if (row === undefined) return undefined
  const { generation, owner, after, marked, revision } = row
  return { generation, owner, after, marked, revision }
}

export function putOffset(
  tx: GroupTransaction,
  of: ShardName,
  name: TriggerName,
  offset: Offset,
): Promise<void> {
  return tx.put(offsetTable, {
    datastore: of.datastore,
    shard: of.shard,
    ...named(name),
    ...offset,
  })
}

/** In the order of their added ids, from `from` on. */
export async function scanMarked(
  rows: GroupReader,
  of: ShardName,
  name: TriggerName,
  { from = 0, limit }: { readonly from?: number; readonly limit: number },
): Promise<readonly MarkedCell[]> {
  const query = {
    datastore: of.datastore,
    shard: of.shard,
    ...named(name),
    added_id: { gte: from },
  }
  const page = await rows.scan(markedTable, query, { limit })
  return page.items.map(markedCell)
}

export async function getMarked(
  rows: GroupReader,
  of: ShardName,
  name: TriggerName,
  addedId: number,
): Promise<MarkedCell | undefined> {
  const key = { datastore: of.datastore, shard: of.shard, ...named(name), added_id: addedId }
  const row = await rows.get(markedTable, key)
  return row && markedCell(row)
}

export function putMarked(
  tx: GroupTransaction,
  of: ShardName,
  name: TriggerName,
  { rowKey, column, refKey, addedId, attempts, error, isRetried }: MarkedCell,
): Promise<void> {
  assert(isUuid(rowKey), 'triggers: a marked cell was read')
  return tx.put(markedTable, {
    datastore: of.datastore,
    shard: of.shard,
    service: name.service,
    trigger: name.trigger,
    added_id: addedId,
    row_key: rowKey,
    column,
    ref_key: refKey,
    attempts,
    error,
    is_retried: isRetried,
  })
}

export function deleteMarked(
  tx: GroupTransaction,
  of: ShardName,
  name: TriggerName,
  addedId: number,
): Promise<void> {
  return tx.delete(markedTable, {
    datastore: of.datastore,
    shard: of.shard,
    ...named(name),
    added_id: addedId,
  })
}

/** The two names alone, however much more the value holds. */
function named({ service, trigger }: TriggerName): TriggerName {
  return { service, trigger }
}

function markedCell(row: Row<typeof markedTable>): MarkedCell {
  const { row_key: rowKey, column, ref_key: refKey, added_id: addedId } = row
  const { attempts, error, is_retried: isRetried } = row
  return { rowKey, column, refKey, addedId, attempts, error, isRetried }
}
