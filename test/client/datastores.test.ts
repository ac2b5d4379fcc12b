/** Declaring datastores, and cells of those whose names say a form. */
import { expect, test } from 'vitest'
import { findShard, shardCountOf, shardOf } from '../../src/client/row-shard.ts'
import { listShards } from '../../src/client/listed-shards.ts'
import { defineTriggers } from '../../src/triggers/definition.ts'
import { runTriggers } from '../../src/triggers/run.ts'
import { rowKey, settled } from '../cells/kit.ts'
import { createCluster } from './cluster.ts'

function twoClients() {
  const cluster = createCluster()
  const [client, other] = [cluster.client(), cluster.client({}, 'other')]
  const run = <Value>(work: Promise<Value>): Promise<Value> => settled(cluster.bench.world, work)
  return { client, other, run }
}

test('a datastore is declared once: the same again changes nothing, and another form is refused', async () => {
  const { client, other, run } = twoClients()
  expect(await run(client.datastores.list())).toEqual([])
  const placement = { region: 'eu' }
  const first = await run(client.datastores.create('trips', { shards: 64, placement }))
  const trips = {
    name: 'trips',
    datastore: 'trips.64.region-eu',
    shards: 64,
    placement: 'region eu',
  }
  expect(first).toMatchObject({ kind: 'new', declared: trips })
  const again = await run(other.datastores.create('trips', { shards: 64, placement }))
  expect(again).toEqual({ kind: 'same', declared: first.declared })
  const words = expect.stringMatching('with 64 shards in region eu, and stays so')
  for (const form of [{}, { shards: 64 }, { shards: 32, placement }, { placement }]) {
    await expect(run(other.datastores.create('trips', form))).rejects.toMatchObject({
      ...{ code: 'already-exists', message: words },
    })
  }
  const plain = await run(other.datastores.create('a1'))
  expect(plain.declared).toMatchObject({ name: 'a1', datastore: 'a1', shards: 4096 })
  expect(plain.declared).not.toHaveProperty('placement')
  expect(await run(client.datastores.list())).toEqual([plain.declared, first.declared])
  expect(await run(other.datastores.find('trips'))).toEqual(first.declared)
  expect(await run(other.datastores.find('trip'))).toBeUndefined()
})

test('of two declarations at once, with two forms, one holds for both', async () => {
  const { client, other, run } = twoClients()
  const settledBoth = await run(
    Promise.allSettled([
      client.datastores.create('trips', { shards: 8 }),
      other.datastores.create('trips', { shards: 16 }),
    ]),
  )
  const made = settledBoth.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  expect(made.map(({ kind }) => kind)).toEqual(['new'])
  const refused = settledBoth.find((one) => one.status === 'rejected')
  expect(refused).toMatchObject({ reason: { code: 'already-exists' } })
  expect(await run(client.datastores.list())).toEqual(made.map(({ declared }) => declared))
})

test('a datastore that has cells by its plain name is not declared with another form', async () => {
  const { client, run } = twoClients()
  const name = { rowKey: rowKey(1), column: 'BASE', refKey: 0 }
  await run(client.cells('trips').put({ ...name, body: 1 }))
  await expect(run(client.datastores.create('trips', { shards: 2 }))).rejects.toMatchObject({
    ...{ code: 'already-exists', message: expect.stringContaining('has cells already') },
  })
  expect(await run(client.datastores.create('trips'))).toMatchObject({ kind: 'new' })
})

test.each([
  [['Trips', {}], 'the name'],
  [['trips.64', {}], 'the name'],
  [['trips', { shards: 3 }], 'a power of two from 1 to 4096'],
  [['trips', { shards: 8192 }], 'a power of two from 1 to 4096'],
  [['trips', { placement: { region: 'EU' } }], "{ region: 'eu' }"],
  [['trips', { placement: { region: 'eu', set: 'a' } }], "{ region: 'eu' }"],
  [['a'.repeat(62), { shards: 64 }], 'the datastore name'],
] as const)('%j is no declaration', async ([name, options], words) => {
  const { client, run } = twoClients()
  const given: object = options
  await expect(run(client.datastores.create(name, given))).rejects.toMatchObject({
    ...{ code: 'invalid', message: expect.stringContaining(words) },
  })
})

test('CELL-9: datastores that differ in their forms share no cell, and each has its own shards', async () => {
  const { client, other, run } = twoClients()
  const datastores = ['trips', 'trips.8', 'trips.16', 'trips.8.set-west']
  const rows = Array.from({ length: 20 }, (_, k) => rowKey(k + 1))
  for (const [nth, datastore] of datastores.entries()) {
    const cells = client.cells(datastore)
    const put = rows.map((row) => ({ rowKey: row, column: 'BASE', refKey: 0, body: nth }))
    const written = await run(cells.putMany(put))
    const shards = rows.map((row) => findShard(datastore, row))
    expect(written).toMatchObject(shards.map((shard) => ({ kind: 'ok', value: { shard } })))
    const listed = await run(listShards(other.groups, datastore, 1_000))
    expect(listed).toEqual([...new Set(shards)].sort((a, b) => a - b))
    expect(listed.every((shard) => shard < shardCountOf(datastore))).toBe(true)
  }
  for (const [nth, datastore] of datastores.entries()) {
    const cells = other.cells(datastore)
    expect((await run(cells.get({ rowKey: rows[3] ?? '', column: 'BASE' })))?.body).toBe(nth)
    const purged: number[] = []
    const purge = async (): Promise<void> => {
      const before = new Date('2200-01-01')
      for await (const one of cells.purge({ before, keepLatest: false })) purged.push(one.purged)
    }
    await run(purge())
    expect(purged.reduce((sum, count) => sum + count, 0)).toBe(rows.length)
  }
})

test('a tail of a datastore follows its shards, and no others', async () => {
  const { client, run } = twoClients()
  const cells = client.cells('trips.4')
  await run(cells.put({ rowKey: rowKey(1), column: 'BASE', refKey: 0, body: 1 }))
  const next = async (shards?: readonly number[]) => {
    for await (const cell of cells.tail(shards === undefined ? {} : { shards })) return cell
    return undefined
  }
  expect(await run(next())).toMatchObject({ rowKey: rowKey(1), addedId: 1 })
  await expect(run(next([4]))).rejects.toMatchObject({
    ...{ code: 'invalid', message: expect.stringContaining('numbered from 0 to 3') },
  })
  await expect(run(cells.shardLog(4))).rejects.toMatchObject({ code: 'invalid' })
})

test('triggers work on the shards that their datastore has', () => {
  const { client } = twoClients()
  const trigger = { name: 'count', column: 'BASE', handle: async () => undefined }
  const service = defineTriggers({ service: 'bill', datastore: 'trips.8', triggers: [trigger] })
  expect(() => runTriggers(client, service, { shards: [0, 8] })).toThrow(
    'datastore trips.8 has no shard 8; shards are numbered from 0 to 7',
  )
})

test('the shard of a row needs a name of a datastore', () => {
  const row = rowKey(5)
  expect(findShard('trips', row)).toBe(shardOf(row))
  expect(findShard('trips.1', row)).toBe(0)
  expect(shardCountOf('trips.64.region-eu')).toBe(64)
  for (const wrong of [() => findShard('trips.3', row), () => shardCountOf('trips.3')]) {
    expect(wrong).toThrow('the datastore name "trips.3" is not')
  }
})
