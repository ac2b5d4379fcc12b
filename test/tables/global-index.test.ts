/** Global indexes: what changes of rows bring into them, whatever overtakes what. */
import { expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { desc, table } from '../../schema/table.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { StoreError } from '../../src/base/errors.ts'
import { decodeEntryState, indexWorklist } from '../../src/tables/index-worklist.ts'
import { globalBench, type RelayNode } from './global-bench.ts'

const User = table('User', { user: t.integer(), name: t.string() }).key('user').root()
const Photo = table('Photo', {
  user: t.integer(),
  photo: t.sequence(),
  city: t.string(),
  at: t.integer(),
  note: t.string().optional(),
  tag: t.string().repeated(),
  exif: t.message({ camera: t.string().optional() }).optional(),
})
  .key('user', 'photo')
  .in(User)
  .globalIndex('PhotosByCity', ['city', desc('at')], { storing: ['note'], shards: 4 })
  .globalIndex('PhotosByTag', ['tag'], { shards: 8, spread: 3 })
  .globalIndex('PhotosByCamera', ['exif.camera', 'at'], {
    shardBy: 'exif.camera',
    wherePresent: true,
  })
const photos = defineSchema('Photos', [User, Photo])

function of(user: number): ReturnType<typeof rootKey> {
  return rootKey(User, { user })
}

function worklistOf({ replica }: RelayNode, group: Parameters<typeof replica.scan>[0]) {
  return replica.scan(group, indexWorklist)
}

test('IDX-1: entries of many groups come into one index, in its order, and follow every change', async () => {
  const { node, open, run, rest } = globalBench()
  const n1 = node('n1')
  n1.relay.start()
  const db = open(photos, n1)
  for (const [user, city, at] of [
    [1, 'Rome', 5],
    [2, 'Rome', 9],
    [3, 'Oslo', 1],
    [1, 'Rome', 7],
  ] as const) {
    const tag = ['x', 'x', `t${user}`]
    const exif = user === 3 ? {} : { camera: 'K1' }
    await run(db.transaction(of(user), (tx) => tx.insert(Photo, { user, city, at, tag, exif })))
  }
  await rest()
  const rome = await run(db.index(Photo, 'PhotosByCity', { city: 'Rome' }))
  expect(rome.items.map(({ user, at }) => [user, at])).toEqual([
    [2, 9],
    [1, 7],
    [1, 5],
  ])
  expect((await run(rome.rows(0, 1))).map(({ user, tag }) => [user, tag])).toEqual([
    [2, ['x', 'x', 't2']],
  ])
  const since = await run(db.index(Photo, 'PhotosByCity', { city: 'Rome', at: { gte: 7 } }))
  expect(since.items).toHaveLength(2)
  expect((await run(db.index(Photo, 'PhotosByTag', { tag: 'x' }))).items).toHaveLength(4)
  expect((await run(db.index(Photo, 'PhotosByCamera', { 'exif.camera': 'K1' }))).items).toEqual([
    { user: 1, photo: 1, 'exif.camera': 'K1', at: 5 },
    { user: 1, photo: 2, 'exif.camera': 'K1', at: 7 },
    { user: 2, photo: 1, 'exif.camera': 'K1', at: 9 },
  ])
  // The shard property, an element, what is stored; and a row that goes.
  await run(
    db.transaction(of(1), async (tx) => {
      await tx.update(Photo, { user: 1, photo: 1 }, { city: 'Oslo', tag: ['t1'] })
      await tx.update(Photo, { user: 1, photo: 2 }, { note: 'old bridge' })
    }),
  )
  await run(db.transaction(of(2), (tx) => tx.delete(Photo, { user: 2, photo: 1 })))
  await rest()
  expect((await run(db.index(Photo, 'PhotosByCity', { city: 'Rome' }))).items).toEqual([
    { user: 1, photo: 2, city: 'Rome', at: 7, note: 'old bridge' },
  ])
  const all = await run(db.index(Photo, 'PhotosByCity', {}))
  expect(all.items.map(({ city, at }) => `${city} ${at}`)).toEqual(['Oslo 5', 'Oslo 1', 'Rome 7'])
  const tagged = await run(db.index(Photo, 'PhotosByTag', { tag: 'x' }))
  expect(tagged.items.map(({ user, photo }) => [user, photo])).toEqual([
    [1, 2],
    [3, 1],
  ])
  for (const user of [1, 2, 3]) expect(await worklistOf(n1, db.group(of(user)))).toEqual([])
})

test('IDX-1: the last of several changes before a relay holds, and none leaves an entry', async () => {
  const { node, open, run, rest } = globalBench()
  const n1 = node('n1')
  const db = open(photos, n1)
  const row = { user: 1, at: 1, tag: [] }
  await run(db.transaction(of(1), (tx) => tx.insert(Photo, { ...row, city: 'A' })))
  n1.relay.start()
  await rest()
  await run(n1.relay.stop())
  for (const city of ['B', 'C', 'A', 'D']) {
    await run(db.transaction(of(1), (tx) => tx.update(Photo, { user: 1, photo: 1 }, { city })))
  }
  expect((await run(db.index(Photo, 'PhotosByCity', {}))).items.map(({ city }) => city)).toEqual([
    'A',
  ])
  const other = node('n2')
  await run(other.replica.read(db.group(of(1)), 'current', 1_000))
  other.relay.start()
  await rest()
  expect((await run(db.index(Photo, 'PhotosByCity', {}))).items.map(({ city }) => city)).toEqual([
    'D',
  ])
})

test('IDX-2: a verified read and the rows of any read leave out what fits no more', async () => {
  const { node, open, run, rest } = globalBench()
  const n1 = node('n1')
  n1.relay.start()
  const db = open(photos, n1)
  for (const user of [1, 2, 3]) {
    const row = { user, city: 'Rome', at: user, tag: [] }
    await run(db.transaction(of(user), (tx) => tx.insert(Photo, row)))
  }
  await rest()
  await run(n1.relay.stop())
  await run(
    db.transaction(of(2), (tx) => tx.update(Photo, { user: 2, photo: 1 }, { city: 'Oslo' })),
  )
  await run(db.transaction(of(3), (tx) => tx.update(Photo, { user: 3, photo: 1 }, { note: 'n' })))
  const query = { city: 'Rome' }
  const plain = await run(db.index(Photo, 'PhotosByCity', query))
  expect(plain.items.map(({ user, note }) => [user, note])).toEqual([
    [3, undefined],
    [2, undefined],
    [1, undefined],
  ])
  expect((await run(plain.rows())).map(({ user, note }) => [user, note])).toEqual([
    [3, 'n'],
    [1, undefined],
  ])
  const verified = await run(db.index(Photo, 'PhotosByCity', query, { verify: true }))
  expect(verified.items.map(({ user, note }) => [user, note])).toEqual([
    [3, 'n'],
    [1, undefined],
  ])
})

test.each([1, 2, 3])(
  'IDX-4: a relay that slept before its step %i puts no older change over a newer one',
  async (step) => {
    const { node, open, run, rest, world } = globalBench()
    const [slow, quick] = [node('n1'), node('n2')]
    const db = open(photos, quick)
    const row = { user: 1, city: 'A', at: 1, tag: [] }
    await run(db.transaction(of(1), (tx) => tx.insert(Photo, row)))
    await run(slow.replica.read(db.group(of(1)), 'current', 1_000))
    const { replica } = slow
    const read = replica.read.bind(replica)
    let steps = 0
    replica.read = async (...asked) => {
      steps += 1
      if (steps === step) {
        // Meanwhile the row goes, and the other relay says so to the index.
        await db.transaction(of(1), (tx) => tx.delete(Photo, { user: 1, photo: 1 }))
        quick.relay.start()
        await world.sleep(5_000_000)
      }
      return read(...asked)
    }
    slow.relay.start()
    for (let i = 0; i < 5; i++) await rest()
    expect(steps).toBeGreaterThan(step)
    expect((await run(db.index(Photo, 'PhotosByCity', {}))).items).toEqual([])
  },
)

test('IDX-4: a relay whose replica is behind with the rows, and not with the index, asks', async () => {
  const { node, open, run, rest } = globalBench()
  const [behind, quick] = [node('n1'), node('n2')]
  const db = open(photos, quick)
  const row = { user: 1, city: 'A', at: 1, tag: [] }
  await run(db.transaction(of(1), (tx) => tx.insert(Photo, row)))
  const [change] = await worklistOf(quick, db.group(of(1)))
  if (change === undefined) throw new Error('the entry is on the worklist')
  behind.replica.catchUp(db.group(of(1)))
  behind.replica.isBehind = true
  await run(db.transaction(of(1), (tx) => tx.delete(Photo, { user: 1, photo: 1 })))
  quick.relay.start()
  await rest()
  behind.replica.catchUp(decodeEntryState(change).target)
  behind.relay.start()
  await rest()
  expect((await run(db.index(Photo, 'PhotosByCity', {}))).items).toEqual([])
})

test('IDX-3: the lag is the time from a commit to its entry', async () => {
  const { node, open, run, rest, world } = globalBench()
  const n1 = node('n1')
  const db = open(photos, n1)
  const row = { user: 1, city: 'A', at: 1, tag: [] }
  await run(db.transaction(of(1), (tx) => tx.insert(Photo, row)))
  await run(world.sleep(700_000))
  n1.relay.start()
  await rest()
  const { relayed, lagP50Ms = 0, failures } = n1.relay.figures
  expect({ relayed, failures }).toEqual({ relayed: 1, failures: 0 })
  expect(lagP50Ms).toBeGreaterThan(700)
  expect(lagP50Ms).toBeLessThan(720)
})

test('pages of a spread index join up, from either end', async () => {
  const { node, open, run, rest } = globalBench()
  const n1 = node('n1')
  n1.relay.start()
  const db = open(photos, n1)
  for (let user = 1; user <= 7; user++) {
    const row = { user, city: 'A', at: 1, tag: ['hot'] }
    await run(db.transaction(of(user), (tx) => tx.insert(Photo, row)))
  }
  await rest()
  for (const reverse of [false, true]) {
    const users: number[] = []
    for (let cursor: string | undefined; ;) {
      const options = { limit: 2, reverse, ...(cursor !== undefined && { cursor }) }
      const page = await run(db.index(Photo, 'PhotosByTag', { tag: 'hot' }, options))
      users.push(...page.items.map(({ user }) => user))
      cursor = page.cursor
      if (cursor === undefined) break
    }
    const all = [1, 2, 3, 4, 5, 6, 7]
    expect(users).toEqual(reverse ? all.toReversed() : all)
  }
})

test('a query that an index cannot answer is refused in words', async () => {
  const { node, open, run } = globalBench()
  const db = open(photos, node('n1'))
  await expect(run(db.index(Photo, 'PhotosByCity', { city: 'A' }, { limit: 0 }))).rejects.toThrow(
    'limit is 0; expected a whole number from 1 to 1000',
  )
  await expect(
    run(db.index(Photo, 'PhotosByCity', { city: 'A' }, { cursor: 'zz' })),
  ).rejects.toThrow('this cursor is of another scan')
})

test('IDX-5: a change that comes while the one before is relayed stays on the worklist', async () => {
  const { node, open, run, rest } = globalBench()
  const n1 = node('n1')
  const db = open(photos, n1)
  const row = { user: 1, city: 'A', at: 1, tag: [] }
  await run(db.transaction(of(1), (tx) => tx.insert(Photo, row)))
  const [change] = await worklistOf(n1, db.group(of(1)))
  expect(change).toBeDefined()
  // Between the look at the worklist and the reading of what it says, the entry goes.
  n1.replica.afterScan.push(() =>
    db.transaction(of(1), (tx) => tx.delete(Photo, { user: 1, photo: 1 })),
  )
  n1.relay.start()
  await rest()
  expect(await worklistOf(n1, db.group(of(1)))).toEqual([])
  expect((await run(db.index(Photo, 'PhotosByCity', {}))).items).toEqual([])
})

test('IDX-1: changes that are too large for one transaction together come into the index in several', async () => {
  const { node, open, run, rest } = globalBench()
  const n1 = node('n1')
  const db = open(photos, n1)
  const row = { user: 1, city: 'A', tag: [], note: 'x'.repeat(60_000) }
  for (let part = 0; part < 3; part++) {
    await run(
      db.transaction(of(1), async (tx) => {
        for (let at = 0; at < 30; at++) await tx.insert(Photo, { ...row, at })
      }),
    )
  }
  await run(db.transaction(of(2), (tx) => tx.insert(Photo, { ...row, user: 2, at: 1 })))
  n1.relay.start()
  await rest()
  const { relayed, failures } = n1.relay.figures
  expect({ relayed, failures }).toEqual({ relayed: 91, failures: 0 })
  for (const user of [1, 2]) expect(await worklistOf(n1, db.group(of(user)))).toEqual([])
  const page = await run(db.index(Photo, 'PhotosByCity', { city: 'A' }))
  expect(page.items).toHaveLength(91)
})

test('rows of a page have time of their own, however long the page was at work', async () => {
  const { node, open, run, rest, world } = globalBench()
  const n1 = node('n1')
  n1.relay.start()
  const db = open(photos, n1)
  const row = { user: 1, city: 'Rome', at: 1, tag: [] }
  await run(db.transaction(of(1), (tx) => tx.insert(Photo, row)))
  await rest()
  const options = { timeoutMs: 1_000 }
  const page = await run(db.index(Photo, 'PhotosByCity', { city: 'Rome' }, options))
  for (let call = 0; call < 2; call++) {
    await run(world.sleep(1_500_000))
    expect(await run(page.rows())).toHaveLength(1)
  }
  n1.replica.isCutOff = true
  const fromMs = n1.clock.monotonicMs()
  await expect(run(page.rows())).rejects.toMatchObject({ code: 'unavailable' })
  expect(n1.clock.monotonicMs() - fromMs).toBeCloseTo(1_000, -1)
})

const Item = table('Item', { item: t.integer(), price: t.double(), weight: t.float() })
  .key('item')
  .root()
  .globalIndex('ItemsByPrice', ['price'], { shards: 64 })
  .globalIndex('ItemsByWeight', ['weight'], { shards: 64 })

test('a query finds the entries of its value whichever zero it names', async () => {
  const { node, open, run, rest } = globalBench()
  const n1 = node('n1')
  n1.relay.start()
  const db = open(defineSchema('Items', [Item]), n1)
  for (const [item, zero] of [0, -0].entries()) {
    const row = { item, price: zero, weight: zero }
    await run(db.transaction(rootKey(Item, { item }), (tx) => tx.insert(Item, row)))
  }
  await rest()
  for (const zero of [0, -0]) {
    const byPrice = await run(db.index(Item, 'ItemsByPrice', { price: zero }))
    const byWeight = await run(db.index(Item, 'ItemsByWeight', { weight: zero }))
    expect([byPrice, byWeight].map(({ items }) => items.map(({ item }) => item))).toEqual([
      [0, 1],
      [0, 1],
    ])
  }
})

test('a row that clients have put where changes of indexes are is unreadable, and no bug', () => {
  const value = Buffer.alloc(2_000)
  for (const groupBytes of [0, 1_025, 1_999]) {
    value.set([1, 1, groupBytes >> 8, groupBytes & 0xff])
    expect(() => decodeEntryState({ key: indexWorklist.gte, value })).toThrow(StoreError)
  }
})

const Ticket = table('Ticket', {
  user: t.integer(),
  ticket: t.int32(),
  owner: t.string().optional(),
  at: t.integer(),
})
  .key('user', 'ticket')
  .in(User)
  .globalIndex('TicketsByOwner', ['owner', 'at'], { shards: 8 })
const tickets = defineSchema('Tickets', [User, Ticket])

test('IDX-1: rows without a part are in a global index, and null asks for them', async () => {
  const { node, open, run, rest } = globalBench()
  const n1 = node('n1')
  n1.relay.start()
  const db = open(tickets, n1)
  const put = (user: number, at: number, owner?: string) =>
    run(
      db.transaction(of(user), (tx) =>
        tx.put(Ticket, { user, ticket: 1, at, ...(owner !== undefined && { owner }) }),
      ),
    )
  await put(1, 7)
  await put(2, 3)
  await put(3, 5, 'ann')
  await rest()
  const ask = async (query: object): Promise<readonly number[]> =>
    (await run(db.index(Ticket, 'TicketsByOwner', query))).items.map(({ user }) => user)
  expect(await ask({ owner: null })).toEqual([2, 1])
  expect(await ask({ owner: null, at: { gte: 4 } })).toEqual([1])
  expect(await ask({})).toEqual([2, 1, 3])
  expect(await ask({ owner: { gte: '' } })).toEqual([3])
  // It is assigned, and leaves those that no node has.
  await put(2, 3, 'bob')
  await rest()
  expect(await ask({ owner: null })).toEqual([1])
  expect(await ask({ owner: 'bob' })).toEqual([2])
})

test('a global index is not read in a group: the error names the call that reads it', async () => {
  const { node, open, run } = globalBench()
  const db = open(photos, node('n1'))
  const name: string = 'PhotosByCity'
  const asked = db.read(of(1), 'current', async (rows) => {
    const page: unknown = await Reflect.apply(rows.index, rows, [Photo, name, { city: 'Rome' }])
    return page
  })
  await expect(run(asked)).rejects.toMatchObject({
    code: 'invalid',
    message: 'table Photo: index "PhotosByCity" is global; db.index(…) reads it, over all groups',
  })
})
