/**
 * The position of each group's log that this client has seen, so that a replica that is behind does not
 * answer it (CELL-5). Bounded: when something had to be forgotten, reads that would have needed it are made
 * as current reads, which see everything.
 */
import { assert } from '../base/assert.ts'
import { BoundedMap } from '../base/bounded-map.ts'
import type { GroupId, Position } from '../base/ids.ts'
import type { ShardPosition } from '../cells/cell.ts'
import type { ReadFrom } from '../cells/operation.ts'
import { shardGroup } from '../cells/shard.ts'

export const seenGroupsMax = 50_000

export class SeenPositions {
  readonly #byGroup: BoundedMap<GroupId, Position>
  #hasForgotten = false

  constructor(max: number = seenGroupsMax) {
    this.#byGroup = new BoundedMap(max)
  }

  see(group: GroupId, position: Position): void {
    if (position <= (this.#byGroup.get(group) ?? 0)) return
    if (this.#byGroup.set(group, position)) this.#hasForgotten = true
  }

  /** The position seen of the group, 0 for nothing; undefined when that is not known any more. */
  of(group: GroupId): Position | undefined {
    return this.#byGroup.get(group) ?? (this.#hasForgotten ? undefined : 0)
  }

  /** How to read these shards at this level. */
  readFrom(
    datastore: string,
    { level, maxStalenessMs }: Pick<ReadFrom, 'level' | 'maxStalenessMs'>,
    shards: readonly number[],
  ): ReadFrom {
    if (level === 'current') return { level, atLeast: [] }
    const atLeast = new Map<number, Position>()
    for (const shard of shards) {
      const seen = this.of(shardGroup(datastore, shard))
      if (seen === undefined) return { level: 'current', atLeast: [] }
      if (seen > 0) atLeast.set(shard, seen)
    }
    const bound = maxStalenessMs === undefined ? {} : { maxStalenessMs }
    return { level, atLeast: [...atLeast], ...bound }
  }

  /** Checks an answer to a request that named these least positions. */
  check(asked: readonly ShardPosition[], answered: readonly ShardPosition[]): void {
    if (asked.length === 0) return
    const reached = new Map(answered)
    for (const [shard, position] of asked) {
      assert((reached.get(shard) ?? position) >= position, 'CELL-5: a session went back')
    }
  }
}
