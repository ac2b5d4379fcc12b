import { expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import type { Key } from '../../schema/infer.ts'
import { table } from '../../schema/table.ts'
import { t } from '../../schema/property.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import { keyBytesMax } from '../../src/base/limits.ts'
import { openTables } from '../../src/tables/open.ts'
import { rootKey } from '../../src/tables/tables.ts'
import type { GroupTransaction } from '../../src/tables/types.ts'
import type { ReadFrom } from '../../src/group/group-port.ts'
import { runRead, type ReadHandle } from '../../src/txn/run-read.ts'
import { prefixRange } from '../../src/txn/key-range.ts'
import { rowKey, settled } from '../cells/kit.ts'
import { createCluster, type ClusterOptions } from './cluster.ts'

const base = { rowKey: rowKey(4), column: 'BASE', refKey: 0 }
const group = groupOfBytes(Buffer.from('g'))
const User = table('User', { user: t.integer() }).key('user').root()
const Photo = table('Photo', { user: t.integer(), name: t.string() }).key('user', 'name').in(User)
const photos = defineSchema('Photos', [User, Photo])
const current = { kind: 'current' } as const

function createCase(options: ClusterOptions = {}) {
  const cluster = createCluster(options)
  const { world } = cluster.bench
  const client = cluster.client()
  const { clock } = cluster.clockOf('reader')
  const read = (from: ReadFrom, run: (rows: ReadHandle) => Promise<unknown>, atLeast?: number) =>
    runRead(client.groups, group, from, { clock, atLeast }, run)
  const refused = (promise: Promise<unknown>, code = 'invalid'): Promise<void> =>
    expect(settled(world, promise)).rejects.toMatchObject({ code })
  return { cluster, world, client, clock, read, refused }
}

test('the client refuses invalid reads of groups, logs and queues without a request', async () => {
  const { cluster, client, read, refused } = createCase()
  const { groups } = client
  const key = Buffer.from('k')
  for (const timestamp of [1.5, -1, Number.NaN]) {
    await refused(read({ kind: 'at', timestamp }, (rows) => rows.get(key)))
  }
  await refused(read(current, (rows) => rows.get(key), 1.5))
  for (const limit of [0, 1.5]) {
    await refused(read(current, (rows) => rows.scan({ ...prefixRange(key), limit })))
    await refused(client.queues.waiting('work', limit))
  }
  const long = Buffer.alloc(keyBytesMax + 1)
  await refused(
    read(current, (rows) => rows.get(long)),
    'too-large',
  )
  const lt = Buffer.alloc(keyBytesMax + 2)
  await refused(
    read(current, (rows) => rows.scan({ gte: key, lt })),
    'too-large',
  )
  await refused(groups.list(group, undefined, 0, 1_000))
  await refused(groups.outcome(group, { session: 'x'.repeat(257), sequence: 1 }, 1_000))
  await refused(groups.outcome(group, { session: 'x', sequence: 0.5 }, 1_000))
  await refused(client.cells('trips').shardLog(0, { waitMs: 0.5 }))
  await refused(
    client
      .cells('trips')
      .tail({ shards: [0], waitMs: 0.5 })
      .next(),
  )
  await refused(client.status(Number.NaN))
  expect(cluster.frames).toHaveLength(0)
})

test('a lock whose name is too long is refused, and a part of a millisecond is a whole one', async () => {
  const { client, world, refused, cluster } = createCase()
  const lock = { name: 'x'.repeat(257), holdMs: 1_000, waitMs: 500 }
  await refused(client.groups.withLock(group, lock, () => Promise.resolve()))
  expect(cluster.frames).toHaveLength(0)
  const asked = { name: 'x', holdMs: 0.5, waitMs: 0.25 }
  expect(
    await settled(
      world,
      client.groups.withLock(group, asked, async () => 1),
    ),
  ).toBe(1)
  const operations = cluster.frames.flatMap(({ frame }) =>
    frame.kind === 'requests' ? frame.requests.map(({ operation }) => operation) : [],
  )
  expect(operations).toMatchObject([{ kind: 'lock-group', holdMs: 1, waitMs: 1 }])
})

test('a typed read at an invalid time or by an impossible key fails without a request', async () => {
  const { client, clock, cluster, world, refused } = createCase()
  const { random } = cluster.bench
  const db = openTables(photos, client.groups, { clock, random, locks: client.groups })
  const key = rootKey(User, { user: 1 })
  const photo = (name: string): Key<typeof Photo> => ({ user: 1, name })
  await refused(db.read(key, { at: 1.5 }, (rows) => rows.get(Photo, photo('a'))))
  const long = photo('x'.repeat(2_000))
  await refused(
    db.read(key, 'current', (rows) => rows.get(Photo, long)),
    'too-large',
  )
  expect(cluster.frames).toHaveLength(0)
  const options = { lock: 'hot', timeoutMs: 1_000.5 }
  const read = db.transaction(key, (tx) => tx.get(Photo, photo('a')), options)
  expect(await settled(world, read)).toMatchObject({ value: undefined, runs: 1 })
})

test('a request that cannot be read is refused, and the others on its link are answered', async () => {
  const { client, world, refused } = createCase({ names: ['n1'] })
  const cells = client.cells('trips')
  const wrong = cells.index('x'.repeat(300)).query({ city: 'a' }, { timeoutMs: 2_000 })
  const writing = cells.put({ ...base, body: 1 })
  await refused(wrong)
  expect(await settled(world, writing)).toMatchObject({ created: true })
})

test('a function that never ends is given up in its time, and so is its handle', async () => {
  const { client, clock, cluster, world } = createCase()
  const { random } = cluster.bench
  const db = openTables(photos, client.groups, { clock, random, isBounded: true })
  const key = rootKey(User, { user: 1 })
  const never = (): Promise<never> => new Promise(() => undefined)
  const timeout = { code: 'timeout', message: expect.stringContaining('in its time, 500 milli') }
  let handle: GroupTransaction<typeof photos.tables> | undefined
  const writing = db.transaction(
    key,
    async (tx) => {
      handle = tx
      await tx.put(User, { user: 1 })
      return never()
    },
    { timeoutMs: 500 },
  )
  await expect(settled(world, writing)).rejects.toMatchObject(timeout)
  const late = handle?.put(User, { user: 2 })
  await expect(late).rejects.toMatchObject({ code: 'closed' })
  const reading = db.read(key, 'current', never, { timeoutMs: 500 })
  await expect(settled(world, reading)).rejects.toMatchObject(timeout)
  const { value } = await settled(
    world,
    db.read(key, 'current', (rows) => rows.get(User, { user: 1 })),
  )
  expect(value).toBeUndefined()
})

test('a moment is given as a Date, in rows, keys, ranges and reads of the past', async () => {
  const { client, clock, cluster, world } = createCase()
  const { random } = cluster.bench
  const Visit = table('Visit', { user: t.integer(), at: t.timestamp(), left: t.timestamp() })
    .key('user', 'at')
    .in(User)
    .localIndex('VisitsByEnd', ['user', 'left'])
  const visits = defineSchema('Visits', [User, Visit])
  const db = openTables(visits, client.groups, { clock, random })
  const key = rootKey(User, { user: 1 })
  const [at, left] = [new Date('2026-01-31T08:30:00.001Z'), new Date('2026-01-31T09:00:00Z')]
  const row = { user: 1, at: at.getTime() * 1000, left: left.getTime() * 1000 }
  await settled(
    world,
    db.transaction(key, (tx) => tx.put(Visit, { user: 1, at, left: BigInt(row.left) })),
  )
  const { value } = await settled(
    world,
    db.read(key, 'current', async (rows) => [
      await rows.get(Visit, { user: 1, at }),
      (await rows.scan(Visit, { user: 1, at: { gte: at, lt: left } })).items,
      (await rows.index(Visit, 'VisitsByEnd', { user: 1, left })).items.length,
    ]),
  )
  expect(value).toEqual([row, [row], 1])
  const wrong = db.transaction(key, (tx) => tx.put(Visit, { user: 1, at: at.getTime(), left }))
  await expect(settled(world, wrong)).rejects.toThrow(
    'table Visit: at is 1769848200001, which looks',
  )
  const past = db.read(key, { at: at.getTime() }, async () => 1)
  await expect(settled(world, past)).rejects.toThrow('db.read: at is 1769848200001, which looks')
  const none = db.read(key, 'current', (rows) => rows.scan(Visit, { user: 1, at: {} }))
  await expect(settled(world, none)).rejects.toThrow('table Visit: the range of at is empty')
  // @ts-expect-error -- what is named has a value
  const unnamed = db.read(key, 'current', (r) => r.scan(Visit, { user: 1, at: { gte: undefined } }))
  await expect(settled(world, unnamed)).rejects.toThrow('gte is named, and its value is undefined')
})
