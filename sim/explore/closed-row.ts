/** The row of the buckets by which the second epoch closes the bucket of the group (`bucket.ts`). */
import type { GroupId } from '../../src/base/ids.ts'
import { beginLeaving, close } from '../../src/members/shares-row.ts'
import { hashToBucket } from '../../src/placement/placement.ts'
import type { SharesRow } from '../../src/placement/shares.ts'

/** The epochs before the entry that closes the bucket, and from it on. */
export const openEpoch = 1
export const closedEpoch = 2

/** The row that the entry writes which begins the second epoch. */
export function closedRow(group: GroupId, set: string): SharesRow {
  const gift = { set, buckets: [hashToBucket(group)] }
  return close(
    beginLeaving([], gift, () => true),
    closedEpoch,
  )
}
