/** Six real processes in two replica sets: every node takes everything, and a set that is lost takes only its own shards with it. */
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildOverFew } from '../../sim/workloads/build-index.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { nodeId } from '../../src/base/ids.ts'
import { findDatastoreGroup } from '../../src/cells/cell-table.ts'
import { shardGroup } from '../../src/cells/shard.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { connect } from '../../src/client/connect.ts'
import { queue, rootKey, type RejectedPut } from '../../src/index.ts'
import { hashToBucket, placementOver } from '../../src/placement/placement.ts'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { eventually, patienceMs, runProgram, startCluster, type TestCluster } from './harness.ts'

const east = ['a', 'b', 'c']
const west = ['d', 'e', 'f']

let cluster: TestCluster
beforeAll(async () => {
  const setOf = (id: string): string => (east.includes(id) ? 'east' : 'west')
  cluster = await startCluster({ ids: [...east, ...west], setOf })
})
afterAll(() => cluster?.close())

function setOfRow(rowKey: string): number {
  return hashToBucket(shardGroup('trips', shardOf(rowKey))) % 2
}

/** Shards of the rows so far: tests count what is in a shard, and no two rows share one. */
const takenShards = new Set<number>()

function rowKeysOf(set: number, count: number): string[] {
  const found: string[] = []
  while (found.length < count) {
    const rowKey = randomUUID()
    const shard = shardOf(rowKey)
    if (setOfRow(rowKey) !== set || takenShards.has(shard)) continue
    takenShards.add(shard)
    found.push(rowKey)
  }
  return found
}

function byNumber(a: unknown, b: unknown): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1
}

const asJson = { 'content-type': 'application/json' }

const account = table('Account', { name: t.string(), amount: t.integer() }).key('name').root()
const accounts = defineSchema('Accounts', [account])

test('each node alone takes puts and reads of all shards, batches and logs of both sets', async () => {
  const rowKeys = [...rowKeysOf(0, 5), ...rowKeysOf(1, 5)]
  for (const [turn, id] of ['a', 'd'].entries()) {
    const client = await connect({
      endpoints: [cluster.node(id).url],
      follow: false,
      timeoutMs: patienceMs,
    })
    try {
      const trips = client.cells('trips')
      const cells = rowKeys.map((rowKey) => ({
        rowKey,
        column: 'BASE',
        refKey: turn,
        body: { turn },
      }))
      const written = await trips.putMany(cells)
      expect(written.map((one) => one.kind === 'ok' && one.value.created)).toEqual(
        cells.map(() => true),
      )
      const found = await trips.getMany(rowKeys.map((rowKey) => ({ rowKey, column: 'BASE' })))
      expect(found.map((one) => one.kind === 'ok' && one.value?.refKey)).toEqual(
        cells.map(() => turn),
      )
      const places = rowKeys.map((rowKey) => {
        return { kind: 'after', shard: shardOf(rowKey), addedId: 0 } as const
      })
      const logs = await trips.shardLogs(places)
      expect(logs.map((one) => one.kind === 'ok' && one.value.items.length)).toEqual(
        cells.map(() => turn + 1),
      )
    } finally {
      await client.close()
    }
  }
})

test('a reader that waits for cells of two sets hears of one in either', async () => {
  const client = await connect({
    endpoints: [cluster.node('b').url],
    follow: false,
    timeoutMs: patienceMs,
  })
  try {
    for (const set of [0, 1]) {
      // Of its own: no other test has put anything into the shards that these rows happen to be in.
      const trips = client.cells(`awaited${set}`)
      const rowKeys = [...rowKeysOf(0, 1), ...rowKeysOf(1, 1)]
      const places = rowKeys.map((rowKey) => {
        return { kind: 'after', shard: shardOf(rowKey), addedId: 0 } as const
      })
      const waiting = trips.shardLogs(places, { waitMs: 20_000 })
      const rowKey = rowKeys[set] ?? ''
      await new Promise((resolve) => setTimeout(resolve, 200))
      await trips.put({ rowKey, column: 'BASE', refKey: 0, body: 1 })
      const pages = await waiting
      expect(pages.map((one) => one.kind === 'ok' && one.value.items.length)).toEqual(
        set === 0 ? [1, 0] : [0, 1],
      )
    }
  } finally {
    await client.close()
  }
})

test('transactions and tables of groups in either set go through any node', async () => {
  const client = await connect({
    endpoints: [cluster.node('c').url],
    follow: false,
    timeoutMs: patienceMs,
  })
  try {
    await client.applySchema(accounts.model)
    const db = await client.tables(accounts)
    for (let i = 0; i < 10; i++) {
      const name = `account ${i}`
      await db.transaction(rootKey(account, { name }), async (tx) => {
        await tx.put(account, { name, amount: i })
      })
      const { value } = await db.read(rootKey(account, { name }), 'current', (rows) =>
        rows.get(account, { name }),
      )
      expect(value?.amount).toBe(i)
    }
  } finally {
    await client.close()
  }
})

test('a handler started while one set is away handles the other set, and the rest on its return', async () => {
  const placement = placementOver([east, west].map((set) => set.map(nodeId)))
  const notes = queue<number>()('notes', account)
  const sender = await connect({ endpoints: cluster.urls, timeoutMs: patienceMs })
  const handled: number[] = []
  try {
    await sender.applySchema(accounts.model)
    const db = await sender.tables(accounts)
    const names = Array.from({ length: 20 }, (_, i) => `noted ${i}`)
    await db.transaction(rootKey(account, { name: 'sender' }), async (tx) => {
      for (const name of names) {
        await tx.send(notes, { name }, placement.setOf(db.group(rootKey(account, { name }))))
      }
    })
    await eventually('all are delivered', async () => {
      const { length } = await sender.queues.waiting('Accounts.notes', 100)
      return length === names.length ? true : undefined
    })
    for (const id of west) await cluster.node(id).stop('SIGKILL')
    const client = await connect({ endpoints: east.map((id) => cluster.node(id).url) })
    try {
      client.queues.consume({
        queue: 'Accounts.notes',
        handle: async (_transaction, messages) => {
          handled.push(...messages.map(({ message }) => Number(Buffer.from(message.body))))
        },
      })
      const ofEast = names.filter((name) => {
        return placement.setOf(db.group(rootKey(account, { name }))) === 0
      })
      await eventually('those of the set that is there', async () => {
        return handled.length >= ofEast.length ? true : undefined
      })
      expect(new Set(handled)).toEqual(new Set([0]))
      await expect(client.queues.waiting('Accounts.notes', 100)).rejects.toMatchObject({
        code: 'unavailable',
      })
      await Promise.all(west.map((id) => cluster.node(id).start()))
      await eventually('the others', async () => (handled.length >= 20 ? true : undefined))
    } finally {
      await client.close()
    }
  } finally {
    await sender.close()
  }
})

test('HTTP at any node serves both sets', async () => {
  for (const rowKey of [...rowKeysOf(0, 2), ...rowKeysOf(1, 2)]) {
    const cell = `${cluster.node('e').url}/v1/datastores/trips/cells/${rowKey}/BASE/0`
    const body = JSON.stringify({ rowKey })
    expect((await fetch(cell, { method: 'PUT', body, headers: asJson })).status).toBe(201)
    expect((await fetch(cell)).status).toBe(200)
  }
})

test('BUF-1, BUF-2, BUF-3: while a set has no majority its cells are buffered, then they are there, once, and in its log', async () => {
  const [ofEast = ''] = rowKeysOf(0, 1)
  const [taken = '', ...ofWest] = rowKeysOf(1, 21)
  const client = await connect({ endpoints: cluster.urls, timeoutMs: 20_000 })
  try {
    const trips = client.cells('trips')
    const cell = { column: 'BASE', refKey: 0, body: { n: 1 } }
    await trips.put({ ...cell, rowKey: taken })
    // A majority has it; so has the node that will be left, once the same put there has found it. It
    // knows what indexes there are then, too: without them it could not even look at another body.
    const atLast = `${cluster.node('f').url}/v1/datastores/trips/cells/${taken}/BASE/0`
    const again = { method: 'PUT', body: JSON.stringify(cell.body) }
    expect((await fetch(atLast, { ...again, headers: asJson })).status).toBe(200)
    await cluster.node('d').stop('SIGKILL')
    await cluster.node('e').stop('SIGKILL')
    expect(await trips.put({ ...cell, rowKey: ofEast })).toMatchObject({ created: true })
    const [buffered = '', ...others] = ofWest
    const first = await trips.put({ ...cell, rowKey: buffered })
    expect(first).toEqual({ shard: shardOf(buffered), buffered: true })
    const some = await trips.putMany([
      ...[...others, buffered, ofEast].map((rowKey) => ({ ...cell, rowKey })),
      // The node that is left knows that another body is there; of a buffered one no node does.
      { ...cell, rowKey: taken, body: { n: 2 } },
      { ...cell, rowKey: buffered, body: { n: 2 } },
    ])
    const kinds = some.map((one) => one.kind === 'ok' && one.value.buffered)
    const ofTaken = ofWest.length + 1
    expect(kinds.toSpliced(ofTaken, 1)).toEqual([...ofWest.map(() => true), undefined, true])
    // The node that is left refuses it. Where no other node reaches that one, it is buffered, and rejected later.
    expect([false, true]).toContain(kinds[ofTaken])
    await expect(
      trips.get({ ...cell, rowKey: buffered }, { timeoutMs: 1_000 }),
    ).rejects.toMatchObject({
      code: 'unavailable',
    })
    // One node of the set that holds the buffer goes and comes back.
    await cluster.node('a').stop('SIGKILL')
    await cluster.node('d').start()
    await cluster.node('e').start()
    await cluster.node('a').start()
    for (const rowKey of ofWest) {
      const found = await eventually('the buffered cell is there', () =>
        trips.get({ ...cell, rowKey }),
      )
      if (rowKey !== buffered) expect(found.body).toEqual({ n: 1 })
      const { items: cells } = await trips.shardLog(shardOf(rowKey))
      expect(cells.filter((one) => one.rowKey === rowKey)).toHaveLength(1)
    }
    expect((await trips.get({ ...cell, rowKey: taken }))?.body).toEqual({ n: 1 })
    const [lost] = await eventually('one of two bodies is rejected', async () => {
      const all: RejectedPut[] = []
      for await (const one of client.rejected('trips')) all.push(one)
      const ofBuffered = all.filter(({ rowKey }) => rowKey === buffered)
      return ofBuffered.length > 0 ? ofBuffered : undefined
    })
    const { body: kept } = (await trips.get({ ...cell, rowKey: buffered })) ?? {}
    expect(lost).toMatchObject({ rowKey: buffered, reason: { code: 'immutable' } })
    expect([lost?.body, kept].toSorted(byNumber)).toEqual([{ n: 1 }, { n: 2 }])
    const urls = ['--url', cluster.node('f').url]
    const told = await runProgram(['cells', 'rejected', '--datastore', 'trips', '--json', ...urls])
    const line = told.stdout.split('\n').find((one) => one.includes(buffered)) ?? ''
    expect(JSON.parse(line)).toMatchObject({ rowKey: buffered, body: lost?.body })
  } finally {
    await client.close()
  }
})

test('IDX-8: while the set with the definitions of indexes has no majority, the other one puts, reads and keeps them', async () => {
  const placement = placementOver([east, west].map((set) => set.map(nodeId)))
  const names = Array.from({ length: 20 }, (_, k) => `indexed${k}`)
  const datastore = names.find((name) => placement.setOf(findDatastoreGroup(name)) === 1) ?? ''
  const rowKeys = Array.from({ length: 50 }, () => randomUUID())
  const [before = '', during = ''] = rowKeys.filter(
    (row) => placement.setOf(shardGroup(datastore, shardOf(row))) === 0,
  )
  const client = await connect({ endpoints: cluster.urls, timeoutMs: patienceMs })
  try {
    const cells = client.cells(datastore)
    const indexes = client.cells(datastore).indexes
    const column_defs = [{ column_key: 'BASE', fields: [{ field: 'city', type: 'string' }] }]
    await indexes.apply({ table: 'by_city', datastore, column_defs })
    // Builds of all shards are tested on fewer nodes; these are all that have cells here.
    const shards = [before, during].map((row) => shardOf(row))
    const ports = { clock: systemClock, random: systemRandom }
    await buildOverFew(client, ports, { datastore, name: 'by_city' }, { graceMs: 0, shards })
    const cell = { column: 'BASE', refKey: 0, body: { city: 'Oslo' } }
    await cells.put({ ...cell, rowKey: before })
    await cluster.node('d').stop('SIGKILL')
    await cluster.node('e').stop('SIGKILL')
    // Waits for longer than nodes trust the definitions that they know.
    await new Promise((resolve) => setTimeout(resolve, 12_000))
    expect(await cells.put({ ...cell, rowKey: during })).toMatchObject({ created: true })
    expect((await cells.get({ ...cell, rowKey: during }))?.body).toEqual({ city: 'Oslo' })
    await cluster.node('d').start()
    await cluster.node('e').start()
    await eventually('the index has both rows', async () => {
      const { items: entries } = await cells.index('by_city').query({ city: 'Oslo' })
      return entries.length === 2 ? true : undefined
    })
    await indexes.drop('by_city', { graceMs: 0 })
    expect(await indexes.list()).toEqual([])
  } finally {
    await client.close()
  }
}, 240_000)

test('a data folder is not used under other replica sets', async () => {
  const node = cluster.node('f')
  await node.stop('SIGKILL')
  const yaml = await readFile(node.configPath, 'utf8')
  try {
    await writeFile(node.configPath, yaml.replaceAll('"set":"west"', '"set":"east"'))
    const { code } = await node.spawn().exited()
    expect([code, node.log()]).toEqual([1, expect.stringContaining('is of nodes a b c | d e f')])
  } finally {
    await writeFile(node.configPath, yaml)
  }
  await node.start()
})
