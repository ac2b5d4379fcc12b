/**
 * What this client has seen of each shard's log, so that a replica that is behind does not answer
 * it (CELL-5). Bounded: when something had to be forgotten, reads that would have needed it are
 * made as current reads, which see everything.
 */
import { assert } from '../base/assert.ts'
import type { Position } from '../base/ids.ts'
import type { ShardPosition } from '../cells/cell.ts'
import type { ReadFrom } from '../cells/operation.ts'
import type { ReadLevel } from '../replica/local-replica.ts'

export const seenShardsMax = 50_000

export class SeenPositions {
  readonly #max: number
  readonly #byShard = new Map<string, Position>()
  #hasForgotten = false

  constructor(max: number = seenShardsMax) {
    this.#max = max
  }

  see(datastore: string, positions: readonly ShardPosition[]): void {
    for (const [shard, position] of positions) {
      const key = `${datastore}/${shard}`
      const seen = this.#byShard.get(key) ?? 0
      if (position <= seen) continue
      this.#byShard.set(key, position)
    }
    for (const key of this.#byShard.keys()) {
      if (this.#byShard.size <= this.#max) break
      this.#byShard.delete(key)
      this.#hasForgotten = true
    }
  }

  /** How to read these shards at this level. */
  readFrom(datastore: string, level: ReadLevel, shards: readonly number[]): ReadFrom {
    if (level === 'current') return { level, atLeast: [] }
    const atLeast = new Map<number, Position>()
    for (const shard of shards) {
      const seen = this.#byShard.get(`${datastore}/${shard}`)
      if (seen === undefined && this.#hasForgotten) return { level: 'current', atLeast: [] }
      if (seen !== undefined) atLeast.set(shard, seen)
    }
    return { level, atLeast: [...atLeast] }
  }

  /** An answer that was asked to be at least of these positions. */
  check(asked: readonly ShardPosition[], answered: readonly ShardPosition[]): void {
    const reached = new Map(answered)
    for (const [shard, position] of asked) {
      assert((reached.get(shard) ?? position) >= position, 'CELL-5: a session went back')
    }
  }
}
