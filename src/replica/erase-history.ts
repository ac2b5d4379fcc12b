/**
 * Takes the versions out of a group's history that an erasure is about. A group's horizon moves with its entries alone,
 * and its history is swept as the horizon moves (`../store/history-sweep.ts`). So a group that is not written any more
 * would keep what was deleted: once no reader may see it any more, the group takes a position in which nothing is written.
 *
 * MVCC-1  What may go is reckoned from a horizon that is durable, and from the snapshots that are open here.
 *
 * A round is out of history when a look at the durable store finds no version that ended before the round was closed.
 */
import { assert, present } from '../base/assert.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import { decodeState, type GroupState } from '../replication/state.ts'
import { mayGo, oldestReadable } from '../store/collection.ts'
import type { DataStore } from '../store/data-store.ts'
import { afterHistory, groupPrefix, historyPrefix } from '../store/row-format.ts'

export interface EraseHistoryParts {
  readonly data: Pick<
    DataStore,
    'state' | 'hasPending' | 'scanStored' | 'dropRow' | 'wantBatch' | 'pins'
  >
  readonly clock: { monotonicMs(): number }
  readonly historyMs: number
}

/** The finding of one look at a group. */
export interface HistoryLook {
  /** Versions that ended before and are there. Those that may go leave with the next batch. */
  readonly left: number
  /**
   * When the group may take a position so that they go, in microseconds of its log. Undefined: none is left, the
   * horizon is beyond them, or a batch is about to move it.
   */
  readonly nudgeAt: Timestamp | undefined
  /** Versions are left, and entries of the group wait for a batch. */
  readonly isPending: boolean
}

const microsPerMs = 1_000
const nothingLeft: HistoryLook = { left: 0, nudgeAt: undefined, isPending: false }

/** Of the last entry that the data store durably holds of the group: no deletion there is later. 0: it holds nothing. */
export function timestampOf(data: Pick<DataStore, 'state'>, group: GroupId): Timestamp {
  return stateOf(data, group)?.timestamp ?? 0
}

function stateOf(data: Pick<DataStore, 'state'>, group: GroupId): GroupState | undefined {
  const bytes = data.state(group)
  return bytes && present(decodeState(bytes), 'LOG-6: a state record is of no known format')
}

/** `through`: versions that ended then or before are to go. Rejects when the data store cannot be read. */
export async function lookAtHistory(
  { data, clock, historyMs }: EraseHistoryParts,
  group: GroupId,
  through: Timestamp,
): Promise<HistoryLook> {
  const state = stateOf(data, group)
  if (state === undefined) return nothingLeft
  const { horizon, timestamp } = state
  const prefix = groupPrefix(group)
  let left = 0
  let newest = 0
  const range = { gte: historyPrefix(prefix), lt: afterHistory(prefix) }
  for await (const rows of data.scanStored(range)) {
    // Of this moment: who opens a snapshot later may do so from the horizon on only.
    const oldest = oldestReadable(horizon, data.pins.oldest(group, clock.monotonicMs()))
    assert(oldest <= horizon, 'MVCC-1: versions beyond the horizon were to be erased')
    for (const { key, stored } of rows) {
      const { stamp: end } = stored
      if (end > through) continue
      left += 1
      if (mayGo(end, oldest)) data.dropRow(key)
      else newest = Math.max(newest, end)
    }
  }
  if (left > 0) data.wantBatch()
  const isPending = left > 0 && data.hasPending(group)
  const isBehind = newest > horizon && !isPending
  return { left, isPending, nudgeAt: isBehind ? timestamp + historyMs * microsPerMs : undefined }
}
