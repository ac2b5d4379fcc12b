/** How often cells are purged in a run, or how soon those of a column expire. */
import type { SeededRandom } from '../world/random.ts'

/** A shard that is purged is left out of histories, so most runs do without. */
export function drawPurges(random: SeededRandom): { readonly purges?: number } {
  return random.chance(300_000) ? { purges: random.pick([30_000, 100_000]) } : {}
}

/** Seconds. Not beside purges: of a cell that is gone one is to say why. */
export function drawCellTtl(
  random: SeededRandom,
  { purges }: { readonly purges?: number },
): { readonly cellTtl?: number } {
  return purges === undefined && random.chance(250_000) ? { cellTtl: random.pick([1, 2, 4]) } : {}
}
