/** How often cells are purged in a run. */
import type { SeededRandom } from '../world/random.ts'

/** A shard that is purged is left out of histories, so most runs do without. */
export function drawPurges(random: SeededRandom): { readonly purges?: number } {
  return random.chance(300_000) ? { purges: random.pick([30_000, 100_000]) } : {}
}
