/** Heavy requests, many at once, and the work budget of a node per turn, as drawn from a seed. */
import type { BoundedOptions } from './bounded-draw.ts'
import { drawOpenLoad, type LoadOptions } from './load-draw.ts'
import { defaultSliceLimits, type SliceLimits } from '../../src/ports/turn-budget.ts'
import type { SeededRandom } from '../world/random.ts'

export interface HeavyOptions {
  readonly bursts: number
  /** Polls of one burst, and the shards that each waits for. */
  readonly polls: number
  readonly places: number
  readonly batchItems: number
  readonly waitMs: number
  readonly slices: SliceLimits
}

export interface MuchOptions extends BoundedOptions {
  /** A client sends requests that are expensive to serve. */
  readonly heavy?: HeavyOptions
  /** After the world has healed, clients offer more load than the nodes can take. */
  readonly openLoad?: LoadOptions
}

/** Of the runs. */
const heavyRate = 150_000

export function drawHeavy(random: SeededRandom): MuchOptions {
  const load = drawOpenLoad(random.fork('open load'))
  if (!random.chance(heavyRate)) return load
  return {
    ...load,
    heavy: {
      bursts: random.int(2, 5),
      polls: random.pick([3, 20, 60]),
      places: random.pick([4, 16, 64]),
      batchItems: random.pick([20, 100, 400]),
      waitMs: random.pick([200, 2_000, 8_000]),
      slices: {
        ...defaultSliceLimits,
        turnWorkMax: random.pick([1, 16, 64, 400]),
        answerBytesMax: random.pick([100, 2_000, defaultSliceLimits.answerBytesMax]),
        growingMax: random.pick([1, 4]),
        clientStepsMax: random.pick([1, 16, 256]),
        stepsMax: random.pick([4, 64, 8_192]),
      },
    },
  }
}
