/** Two real processes, each a replica set in a region of its own: datastores are where their names say. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { placeOf } from '../../src/base/placed-group.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import { connect } from '../../src/client/connect.ts'
import { findShard } from '../../src/client/row-shard.ts'
import type { Client } from '../../src/client/client.ts'
import { patienceMs, runProgram, startCluster, type TestCluster } from './harness.ts'

let cluster: TestCluster
beforeAll(async () => {
  const setOf = (id: string): string => (id === 'a' ? 'east' : 'west')
  const siteOf = (id: string): object => ({ region: id === 'a' ? 'eu' : 'us' })
  cluster = await startCluster({ ids: ['a', 'b'], setOf, siteOf })
})
afterAll(() => cluster?.close())

async function through<Value>(
  id: string,
  use: (client: Client) => Promise<Value>,
  timeoutMs = patienceMs,
): Promise<Value> {
  const client = await connect({ endpoints: [cluster.node(id).url], timeoutMs })
  try {
    return await use(client)
  } finally {
    await client.close()
  }
}

async function command(words: readonly string[], id = 'a'): ReturnType<typeof runProgram> {
  return runProgram([...words, '--json', '--url', cluster.node(id).url])
}

/** The groups whose names begin with these words. */
function namesAfter(client: Client, words: readonly string[]): Promise<readonly GroupId[]> {
  const prefix = groupOfBytes(encodeTuple(words))
  return client.groups.list(prefix, undefined, 1_000, patienceMs)
}

const rows = Array.from(
  { length: 12 },
  (_, k) => `5f1d7e0c-8a52-4d7c-9a1f-0f2f6f6a1a${String(k + 10)}`,
)

test('a datastore is declared once, and each node has it then', async () => {
  const flags = ['--shards', '8', '--placement', 'region us']
  const made = await command(['datastore', 'create', 'rides', ...flags])
  const declared = { name: 'rides', datastore: 'rides.8.region-us', shards: 8 }
  const whole = { ...declared, placement: 'region us' }
  expect(JSON.parse(made.stdout)).toMatchObject({ ...whole, isNew: true })
  const again = await command(['datastore', 'create', 'rides', ...flags], 'b')
  expect(JSON.parse(again.stdout)).toMatchObject({ ...whole, isNew: false })
  const other = await command(['datastore', 'create', 'rides', '--shards', '16'], 'b')
  expect(other).toMatchObject({ code: 3, stderr: expect.stringContaining('8 shards in region us') })
  const nowhere = await command(['datastore', 'create', 'far', '--placement', 'region asia'])
  expect(nowhere.stderr).toContain('no replica set is in region "asia"')
  for (const id of ['a', 'b']) {
    expect(JSON.parse((await command(['datastore', 'list'], id)).stdout)).toMatchObject([whole])
    const { url } = cluster.node(id)
    const got = await fetch(`${url}/v1/datastores/rides`)
    expect(await got.json()).toMatchObject(whole)
  }
})

test('CELL-9: cells that one node takes another node has, each in the same shard and in the place', async () => {
  const datastore = 'rides.8.region-us'
  for (const [nth, rowKey] of rows.entries()) {
    const id = nth % 2 === 0 ? 'a' : 'b'
    const written = await through(id, (client) =>
      client.cells(datastore).put({ rowKey, column: 'BASE', refKey: 0, body: { nth } }),
    )
    expect(written).toMatchObject({ shard: findShard(datastore, rowKey), created: true })
  }
  for (const id of ['a', 'b']) {
    for (const [nth, rowKey] of rows.entries()) {
      const cell = await through(id, (client) =>
        client.cells(datastore).get({ rowKey, column: 'BASE' }),
      )
      expect(cell?.body).toEqual({ nth })
    }
    const tailed = await command(['cells', 'tail', '--no-follow', '-d', datastore], id)
    expect(tailed.stdout.trimEnd().split('\n')).toHaveLength(rows.length)
    const where = await command(['groups', 'where', '-d', datastore, '--row', rows[0] ?? ''], id)
    expect(JSON.parse(where.stdout)).toMatchObject({ place: 'region us', set: 'west', leader: 'b' })
  }
  const none = await command(['cells', 'tail', '--no-follow', '-d', datastore, '--shard', '8'])
  expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('from 0 to 7') })
})

test('an index over a datastore with a place is filled and asked, and dropped', async () => {
  const datastore = 'rides.8.region-us'
  const fields = [{ field: 'nth', type: 'integer' }]
  await through('a', async (client) => {
    const { indexes } = client.cells(datastore)
    await indexes.apply({
      ...{ table: 'by_nth', datastore },
      column_defs: [{ column_key: 'BASE', fields }],
    })
    expect(await indexes.build('by_nth', { graceMs: 0 })).toMatchObject({ rows: rows.length })
    const found = await client.cells(datastore).index('by_nth').query({ nth: 3 })
    expect(found.items).toMatchObject([{ rowKey: rows[3] }])
    expect((await indexes.check('by_nth')).faults).toEqual([])
    await client.cells(datastore).put({
      ...{ rowKey: rows[3] ?? '', column: 'BASE', refKey: 1 },
      body: { nth: 99 },
    })
    expect(await namesAfter(client, ['index', 'Schemaless'])).toEqual([])
    const entries = await namesAfter(client, ['placed', 'index', 'Schemaless'])
    expect(entries.length).toBeGreaterThan(0)
    const us = { kind: 'region', name: 'us' }
    expect(entries.map(placeOf)).toEqual(entries.map(() => us))
    await indexes.drop('by_nth', { graceMs: 0 })
    expect(await indexes.list()).toEqual([])
  })
})

test('with the other set away, a datastore of a region goes on, and none of its cells is buffered elsewhere', async () => {
  const column = 'BASE'
  await cluster.node('b').stop('SIGKILL')
  try {
    await through('a', async (client) => {
      const eu = client.cells('alone.4.region-eu')
      for (const rowKey of rows) {
        expect(await eu.put({ rowKey, column, refKey: 0, body: 1 })).toMatchObject({
          created: true,
        })
      }
    })
    await through(
      'a',
      async (client) => {
        const us = client.cells('rides.8.region-us')
        const put = us.put({ rowKey: rows[0] ?? '', column, refKey: 7, body: 1 })
        await expect(put).rejects.toMatchObject({
          code: expect.stringMatching(/^(unavailable|timeout|unknown-outcome)$/),
        })
      },
      3_000,
    )
  } finally {
    await cluster.node('b').start()
  }
})

test('a place that no set has is refused to writes and reads, at each node', async () => {
  const refused = { code: 'invalid', message: expect.stringContaining('there are eu, us') }
  for (const id of ['a', 'b']) {
    await through(id, async (client) => {
      const cells = client.cells('rides.8.region-asia')
      const name = { rowKey: rows[0] ?? '', column: 'BASE', refKey: 0 }
      await expect(cells.put({ ...name, body: 1 })).rejects.toMatchObject(refused)
      await expect(cells.get(name)).rejects.toMatchObject(refused)
    })
  }
})
