/** How soon logs give up flushes, as a seed draws it. */
import type { Limits } from '../src/base/limits.ts'
import type { FaultRates } from './faults/swarm-faults.ts'
import type { SeededRandom } from './world/random.ts'

/** Faults that may cost a data store, and of the runs with them those whose logs end all the same. */
const dataFaults: readonly string[] = [
  ...['bit-rot', 'rot-in-outage', 'rot-of-keys', 'misdirected-write'],
  ...['stale-disk', 'empty-disk'],
]
const truncatedRate = 250_000
/**
 * No peer is ever behind. A log gives up a flush as soon as it may, or none at all: a data store that is lost can be made
 * anew from a whole log only.
 */
export function drawLogEnd(
  random: SeededRandom,
  { meanMicros }: FaultRates,
): Pick<Limits, 'logRetainBytes' | 'logRetainMs' | 'truncateBytesMin'> {
  const never = Number.MAX_SAFE_INTEGER
  const losesData = dataFaults.some((name) => meanMicros[name] !== undefined)
  const truncates = !losesData || random.chance(truncatedRate)
  const truncateBytesMin = truncates ? random.pick([1, 1_000, 10_000]) : never
  return { logRetainBytes: never, logRetainMs: never, truncateBytesMin }
}
