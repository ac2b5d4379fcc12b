import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import type { CellName } from '../../src/cells/cell.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { Client } from '../../src/client/client.ts'
import type { Transport, TransportHandlers } from '../../src/ports/transport.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import { prefixRange } from '../../src/txn/key-range.ts'
import { runRead, type ReadHandle } from '../../src/txn/run-read.ts'
import { runTransaction } from '../../src/txn/run.ts'
import { Sessions } from '../../src/txn/session.ts'
import { passMs, rowKey, settled } from '../cells/kit.ts'
import { createCluster, others, servingNode } from './cluster.ts'

/** Cells of one shard. */
function some(count: number): CellName[] {
  return Array.from({ length: count }, (_, refKey) => ({ ...base, refKey }))
}

// A row whose last digits are even: the client asks the first of two nodes for it, as for a status.
const base = { rowKey: rowKey(4), column: 'BASE', refKey: 0 }

test('a client reads back the cell it has put, through the frames of the wire', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client()
  const cells = client.cells('trips')
  const written = await settled(world, cells.put({ ...base, body: { fare: 12.5 } }))
  expect(written).toMatchObject({ shard: shardOf(base.rowKey), addedId: 1, created: true })
  const cell = await settled(world, cells.get(base))
  const { addedId, createdAt } = written
  expect(cell).toStrictEqual({ ...base, addedId, createdAt, body: { fare: 12.5 } })
  const { rowKey: row } = base
  expect(await settled(world, cells.get({ rowKey: row, column: 'BASE' }))).toStrictEqual(cell)
  expect(await settled(world, cells.versions(base.rowKey, 'BASE'))).toStrictEqual({ items: [cell] })
  expect(await settled(world, cells.latestAll(base.rowKey))).toStrictEqual({ items: [cell] })
  expect(await settled(world, cells.shardLog(written.shard))).toStrictEqual({
    ...{ shard: written.shard, items: [cell], cursor: 1, asOf: 1 },
  })
  expect(await settled(world, cells.get({ ...base, refKey: 1 }))).toBeUndefined()
  expect(await settled(world, cells.get({ rowKey: rowKey(2), column: 'BASE' }))).toBeUndefined()
})

test('a client sends the calls of one turn in one frame, and a node answers in few frames', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client()
  const home = await servingNode(cluster, client)
  const before = cluster.frames.length
  const cells = client.cells('trips')
  await settled(world, Promise.all(some(20).map((name) => cells.put({ ...name, body: 1 }))))
  const sent = cluster.frames.slice(before)
  const asked = sent.filter(({ from }) => from === 'client')
  expect(asked).toHaveLength(1)
  expect(asked[0]?.frame).toMatchObject({ kind: 'requests', requests: { length: 20 } })
  expect(sent.filter(({ from }) => from === home).length).toBeLessThan(5)
})

test('a current read under a lease answers without waiting, the same as a read that waits', async () => {
  const cluster = createCluster({ names: ['n1'] })
  const { world } = cluster.bench
  const { replica } = cluster.node('n1')
  const cells = cluster.client().cells('trips')
  await settled(world, cells.put({ ...base, body: { fare: 1 } }))
  const waited = await settled(world, cells.get(base))
  const asked = replica.currentReads
  replica.isAtOnce = true
  const several = Promise.all([base, { ...base, refKey: 1 }].map((name) => cells.get(name)))
  expect(await settled(world, several)).toStrictEqual([waited, undefined])
  expect(replica.currentReads).toBe(asked)
})

test('the first rows of a read come with its view, by one request', async () => {
  const cluster = createCluster({ names: ['n1'] })
  const { world } = cluster.bench
  const { clock } = cluster.clockOf('reader')
  const { groups } = cluster.client()
  const [group, key] = [groupOfBytes(Buffer.from('g')), Buffer.from('k')]
  const intents = new Sessions(clock, cluster.bench.random)
  const committed = await settled(
    world,
    runTransaction(groups, group, { clock, random: cluster.bench.random, intents }, async (tx) => {
      tx.put(key, Buffer.from('v'))
    }),
  )
  const requests = (): number =>
    cluster.frames.reduce(
      (sum, { frame }) => sum + (frame.kind === 'requests' ? frame.requests.length : 0),
      0,
    )
  const before = requests()
  const read = <Value>(run: (rows: ReadHandle) => Promise<Value>) =>
    settled(world, runRead(groups, group, { kind: 'current' }, { clock }, run))
  const row = { value: Buffer.from('v'), timestamp: committed.timestamp }
  const one = await read((rows) => rows.get(key))
  expect(one).toMatchObject({ value: row, view: { position: committed.position } })
  expect((await read((rows) => rows.scan(prefixRange(key)))).value).toMatchObject({ rows: [row] })
  expect(requests() - before).toBe(2)
  // A reader that asks for more, at once or later, asks at the same view.
  const both = (rows: ReadHandle) => Promise.all([rows.get(key), rows.scan(prefixRange(key))])
  expect((await read(both)).value).toMatchObject([row, { rows: [row] }])
  expect(requests() - before).toBe(4)
})

test('a node that is cut off without a word is left for another one, within the deadline', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client({ tryTimeoutMs: 500 })
  const home = await servingNode(cluster, client)
  cluster.weather.cut('client', home)
  const startMicros = world.nowMicros
  const written = await settled(world, client.cells('trips').put({ ...base, body: 1 }))
  expect(written.created).toBe(true)
  expect(world.nowMicros - startMicros).toBeLessThan(600_000)
  expect(await servingNode(cluster, client)).not.toBe(home)
  const [other = ''] = others(cluster, home)
  expect(cluster.node(other).replica.submissions).toBe(1)
})

test('a node that loses its majority is left for another one at once', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client()
  const home = await servingNode(cluster, client)
  cluster.node(home).replica.isCutOff = true
  const cells = client.cells('trips')
  expect(await settled(world, cells.get(base))).toBeUndefined()
  const startMicros = world.nowMicros
  expect(await settled(world, cells.get(base))).toBeUndefined()
  expect(world.nowMicros - startMicros).toBeLessThan(50_000)
})

test('a node that drains is left for another one, and nothing under way there is lost', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client()
  const cells = client.cells('trips')
  const home = await servingNode(cluster, client)
  const first = cells.put({ ...base, body: 1 })
  await passMs(world, 1)
  const drained = cluster.node(home).server.drain()
  expect(await settled(world, first)).toMatchObject({ created: true })
  await settled(world, drained)
  expect(await settled(world, cells.put({ ...base, refKey: 1, body: 1 }))).toMatchObject({
    addedId: 2,
  })
  const [other = ''] = others(cluster, home)
  expect(cluster.node(other).replica.submissions).toBe(1)
})

test('CELL-4: a put whose answer is lost is sent again elsewhere and takes effect once', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client({ tryTimeoutMs: 300 })
  const cells = client.cells('trips')
  const home = await servingNode(cluster, client)
  const [other = ''] = others(cluster, home)
  cluster.weather.cut(home, 'client')
  const written = await settled(world, cells.put({ ...base, body: { fare: 1 } }))
  expect(written).toMatchObject({ addedId: 1, created: true })
  expect(cluster.node(home).replica.submissions).toBe(1)
  expect(await servingNode(cluster, client)).toBe(other)
  expect(cluster.bench.log.entryCount()).toBe(1)
})

test('CELL-4: a lost link in mid-put is another try of the same intent', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client()
  const home = await servingNode(cluster, client)
  const writing = client.cells('trips').put({ ...base, body: 1 })
  await passMs(world, 0.3)
  cluster.network.reset('client', home)
  expect(await settled(world, writing)).toMatchObject({ addedId: 1, created: true })
  expect(cluster.bench.log.entryCount()).toBe(1)
})

test('CELL-4: on a bad network every put takes effect once and reports so truthfully', async () => {
  const conditions = {
    ...{ drop: 100_000, duplicate: 200_000, late: 500_000, lateMeanMicros: 500_000 },
    ...{ reorder: 300_000, delayMeanMicros: 2_000, survive: 500_000 },
  }
  const cluster = createCluster({ conditions, seed: 7, names: ['n1', 'n2', 'n3'] })
  const { world, random } = cluster.bench
  const client = cluster.client({ tryTimeoutMs: 100, avoidMs: 50 })
  const cells = client.cells('trips')
  const writing = Promise.all(
    some(60).map(async (name) => {
      await world.sleep(random.int(0, 2_000_000))
      return cells.put({ ...name, body: { refKey: name.refKey } })
    }),
  )
  for (let i = 0; i < 20; i++) {
    await passMs(world, 100)
    cluster.network.reset('client', random.pick(['n1', 'n2', 'n3']))
  }
  const written = await settled(world, writing)
  expect(written.every(({ created }) => created)).toBe(true)
  const ids = written.map(({ addedId = 0 }) => addedId).sort((a, b) => a - b)
  expect(ids).toStrictEqual(some(60).map((_, i) => i + 1))
  expect(cluster.bench.log.entryCount()).toBe(60)
})

test('an unanswered put ends as unknown-outcome if it was sent, as unavailable if it never was', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client({ tryTimeoutMs: 300 })
  const cells = client.cells('trips')
  await servingNode(cluster, client)
  for (const name of ['n1', 'n2']) cluster.weather.cut(name, 'client')
  const startMicros = world.nowMicros
  const sent = settled(world, cells.put({ ...base, body: 1 }, { timeoutMs: 1_500 }))
  await expect(sent).rejects.toMatchObject({ code: 'unknown-outcome', retry: 'check-first' })
  const seconds = (world.nowMicros - startMicros) / 1_000_000
  expect(seconds).toBeGreaterThan(1)
  expect(seconds).toBeLessThan(1.6)
  for (const name of ['n1', 'n2']) cluster.network.detach(name)
  await passMs(world, 5_000)
  const unsent = settled(world, cells.put({ ...base, body: 1 }, { timeoutMs: 500 }))
  await expect(unsent).rejects.toMatchObject({ code: 'unavailable', retry: 'safe' })
})

test('CELL-4: after an unknown outcome other intents are of another session, which it cannot hold back', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client({ tryTimeoutMs: 300 })
  const cells = client.cells('trips')
  await settled(world, cells.put({ ...base, body: 1 }))
  for (const { replica } of cluster.nodes.values()) replica.mishaps.push('request-lost')
  const lost = cells.put({ ...base, refKey: 1, body: 1 }, { timeoutMs: 300 })
  await expect(settled(world, lost)).rejects.toMatchObject({ code: 'unknown-outcome' })
  await settled(world, cells.put({ ...base, refKey: 2, body: 1 }))
  const intents = cluster.frames.flatMap(({ frame }) =>
    frame.kind === 'requests' ? frame.requests.flatMap((one) => one.intents ?? []) : [],
  )
  const [first, unknown, next] = [intents[0], intents[1], intents.at(-1)]
  expect(first).toMatchObject({ sequences: [1], floor: 1 })
  expect(unknown).toMatchObject({ session: first?.session, sequences: [2], floor: 2 })
  expect(next?.session).not.toBe(first?.session)
})

test('a call made before any node is up waits for one', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  for (const name of ['n1', 'n2']) cluster.weather.cut('client', name)
  const client = cluster.client()
  const reading = client.cells('trips').get(base)
  await passMs(world, 3_000)
  cluster.weather.mend('client', 'n2')
  const startMicros = world.nowMicros
  expect(await settled(world, reading)).toBeUndefined()
  expect(world.nowMicros - startMicros).toBeLessThan(1_500_000)
})

test('errors that no other node would answer otherwise are not retried', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client()
  const cells = client.cells('trips')
  await settled(world, cells.put({ ...base, body: 1 }))
  const conflict = settled(world, cells.put({ ...base, body: 2 }))
  await expect(conflict).rejects.toMatchObject({ code: 'immutable' })
  const requests = cluster.frames.filter(({ from }) => from === 'client')
  expect(requests).toHaveLength(2)
})

test('the client refuses invalid names, bodies and bounds without a request', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client()
  const cells = client.cells('trips')
  const refused = async (promise: Promise<unknown>): Promise<void> =>
    expect(settled(world, promise)).rejects.toMatchObject({ code: 'invalid' })
  await refused(cells.put({ ...base, refKey: -1, body: 1 }))
  await refused(cells.put({ ...base, refKey: 1.5, body: 1 }))
  await refused(cells.put({ ...base, rowKey: 'x', body: 1 }))
  await refused(cells.put({ ...base, body: Number.NaN }))
  await refused(cells.get({ ...base, column: '' }))
  await refused(cells.latestAll('x'))
  await refused(cells.shardLog(4096))
  await refused(cells.shardLog(0, { after: -1 }))
  await refused(cells.shardLog(0, { after: 1, since: 1 }))
  await refused(cells.versions(base.rowKey, 'BASE', { limit: 0 }))
  await refused(client.cells('No').get(base))
  await refused(cells.get(base, { timeoutMs: 0 }))
  await refused(cells.putMany([]))
  expect(cluster.frames).toHaveLength(0)
})

test('a batch gives each cell its own outcome, those that were never sent too', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const cells = cluster.client().cells('trips')
  await settled(world, cells.put({ ...base, body: 1 }))
  const outcomes = await settled(
    world,
    cells.putMany([
      { ...base, body: 1 },
      { ...base, rowKey: 'x', body: 1 },
      { ...base, body: 2 },
      { ...base, refKey: 1, body: 3 },
    ]),
  )
  expect(outcomes).toMatchObject([
    { kind: 'ok', value: { created: false } },
    { kind: 'problem', problem: { code: 'invalid' } },
    { kind: 'problem', problem: { code: 'immutable' } },
    { kind: 'ok', value: { created: true } },
  ])
  const found = await settled(
    world,
    cells.getMany([
      { ...base, refKey: 1 },
      { rowKey: 'x', column: 'a' },
      { ...base, refKey: 9 },
    ]),
  )
  expect(found).toMatchObject([
    { kind: 'ok', value: { body: 3 } },
    { kind: 'problem', problem: { code: 'invalid' } },
    { kind: 'ok', value: undefined },
  ])
})

test('the client resends only the cells of a batch that have no outcome', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client()
  const home = await servingNode(cluster, client)
  cluster.node(home).replica.mishaps.push('overloaded')
  const outcomes = await settled(
    world,
    client.cells('trips').putMany(some(3).map((name) => ({ ...name, body: 1 }))),
  )
  expect(outcomes.map((one) => one.kind)).toStrictEqual(['ok', 'ok', 'ok'])
  const puts = cluster.frames.flatMap(({ frame }) =>
    frame.kind === 'requests' ? frame.requests.map(({ operation }) => operation) : [],
  )
  const sizes = puts.flatMap((one) => (one.kind === 'put' ? [one.items.length] : []))
  expect(sizes).toStrictEqual([3, 1])
})

test('CELL-5: a session that changes to a replica that is behind does not go back', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client()
  const cells = client.cells('trips')
  const home = await servingNode(cluster, client)
  const [other = ''] = others(cluster, home)
  cluster.node(other).replica.isBehind = true
  await settled(world, cells.put({ ...base, body: 1 }))
  cluster.network.detach(home)
  await passMs(world, 1_000)
  expect(await servingNode(cluster, client)).toBe(other)
  expect(await settled(world, cells.get(base, { read: 'snapshot' }))).toMatchObject({ body: 1 })
  expect(cluster.node(other).replica.currentReads).toBe(1)
})

test('calls are bounded on this side, requests on the other', async () => {
  const cluster = createCluster({ serverLimits: { clientRequestsMax: 2 } })
  const { world } = cluster.bench
  const client = cluster.client({ callsMax: 4 })
  const cells = client.cells('trips')
  const six = Array.from({ length: 6 }, (_, refKey) => cells.put({ ...base, refKey, body: 1 }))
  const ends = await settled(world, Promise.allSettled(six))
  expect(ends.map(({ status }) => status)).toStrictEqual([
    ...Array<string>(4).fill('fulfilled'),
    ...Array<string>(2).fill('rejected'),
  ])
  expect(ends[5]).toMatchObject({ reason: { code: 'overloaded', detail: { limit: 'callsMax' } } })
  const answers = cluster.frames.flatMap(({ frame }) =>
    frame.kind === 'responses' ? frame.responses : [],
  )
  const codes = answers.map(({ answer }) => (answer.kind === 'problem' ? answer.problem.code : ''))
  expect(codes.filter((code) => code === 'overloaded').length).toBeGreaterThanOrEqual(2)
})

test('a closed client says so, and says unknown of puts under way', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client()
  const cells = client.cells('trips')
  await servingNode(cluster, client)
  const calls = Promise.allSettled([
    cells.put({ ...base, body: 1 }),
    cells.get(base),
    cells.shardLog(1, { waitMs: 60_000 }),
  ])
  await passMs(world, 0.2)
  await settled(world, client.close())
  const ends = await settled(world, calls)
  expect(ends).toMatchObject([
    { reason: { code: 'unknown-outcome' } },
    { reason: { code: 'closed' } },
    { reason: { code: 'closed' } },
  ])
  await expect(settled(world, cells.get(base))).rejects.toMatchObject({ code: 'closed' })
  await settled(world, client.close())
})

test('a tail brings what is there and what comes, in order, past the death of its node', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const reader = cluster.client()
  const cells = reader.cells('trips')
  const shard = shardOf(base.rowKey)
  const putAt = (refKey: number): Promise<unknown> =>
    settled(world, cells.put({ ...base, refKey, body: refKey }))
  for (const i of [0, 1]) await putAt(i)
  const tail = cells.tail({ shards: [shard - 1, shard, shard + 1], waitMs: 2_000 })
  const next = async (): Promise<unknown> => (await settled(world, tail.next())).value
  expect(await next()).toMatchObject({ shard, addedId: 1, body: 0 })
  expect(await next()).toMatchObject({ addedId: 2 })
  const waiting = tail.next()
  await passMs(world, 100)
  await putAt(2)
  expect((await settled(world, waiting)).value).toMatchObject({ addedId: 3, body: 2 })
  const alsoWaiting = tail.next()
  await passMs(world, 100)
  cluster.network.detach(await servingNode(cluster, reader))
  await passMs(world, 3_000)
  await putAt(3)
  expect((await settled(world, alsoWaiting)).value).toMatchObject({ addedId: 4, body: 3 })
  await putAt(4)
  expect(await next()).toMatchObject({ addedId: 5 })
  const from = cells.tail({ shards: [shard], after: new Map([[shard, 3]]) })
  expect((await settled(world, from.next())).value).toMatchObject({ addedId: 4 })
})

test('puts of a shard go to the node that leads it, once another node has told, while it is there', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client({ tryTimeoutMs: 500 })
  const cells = client.cells('trips')
  const home = await servingNode(cluster, client)
  const [leader = ''] = others(cluster, home)
  const leading = cluster.node(leader).replica
  const put = async (refKey: number): Promise<unknown> =>
    settled(world, cells.put({ ...base, refKey, body: refKey }))
  cluster.node(home).replica.leader = nodeId(leader)
  await put(0)
  expect(leading.submissions).toBe(0)
  await put(1)
  await put(2)
  expect(leading.submissions).toBe(2)
  cluster.weather.cut('client', leader)
  expect(await put(3)).toMatchObject({ created: true })
  expect(cluster.node(home).replica.submissions).toBe(2)
})

test('a node whose disk is damaged is left for another one, for reads and for puts', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client()
  const cells = client.cells('trips')
  const home = await servingNode(cluster, client)
  await settled(world, cells.put({ ...base, body: 1 }))
  const damaged = (): Promise<never> =>
    Promise.reject(new StoreError('corrupt', 'a checksum does not match', { store: 'data' }))
  cluster.node(home).replica.afterRead.push(damaged)
  expect(await settled(world, cells.get(base))).toMatchObject({ body: 1 })
  expect(await servingNode(cluster, client)).not.toBe(home)
  await passMs(world, 3_000)
  cluster.node(home).replica.afterRead.push(damaged)
  const put = await settled(world, cells.put({ ...base, refKey: 1, body: 2 }))
  expect(put).toMatchObject({ created: true })
})

test('on a network slower than one try has time for, later tries are long enough', async () => {
  const cluster = createCluster({ conditions: { delayMinMicros: 90_000 } })
  const { world } = cluster.bench
  const client = cluster.client({ tryTimeoutMs: 100, avoidMs: 100 })
  const writing = client.cells('trips').put({ ...base, body: 1 })
  expect(await settled(world, writing)).toMatchObject({ addedId: 1, created: true })
})

test('a node that would not take the client is the reason of a time-out only when no other is linked', async () => {
  const { bench, network, clockOf, weather } = createCluster({ names: ['n1'] })
  const { world } = bench
  const { process, clock } = clockOf('client')
  const linked = network.attach(process, ['n1'])
  let handlers: TransportHandlers<ClientFrame> | undefined
  const transport: Transport<ClientFrame> = {
    start: (given) => linked.start((handlers = given)),
    send: (...sent) => linked.send(...sent),
    isUp: (peer) => linked.isUp(peer),
    close: () => linked.close(),
  }
  const client = new Client({ transport, clock, random: bench.random.fork('client') })
  const cells = client.cells('trips')
  await settled(world, cells.get(base))
  handlers?.onRefused('n2', 'cluster: it is of another one')
  weather.cut('client', 'n1')
  const silent = settled(world, cells.get(base, { timeoutMs: 500 }))
  await expect(silent).rejects.toMatchObject({ message: 'no node answered in time; try again' })
  handlers?.onLink('n1', 'down', {})
  const alone = settled(world, cells.get(base, { timeoutMs: 500 }))
  await expect(alone).rejects.toMatchObject({ message: expect.stringContaining('another one') })
})
