/**
 * Legal holds of cells (`tables/holds.ts`): of a whole shard, as a datastore has them, or of a row key.
 *
 * HOLD-1  Nothing that is held is purged, or removed for its age.
 */
import { getNotes } from '../tables/notes.ts'
import { holdKey, refuseHeld } from '../tables/holds.ts'
import type { GroupTransaction } from '../tables/types.ts'
import type { ShardName } from './cell.ts'

/** Throws `invalid` where the shard is held, or the row key. `what`: that which is to go. */
export async function checkHeldCell(
  tx: GroupTransaction,
  of: ShardName,
  rowKey: string,
  what: string,
): Promise<void> {
  refuse(what, of, await readHolds(tx, [rowKey]))
}

/** Throws `invalid` where the shard is held; gives the row keys among these that are. */
export async function heldRows(
  tx: GroupTransaction,
  of: ShardName,
  rowKeys: readonly string[],
): Promise<ReadonlySet<string>> {
  const distinct = [...new Set(rowKeys)]
  const [ofShard, ...ofRows] = await readHolds(tx, distinct)
  refuse(`shard ${of.shard} of datastore ${of.datastore}`, of, [ofShard])
  return new Set(distinct.filter((_, place) => ofRows[place] !== undefined))
}

function refuse(
  what: string,
  { datastore }: ShardName,
  holds: Awaited<ReturnType<typeof readHolds>>,
): void {
  refuseHeld(what, holds, ([, rowKey]) =>
    rowKey === undefined ? `datastore ${datastore}` : `row ${rowKey} of datastore ${datastore}`,
  )
}

function readHolds(tx: GroupTransaction, rowKeys: readonly string[]): ReturnType<typeof getNotes> {
  const ofRows = rowKeys.map((rowKey) => holdKey(['cells', rowKey.toLowerCase()]))
  return getNotes(tx, [holdKey(['cells']), ...ofRows])
}
