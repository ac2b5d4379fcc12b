import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { present } from '../../src/base/assert.ts'
import { nodeId } from '../../src/base/ids.ts'
import type { CellName } from '../../src/cells/cell.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { defaultClientLimits, type ClientLimits } from '../../src/client/client-limits.ts'
import { Client } from '../../src/client/client.ts'
import { Slices } from '../../src/ports/slices.ts'
import { createGateway } from '../../src/gateway/http.ts'
import { OneCluster } from '../../src/gateway/one-cluster.ts'
import { Relay } from '../../src/client/relay.ts'
import { ClientServer } from '../../src/node/client-server.ts'
import type { ClientFrame, Operation } from '../../src/wire/client/client-message.ts'
import type { Transport, TransportHandlers } from '../../src/ports/transport.ts'
import { BodyRoom } from '../../src/gateway/request-body.ts'
import { noteBug } from '../bugs.ts'
import { passMs, rowKey, settled } from '../cells/kit.ts'
import { createCluster, type ClusterOptions, type FakeCluster } from '../client/cluster.ts'
import { createGatewayBench } from './kit.ts'

interface FakeGateway {
  readonly relay: Relay
  readonly server: ClientServer
}

interface GatewayCluster {
  readonly cluster: FakeCluster
  readonly gateways: readonly FakeGateway[]
  readonly client: Client
}

/** Nodes, gateways that link to all of them, and a client that links to the gateways alone. */
function createGateways(
  options: ClusterOptions & {
    readonly count?: number
    readonly limits?: Partial<ClientLimits>
  } = {},
): GatewayCluster {
  const { count = 2, limits = {} } = options
  const cluster = createCluster({ names: ['n1', 'n2', 'n3'], ...options })
  const { network, bench } = cluster
  const names = Array.from({ length: count }, (_, i) => `g${i + 1}`)
  const gateways = names.map((name): FakeGateway => {
    const clock = cluster.clockOf(`${name}-links`)
    const random = bench.random.fork(name)
    const transport = network.attach(clock.process, [...cluster.nodes.keys()])
    const ownLimits = { ...defaultClientLimits, tryTimeoutMs: 500, failuresMax: 3, ...limits }
    const relay = new Relay({ transport, clock: clock.clock, random }, ownLimits)
    const front = cluster.clockOf(name)
    const server = new ClientServer({
      ...{ transport: network.attach(front.process, []), cells: relay, groups: relay.groups },
      ...{ worklists: relay.worklists, clock: front.clock, status: () => ({ node: name }) },
      noteBug,
    })
    server.start()
    return { relay, server }
  })
  const { clock, process } = cluster.clockOf('client')
  const transport = network.attach(process, names)
  const random = bench.random.fork('client')
  const client = new Client({ transport, clock, random }, { tryTimeoutMs: 2_000 })
  return { cluster, gateways, client }
}

function some(count: number): CellName[] {
  return Array.from({ length: count }, (_, n) => ({ rowKey: rowKey(n), column: 'BASE', refKey: 0 }))
}

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

const base = { rowKey: rowKey(4), column: 'BASE', refKey: 0 }

test('a client of gateways reads and writes cells as one of nodes, on every path', async () => {
  const { cluster, client } = createGateways()
  const { world } = cluster.bench
  const cells = client.cells('trips')
  const written = await settled(world, cells.put({ ...base, body: { fare: 1 } }))
  expect(written).toMatchObject({ created: true, addedId: 1 })
  const cell = await settled(world, cells.get(base))
  expect(cell).toMatchObject({ ...base, body: { fare: 1 } })
  expect(await settled(world, cells.latestAll(base.rowKey))).toEqual({ items: [cell] })
  expect(await settled(world, cells.versions(base.rowKey, 'BASE'))).toEqual({ items: [cell] })
  const shard = shardOf(base.rowKey)
  expect(await settled(world, cells.shardLog(shard))).toMatchObject({
    shard,
    items: [cell],
    cursor: 1,
  })
  expect(await settled(world, cells.get(base, { read: 'snapshot' }))).toEqual(cell)
  await expect(settled(world, cells.put({ ...base, body: 2 }))).rejects.toMatchObject({
    code: 'immutable',
  })
})

test('the gateway splits a batch over several nodes and answers it in its own order', async () => {
  const { cluster, client } = createGateways({ count: 1 })
  const { world } = cluster.bench
  const cells = client.cells('trips')
  const names = some(40)
  const before = cluster.frames.length
  const outcomes = await settled(
    world,
    cells.putMany(names.map((name, i) => ({ ...name, body: { i } }))),
  )
  expect(outcomes.map((one) => one.kind === 'ok' && one.value.created)).toEqual(
    names.map(() => true),
  )
  const asked = cluster.frames
    .slice(before)
    .flatMap(({ from, frame }) =>
      from === 'g1-links' && frame.kind === 'requests' ? frame.requests : [],
    )
  const sizes = asked.flatMap(({ operation }) =>
    operation.kind === 'put' ? operation.items.length : [],
  )
  expect(sizes.length).toBeGreaterThan(1)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(40)
  const wanted = [...names, { ...base, refKey: 7 }, ...names.toReversed()]
  const found = await settled(world, cells.getMany(wanted))
  const bodies = found.map((one) => (one.kind === 'ok' ? one.value?.body : 'problem'))
  const order = names.map((_, i) => ({ i }))
  expect(bodies).toEqual([...order, undefined, ...order.toReversed()])
})

test('GATE-1: a put sent through two gateways takes effect once and reports so truthfully', async () => {
  const { cluster, client } = createGateways()
  const { world } = cluster.bench
  const cells = client.cells('trips')
  await settled(world, cells.get(base))
  // Whichever gateway takes it, its answer is lost.
  const gateways = ['g1', 'g2']
  for (const name of gateways) cluster.weather.cut(name, 'client')
  const writing = cells.put({ ...base, body: { fare: 1 } })
  await passMs(world, 2_100)
  cluster.weather.heal()
  expect(await settled(world, writing)).toMatchObject({ created: true, addedId: 1 })
  expect(cluster.bench.log.entryCount()).toBe(1)
})

test('GATE-1: in foul weather every put through gateways takes effect once', async () => {
  const conditions = {
    ...{ drop: 50_000, duplicate: 200_000, late: 300_000, lateMeanMicros: 300_000 },
    ...{ reorder: 300_000, delayMeanMicros: 2_000, survive: 500_000 },
  }
  const { cluster, client } = createGateways({ conditions, seed: 7, limits: { tryTimeoutMs: 100 } })
  const { world, random } = cluster.bench
  const cells = client.cells('trips')
  const names = Array.from({ length: 60 }, (_, refKey) => ({ ...base, refKey }))
  const writing = Promise.all(
    names.map(async (name) => {
      await world.sleep(random.int(0, 2_000_000))
      return cells.put({ ...name, body: { refKey: name.refKey } }, { timeoutMs: 60_000 })
    }),
  )
  for (let i = 0; i < 20; i++) {
    await passMs(world, 100)
    cluster.network.reset(random.pick(['g1-links', 'g2-links']), random.pick(['n1', 'n2', 'n3']))
    cluster.network.reset('client', random.pick(['g1', 'g2']))
  }
  const written = await settled(world, writing)
  expect(written.every(({ created }) => created)).toBe(true)
  expect(cluster.bench.log.entryCount()).toBe(60)
})

test('a frozen node costs its breaker a few tries, and no call more than a moment after', async () => {
  const { cluster, client, gateways } = createGateways({ count: 1 })
  const { world } = cluster.bench
  const cells = client.cells('trips')
  await settled(world, Promise.all(some(30).map((name) => cells.get(name))))
  cluster.weather.cut('g1-links', 'n2')
  cluster.weather.cut('n2', 'g1-links')
  await settled(world, Promise.all(some(30).map((name) => cells.get(name))))
  const views = gateways[0]?.relay.nodes() ?? []
  expect(views.find(({ node }) => node === 'n2')).toMatchObject({ breaker: 'open', opened: 1 })
  const startMicros = world.nowMicros
  await settled(world, Promise.all(some(30).map((name) => cells.get(name))))
  expect(world.nowMicros - startMicros).toBeLessThan(50_000)
  cluster.weather.heal()
  await passMs(world, 20_000)
  await settled(world, Promise.all(some(30).map((name) => cells.get(name))))
  const healed = gateways[0]?.relay.nodes() ?? []
  expect(healed.find(({ node }) => node === 'n2')).toMatchObject({ breaker: 'closed' })
})

test('a gateway that stops ends waits, refuses what comes, and its clients go to another one', async () => {
  const { cluster, client, gateways } = createGateways()
  const { world } = cluster.bench
  const cells = client.cells('trips')
  const shard = shardOf(base.rowKey)
  const waits = [0, 1].map((n) => cells.shardLog((shard + n) % 4096, { waitMs: 20_000 }))
  await passMs(world, 500)
  const [first, second] = gateways
  const drained = first?.server.drain()
  first?.relay.stop()
  await settled(world, drained ?? Promise.resolve())
  expect(first?.server.requests).toBe(0)
  const startMicros = world.nowMicros
  expect(await settled(world, cells.put({ ...base, body: 1 }))).toMatchObject({ created: true })
  expect(world.nowMicros - startMicros).toBeLessThan(100_000)
  expect(second?.relay.calls).toBeGreaterThan(0)
  expect((await settled(world, Promise.all(waits)))[0]).toMatchObject({ items: { length: 1 } })
})

test('GATE-2: nothing is kept of a wait for new cells that is over', async () => {
  const { cluster, gateways } = createGateways({ count: 1 })
  const { world } = cluster.bench
  const relay = present(gateways[0]?.relay, 'there is a gateway')
  const items = [{ kind: 'after', shard: 1, addedId: 0 }] as const
  const read = { level: 'snapshot', atLeast: [] } as const
  const log = { kind: 'log', datastore: 'trips', read, items, limit: 1, waitMs: 100 } as const
  const kept: WeakRef<object>[] = []
  for (let n = 0; n < 20; n++) {
    const { answer } = await settled(world, relay.execute(log, { timeoutMs: 1_000 }))
    expect(answer.kind).toBe('log')
    kept.push(new WeakRef(answer))
  }
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  expect(kept.filter((one) => one.deref() !== undefined).length).toBeLessThan(5)
})

test('GATE-2: calls above the bound are refused at once with 503, and when to come again', async () => {
  const { cluster, gateways } = createGateways({ count: 1, limits: { callsMax: 2 } })
  const { world } = cluster.bench
  const relay = gateways[0]?.relay
  if (relay === undefined) throw new Error('there is a gateway')
  const app = createGateway({
    cells: relay,
    slices: new Slices(cluster.bench.clockOf('http')),
    noteBug,
  })
  const log = '/v1/datastores/trips/shards/1/cells?wait=30'
  const waits = [log, log].map((path) => Promise.resolve(app.request(path)))
  await passMs(world, 300)
  expect(relay.calls).toBe(2)
  const refused = await settled(world, Promise.resolve(app.request(log)))
  expect(refused.status).toBe(503)
  expect(refused.headers.get('retry-after')).toBe('1')
  expect(await refused.json()).toMatchObject({ code: 'overloaded', retry: 'safe' })
  const answers = await settled(world, Promise.all(waits))
  expect(answers.map(({ status }) => status)).toEqual([200, 200])
  expect(relay.calls).toBe(0)
})

test('a client that leaves while it waits at a gateway ends its request there', async () => {
  const { cluster, gateways } = createGateways({ count: 1 })
  const { world } = cluster.bench
  const cells = present(gateways[0], 'there is a gateway').relay
  const app = createGateway({ cells, slices: new Slices(cluster.bench.clockOf('http')), noteBug })
  const gone = new AbortController()
  const log = '/v1/datastores/trips/shards/1/cells?wait=30'
  const waiting = Promise.resolve(app.request(log, { signal: gone.signal }))
  await passMs(world, 300)
  gone.abort()
  const startMicros = world.nowMicros
  await settled(world, waiting)
  expect(world.nowMicros - startMicros).toBeLessThan(1_000_000)
})

/** Requests at work at all nodes, once what is on its way has come. */
async function atWork({ bench: { world }, nodes }: FakeCluster): Promise<number> {
  await passMs(world, 100)
  return [...nodes.values()].reduce((sum, { server }) => sum + server.requests, 0)
}

test('COST-4: the node ends a request made through a gateway when the client goes', async () => {
  const { cluster, gateways, client } = createGateways({ count: 1 })
  const log = (shard: number): Promise<unknown> =>
    client.cells('trips').shardLog(shard, { waitMs: 20_000 })
  const waits = [1, 2, 3].map((shard) => log(shard).catch(() => undefined))
  expect(await atWork(cluster)).toBe(3)
  void client.close()
  await settled(cluster.bench.world, Promise.all(waits))
  expect(await atWork(cluster)).toBe(0)
  expect(gateways[0]?.relay.calls).toBe(0)
})

test('COST-4: a cancel of a finished or unknown request changes nothing', async () => {
  const cluster = createCluster({ names: ['n1'] })
  const { process } = cluster.clockOf('odd')
  const transport = cluster.network.attach(process, ['n1'])
  const answers: number[] = []
  transport.start({
    self: () => ({}),
    admit: () => undefined,
    onRefused: () => undefined,
    onLink: () => undefined,
    onFrame: (_, frame) => {
      if (frame.kind === 'responses') answers.push(...frame.responses.map(({ id }) => id))
    },
  })
  await passMs(cluster.bench.world, 100)
  const send = (id: number, operation: Operation): void => {
    transport.send('n1', { kind: 'requests', requests: [{ id, timeoutMs: 5_000, operation }] })
  }
  send(1, { kind: 'status' })
  await passMs(cluster.bench.world, 100)
  for (const [nth, request] of [1, 2, 900, 4_000_000].entries()) {
    send(nth + 2, { kind: 'cancel', request })
  }
  await passMs(cluster.bench.world, 100)
  send(10, { kind: 'status' })
  await passMs(cluster.bench.world, 100)
  expect(answers).toEqual([1, 10])
  expect(await atWork(cluster)).toBe(0)
})

test('intents that do not fit their writes are refused before anything is sent', async () => {
  const { cluster, gateways } = createGateways({ count: 1 })
  const relay = gateways[0]?.relay
  const intents = { session: 's', sequences: [1, 2], floor: 1, expiresAt: 1 }
  const items = [{ ...base, body: Buffer.from([1]) }]
  const put = relay?.execute(
    { kind: 'put', datastore: 'trips', items },
    { timeoutMs: 100, intents },
  )
  const answered = await settled(cluster.bench.world, put ?? Promise.reject(new Error()))
  expect(answered.answer).toMatchObject({ kind: 'problem', problem: { code: 'invalid' } })
  expect(cluster.bench.log.entryCount()).toBe(0)
})

test('a gateway takes the cluster of the first node that proves itself, and no other', () => {
  let handlers: TransportHandlers<ClientFrame> | undefined
  const transport: Transport<ClientFrame> = {
    ...{ start: (given) => void (handlers = given), send: () => false, isUp: () => false },
    close: () => Promise.resolve(),
  }
  const known: string[] = []
  const links = new OneCluster(transport, undefined)
  links.onKnown = (cluster) => known.push(cluster)
  links.start({
    ...{ self: () => ({}), admit: () => undefined, onRefused: () => undefined },
    ...{ onLink: () => undefined, onFrame: () => undefined },
  })
  const admit = (cluster: string): string | undefined =>
    handlers?.admit('http://x', { node: nodeId('a'), cluster })
  expect([admit('one'), admit('two'), admit('one')]).toEqual([
    undefined,
    expect.stringContaining('this gateway serves cluster one, the node belongs to two'),
    undefined,
  ])
  expect([known, links.cluster]).toEqual([['one'], 'one'])
})

test('GATE-2: bodies of requests are bounded together, and give their room back', async () => {
  const { ask, app, bench } = createGatewayBench({ bodies: new BodyRoom(1_000) })
  const path = `/cells/${base.rowKey}/BASE/`
  const large = JSON.stringify('x'.repeat(900))
  let release = (): void => undefined
  const held = new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(Buffer.from(large))
      release = () => controller.close()
    },
  })
  const init = { method: 'PUT', body: held, duplex: 'half' } as const
  const holding = Promise.resolve(app.request(`/v1/datastores/trips${path}0`, init))
  await new Promise((resolve) => setImmediate(resolve))
  const refused = await ask('PUT', `${path}1`, { body: large })
  expect(refused).toMatchObject({ status: 503, body: { code: 'overloaded' } })
  expect(await ask('PUT', `${path}2`, { body: '1' })).toMatchObject({ status: 201 })
  release()
  expect(await settled(bench.world, holding)).toMatchObject({ status: 201 })
  expect(await ask('PUT', `${path}3`, { body: large })).toMatchObject({ status: 201 })
})
