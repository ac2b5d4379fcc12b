/** An operator who has replica sets give buckets of theirs to one another, while programs write to groups in them and begin new ones. */
import { StoreError } from '../../src/base/errors.ts'
import { listBuckets, type BucketsPort } from '../../src/node/sets-routes.ts'
import type { Node } from '../../src/node/compose.ts'
import type { LaterSet, Placement } from '../../src/placement/placement.ts'
import type { Coverage } from '../coverage.ts'
import type { SeededRandom } from '../world/random.ts'
import type { World } from '../world/world.ts'

export interface GiverPort extends BucketsPort {
  /** Puts the cluster version in force that buckets need. */
  raise(): Promise<unknown>
}

export interface BucketGiverParts {
  readonly world: World
  readonly coverage: Coverage
  readonly random: SeededRandom
  /** Of the nodes that are open now. */
  ports(): readonly GiverPort[]
  /** A set that the operator adds; absent: none. */
  readonly later?: LaterSet | undefined
  isEnding(): boolean
  tell(what: string): void
}

/** Of the runs with several sets. */
const givesRate = 600_000
const thinkMeanMicros = 3_000_000
/** Of the buckets of a set, those that it gives. */
const givenRate = 500_000
const staysRate = 100_000
const raisesRate = 500_000
const neededVersion = 2
const addsRate = 500_000

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
    if (own === 0 && this.#mayAdd(placement)) return this.#add(port)
    const others = placement.sites.filter((_, set) => set !== own)
    const set = random.pick(others).name
    // A new cluster begins with the first version, which knows no buckets that move.
    if (random.chance(raisesRate)) for (const one of open) await one.raise()
    const buckets = listBuckets(port).filter(() => random.chance(givenRate))
    if (buckets.length === 0) return
    tell(`gives ${buckets.length} buckets of ${placement.siteOf(own).name} to ${set}`)
    await shares.leave({ set, buckets })
    coverage.count('buckets: to be given to another set')
  }

  #mayAdd({ laterSets }: Placement): boolean {
    const { later, random } = this.#parts
    return later !== undefined && laterSets.length === 0 && random.chance(addsRate)
  }

  async #add(port: GiverPort): Promise<void> {
    const { later, ports, tell, coverage } = this.#parts
    if (later === undefined) return
    for (const one of ports()) await one.raise().catch(passRefusal)
    tell(`adds set ${later.name}`)
    await port.add(later)
    coverage.count('sets: to be added')
  }
}

/** The names of the replica sets, the set that may come later, and the ports of the nodes that are open now. */
export interface SetsView {
  readonly names: readonly string[]
  readonly later: LaterSet | undefined
  ports(): readonly GiverPort[]
}

export function setsOf(cluster: {
  readonly placement: Pick<Placement, 'sites'>
  readonly laterSet: LaterSet | undefined
  readonly programs: readonly Pick<Node, 'sets' | 'members'>[]
}): SetsView {
  return {
    names: cluster.placement.sites.map(({ name }) => name),
    later: cluster.laterSet,
    ports: () =>
      cluster.programs.map(({ sets, members }) => {
        return { ...sets, raise: () => members.raise(neededVersion) }
      }),
  }
}

/** The version may be in force already. */
function passRefusal(error: unknown): void {
  if (!(error instanceof StoreError)) throw error
}
