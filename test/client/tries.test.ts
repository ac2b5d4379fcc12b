import { expect, test } from 'vitest'
import { isStoreErrorCode, retryByCode } from '../../src/base/errors.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import { problem } from '../../src/base/problem.ts'
import type { Answer, Answered, CellService } from '../../src/cells/operation.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { mayBeRetried } from '../../src/client/call.ts'
import type { Client } from '../../src/client/client.ts'
import { classifyEnding } from '../../src/client/ending.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { runTransaction } from '../../src/txn/run.ts'
import { Sessions } from '../../src/txn/session.ts'
import { passMs, rowKey, settled } from '../cells/kit.ts'
import { createCluster, servingNode, type FakeCluster } from './cluster.ts'

// A row whose last digits are even: the client asks the first of two nodes for it, as for a status.
const base = { rowKey: rowKey(4), column: 'BASE', refKey: 0 }
const elevenMinutes = 11 * 60_000

/** The sessions under which puts were sent, in order. */
function sessionsOf({ frames }: FakeCluster): string[] {
  const requests = frames.flatMap(({ frame }) => (frame.kind === 'requests' ? frame.requests : []))
  return requests.flatMap(({ intents }) => intents?.session ?? [])
}

/** In front of a node's store: puts are answered so, without being carried out. */
function answering(store: CellService, answer: Answer): CellService {
  return {
    execute: (operation, options) =>
      operation.kind === 'put'
        ? Promise.resolve({ answer, positions: [] })
        : store.execute(operation, options),
  }
}

test('an index that is being built is refused at once, and counts against no node', async () => {
  const building = problem('unavailable', 'it is being built', { index: 'building' })
  const answered: Answered = { answer: { kind: 'problem', problem: building }, positions: [] }
  const cluster = createCluster({ wrap: () => ({ execute: () => Promise.resolve(answered) }) })
  const asked = cluster.client().cells('trips').index('drivers').query({ driver: 'x' })
  await expect(settled(cluster.bench.world, asked)).rejects.toMatchObject({
    ...{ code: 'unavailable', detail: { index: 'building' } },
  })
  expect(cluster.frames.filter(({ frame }) => frame.kind === 'requests')).toHaveLength(1)
  expect(classifyEnding({ kind: 'answered', answered }, 1_000)).toBe('answered')
  const silent = problem('unavailable', 'no majority answered')
  const useless: Answered = { answer: { kind: 'problem', problem: silent }, positions: [] }
  expect(classifyEnding({ kind: 'answered', answered: useless }, 1_000)).toBe('failed')
})

test('CELL-4: a node whose clock is ahead has not the last word of a put whose answer was lost', async () => {
  const cluster = createCluster({ aheadMs: { n1: elevenMinutes } })
  const { world } = cluster.bench
  const client = cluster.client({ tryTimeoutMs: 300, avoidMs: 60_000 })
  expect(await servingNode(cluster, client)).toBe('n2')
  cluster.weather.cut('n2', 'client')
  const writing = client.cells('trips').put({ ...base, body: 1 }, { timeoutMs: 2_000 })
  await passMs(world, 200)
  cluster.weather.mend('n2', 'client')
  // The client asks the node that knows again, though it had passed it over.
  expect(await settled(world, writing)).toMatchObject({ addedId: 1, created: true })
  expect(cluster.bench.log.entryCount()).toBe(1)
})

test('CLOCK-2: a node whose clock is ahead answers a put whose answer was lost, and refuses nothing by its clock', async () => {
  const cluster = createCluster({ aheadMs: { n1: elevenMinutes } })
  const { world } = cluster.bench
  const client = cluster.client({ tryTimeoutMs: 300 })
  expect(await servingNode(cluster, client)).toBe('n2')
  cluster.weather.cut('n2', 'client')
  const writing = client.cells('trips').put({ ...base, body: 1 }, { timeoutMs: 1_500 })
  expect(await settled(world, writing)).toMatchObject({ addedId: 1, created: true })
  expect(cluster.bench.log.entryCount()).toBe(1)
})

test('CLOCK-2: a node whose clock is behind has a put taken to another one', async () => {
  const cluster = createCluster({ aheadMs: { n2: -elevenMinutes } })
  const { world } = cluster.bench
  const client = cluster.client()
  expect(await servingNode(cluster, client)).toBe('n2')
  const cells = client.cells('trips')
  const writing = cells.put({ ...base, body: 1 }, { timeoutMs: 5_000 })
  expect(await settled(world, writing)).toMatchObject({ addedId: 1, created: true })
  expect(sessionsOf(cluster)).toHaveLength(2)
})

test('CELL-4: a put whose answer was lost is unknown when all the others say is that it is out of date', async () => {
  const expired: Answer = { kind: 'problem', problem: problem('expired', 'it is out of date') }
  const wrap = (store: CellService, name: string): CellService =>
    name === 'n1' ? answering(store, expired) : store
  const cluster = createCluster({ wrap })
  const { world } = cluster.bench
  const client = cluster.client({ tryTimeoutMs: 300 })
  const cells = client.cells('trips')
  expect(await servingNode(cluster, client)).toBe('n2')
  cluster.weather.cut('n2', 'client')
  const lost = settled(world, cells.put({ ...base, body: 1 }, { timeoutMs: 1_500 }))
  await expect(lost).rejects.toMatchObject({ code: 'unknown-outcome' })
  cluster.weather.mend('n2', 'client')
  await passMs(world, 5_000)
  await settled(world, cells.put({ ...base, refKey: 1, body: 1 }))
  const sessions = sessionsOf(cluster)
  expect(sessions.at(-1)).not.toBe(sessions[0])
})

test('a put that was never carried out fails as expired', async () => {
  const cluster = createCluster({ aheadMs: { n1: elevenMinutes, n2: elevenMinutes } })
  const { world } = cluster.bench
  const cells = cluster.client().cells('trips')
  const refused = settled(world, cells.put({ ...base, body: 1 }))
  await expect(refused).rejects.toMatchObject({ code: 'expired' })
  expect(sessionsOf(cluster)).toHaveLength(1)
})

test('CELL-4: an answer of another kind does not say what became of a put', async () => {
  const odd: Answer = { kind: 'spread-indexes' }
  const wrap = (store: CellService): CellService => answering(store, odd)
  const cluster = createCluster({ wrap })
  const { world } = cluster.bench
  const cells = cluster.client().cells('trips')
  const unsure = settled(world, cells.put({ ...base, body: 1 }, { timeoutMs: 500 }))
  await expect(unsure).rejects.toMatchObject({ code: 'unknown-outcome' })
})

test('CELL-4: after an internal error the write stays uncertain, and the client tries no other node', async () => {
  const wrap = (store: CellService): CellService => ({
    execute: async (operation, options) => {
      const answered = await store.execute(operation, options)
      if (operation.kind === 'put') throw new TypeError('odd')
      return answered
    },
  })
  const cluster = createCluster({ wrap, onBug: () => undefined })
  const { world } = cluster.bench
  const cells = cluster.client().cells('trips')
  const unsure = settled(world, cells.put({ ...base, body: 1 }))
  await expect(unsure).rejects.toMatchObject({ code: 'unknown-outcome' })
  expect(sessionsOf(cluster)).toHaveLength(1)
  expect(await settled(world, cells.get(base))).toMatchObject({ body: 1 })
  const again = settled(world, cells.put({ ...base, refKey: 1, body: 1 }))
  await expect(again).rejects.toMatchObject({ code: 'unknown-outcome' })
  expect(new Set(sessionsOf(cluster)).size).toBe(2)
})

test('CELL-4: a conflict says of a put whose answer was lost that it is not there', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client({ tryTimeoutMs: 300 })
  const cells = client.cells('trips')
  const home = await servingNode(cluster, client)
  await settled(world, cells.put({ ...base, body: 1 }))
  cluster.weather.cut(home, 'client')
  const conflict = settled(world, cells.put({ ...base, body: 2 }))
  await expect(conflict).rejects.toMatchObject({ code: 'immutable' })
})

/** Writes one row by a transaction that reads nothing. */
function commit(client: Client, clock: Clock, cluster: FakeCluster): Promise<unknown> {
  const { random } = cluster.bench
  const intents = new Sessions(clock, random)
  const options = { clock, random, intents, timeoutMs: 1_000 }
  return runTransaction(client.groups, groupOfBytes(Buffer.from('g')), options, async (tx) => {
    tx.put(Buffer.from('k'), Buffer.from('v'))
  })
}

test('a commit at a stopping node fails as unavailable, and as closed only after the client closes', async () => {
  const cluster = createCluster({ names: ['n1'] })
  const { world } = cluster.bench
  const client = cluster.client()
  const { clock } = cluster.clockOf('writer')
  await servingNode(cluster, client)
  await settled(world, cluster.node('n1').server.drain())
  const refused = settled(world, commit(client, clock, cluster))
  await expect(refused).rejects.toMatchObject({ code: 'unavailable', retry: 'safe' })
  await client.close()
  const closed = settled(world, commit(client, clock, cluster))
  await expect(closed).rejects.toMatchObject({ code: 'closed' })
})

test('a call whose link comes up late ends by its deadline all the same', async () => {
  const silent: CellService = { execute: () => new Promise(() => undefined) }
  const cluster = createCluster({ names: ['n1'], wrap: () => silent })
  const { world } = cluster.bench
  cluster.weather.cut('client', 'n1')
  const client = cluster.client({ tryTimeoutMs: 2_000 })
  const startMicros = world.nowMicros
  const reading = settled(world, client.cells('trips').get(base, { timeoutMs: 2_000 }))
  void world.sleep(1_000_000).then(() => cluster.weather.mend('client', 'n1'))
  await expect(reading).rejects.toMatchObject({ message: 'no node answered in time; try again' })
  expect(cluster.frames.filter(({ from }) => from === 'client')).toHaveLength(1)
  expect((world.nowMicros - startMicros) / 1_000_000).toBeLessThan(2.01)
})

test('an item that a stopping node refuses fails as unavailable, so the follower of a log goes on', async () => {
  const stopping = { kind: 'problem', problem: problem('closed', 'this node is stopping') } as const
  let isStopping = true
  const wrap = (store: CellService): CellService => ({
    execute: async (operation, options) => {
      const answered = await store.execute(operation, options)
      const { answer } = answered
      if (!isStopping || !('items' in answer) || answer.kind === 'put') return answered
      // As when the nodes of another replica set stop.
      return { ...answered, answer: { ...answer, items: answer.items.map(() => stopping) } }
    },
  })
  const cluster = createCluster({ wrap })
  const { world } = cluster.bench
  const cells = cluster.client().cells('trips')
  await settled(world, cells.put({ ...base, body: 1 }))
  const shard = shardOf(base.rowKey)
  const place = { kind: 'after', shard, addedId: 0 } as const
  const got = await settled(world, cells.getMany([base], { timeoutMs: 500 }))
  expect(got).toMatchObject([{ problem: { code: 'unavailable' } }])
  const logged = await settled(world, cells.shardLogs([place], { timeoutMs: 500 }))
  expect(logged).toMatchObject([{ problem: { code: 'unavailable' } }])
  const next = cells.tail({ shards: [shard], waitMs: 100 }).next()
  await passMs(world, 20_000)
  isStopping = false
  expect(await settled(world, next)).toMatchObject({ value: { addedId: 1 } })
})

test('a client asks again for whatever is safe to ask again, and for nothing that never helps', () => {
  const codes = Object.keys(retryByCode).filter(isStoreErrorCode)
  const retried = codes.filter((code) => mayBeRetried(problem(code, '')))
  expect(codes.filter((code) => retryByCode[code] === 'safe' && !retried.includes(code))).toEqual(
    [],
  )
  // A node that is closing is not the only node.
  expect(retried.filter((code) => retryByCode[code] === 'never')).toEqual(['closed'])
})
