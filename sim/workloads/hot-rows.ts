/** Row keys that fall into few shards, so that a small workload meets in the same groups. */
import { randomUuid } from '../../src/ports/random.ts'
import { SeededRandom } from '../world/random.ts'
import { shardOf } from './datastore.ts'

/** Shards whose rows are looked for, and rows looked for in each. */
export const hotShards: readonly number[] = [0, 1, 7, 4095]
export const hotRowsPerShard = 4

const shardByRow = new Map<string, number>()

/** The row's shard. It is cached, since every cell of every answer needs it. */
export function findHotShard(row: string): number {
  let shard = shardByRow.get(row)
  if (shard === undefined) {
    shard = shardOf(row)
    shardByRow.set(row, shard)
  }
  return shard
}

let found: ReadonlyMap<number, readonly string[]> | undefined

/** The same rows in every run: found by trying random ones, once a process. */
export function hotRows(): ReadonlyMap<number, readonly string[]> {
  found ??= findRows()
  return found
}

function findRows(): ReadonlyMap<number, readonly string[]> {
  const random = new SeededRandom('hot rows')
  const rows = new Map(hotShards.map((shard): [number, string[]] => [shard, []]))
  let missing = hotShards.length * hotRowsPerShard
  while (missing > 0) {
    const row = randomUuid(random)
    const list = rows.get(shardOf(row))
    if (list === undefined || list.length >= hotRowsPerShard) continue
    list.push(row)
    missing -= 1
  }
  return rows
}
