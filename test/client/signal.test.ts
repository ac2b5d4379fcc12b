/**
 * Calls that a caller gives up by a signal. The client does not send a request that had not left, and says of
 * a write that it may have happened.
 */
import { expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { asPromise } from '../../src/base/as-promise.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import { cellVersion } from '../../src/cells/cell-table.ts'
import { queue } from '../../src/tables/queue-types.ts'
import { rootKey, type Tables } from '../../src/tables/tables.ts'
import { rowKey, settled } from '../cells/kit.ts'
import { createCluster, servingNode, type FakeCluster } from './cluster.ts'

const base = { rowKey: rowKey(4), column: 'BASE', refKey: 0 }
const User = table('User', { user: t.string(), n: t.int32() }).key('user').root()
const users = defineSchema('Users', [User])
const ann = rootKey(User, { user: 'ann' })
const cellSchema = cellVersion.schema
const ofAnn = groupOfBytes(Buffer.from('ann'))
const index = {
  ...{ table: 'by_city', datastore: 'trips' },
  column_defs: [{ column_key: 'BASE', fields: [{ field: 'city', type: 'string' }] }],
}

/** Aborted after 50 ms of the world. */
function soon({ bench: { world } }: FakeCluster): AbortSignal {
  const controller = new AbortController()
  void world.sleep(50_000).then(() => controller.abort(new Error('the page was left')))
  return controller.signal
}

/** The code with which a call ends that is given up, and after how many milliseconds. */
async function ending(
  { bench: { world } }: FakeCluster,
  call: Promise<unknown>,
): Promise<{ readonly code: unknown; readonly isSoon: boolean; readonly cause?: unknown }> {
  const began = world.nowMicros
  const error: unknown = await settled(
    world,
    call.then(
      () => undefined,
      (one: unknown) => one,
    ),
  )
  if (!(error instanceof Error)) throw new Error('the call did its work')
  const code: unknown = Reflect.get(error, 'code')
  return { code, isSoon: world.nowMicros - began < 80_000, cause: error.cause }
}

const closed = { code: 'closed', isSoon: true, cause: new Error('the page was left') }
const unknown = { code: 'unknown-outcome', isSoon: true }

async function opened(cluster: FakeCluster): Promise<Tables> {
  const client = cluster.client({}, 'tables')
  const { world } = cluster.bench
  await settled(world, client.applySchema(users.model))
  return settled(world, client.tables(users))
}

test('a call whose signal is aborted sends nothing', async () => {
  const cluster = createCluster()
  const client = cluster.client()
  const { world } = cluster.bench
  await settled(world, client.cells('trips').put({ ...base, body: 1 }))
  const db = await opened(cluster)
  const signal = AbortSignal.abort(new Error('the page was left'))
  const before = cluster.frames.length
  const cells = client.cells('trips')
  for (const call of [
    () => cells.get(base, { signal }),
    () => cells.put({ ...base, refKey: 1, body: 1 }, { signal }),
    () => cells.shardLog(1, { signal }),
    () => cells.tail({ signal }).next(),
    () => db.transaction(ann, (tx) => tx.put(User, { user: 'ann', n: 1 }), { signal }),
    () => db.read(ann, 'current', (rows) => rows.get(User, { user: 'ann' }), { signal }),
    () => client.tables(users, { signal }),
    () => client.applySchema(users.model, { signal }),
  ]) {
    expect(await ending(cluster, call())).toEqual(closed)
  }
  expect(cluster.frames.slice(before).filter(({ from }) => from === 'client')).toEqual([])
})

test('an abort ends an unanswered read at once', async () => {
  const cluster = createCluster()
  const client = cluster.client()
  const { world } = cluster.bench
  await settled(world, client.cells('trips').put({ ...base, body: 1 }))
  const db = await opened(cluster)
  for (const name of ['n1', 'n2']) {
    for (const of of ['client', 'tables']) cluster.weather.cut(name, of)
  }
  const signal = soon(cluster)
  expect(await ending(cluster, client.cells('trips').get(base, { signal }))).toEqual(closed)
  const read = db.read(ann, 'current', (rows) => rows.get(User, { user: 'ann' }), {
    signal: soon(cluster),
  })
  expect(await ending(cluster, read)).toEqual(closed)
})

test('a write that is under way may have been carried out, and says so', async () => {
  const cluster = createCluster()
  const client = cluster.client()
  const { world } = cluster.bench
  const cells = client.cells('trips')
  await settled(world, cells.put({ ...base, body: 1 }))
  const db = await opened(cluster)
  // Requests go out, and answers do not come.
  for (const name of ['n1', 'n2']) {
    for (const of of ['client', 'tables']) cluster.weather.cut(name, of)
  }
  const put = cells.put({ ...base, refKey: 1, body: 1 }, { signal: soon(cluster) })
  expect(await ending(cluster, put)).toMatchObject(unknown)
  const blind = db.transaction(ann, (tx) => tx.put(User, { user: 'ann', n: 1 }), {
    signal: soon(cluster),
  })
  expect(await ending(cluster, blind)).toMatchObject(unknown)
})

test('a function that never ends is given up with its call, and writes nothing after that', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const db = await opened(cluster)
  let late: Promise<unknown> | undefined
  const call = db.transaction(
    ann,
    async (tx) => {
      await world.sleep(500_000)
      late = tx.put(User, { user: 'ann', n: 1 })
      await late
    },
    { signal: soon(cluster) },
  )
  expect(await ending(cluster, call)).toEqual(closed)
  await settled(world, world.sleep(1_000_000))
  await expect(late).rejects.toMatchObject({ code: 'closed' })
  const { value } = await settled(
    world,
    db.read(ann, 'current', (rows) => rows.get(User, { user: 'ann' })),
  )
  expect(value).toBeUndefined()
})

test('the node of a poll that is given up hears of it', async () => {
  const cluster = createCluster()
  const client = cluster.client()
  const { world } = cluster.bench
  await servingNode(cluster, client)
  const poll = client.cells('trips').shardLog(1, { waitMs: 20_000, signal: soon(cluster) })
  expect(await ending(cluster, poll)).toEqual(closed)
  await settled(world, world.sleep(10_000))
  const asked = cluster.frames.flatMap(({ frame }) =>
    frame.kind === 'requests' ? frame.requests : [],
  )
  expect(asked.at(-1)).toMatchObject({ operation: { kind: 'cancel' } })
  const tail = client.cells('trips').tail({ signal: soon(cluster) })
  expect(await ending(cluster, tail.next())).toEqual(closed)
})

test('a lock is given back when the call that holds it is given up', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const db = await opened(cluster)
  const forever = (): Promise<never> => new Promise(() => undefined)
  const call = db.transaction(ann, forever, { lock: 'hot', signal: soon(cluster) })
  expect(await ending(cluster, call)).toEqual(closed)
  const began = world.nowMicros
  const put = (tx: Parameters<Parameters<typeof db.transaction>[1]>[0]): Promise<void> =>
    tx.put(User, { user: 'ann', n: 1 })
  await settled(world, db.transaction(ann, put, { lock: 'hot' }))
  expect(world.nowMicros - began).toBeLessThan(500_000)
})

test('a purge that is under way may have been carried out, and says so', async () => {
  const cluster = createCluster()
  const client = cluster.client()
  const { world } = cluster.bench
  const cells = client.cells('trips')
  await settled(world, cells.put({ ...base, body: 1 }))
  for (const name of ['n1', 'n2']) cluster.weather.cut(name, 'client')
  const purge = cells.purgeShard(1, { before: new Date(), signal: soon(cluster) })
  expect(await ending(cluster, purge)).toMatchObject(unknown)
})

test('a function whose calls get no answer fails with their error, not for being slow', async () => {
  const cluster = createCluster()
  const db = await opened(cluster)
  for (const name of ['n1', 'n2']) cluster.weather.cut(name, 'tables')
  const read = db.read(ann, 'current', (rows) => rows.get(User, { user: 'ann' }), {
    timeoutMs: 3_000,
  })
  expect(await ending(cluster, read)).toMatchObject({ code: 'unavailable' })
  const slow = db.read(ann, 'current', () => new Promise(() => undefined), { timeoutMs: 3_000 })
  expect(await ending(cluster, slow)).toMatchObject({ code: 'timeout' })
})

test('a closed client ends its handlers, and begins no other one', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client()
  await settled(world, client.applySchema(users.model))
  const db = await settled(world, client.tables(users))
  const jobs = queue<number>()('jobs', User)
  db.consume(jobs, async () => undefined)
  await settled(world, client.close())
  expect(() => db.consume(jobs, async () => undefined)).toThrow('this client is closed')
  const before = cluster.frames.length
  await settled(world, world.sleep(5_000_000))
  expect(cluster.frames.length).toBe(before)
})

test('a queue to a table that the schema has not is refused at once', async () => {
  const cluster = createCluster()
  const db = await opened(cluster)
  const Other = table('Other', { other: t.string() }).key('other').root()
  expect(() => db.consume(queue<number>()('jobs', Other), async () => undefined)).toThrow(
    'schema Users has no table Other',
  )
})

test('operators give up what they look at, and nothing is sent once the signal is aborted', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client()
  await settled(world, client.applySchema(users.model))
  const letters = client.queues.deadLetters('Users.jobs')
  const intent = { session: 's', sequence: 1, expiresAt: 1 }
  const calls = (signal: AbortSignal): readonly (() => Promise<unknown>)[] => [
    () => client.status({ signal }),
    () => client.rejected('trips', { signal }).next(),
    () => client.groups.outcome(ofAnn, intent, 10_000, { signal }),
    () => client.groups.list(ofAnn, undefined, 10, 10_000, { signal }),
    () => client.queues.list({ signal }),
    () => client.queues.waiting('Users.jobs', 10, { signal }),
    () => letters.list(10, undefined, { signal }),
    () => letters.of(ofAnn, 10, undefined, { signal }),
    () => letters.redriveAll(undefined, { signal }),
    () => client.indexes('Users').list({ signal }),
    () => client.cells('trips').indexes.list({ signal }),
    () => client.cells('trips').indexes.apply(index, { signal }),
  ]
  // Without a signal each of them does its work.
  for (const call of calls(new AbortController().signal)) await settled(world, call())
  const before = cluster.frames.length
  const aborted = AbortSignal.abort(new Error('the page was left'))
  for (const call of [...calls(aborted), () => letters.redrive(ofAnn, [1], { signal: aborted })]) {
    expect(await ending(cluster, call()), call.toString()).toEqual(closed)
  }
  expect(cluster.frames.slice(before).filter(({ from }) => from === 'client')).toEqual([])
  for (const name of ['n1', 'n2']) cluster.weather.cut(name, 'client')
  for (const [place] of calls(aborted).entries()) {
    const call = calls(soon(cluster))[place]
    if (call === undefined) continue
    expect(await ending(cluster, call()), call.toString()).toMatchObject({ isSoon: true })
  }
  // The group has no such letters: nothing that may have been written is under way.
  const redrive = letters.redrive(ofAnn, [1], { signal: soon(cluster) })
  expect(await ending(cluster, redrive)).toEqual(closed)
})

test('a handler is stopped by its signal as by its stop', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const db = await opened(cluster)
  const jobs = queue<number>()('jobs', User)
  const handled: number[] = []
  const controller = new AbortController()
  const { signal } = controller
  const handling = db.consume(
    jobs,
    async (_, messages) => void handled.push(...messages.map(({ body }) => body)),
    { signal },
  )
  const send = (body: number): Promise<unknown> =>
    settled(
      world,
      db.transaction(ann, (tx) => tx.send(jobs, { user: 'ann' }, body)),
    )
  await send(1)
  await settled(world, world.sleep(20_000_000))
  expect(handled).toEqual([1])
  controller.abort(new Error('the page was left'))
  await send(2)
  const before = cluster.frames.length
  await settled(world, world.sleep(20_000_000))
  expect(handled).toEqual([1])
  expect(cluster.frames.length).toBe(before)
  await settled(world, handling.stop())
  expect(() => db.consume(jobs, async () => undefined, { signal })).toThrow(
    'given up by its signal',
  )
})

test('every call of a closed client fails, even one that would send no request', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const client = cluster.client()
  await settled(world, client.applySchema(users.model))
  const db = await settled(world, client.tables(users))
  const cells = client.cells('trips')
  await settled(world, client.close())
  let runs = 0
  const run = async (): Promise<number> => (runs += 1)
  for (const call of [
    () => db.transaction(ann, run),
    () => db.read(ann, 'current', run),
    () => db.of(ann).transaction(run, { lock: 'hot' }),
    () => db.of(ann).read('snapshot', run),
    () => client.groups.withLock(ofAnn, { name: 'hot', holdMs: 10, waitMs: 10 }, run),
    () => client.queues.deadLetters('Users.jobs').redrive(ofAnn, []),
    () => client.applySchema(cellSchema),
    () => client.indexes(cellSchema.name).list(),
    () => client.schemaVersion(cellSchema.name),
    () => cells.purge({ before: 1, shards: [1] }).next(),
    () => client.status(),
  ]) {
    await expect(settled(world, asPromise<unknown>(call)), call.toString()).rejects.toMatchObject({
      code: 'closed',
      message: 'this client is closed',
    })
  }
  expect(runs).toBe(0)
})
