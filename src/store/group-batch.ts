/**
 * The writes of one batch of the applier for a group: the newest versions of its rows, the versions that they
 * superseded, and the state record of the position that all of it is of.
 *
 * LOG-6   Rows, history and state of one position, in one batch.
 * MVCC-1  A version that is superseded moves to history with its end, unless no reader may see it.
 */
import { assert } from '../base/assert.ts'
import type { Timestamp } from '../base/ids.ts'
import { mayGo } from './collection.ts'
import type { Put } from '../ports/storage.ts'
import type { OverlayRow, TakenGroup } from './overlay.ts'
import {
  encodeState,
  encodeStored,
  groupPrefix,
  historyPrefix,
  joined,
  rowsPrefix,
  stateKey,
  versionKey,
  type OwnPlace,
  type Stored,
} from './row-format.ts'

/**
 * `oldest`: no read of the group is at an earlier timestamp. `own`: what the state record says of this
 * node alone. `read` gives what is stored under a key
 * now: no other batch is under way, so that it is what the oldest version taken superseded. Returns
 * how many versions it moves to history.
 */
export function putGroup(
  puts: Put[],
  { group, position, state, rows }: TakenGroup,
  oldest: Timestamp,
  own: OwnPlace,
  read: (key: Uint8Array) => Stored | undefined,
): number {
  const prefix = groupPrefix(group)
  const rowPrefix = rowsPrefix(prefix)
  const history = historyPrefix(prefix)
  let superseded = 0
  const supersede = (
    row: Uint8Array,
    start: Timestamp,
    end: Timestamp,
    value: Uint8Array,
  ): void => {
    assert(start < end, 'MVCC-2: a version ends before it begins')
    superseded += 1
    const key = versionKey(history, row, start)
    puts.push({ key, value: encodeStored(key, end, value) })
  }
  for (const row of rows) {
    assert(row.position <= position, 'LOG-6: a row is newer than the state beside it')
    const key = joined(rowPrefix, row.key)
    const { timestamp: end, isNew } = supersedeChain(row, oldest, supersede)
    // Even a look that finds nothing costs more than all else that is done for a row here.
    const stored = isNew || mayGo(end, oldest) ? undefined : read(key)
    if (stored !== undefined) supersede(row.key, stored.stamp, end, stored.payload)
    const { value, timestamp } = row
    puts.push(value === undefined ? { key } : { key, value: encodeStored(key, timestamp, value) })
  }
  const key = stateKey(prefix)
  puts.push({ key, value: encodeState(key, position, own, state) })
  return superseded
}

/** All versions of the chain but the newest. Returns the last one before which a reader may still look. */
function supersedeChain(
  newest: OverlayRow,
  oldest: Timestamp,
  supersede: (row: Uint8Array, start: Timestamp, end: Timestamp, value: Uint8Array) => void,
): OverlayRow {
  let later = newest
  for (let one = newest.previous; one !== undefined; one = one.previous) {
    // Those before it ended earlier still.
    if (mayGo(later.timestamp, oldest)) return later
    if (one.value !== undefined) supersede(one.key, one.timestamp, later.timestamp, one.value)
    later = one
  }
  return later
}
