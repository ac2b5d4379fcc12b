/** An operator who has replica sets give buckets of theirs to one another, while programs write to groups in them and begin new ones. */
import { StoreError } from '../../src/base/errors.ts'
import { listBuckets, type BucketsPort } from '../../src/node/sets-routes.ts'
import type { Coverage } from '../coverage.ts'
import type { SeededRandom } from '../world/random.ts'
import type { World } from '../world/world.ts'

export interface BucketGiverParts {
  readonly world: World
  readonly coverage: Coverage
  readonly random: SeededRandom
  /** Of the nodes that are open now. */
  ports(): readonly BucketsPort[]
  isEnding(): boolean
  tell(what: string): void
}

/** Of the runs with several sets. */
const givesRate = 600_000
const thinkMeanMicros = 3_000_000
/** Of the buckets of a set, those that it gives. */
const givenRate = 500_000
const staysRate = 100_000

export class BucketGiver {
  readonly #parts: BucketGiverParts

  constructor(parts: BucketGiverParts) {
    this.#parts = parts
  }

  async run(): Promise<void> {
    const { world, random, isEnding, tell } = this.#parts
    if (!random.chance(givesRate)) return
    while (!isEnding()) {
      await world.sleep(1 + random.exponential(thinkMeanMicros))
      if (isEnding()) return
      await this.#ask().catch((error: unknown) => {
        if (!(error instanceof StoreError)) throw error
        tell(`is told ${error.code}: ${error.message}`)
      })
    }
  }

  async #ask(): Promise<void> {
    const { random, ports, coverage, tell } = this.#parts
    const open = ports()
    if (open.length === 0) return
    const port = random.pick(open)
    const { shares, placement, own } = port
    if (random.chance(staysRate)) {
      await shares.stay()
      return coverage.count('buckets: stayed')
    }
    const others = placement.sites.filter((_, set) => set !== own)
    const set = random.pick(others).name
    const buckets = listBuckets(port).filter(() => random.chance(givenRate))
    if (buckets.length === 0) return
    tell(`gives ${buckets.length} buckets of ${placement.siteOf(own).name} to ${set}`)
    await shares.leave({ set, buckets })
    coverage.count('buckets: to be given to another set')
  }
}
