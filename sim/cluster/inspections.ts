/**
 * Looks at replicas in the middle of a run: at rows after an entry is applied, and at a group around a snapshot
 * that takes it over. These look as the replica sends its first request for the snapshot, while the group is
 * aside, and once the group is back. The replica shows the chosen log's state of the moment, or refuses (MVCC-1, SNAP-4).
 */
import { StoreError } from '../../src/base/errors.ts'
import { fromLatin1 } from '../../src/base/bytes.ts'
import { groupOfBytes, type GroupId, type Timestamp } from '../../src/base/ids.ts'
import type { Node } from '../../src/node/compose.ts'
import type { SwarmOptions } from '../swarm.ts'
import type { SeededRandom } from '../world/random.ts'
import type { Comparison, SimCluster } from './comparison.ts'

/** While a group is aside. */
const looksAside = 3
const keysMax = 16
/** A read of what a replica has applied waits for no other node. */
const timeoutMs = 1_000

export function inspectNowAndThen(
  cluster: SimCluster,
  comparison: Comparison,
  options: Pick<SwarmOptions, 'inspections' | 'disk'>,
): void {
  const { judge, world } = cluster
  const { inspections, disk } = options
  if (inspections === 0) return
  const random = world.random.fork('inspections')
  judge.onApplied = (node, group) => {
    if (!random.chance(inspections)) return
    world.schedule(0, 'inspect', () => {
      comparison.inspect(node, group)
    })
  }
  const looks = new TakingLooks(cluster, random.fork('snapshots'))
  judge.onTaking = (stage, node, group) => {
    const count = stage === 'aside' ? looksAside : 1
    for (let i = 0; i < count; i++) {
      const delayMicros = stage === 'aside' ? random.exponential(disk.writeMeanMicros) : 0
      world.schedule(delayMicros, 'look', () => looks.look(stage === 'back', node, group))
    }
  }
}

class TakingLooks {
  readonly #cluster: SimCluster
  readonly #random: SeededRandom
  /** The moment of the last look at a group, by node and group. */
  readonly #seen = new Map<string, Timestamp>()

  constructor(cluster: SimCluster, random: SeededRandom) {
    this.#cluster = cluster
    this.#random = random
  }

  /** At what the node has applied of the group; `isBack`: and once more at the moment of the look before. */
  look(isBack: boolean, node: string, name: string): void {
    const { hosts, world } = this.#cluster
    const program = hosts.find((host) => host.name === node)?.program
    if (program === undefined) return
    const group = groupOfBytes(fromLatin1(name))
    const place = `${node}/${name}`
    const before = isBack ? this.#seen.get(place) : undefined
    const work = [this.#lookNow(node, program, group, place)]
    if (before !== undefined) work.push(this.#lookAt(node, program, group, before))
    for (const one of work) {
      one.catch((error: unknown) => {
        // It refuses, or has ended meanwhile.
        if (!(error instanceof StoreError)) world.fail(error)
      })
    }
  }

  async #lookNow(node: string, program: Node, group: GroupId, place: string): Promise<void> {
    const { timestamp } = await program.replica.read(group, 'snapshot', timeoutMs)
    await this.#lookAt(node, program, group, timestamp)
    this.#seen.set(place, timestamp)
  }

  async #lookAt(node: string, program: Node, group: GroupId, at: Timestamp): Promise<void> {
    const { judge, coverage } = this.#cluster
    const rows = await program.replica.scan(group, {}, at)
    const expected = judge.model.rowsAt(group, at)
    judge.log.onPastSeen(node, group, at, expected, rows)
    const some = this.#random.shuffle(expected).slice(0, keysMax)
    const keys = some.map(({ key }) => key)
    judge.log.onPastSeen(node, group, at, some, await program.replica.getAt(group, keys, at))
    coverage.count('looked at a group around a snapshot')
  }
}
