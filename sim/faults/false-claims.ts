/**
 * The claims that a peer with wrong records makes of a store as it refuses it (LOG-12): the node itself can
 * tell.
 */
import type { LinkInfo } from '../../src/ports/transport.ts'
import type { SeededRandom } from '../world/random.ts'

/** Of the links that would come to be, in parts per million. */
const falseRate = 20_000

/** The refusal of `node`, which said this of itself; undefined: none. */
export function falseClaim(
  random: SeededRandom,
  node: string,
  { storeId }: LinkInfo,
): string | undefined {
  if (storeId === undefined || !random.chance(falseRate)) return undefined
  if (random.chance(500_000)) return `stale-disk: ${node} once had flush 0 on disk and now has 0`
  return `unknown-store: ${node} voted with store ${storeId}; an emptied or exchanged data folder must not vote under its name`
}
