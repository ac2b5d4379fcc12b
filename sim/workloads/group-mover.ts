/** An operator who moves groups of tables from one replica set to another, and back, while programs use them. */
import { groupOfBytes } from '../../src/base/ids.ts'
import { StoreError } from '../../src/base/errors.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import type { Client } from '../../src/client/client.ts'
import type { Coverage } from '../coverage.ts'
import type { SeededRandom } from '../world/random.ts'
import type { World } from '../world/world.ts'

export interface GroupMoverParts {
  readonly world: World
  readonly coverage: Coverage
  readonly client: Pick<Client, 'groups'>
  readonly random: SeededRandom
  readonly timeoutMs: number
  /** The names of the sets. */
  readonly sets: readonly string[]
  isEnding(): boolean
  tell(what: string): void
}

/** Of the runs with several sets. */
const movesRate = 700_000
const thinkMeanMicros = 1_500_000
const listedMax = 20
/** Names of all groups of tables begin so. */
const prefix = groupOfBytes(encodeTuple(['tables', 'Shop']))

export class GroupMover {
  readonly #parts: GroupMoverParts

  constructor(parts: GroupMoverParts) {
    this.#parts = parts
  }

  async run(): Promise<void> {
    const { world, random, isEnding } = this.#parts
    if (!random.chance(movesRate)) return
    while (!isEnding()) {
      await world.sleep(1 + random.exponential(thinkMeanMicros))
      if (isEnding()) return
      await this.#move().catch((error: unknown) => {
        if (!(error instanceof StoreError)) throw error
        this.#parts.tell(`is told ${error.code}: ${error.message}`)
      })
    }
  }

  async #move(): Promise<void> {
    const { client, random, timeoutMs, sets, coverage, tell } = this.#parts
    const groups = await client.groups.list(prefix, undefined, listedMax, timeoutMs)
    if (groups.length === 0) return
    const [group, set] = [random.pick(groups), random.pick(sets)]
    tell(`moves ${Buffer.from(group, 'latin1').toString('hex').slice(-8)} to set ${set}`)
    await client.groups.move(group, set, timeoutMs)
    coverage.count('groups: moved to another set')
  }
}
