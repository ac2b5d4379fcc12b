/** Work over a datastore looks at the shards that have something, and not at all 4,096. */
import { expect, test } from 'vitest'
import { openCellTables } from '../../src/cells/cell-table.ts'
import { markIndexBuilt } from '../../src/cells/index-registry.ts'
import type { GroupId } from '../../src/base/ids.ts'
import { problem } from '../../src/base/problem.ts'
import { listedGroupsMax } from '../../src/base/limits.ts'
import { shardGroup } from '../../src/cells/shard.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { listShards, listShardsWithCells } from '../../src/client/listed-shards.ts'
import type { LogSource } from '../../src/client/tail.ts'
import { TriggerAdmin } from '../../src/triggers/admin.ts'
import { defineTriggers } from '../../src/triggers/definition.ts'
import { ServiceStore } from '../../src/triggers/service-store.ts'
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

test('a shard whose log cannot be read now may have cells', async () => {
  const empty = { items: [], cursor: 0, asOf: 1, isWhole: true }
  const cells: LogSource = {
    datastore: 'trips',
    shardLogs: async (places) =>
      places.map(({ shard }) =>
        shard === 7
          ? { kind: 'problem', problem: problem('unavailable', 'no majority answered in time') }
          : { kind: 'ok', value: { ...empty, shard } },
      ),
  }
  expect(await listShardsWithCells(listOf([3, 7, 9]), cells, 1_000)).toEqual([7])
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

/** One cell of datastore trips, with an index that is ready and has nothing of it, and how many requests some work takes. */
async function oneCell() {
  const { bench, client: makeClient, frames, clockOf } = createCluster()
  const { world, random } = bench
  const client = makeClient({ schemaTrustMs: 10 })
  const { clock } = clockOf('tables')
  const tables = openCellTables(client.groups, { clock, random: random.fork('tables') })
  const run = <Value>(work: Promise<Value>): Promise<Value> => settled(world, work)
  const cells = client.cells('trips')
  const rowKey = '6e9f3a52-0c1b-4a86-9d57-2f1f6c3b8e10'
  const shard = shardOf(rowKey)
  await run(cells.put({ rowKey, column: 'BASE', refKey: 0, body: { kilometres: 4 } }))
  const fields = [{ field: 'city', type: 'string' }]
  const column_defs = [{ column_key: 'BASE', fields }]
  await run(cells.indexes.apply({ table: 'by_city', datastore: 'trips', column_defs }))
  await run(cells.indexes.build('by_city', { graceMs: 0, shards: [shard] }))
  for (const { definition } of await run(cells.indexes.list())) {
    await run(markIndexBuilt(tables, definition))
  }
  const counted = async <Value>(work: () => Promise<Value>) => {
    const before = frames.length
    const value = await run(work())
    const sent = frames.slice(before).filter(({ from }) => from === 'client')
    const asked = sent.flatMap(({ frame }) => (frame.kind === 'requests' ? frame.requests : []))
    return { value, requests: asked.length }
  }
  return { client, tables, cells, shard, rowKey, run, counted }
}

test('an index that is ready is made anew and compared in the shards with a commit, and in no other', async () => {
  const { client, cells, shard, run, counted } = await oneCell()
  const rebuilt = await counted(() => cells.indexes.rebuild('by_city'))
  expect(rebuilt.value).toEqual({ shards: 1, rows: 1 })
  const checked = await counted(() => cells.indexes.check('by_city'))
  expect(checked.value).toEqual({ shards: 1, rows: 1, faults: [] })
  for (const { requests } of [rebuilt, checked]) expect(requests).toBeLessThan(50)
  // It takes no position in a shard that has nothing.
  expect(await run(listShards(client.groups, 'trips', 1_000))).toEqual([shard])
})

test('the holds of a datastore are looked for in the shards with a commit', async () => {
  const { client, rowKey, run, counted } = await oneCell()
  await run(client.holds.set({ datastore: 'trips', rowKey }, 'case 17'))
  const { value, requests } = await counted(() => client.holds.list({ datastore: 'trips' }))
  expect(value).toMatchObject([{ scope: ['cells', rowKey], reason: 'case 17' }])
  expect(requests).toBeLessThan(10)
  // One of all cells is set in each shard, those without a commit too.
  await run(client.holds.set({ datastore: 'trips' }, 'case 18'))
  expect(await run(client.holds.list({ datastore: 'trips' }))).toHaveLength(2)
})

test('a purge looks at shards with a cell, and not at those in which a commit has put none', async () => {
  const { client, cells, rowKey, shard, run } = await oneCell()
  const other = `${rowKey.slice(0, -1)}1`
  await run(client.holds.set({ datastore: 'trips', rowKey: other }, 'case 17'))
  const { groups } = client
  const both = [shard, shardOf(other)].sort((one, next) => one - next)
  expect(await run(listShards(groups, 'trips', 1_000))).toEqual(both)
  expect(await run(listShardsWithCells(groups, cells, 1_000))).toEqual([shard])
  const aborted = { signal: AbortSignal.abort() }
  await expect(listShardsWithCells(groups, cells, 1_000, aborted)).rejects.toMatchObject({
    code: 'closed',
  })
})

test('a trigger is looked at in the shards with a commit', async () => {
  const { client, tables, shard, run, counted } = await oneCell()
  const ports = {
    cells: client.cells.bind(client),
    groups: client.groups,
    tables,
    tablesOf: () => tables,
  }
  const trigger = { name: 'bill', column: 'BASE', handle: async () => undefined }
  const of = { service: 'billing', datastore: 'trips' }
  const { triggers } = defineTriggers({ ...of, triggers: [trigger] })
  await run(new ServiceStore(tables, 'billing', 2_000).register('trips', triggers))
  const admin = new TriggerAdmin({ ...ports, timeoutMs: 2_000 }, 'billing')
  const { value, requests } = await counted(() => admin.shards('bill'))
  expect(value).toMatchObject([{ shard, last: 1, after: 0 }])
  expect(requests).toBeLessThan(10)
  expect(await run(admin.replay('bill', { since: 0 }))).toEqual([])
})
