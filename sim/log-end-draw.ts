/** How soon logs give up flushes, as a seed draws it. */
import type { Limits } from '../src/base/limits.ts'
import type { SeededRandom } from './world/random.ts'

const never = Number.MAX_SAFE_INTEGER

/** No peer is ever behind. A log gives up a flush as soon as it may and as that is worth a write, or none at all. */
export function drawLogEnd(
  random: SeededRandom,
): Pick<Limits, 'logRetainBytes' | 'logRetainMs' | 'truncateBytesMin'> {
  const truncateBytesMin = random.pick([1, 1_000, 10_000, never])
  return { logRetainBytes: never, logRetainMs: never, truncateBytesMin }
}
