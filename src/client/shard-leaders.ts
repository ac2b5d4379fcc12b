/**
 * Which node proposes a shard's next entry, as the nodes told: a put sent there saves a hop. A hint
 * and no more: any node takes any put, and one that is not the leader passes it on and says who is.
 */
import type { ShardLeader } from '../cells/cell.ts'

/** Shards remembered, over all datastores; the longest known go first. */
const leadersMax = 65_536

export class ShardLeaders {
  readonly #leaders = new Map<string, string>()

  /** The leader's node id, where one was told. */
  of(datastore: string, shard: number): string | undefined {
    return this.#leaders.get(`${datastore}/${shard}`)
  }

  note(datastore: string, leaders: readonly ShardLeader[]): void {
    for (const [shard, leader] of leaders) {
      const key = `${datastore}/${shard}`
      this.#leaders.delete(key)
      this.#leaders.set(key, leader)
    }
    for (const key of this.#leaders.keys()) {
      if (this.#leaders.size <= leadersMax) return
      this.#leaders.delete(key)
    }
  }
}
