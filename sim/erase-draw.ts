/** How soon the bytes of what was deleted leave the disks, as a seed draws it. */
import type { Limits } from '../src/base/limits.ts'
import type { SeededRandom } from './world/random.ts'

/** Of the runs whose history is short. */
const eraseRate = 400_000
/** A round takes two lengths of history at least. */
const historyMsMax = 500

/** 0: nodes do nothing about it. */
export function drawErase(
  random: SeededRandom,
  { historyMs }: Pick<Limits, 'historyMs'>,
): Pick<Limits, 'eraseWithinMs'> {
  const within = random.pick([500, 2_000, 8_000])
  const isErasing = random.chance(eraseRate) && historyMs <= historyMsMax
  return { eraseWithinMs: isErasing ? within : 0 }
}
