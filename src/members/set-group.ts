/**
 * The group of a replica set's own: an ordinary group with the row that says who votes in the set (`change.ts`). The set's
 * members hold it as any other group of theirs, and its voters change along with those of the others.
 */
import { assert } from '../base/assert.ts'
import { groupOfBytes, type GroupId } from '../base/ids.ts'
import { encodePlace, placedPrefix } from '../base/placed-group.ts'
import { encodeTuple } from '../base/tuple.ts'
import type { Placement } from '../placement/placement.ts'

/** Relative to the group. */
export const setRowKey: Uint8Array = encodeTuple(['voters'])

/** Names are tried in turn: a bucket is a hash. */
const triesMax = 100_000

type Sets = Pick<Placement, 'setOf' | 'siteOf' | 'firstSetCount'>

/** The set's own group: the first name of its kind whose bucket the set has. That of a set that came later has a place. */
export function setGroupOf(placement: Sets, set: number): GroupId {
  if (set >= placement.firstSetCount) {
    const place = encodePlace({ kind: 'set', name: placement.siteOf(set).name })
    return groupOfBytes(Buffer.concat([placedPrefix('members', '', 0), place]))
  }
  for (let number = 0; number < triesMax; number++) {
    const group = groupOfBytes(encodeTuple(['members', number]))
    if (placement.setOf(group) === set) return group
  }
  assert(false, 'MOVE-6: a replica set without buckets')
}
