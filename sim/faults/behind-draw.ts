/** Wall clocks that are behind those of a majority, by seconds to hours. */
import type { ClockSkew } from '../world/clock.ts'
import type { SeededRandom } from '../world/random.ts'
import { isOn, type Switches } from './swarm-faults.ts'

const second = 1_000_000
/**
 * Of the runs, those in which some nodes of a set, no majority, are behind the others by seconds to
 * hours.
 */
const behindRate = 120_000

/**
 * A node that is minutes behind accepts no write while it hears of no majority. A core's nodes then
 * take requests one by one.
 */
export function pickCore(skews: readonly ClockSkew[]): { readonly isCoreFirst?: false } {
  return skews.some(({ offsetMicros }) => offsetMicros < -250 * second)
    ? { isCoreFirst: false }
    : {}
}

export function drawBehind(random: SeededRandom, skews: ClockSkew[], switches: Switches): void {
  const lag = random.pick([2, 30, 900, 10_800]) * second
  const isDrawn = random.chance(behindRate) && isOn('clock-behind', switches)
  for (const [place, skew] of skews.entries()) {
    // Of each set of three the first, of one of five the second as well, now and then.
    const isOne = place % 3 === 0 && (place === 0 || skews.length === 6)
    const isSecond = skews.length === 5 && place === 1 && random.chance(500_000)
    const lagMicros = random.int(lag / 2, lag)
    if (!isDrawn || !(isOne || isSecond)) continue
    skews[place] = { ...skew, offsetMicros: skew.offsetMicros - lagMicros }
  }
}
