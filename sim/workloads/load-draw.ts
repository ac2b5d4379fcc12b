/** Draws from a seed whether clients overload the healed cluster, and how much they offer. */
import type { SeededRandom } from '../world/random.ts'

export interface LoadOptions {
  /** Of what the nodes can do. */
  readonly times: number
  readonly clients: number
}

/** Of the runs. */
const loadRate = 60_000

export function drawOpenLoad(random: SeededRandom): { readonly openLoad?: LoadOptions } {
  if (!random.chance(loadRate)) return {}
  return { openLoad: { times: random.pick([4, 10]), clients: random.pick([1, 4, 20]) } }
}
