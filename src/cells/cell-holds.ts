/**
 * Legal holds of cells (`tables/holds.ts`): of a whole shard, as a datastore has them, or of a row key.
 *
 * HOLD-1  Nothing that is held is purged, or removed for its age.
 */
import { getNotes } from '../tables/notes.ts'
import { holdKey, refuseHeld } from '../tables/holds.ts'
import type { GroupTransaction } from '../tables/types.ts'
import type { ShardName } from './cell.ts'

/** Throws `invalid` where the shard is held, or one of these row keys. */
export async function checkHeldCells(
  tx: GroupTransaction,
  of: ShardName,
  rowKeys: readonly string[],
): Promise<void> {
  const [ofShard, ...ofRows] = await readNotes(tx, rowKeys)
  refuseHeld(`datastore ${of.datastore}`, [ofShard])
  for (const [place, note] of ofRows.entries()) refuseHeld(`row ${rowKeys[place]}`, [note])
}

/** Throws `invalid` where the shard is held; gives the row keys among these that are. */
export async function heldRows(
  tx: GroupTransaction,
  of: ShardName,
  rowKeys: readonly string[],
): Promise<ReadonlySet<string>> {
  const distinct = [...new Set(rowKeys)]
  const [ofShard, ...ofRows] = await readNotes(tx, distinct)
  refuseHeld(`datastore ${of.datastore}`, [ofShard])
  return new Set(distinct.filter((_, place) => ofRows[place] !== undefined))
}

function readNotes(tx: GroupTransaction, rowKeys: readonly string[]): ReturnType<typeof getNotes> {
  const ofRows = rowKeys.map((rowKey) => holdKey(['cells', rowKey.toLowerCase()]))
  return getNotes(tx, [holdKey(['cells']), ...ofRows])
}
