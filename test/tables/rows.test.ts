/** Rows in bytes: where they lie, what is refused, what other versions of a schema make of them. */
import { expect, test } from 'vitest'
import { calendars, Account, Calendar, Comment, Event } from '../../schema/examples/calendar.ts'
import { Photo, photoApp, User } from '../../schema/examples/photos.ts'
import type { Key } from '../../schema/infer.ts'
import { defineSchema, type DefinedSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { firstVersion, nextVersion, type SchemaVersion } from '../../schema/version.ts'
import { sha256 } from '../../src/base/bytes.ts'
import { bytesOfGroup } from '../../src/base/ids.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { typed } from '../../src/tables/types.ts'
import { tablesBench } from './bench.ts'

const ann = rootKey(User, { user_id: 1n })
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

test('TAB-2: rows and entries lie where the layout says, under numbers', async () => {
  const { db, port } = tablesBench(photoApp)
  await db.transaction(ann, async (tx) => {
    await tx.insert(User, { user_id: 1n, name: 'Ann' })
    await tx.insert(Photo, { user_id: 1n, photo_id: 2, time: 5n, full_url: 'x' })
  })
  expect(hex(bytesOfGroup(db.group(ann)))).toBe(
    `${hex(encodeTuple(['tables', 'PhotoApp', 1]))}8000000000000001`,
  )
  expect(port.rowsOf(db.group(ann)).map(({ key, value }) => [hex(key), hex(value)])).toEqual([
    // User; its name is property 2.
    ['010001', '019202a3416e6e'],
    // Photo 2 below it: time, full_url, and an empty list of tags.
    ['010001000280000002', '019603c408000000000000000504a1780690'],
    // PhotosByTime: time, then what names the photo.
    ['020003800000000000000580000002', '0190'],
  ])
})

test('the name of a scattered group has a hash before its key', () => {
  const { db } = tablesBench(calendars)
  const group = bytesOfGroup(db.group(rootKey(Account, { account_id: 7n })))
  const key = Buffer.from('8000000000000007', 'hex')
  const front = encodeTuple(['tables', 'Calendars', 1])
  expect(hex(group)).toBe(hex(Buffer.concat([front, sha256(key).subarray(0, 2), key])))
})

const id = '00000000-0000-4000-8000-000000000001'
/** A hole is passed over by most of what goes through a list. */
const sparse: unknown[] = ['a']
sparse[2] = 'c'
const refusals: readonly (readonly [string, object, string])[] = [
  ['Event', { titel: 'x' }, 'table Event: unknown property "titel"; did you mean "title"?'],
  ['Event', { title: 5 }, 'table Event: title is 5; expected a string of whole characters'],
  ['Event', { title: '\ud800' }, 'table Event: title is "\\ud800"; expected a string of whole'],
  ['Event', { title: null }, 'table Event: title is null; expected a string'],
  ['Event', { title: undefined }, 'table Event: title is absent; it is required'],
  [
    'Event',
    { start: 1.5 },
    'table Event: start is 1.5; expected a Date, or microseconds since 1970',
  ],
  ['Event', { event_id: 'x' }, 'table Event: event_id is "x"; expected a UUID in small letters'],
  ['Event', { minutes: 2 ** 31 }, 'table Event: minutes is 2147483648; expected a whole number'],
  ['Event', { tag: 'a' }, 'table Event: tag is "a"; expected a list'],
  ['Event', { tag: ['a', 5] }, 'table Event: tag[1] is 5; expected a string'],
  ['Event', { tag: sparse }, 'table Event: tag[1] is absent; expected a string'],
  ['Event', { guest: sparse }, 'table Event: guest[0] is "a"; expected'],
  ['Event', { extra: sparse }, 'table Event: extra[1] is absent; expected JSON'],
  ['Event', { extra: { a: sparse } }, 'table Event: extra.a[1] is absent; expected JSON'],
  ['Event', { place: {} }, 'table Event: place: name is absent; it is required'],
  ['Event', { place: { name: 'a', latitude: Number.NaN } }, 'place: latitude is NaN; expected a'],
  ['Event', { guest: [{ account_id: 1 }] }, 'guest[0]: account_id is 1; expected a bigint'],
  ['Event', { extra: { when: new Date(0) } }, 'table Event: extra.when is a Date; expected JSON'],
  ['Event', { extra: undefined, guest: {} }, 'table Event: guest is an object; expected a list'],
  ['Comment', { number: 4 }, 'number is a sequence: its number is given at commit; leave it out'],
]

test.each(refusals)('TAB-3: %s %j is refused: %s', async (name, wrong, words) => {
  const { db } = tablesBench(calendars)
  const row = {
    ...{ calendar_id: id, start: 1, event_id: id },
    ...(name === 'Event' ? { title: 'x' } : { author: 1n, text: 'x' }),
    ...wrong,
  }
  const insert = db.transaction(rootKey(Calendar, { calendar_id: id }), async (tx) => {
    // As a program in JavaScript would.
    if (name === 'Event') await tx.insert(Event, typed(row))
    else await tx.insert(Comment, typed(row))
  })
  await expect(insert).rejects.toMatchObject({ code: 'invalid' })
  await expect(insert).rejects.toThrow(words)
})

const Post = table('Post', { post: t.int64() }).key('post').root()
const Remark = table('Remark', { post: t.int64(), remark: t.sequence() })
  .key('post', 'remark')
  .in(Post)
const Reply = table('Reply', { post: t.int64(), remark: t.integer(), reply: t.int32() })
  .key('post', 'remark', 'reply')
  .in(Remark)

test.each([-1, 0, 0.5])('TAB-3: no row is below a row of number %d', async (remark) => {
  const { db } = tablesBench(defineSchema('Posts', [Post, Remark, Reply]))
  const insert = db.transaction(rootKey(Post, { post: 1n }), (tx) =>
    tx.insert(Reply, { post: 1n, remark, reply: 1 }),
  )
  await expect(insert).rejects.toMatchObject({ code: 'invalid' })
  await expect(insert).rejects.toThrow(`table Reply: remark is ${remark}; expected`)
})

const Old = table('Thing', { id: t.int32() }).key('id').root()
const New = table('Thing', {
  ...{
    id: t.int32(),
    raw: t.bytes().default(Uint8Array.of(1, 2, 3)),
    part: t.float().default(0.1),
  },
})
  .key('id')
  .root()

test('no caller can change a default or a stored value through bytes that it holds', async () => {
  const old = defineSchema('Things', [Old])
  const now = defineSchema('Things', [New])
  const before = tablesBench(old)
  const key = (id: number): ReturnType<typeof rootKey> => rootKey(New, { id })
  for (const id of [1, 2]) {
    await before.db.transaction(rootKey(Old, { id }), (tx) => tx.put(Old, { id }))
  }
  const { db } = tablesBench(
    now,
    { version: versionAfter(firstVersion(old.model), now) },
    before.port,
  )
  const read = async (id: number): Promise<{ readonly raw: Uint8Array; readonly part: number }> => {
    const { value } = await db.read(key(id), 'current', (rows) => rows.get(New, { id }))
    return value ?? expect.fail()
  }
  ;(await read(1)).raw.fill(9)
  expect([...(await read(2)).raw]).toEqual([1, 2, 3])
  await db.transaction(key(3), (tx) => tx.insert(New, { id: 3 }))
  expect([...(await read(3)).raw]).toEqual([1, 2, 3])
  expect((await read(2)).part).toBe((await read(3)).part)
  // The program does not look at given bytes again.
  const raw = Uint8Array.of(7)
  await db.transaction(key(4), async (tx) => {
    await tx.put(New, { id: 4, raw })
    raw.fill(0)
  })
  expect([...(await read(4)).raw]).toEqual([7])
})

test('TAB-3: a patch cannot change the key of a row', async () => {
  const { db } = tablesBench(photoApp)
  const wrong: object = { photo_id: 3 }
  const patched = db.transaction(ann, (tx) => tx.update(Photo, { user_id: 1n, photo_id: 2 }, wrong))
  await expect(patched).rejects.toThrow('table Photo: photo_id names the row and stays')
})

const Box = table('Box', {
  id: t.int64(),
  name: t.string(),
  inner: t.message({ a: t.int32() }).optional(),
})
  .key('id')
  .root()
const NewBox = table('Box', {
  size: t.double().default(2.5),
  id: t.int64(),
  note: t.bytes().optional(),
  name: t.string(),
  inner: t.message({ b: t.string().optional(), a: t.int32() }).optional(),
})
  .key('id')
  .root()
const Item = table('Item', { id: t.int64(), number: t.int32() }).key('id', 'number').in(NewBox)
const first = defineSchema('Boxes', [Box])
const second = defineSchema('Boxes', [NewBox, Item])

function versionAfter(before: SchemaVersion, schema: DefinedSchema): SchemaVersion {
  const step = nextVersion(before, schema.model)
  if (step.kind !== 'next') throw new Error(`the step is ${step.kind}`)
  return step.version
}

test('TAB-2: programs of two versions of a schema keep what they do not know of one another', async () => {
  const before = tablesBench(first)
  const version = versionAfter(firstVersion(first.model), second)
  const after = tablesBench(second, { version }, before.port)
  const key = rootKey(Box, { id: 1n })
  await before.db.transaction(key, (tx) => tx.insert(Box, { id: 1n, name: 'old' }))
  const old = await after.db.read(key, 'current', (rows) => rows.get(NewBox, { id: 1n }))
  expect(old.value).toEqual({ id: 1n, name: 'old', size: 2.5 })
  await after.db.transaction(key, async (tx) => {
    const note = Uint8Array.of(0, 255)
    await tx.update(NewBox, { id: 1n }, { size: 4, note, inner: { a: 1, b: 'b' } })
    await tx.insert(Item, { id: 1n, number: 1 })
  })
  await before.db.transaction(key, async (tx) => {
    const tree = await tx.scanTree(Box, { id: 1n })
    expect(tree.items).toEqual([{ table: 'Box', row: { id: 1n, name: 'old', inner: { a: 1 } } }])
    await tx.update(Box, { id: 1n }, { name: 'new' })
  })
  const whole = await after.db.read(key, 'current', (rows) => rows.get(NewBox, { id: 1n }))
  expect(whole.value).toEqual({
    ...{ id: 1n, name: 'new', size: 4, inner: { a: 1, b: 'b' } },
    note: Uint8Array.of(0, 255),
  })
})

test('TAB-3: a stored row that does not fit the schema is an error, never a guess', async () => {
  const Other = table('Box', { id: t.int64(), name: t.int64() }).key('id').root()
  const { db, port } = tablesBench(first)
  const key = rootKey(Box, { id: 1n })
  await db.transaction(key, (tx) => tx.insert(Box, { id: 1n, name: 'x' }))
  const wrong = tablesBench(defineSchema('Boxes', [Other]), {}, port)
  const read = wrong.db.read(key, 'current', (rows) => rows.get(Other, { id: 1n }))
  await expect(read).rejects.toMatchObject({ code: 'schema-mismatch' })
})

test('a group whose name would be too long is refused', () => {
  const Long = table('Long', { name: t.string() }).key('name').root()
  const { db } = tablesBench(defineSchema('Longs', [Long]))
  expect(() => db.group(rootKey(Long, { name: 'x'.repeat(1024) }))).toThrow(/keyBytesMax is 1024/)
})

test('an event at any moment can be named, and named wrongly is refused', async () => {
  const { db } = tablesBench(calendars)
  const key = rootKey(Calendar, { calendar_id: id })
  const skipping = typed<Key<typeof Event>>({ calendar_id: id, event_id: id })
  const scan = db.read(key, 'current', (rows) => rows.scan(Event, skipping))
  await expect(scan).rejects.toThrow(
    'names event_id and not start; the order is calendar_id, start',
  )
})

const Seen = table('Seen', { store: t.string(), at: t.timestamp(), last: t.timestamp().default(5) })
  .key('store', 'at')
  .root()
const seenSchema = defineSchema('Seen', [Seen])

test('TAB-3: a time that looks like milliseconds is refused as a value, and names the row that has it', async () => {
  const { db } = tablesBench(seenSchema)
  const ms = 1_700_000_000_123
  const of = rootKey(Seen, { store: 'a', at: ms })
  const insert = (at: number | bigint) =>
    db.transaction(of, (tx) => tx.insert(Seen, { store: 'a', at }))
  await expect(insert(ms)).rejects.toThrow('looks like milliseconds')
  // The caller means it.
  await insert(BigInt(ms))
  const row = { store: 'a', at: ms, last: 5 }
  const { value } = await db.read(of, 'current', (rows) => rows.get(Seen, { store: 'a', at: ms }))
  expect(value).toEqual(row)
  await db.transaction(of, (tx) => tx.update(Seen, { store: 'a', at: ms }, { last: 6 }))
  await db.transaction(of, (tx) => tx.delete(Seen, { store: 'a', at: ms }))
})
