/** How long replicas keep superseded versions, as a seed draws it. */
import { defaultLimits, type Limits } from '../src/base/limits.ts'
import type { SeededRandom } from './world/random.ts'

/** From versions that go with the next write to such as outlast the run. */
export function drawHistory(random: SeededRandom): Pick<Limits, 'historyMs' | 'snapshotHoldMs'> {
  return {
    historyMs: random.pick([1, 20, 100, 500, 5_000, defaultLimits.historyMs]),
    snapshotHoldMs: random.pick([1, 100, 2_000, defaultLimits.snapshotHoldMs]),
  }
}
