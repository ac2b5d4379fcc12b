/** Facts on shards that an answer has beside the items of the request: positions, and the shards' leaders. */
import type { NodeId } from '../base/ids.ts'
import type { ShardLeader, ShardPosition } from './cell.ts'

/** Observations of an answer's shards: their highest positions, and leaders elsewhere. */
export class ObservedPositions {
  readonly #byShard = new Map<number, number>()
  #leaders: Map<number, NodeId> | undefined

  see(shard: number, position: number): void {
    this.#byShard.set(shard, Math.max(position, this.#byShard.get(shard) ?? 0))
  }

  seeLeader(shard: number, leader: NodeId | undefined): void {
    if (leader === undefined) return
    this.#leaders ??= new Map()
    this.#leaders.set(shard, leader)
  }

  positions(): ShardPosition[] {
    return [...this.#byShard]
  }

  leaders(): ShardLeader[] | undefined {
    return this.#leaders && [...this.#leaders]
  }
}
