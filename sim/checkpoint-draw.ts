/** How long the groups of a run wait until a batch brings them to the data stores. */
import { defaultLimits, type Limits } from '../src/base/limits.ts'
import type { SeededRandom } from './world/random.ts'

export function drawCheckpoints(
  random: SeededRandom,
): Pick<Limits, 'checkpointMs' | 'checkpointGroupBytesMax'> {
  const { checkpointGroupBytesMax } = defaultLimits
  return {
    // Few runs are as long as the default says.
    checkpointMs: random.fork('checkpoints').pick([0, 50, 50, 1_000]),
    checkpointGroupBytesMax: random.fork('large groups').pick([1_000, checkpointGroupBytesMax]),
  }
}
