/** How snapshots of groups are sent and taken in a run: mostly for a few missing entries, in small parts. */
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import type { SeededRandom } from '../world/random.ts'

export function drawSnapshots(random: SeededRandom): Partial<Limits> {
  const usual = defaultLimits
  const snapshotPartBytesMax = random.pick([1_000, 4_000, usual.snapshotPartBytesMax])
  // A snapshot of many parts takes as many round trips: a sender that gives it up sooner never sends one whole.
  const isLong = snapshotPartBytesMax < 4_000
  return {
    snapshotAfterEntries: random.pick([1, 2, 5, 20, usual.snapshotAfterEntries]),
    snapshotsMax: random.pick([1, 2, usual.snapshotsMax]),
    snapshotPartBytesMax,
    snapshotBatchBytesMax: random.pick([1, 500, usual.snapshotBatchBytesMax]),
    snapshotPinMs: isLong ? usual.snapshotPinMs : random.pick([3_000, usual.snapshotPinMs]),
    snapshotBytesPerSecond: random.pick([50_000, usual.snapshotBytesPerSecond]),
    snapshotGroupsPerSecond: random.pick([20, usual.snapshotGroupsPerSecond]),
  }
}
