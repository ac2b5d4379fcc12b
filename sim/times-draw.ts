/**
 * How long turns and reads take in a world: drawn from its seed, each of them now and then nothing.
 */
import { always, type SeededRandom } from './world/random.ts'
import { isOn, type Switches } from './faults/swarm-faults.ts'
import type { TimeOptions } from './world/turn-costs.ts'

export function drawTimes(random: SeededRandom, switches: Switches): TimeOptions {
  const costFactor = random.fork('costs').pick([0, 1, 1, 1, 1, 1, 10, 30])
  // From memory, from a fast disk, from a slow one.
  const getMicros = random.fork('gets').pick([0, 0, 0, 0, 50, 200])
  const reads = random.fork('reads')
  const waits = reads.pick([0, 200_000, always, always, always])
  const readMeanMicros = reads.pick([20, 100, 100, 1_000, 10_000])
  const isWaiting = isOn('read-waits', switches)
  return {
    costFactor: isOn('turn-costs', switches) ? costFactor : 0,
    getMicros: isOn('turn-costs', switches) ? getMicros : 0,
    waits: isWaiting ? waits : 0,
    readMeanMicros: isWaiting ? readMeanMicros : 0,
  }
}
