/**
 * Makes groups that did not exist, and lists groups, as the build of an index does to find all
 * rows.
 *
 * LOG-8 A listing of groups names each group with a commit acknowledged before it.
 */
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { listedGroupsMax } from '../../src/base/limits.ts'
import type { Client } from '../../src/client/client.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { runTransaction } from '../../src/txn/run.ts'
import { Sessions } from '../../src/txn/session.ts'
import type { Referee } from '../checkers/referee.ts'
import type { Coverage } from '../coverage.ts'
import type { SeededRandom } from '../world/random.ts'

export interface GroupMakerParts {
  readonly client: Client
  readonly clock: Clock
  readonly random: SeededRandom
  readonly referee: Referee
  readonly coverage: Coverage
  readonly timeoutMs: number
  /** Those whose commit was acknowledged; of all makers of a run. */
  readonly made: Set<GroupId>
}

const prefix = groupOfBytes(Buffer.from('made '))
const half = 500_000

export class GroupMaker {
  readonly #parts: GroupMakerParts
  readonly #intents: Sessions

  constructor(parts: GroupMakerParts) {
    this.#parts = parts
    this.#intents = new Sessions(parts.clock, parts.random.fork('intents'))
  }

  /** Rejects with what the world was the reason of. */
  act(): Promise<void> {
    return this.#parts.random.chance(half) ? this.#make() : this.#list()
  }

  async #make(): Promise<void> {
    const { client, clock, random, timeoutMs, made, coverage } = this.#parts
    const group = groupOfBytes(Buffer.from(`made ${random.int(0, 2 ** 40)}`))
    const options = { clock, random, intents: this.#intents, timeoutMs }
    await runTransaction(client.groups, group, options, async (transaction) => {
      transaction.put(Buffer.from('row'), Buffer.from('there'))
    })
    coverage.count('groups: made')
    made.add(group)
  }

  async #list(): Promise<void> {
    const { client, timeoutMs, made, coverage, referee } = this.#parts
    const before = [...made]
    const found = await client.groups.list(prefix, undefined, listedGroupsMax, timeoutMs)
    coverage.count('groups: listed')
    const missing = before.filter((group) => !found.includes(group))
    const sentence = 'A list of groups lacks one with a commit that was acknowledged before.'
    referee.check(missing.length === 0, 'LOG-8', sentence, () => ({ missing, found }))
  }
}
