/** Work over a datastore looks at the shards that have something, and not at all 4,096. */
import { expect, test } from 'vitest'
import type { GroupId } from '../../src/base/ids.ts'
import { listedGroupsMax } from '../../src/base/limits.ts'
import { shardGroup } from '../../src/cells/shard.ts'
import { listShards } from '../../src/client/listed-shards.ts'
import { createCluster } from './cluster.ts'
import { settled } from '../cells/kit.ts'

function listOf(shards: readonly number[]): {
  list(prefix: GroupId, after: GroupId | undefined, limit: number): Promise<readonly GroupId[]>
} {
  const names = shards.map((shard) => shardGroup('trips', shard))
  return {
    list: async (prefix, after, limit) =>
      names
        .filter((name) => name.startsWith(prefix) && (after === undefined || name > after))
        .slice(0, limit),
  }
}

test('shards are listed to the last page, in rising order, of this datastore alone', async () => {
  const many = Array.from({ length: listedGroupsMax + 5 }, (_, at) => 2 * at)
  expect(await listShards(listOf(many), 'trips', 1_000)).toEqual(many)
  expect(await listShards(listOf(many), 'trip', 1_000)).toEqual([])
  await expect(listShards(listOf([]), 'Trips', 1_000)).rejects.toMatchObject({ code: 'invalid' })
})

test('a purge of a datastore takes what it has, without a call for each shard that has nothing', async () => {
  const { bench, client: makeClient } = createCluster({ names: ['n1', 'n2', 'n3'] })
  const { world } = bench
  const client = makeClient()
  const cells = client.cells('trips')
  const rowKey = '6e9f3a52-0c1b-4a86-9d57-2f1f6c3b8e10'
  for (const refKey of [0, 1]) {
    await settled(world, cells.put({ rowKey, column: 'BASE', refKey, body: refKey }))
  }
  const startedAt = world.nowMicros
  const purge = async (): Promise<readonly { readonly purged: number }[]> => {
    const found: { readonly purged: number }[] = []
    for await (const one of cells.purge({ before: Number.MAX_SAFE_INTEGER })) found.push(one)
    return found
  }
  expect(await settled(world, purge())).toMatchObject([{ purged: 1 }])
  expect(world.nowMicros - startedAt).toBeLessThan(1_000_000)
})
