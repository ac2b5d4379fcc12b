/** ON DELETE: what becomes of rows below one that is deleted. */
import { expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import type { OnDelete } from '../../schema/model.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { firstVersion, nextVersion, type SchemaVersion } from '../../schema/version.ts'
import { noLives } from '../../src/tables/index-life.ts'
import { cascadeRowsMax } from '../../src/tables/limits.ts'
import { SchemaWatch } from '../../src/tables/schema-watch.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { readMoment } from '../../src/time/moments.ts'
import { MemoryPort } from '../txn/memory-port.ts'
import { TestClock } from '../txn/test-ports.ts'
import { tablesBench } from './bench.ts'

const User = table('User', { user: t.int32() }).key('user').root()
const Album = table('Album', { user: t.int32(), album: t.int32() })
  .key('user', 'album')
  .in(User, { onDelete: 'cascade' })
const Photo = table('Photo', {
  user: t.int32(),
  album: t.int32(),
  photo: t.int32(),
  tag: t.string(),
})
  .key('user', 'album', 'photo')
  .in(Album, { onDelete: 'cascade' })
  .localIndex('ByTag', ['tag'])
  .globalIndex('EveryTag', ['tag'])
const Login = table('Login', { user: t.int32(), number: t.sequence() })
  .key('user', 'number')
  .childOf(User, { onDelete: 'cascade' })
const Order = table('Order', { user: t.int32(), album: t.int32(), order: t.int32() })
  .key('user', 'album', 'order')
  .in(Album)
const Note = table('Note', { user: t.int32(), note: t.int32() })
  .key('user', 'note')
  .in(User, { onDelete: 'keep' })
const schema = defineSchema('Albums', [User, Album, Photo, Login, Order, Note])
const one = rootKey(User, { user: 1 })

type Bench = ReturnType<typeof filled>

function filled(): Pick<ReturnType<typeof tablesBench<typeof schema.tables>>, 'db' | 'port'> {
  return tablesBench(schema)
}

async function fill({ db }: Bench): Promise<void> {
  await db.transaction(one, async (tx) => {
    await tx.insert(User, { user: 1 })
    for (const album of [1, 2]) {
      await tx.insert(Album, { user: 1, album })
      for (const photo of [1, 2]) {
        await tx.insert(Photo, { user: 1, album, photo, tag: `t${photo}` })
      }
    }
    await tx.insert(Login, { user: 1 })
    await tx.insert(Note, { user: 1, note: 1 })
  })
}

async function everyRow({ db }: Bench): Promise<readonly unknown[]> {
  const { value } = await db.read(one, 'current', async (rows) => [
    ...(await rows.scanTree(User, { user: 1 })).items.map(({ table: name }) => name),
    ...(await rows.scan(Login, {})).items.map(() => 'Login'),
    ...(await rows.index(Photo, 'ByTag', {})).items.map(() => 'entry'),
  ])
  return value
}

test('TAB-8: a row takes the rows below it that cascade, with their entries, and leaves those that stay', async () => {
  const bench = filled()
  await fill(bench)
  await bench.db.transaction(one, (tx) => tx.delete(Album, { user: 1, album: 1 }))
  const half = ['User', 'Album', 'Photo', 'Photo', 'Note', 'Login', 'entry', 'entry']
  expect(await everyRow(bench)).toEqual(half)
  await bench.db.transaction(one, (tx) => tx.delete(User, { user: 1 }))
  expect(await everyRow(bench)).toEqual(['Note'])
  expect(await bench.db.checkIndexes(one)).toEqual({ rows: 1, entries: 0, faults: [] })
})

test('TAB-8: rows go with one that is not there itself', async () => {
  const bench = filled()
  await bench.db.transaction(one, (tx) => tx.insert(Album, { user: 1, album: 1 }))
  await bench.db.transaction(one, (tx) => tx.delete(User, { user: 1 }))
  expect(await everyRow(bench)).toEqual([])
})

test('TAB-9: a row that restricts, also below one that would go, refuses the deletion and is named', async () => {
  const bench = filled()
  await fill(bench)
  const orders = [1, 2, 3, 4].map((order) => ({ user: 1, album: 2, order }))
  await bench.db.transaction(one, async (tx) => {
    for (const order of orders) await tx.insert(Order, order)
  })
  const before = await everyRow(bench)
  const deleted = bench.db.transaction(one, (tx) => tx.delete(User, { user: 1 }))
  await expect(deleted).rejects.toMatchObject({
    code: 'invalid',
    message:
      'User (user 1) is not deleted while rows below it are there: Order (user 1, album 2, order 1), Order (user 1, album 2, order 2), Order (user 1, album 2, order 3) and more; delete them first, or declare Order ON DELETE CASCADE',
  })
  const caught = bench.db.transaction(one, async (tx) => {
    await tx.delete(Album, { user: 1, album: 2 }).catch(() => undefined)
    await tx.put(Note, { user: 1, note: 1 })
  })
  await caught
  expect(await everyRow(bench)).toEqual(before)
  await bench.db.transaction(one, async (tx) => {
    for (const order of orders) await tx.delete(Order, order)
    await tx.delete(User, { user: 1 })
  })
  expect(await everyRow(bench)).toEqual(['Note'])
})

test('TAB-8: a row that is put below meanwhile goes too', async () => {
  const bench = filled()
  await fill(bench)
  let runs = 0
  await bench.db.transaction(one, async (tx) => {
    await tx.delete(User, { user: 1 })
    runs += 1
    if (runs > 1) return
    const other = tablesBench(schema, {}, bench.port).db
    await other.transaction(one, (its) =>
      its.put(Photo, { user: 1, album: 2, photo: 9, tag: 'late' }),
    )
  })
  expect(runs).toBe(2)
  expect(await everyRow(bench)).toEqual(['Note'])
})

test('TAB-8: too many rows are counted, and none of them goes', async () => {
  const bench = filled()
  const many = cascadeRowsMax + 200
  const step = 1_300
  for (let from = 1; from <= many; from += step) {
    await bench.db.transaction(one, async (tx) => {
      for (let album = from; album < from + step; album++) await tx.put(Album, { user: 1, album })
    })
  }
  const deleted = bench.db.transaction(one, (tx) => tx.delete(User, { user: 1 }))
  await expect(deleted).rejects.toMatchObject({
    code: 'too-large',
    message: `deleting User (user 1) takes ${many} rows below it along: ${many} of Album; one transaction takes 5000 at most, and fewer where they have many index entries: delete rows below it first, some in each transaction, then it`,
    detail: { limit: 'cascadeRowsMax', limitValue: cascadeRowsMax, actual: many },
  })
  await bench.db.transaction(one, async (tx) => {
    for (let album = 1; album <= 200; album++) await tx.delete(Album, { user: 1, album })
  })
  await bench.db.transaction(one, (tx) => tx.delete(User, { user: 1 }))
  expect(await everyRow(bench)).toEqual([])
})

test('TAB-8: a transaction that is too large with the entries says how many rows it was about', async () => {
  const limits = { transactionBytesMax: 1e6, transactionMutationsMax: 100 }
  const more = { transactionReadsMax: 1_000, submissionMutationsMax: 6 }
  const { port } = tablesBench(schema)
  const bench = tablesBench(schema, {}, port)
  await fill(bench)
  const { db } = tablesBench(schema, { limits: { ...limits, ...more } }, port)
  await expect(db.transaction(one, (tx) => tx.delete(User, { user: 1 }))).rejects.toMatchObject({
    code: 'too-large',
    message: expect.stringMatching(
      /^deleting User \(user 1\) takes 7 rows below it along: this transaction is too large: 7, submissionMutationsMax is 6/,
    ),
  })
})

/** The tables of before, and a later version in which notes came, and go with their user. */
const early = defineSchema('Albums', [User])
const Memo = table('Memo', { user: t.int32(), memo: t.int32(), text: t.string() })
  .key('user', 'memo')
  .in(User, { onDelete: 'cascade' })
  .localIndex('ByText', ['text'])
const later = defineSchema('Albums', [User, Memo])

test('TAB-8: a program of an earlier version takes rows of a table that it does not know', async () => {
  const first = firstVersion(early.model)
  const step = nextVersion(first, later.model)
  if (step.kind !== 'next') throw new Error('a table may come')
  const clock = new TestClock()
  const view = { version: step.version, lives: noLives }
  const own = { clock, opened: first, declared: early.model, view, askedAt: readMoment(clock) }
  const watch = new SchemaWatch({ ...own, trustMs: 1e9, look: () => Promise.resolve(view) })
  const port = new MemoryPort()
  const after = tablesBench(later, { version: step.version }, port).db
  const before = tablesBench(early, { version: first, watch }, port).db
  await after.transaction(one, async (tx) => {
    await tx.insert(User, { user: 1 })
    await tx.insert(Memo, { user: 1, memo: 1, text: 'x' })
  })
  await before.transaction(one, (tx) => tx.delete(User, { user: 1 }))
  expect(await after.checkIndexes(one)).toEqual({ rows: 0, entries: 0, faults: [] })
})

/** A version as it was stored before ON DELETE was known: nothing restricts in it. */
function withoutRule(version: SchemaVersion): SchemaVersion {
  const { restricting: _, ...rest } = version
  return rest
}

test.each<[string, OnDelete | undefined, SchemaVersion['restricting'], boolean]>([
  ['declared before ON DELETE was known', undefined, undefined, true],
  ['declared since', undefined, ['Item'], false],
  ['that says so', 'restrict', undefined, false],
])('TAB-9: a root with rows of a table %s', async (_, onDelete, restricting, mayGo) => {
  const Item = table('Item', { user: t.int32(), item: t.int32() })
    .key('user', 'item')
    .in(User, onDelete === undefined ? {} : { onDelete })
  const items = defineSchema('Items', [User, Item])
  const plain = withoutRule(firstVersion(items.model))
  const version = restricting === undefined ? plain : { ...plain, restricting }
  const { db } = tablesBench(items, { version })
  const result = db.transaction(one, async (tx) => {
    await tx.insert(User, { user: 1 })
    await tx.insert(Item, { user: 1, item: 1 })
    await tx.delete(User, { user: 1 })
    return (await tx.scan(Item, {})).items.length
  })
  if (mayGo) expect((await result).value).toBe(1)
  else await expect(result).rejects.toMatchObject({ code: 'invalid' })
})
