/** Typed access to the tables of a group: rows, scans, trees, indexes, sequences, groups. */
import { expect, test } from 'vitest'
import { calendars, Calendar, Comment, Event, Reminder } from '../../schema/examples/calendar.ts'
import { Photo, photoApp, User } from '../../schema/examples/photos.ts'
import { rootKey } from '../../src/tables/tables.ts'
import type { GroupTransaction } from '../../src/tables/types.ts'
import { tablesBench, type TablesBench } from './bench.ts'

const ann = rootKey(User, { user_id: 1n })
const photo = (photo_id: number, time = 5n, tag: readonly string[] = []) => ({
  ...{ user_id: 1n, photo_id, time, full_url: `${photo_id}.jpg`, tag },
})

async function withPhotos(count = 5): Promise<TablesBench<typeof photoApp.tables>> {
  const bench = tablesBench(photoApp)
  await bench.db.transaction(ann, async (tx) => {
    await tx.insert(User, { user_id: 1n, name: 'Ann' })
    for (let id = 1; id <= count; id++) await tx.insert(Photo, photo(id, BigInt(10 - id)))
  })
  return bench
}

test('rows come back as they were written, and absent ones as undefined', async () => {
  const { db } = await withPhotos(1)
  const { value } = await db.read(ann, 'current', (rows) =>
    rows.getMany(Photo, [
      { user_id: 1n, photo_id: 1 },
      { user_id: 1n, photo_id: 2 },
    ]),
  )
  expect(value).toEqual([photo(1, 9n), undefined])
})

test('an insert must find nothing, also when both are of one transaction', async () => {
  const { db } = await withPhotos(1)
  const again = db.transaction(ann, (tx) => tx.insert(Photo, photo(1)))
  await expect(again).rejects.toThrow(/^Photo \(user_id 1, photo_id 1\) exists already/)
  const both = db.transaction(ann, (tx) =>
    Promise.all([tx.insert(Photo, photo(2)), tx.insert(Photo, photo(2))]),
  )
  await expect(both).rejects.toMatchObject({ code: 'already-exists' })
})

test('an update changes what it names, takes optional ones away, and needs its row', async () => {
  const { db } = await withPhotos(1)
  const key = { user_id: 1n, photo_id: 1 }
  const { value } = await db.transaction(ann, async (tx) => {
    await tx.update(Photo, key, { thumbnail_url: 't.jpg', tag: ['sea'] })
    const first = await tx.get(Photo, key)
    await tx.update(Photo, key, { thumbnail_url: null, time: 7n })
    return [first, await tx.get(Photo, key)]
  })
  expect(value).toEqual([
    { ...photo(1, 9n, ['sea']), thumbnail_url: 't.jpg' },
    photo(1, 7n, ['sea']),
  ])
  const none = db.transaction(ann, (tx) => tx.update(Photo, { ...key, photo_id: 9 }, {}))
  await expect(none).rejects.toMatchObject({ code: 'not-found' })
})

test('a thousand writers of one group that touch different rows all commit in one run', async () => {
  const { db } = await withPhotos(0)
  const writers = Array.from({ length: 1000 }, (_, id) =>
    db.transaction(ann, (tx) => tx.insert(Photo, photo(id))),
  )
  const runs = (await Promise.all(writers)).map((done) => done.runs)
  expect(Math.max(...runs)).toBe(1)
  expect(await db.checkIndexes(ann)).toEqual({ rows: 1001, entries: 1000, faults: [] })
})

test('TAB-4: scans go by prefix and range, both ways, page by page', async () => {
  const { db } = await withPhotos(5)
  const { value } = await db.read(ann, 'snapshot', async (rows) => {
    const ids: number[][] = []
    const scan = async (...given: Parameters<typeof rows.scan<typeof Photo>>) => {
      const page = await rows.scan(...given)
      ids.push(page.items.map(({ photo_id }) => photo_id))
      return page.cursor
    }
    await scan(Photo, {})
    await scan(Photo, { user_id: 1n, photo_id: { gt: 2, lte: 4 } })
    await scan(Photo, { user_id: 1n, photo_id: { lt: 4 } }, { reverse: true, limit: 2 })
    const cursor = await scan(Photo, { user_id: 1n }, { limit: 3 })
    const rest = await scan(Photo, { user_id: 1n }, { limit: 3, cursor: cursor ?? '' })
    return { ids, rest }
  })
  expect(value).toEqual({
    ids: [
      [1, 2, 3, 4, 5],
      [3, 4],
      [3, 2],
      [1, 2, 3],
      [4, 5],
    ],
    rest: undefined,
  })
})

test('TAB-4: a cursor of another scan is refused', async () => {
  const { db } = await withPhotos(5)
  const read = db.read(ann, 'current', async (rows) => {
    const { cursor = '' } = await rows.scan(Photo, { user_id: 1n }, { limit: 4 })
    return rows.scan(Photo, { user_id: 1n, photo_id: { lt: 3 } }, { cursor })
  })
  await expect(read).rejects.toThrow(/cursor is of another scan/)
})

test('TAB-5: a key of another group is refused in words', async () => {
  const { db } = await withPhotos(1)
  const words =
    /table Photo: user_id 2 is of another group than this one, which is User \(user_id 1\)/
  const uses: readonly ((tx: GroupTransaction<typeof photoApp.tables>) => Promise<unknown>)[] = [
    (tx) => tx.get(Photo, { user_id: 2n, photo_id: 1 }),
    (tx) => tx.insert(Photo, { ...photo(7), user_id: 2n }),
    (tx) => tx.put(Photo, { ...photo(7), user_id: 2n }),
    (tx) => tx.scan(Photo, { user_id: 2n }),
    (tx) => tx.index(Photo, 'PhotosByTime', { user_id: 2n }),
  ]
  for (const use of uses) await expect(db.transaction(ann, use)).rejects.toThrow(words)
  const range = db.read(ann, 'current', (rows) => rows.scan(Photo, { user_id: { gte: 1n } }))
  await expect(range).rejects.toThrow(/user_id names the group, and a scan stays in one/)
})

test('TAB-5: an outer handle fails inside a transaction and works after it', async () => {
  const { db } = await withPhotos(1)
  const nested = db.transaction(ann, () => db.transaction(ann, async () => 1))
  await expect(nested).rejects.toThrow(/db.transaction was called inside the function of a trans/)
  const reading = db.transaction(ann, async (tx) => {
    await tx.get(User, { user_id: 1n })
    await db.read(ann, 'current', async () => 1)
  })
  await expect(reading).rejects.toThrow(/db.read was called inside/)
  expect((await db.transaction(ann, async () => 1)).value).toBe(1)
})

test('a conflict names the table and the key', async () => {
  const { db, port } = await withPhotos(1)
  const other = tablesBench(photoApp, {}, port).db
  port.beforeCommit = async ({ reads }) => {
    if (reads.length > 1)
      await other.transaction(ann, (tx) => tx.put(User, { user_id: 1n, name: 'B' }))
    return undefined
  }
  const failed = db.transaction(
    ann,
    async (tx) => {
      await tx.get(User, { user_id: 1n })
      await tx.update(Photo, { user_id: 1n, photo_id: 1 }, { time: 1n })
    },
    { timeoutMs: 50 },
  )
  await expect(failed).rejects.toThrow(/read User \(user_id 1\), and transaction .* at position/)
})

const id = '00000000-0000-4000-8000-000000000001'
const place = rootKey(Calendar, { calendar_id: id })
const uuid = (n: number) => `00000000-0000-4000-8000-0000000000${n}` as const
const event = (n: number, start: number, tag: readonly string[] = []) => ({
  ...({ calendar_id: id, start, event_id: uuid(n), title: `e${n}`, tag } as const),
})

async function withEvents(): Promise<TablesBench<typeof calendars.tables>> {
  const bench = tablesBench(calendars)
  await bench.db.transaction(place, async (tx) => {
    await tx.insert(Calendar, { calendar_id: id, title: 'Work', owner: 1n })
    await tx.insert(Event, event(10, 100, ['a', 'b', 'a']))
    await tx.insert(Event, event(11, 300, ['b']))
    await tx.insert(Event, event(12, 200))
    await tx.insert(Reminder, { calendar_id: id, due: 1, account_id: 4n })
  })
  for (const text of ['one', 'two']) {
    await bench.db.transaction(place, (tx) =>
      tx.insert(Comment, { ...eventKey(12, 200), author: 5n, text }),
    )
  }
  return bench
}

const eventKey = (n: number, start: number) =>
  ({ calendar_id: id, start, event_id: uuid(n) }) as const

test('a row and all below it come in one pass, parents first, in the order of their keys', async () => {
  const { db } = await withEvents()
  const { value } = await db.read(place, 'current', async (rows) => {
    const whole = await rows.scanTree(Calendar, { calendar_id: id })
    const one = await rows.scanTree(Event, eventKey(12, 200))
    return { whole: whole.items, one: one.items }
  })
  const names = value.whole.map((found) =>
    found.table === 'Event'
      ? found.row.title
      : found.table === 'Comment'
        ? found.row.text
        : found.table,
  )
  // `start` is DESC; reminders are in the group, but not below the calendar's row.
  expect(names).toEqual(['Calendar', 'e11', 'e12', 'one', 'two', 'e10'])
  expect(value.one).toEqual(value.whole.slice(2, 5))
})

test('a scan of a table passes over the rows of others that stand between', async () => {
  const { db } = await withEvents()
  const { value } = await db.read(place, 'current', async (rows) => {
    const events = await rows.scan(Event, { calendar_id: id, start: { gte: 150 } })
    const comments = await rows.scan(Comment, {}, { limit: 1 })
    const last = await rows.scan(Comment, {}, { reverse: true, limit: 1 })
    const reminders = await rows.scan(Reminder, {})
    const titles = events.items.map(({ title }) => title)
    return [titles, comments.items[0]?.number, last.items[0]?.number, reminders.items.length]
  })
  expect(value).toEqual([['e11', 'e12'], 1, 2, 1])
})

test('a sequence gives 1, 2, 3 … at commit, also when inserts are refused in between', async () => {
  const { db } = await withEvents()
  const comment = { ...eventKey(12, 200), author: 5n, text: 'x' }
  const { value, numbers } = await db.transaction(place, async (tx) => {
    const first = await tx.insert(Comment, comment)
    expect(() => first.number).toThrow(/when the transaction is committed/)
    const wrong = tx.insert(Comment, { ...comment, text: '\ud800' })
    await expect(wrong).rejects.toMatchObject({ code: 'invalid' })
    return [first, await tx.insert(Comment, comment)]
  })
  expect(value.map(({ number }) => number)).toEqual([3, 4])
  expect(numbers).toEqual([
    { table: 'Comment', number: 3 },
    { table: 'Comment', number: 4 },
  ])
  const shown = db.transaction(place, async (tx) => {
    await tx.insert(Comment, comment)
    await tx.scan(Event, { calendar_id: id, start: { lt: 150 } })
    await tx.scan(Comment, eventKey(12, 200))
  })
  await expect(shown).rejects.toThrow(/whose number is known only after commit/)
  const past = db.transaction(place, (tx) => tx.put(Comment, { ...comment, number: 99 }))
  await expect(past).rejects.toThrow(/a new row gets its number by insert/)
})

test('an index gives entries with what they store, and their rows', async () => {
  const { db } = await withEvents()
  const { value } = await db.read(place, 'current', async (rows) => {
    const page = await rows.index(Event, 'EventsByTag', { calendar_id: id, tag: 'b' })
    const every = await rows.index(Event, 'EventsByTag', {}, { reverse: true })
    const found = await page.rows()
    return [page.items, found.map(({ title }) => title), every.items.map(({ tag }) => tag)]
  })
  expect(value).toEqual([
    [
      { ...eventKey(11, 300), tag: 'b', title: 'e11' },
      { ...eventKey(10, 100), tag: 'b', title: 'e10' },
    ],
    ['e11', 'e10'],
    ['b', 'b', 'a'],
  ])
})

test('rows of some entries of a page, from one place to before another', async () => {
  const { db } = await withPhotos(5)
  const { value } = await db.read(ann, 'current', async (rows) => {
    const page = await rows.index(Photo, 'PhotosByTime', { user_id: 1n })
    const parts = await Promise.all([
      page.rows(),
      page.rows(1),
      page.rows(1, 3),
      page.rows(4, 9),
      page.rows(5),
    ])
    return parts.map((part) => part.map(({ photo_id }) => photo_id))
  })
  expect(value).toEqual([[5, 4, 3, 2, 1], [4, 3, 2, 1], [4, 3], [1], []])
})

test('IDX-2: rows of a page go by what the transaction has written since it read the page', async () => {
  const { db } = await withEvents()
  await db.transaction(place, async (tx) => {
    for (const n of [21, 22, 23, 24]) await tx.insert(Event, event(n, n, ['c', 'd']))
  })
  const titles = await db.transaction(place, async (tx) => {
    const page = await tx.index(Event, 'EventsByTag', { calendar_id: id, tag: { gte: 'c' } })
    const parts = [await page.rows(0, 4)]
    await tx.delete(Event, eventKey(24, 24))
    await tx.update(Event, eventKey(23, 23), { tag: ['c'] })
    await tx.delete(Event, eventKey(22, 22))
    await tx.insert(Event, event(22, 22, ['d']))
    parts.push(await page.rows(4), await page.rows(0, 4))
    return parts.map((rows) => rows.map(({ title }) => title))
  })
  expect(titles.value).toEqual([
    ['e24', 'e23', 'e22', 'e21'],
    ['e22', 'e21'],
    ['e23', 'e21'],
  ])
})

test('one group by itself: the same tables, its key looked at once', async () => {
  const { db } = await withPhotos(1)
  const hers = db.of(ann)
  expect(hers.group).toBe(db.group(ann))
  const { position } = await hers.transaction((tx) => tx.insert(Photo, photo(2)))
  const read = await hers.read('snapshot', (rows) => rows.scan(Photo, { user_id: 1n }), {
    atLeast: position,
  })
  expect(read.value.items.map(({ photo_id }) => photo_id)).toEqual([1, 2])
  expect(await hers.checkIndexes()).toEqual(await db.checkIndexes(ann))
  const bobs = hers.read('current', (rows) => rows.get(User, { user_id: 2n }))
  await expect(bobs).rejects.toThrow(/user_id 2 is of another group/)
  expect(() => db.of({ table: 'Photo', key: { user_id: 1n, photo_id: 1 } })).toThrow(/not a root/)
})

test('an inline index is a list in the row of the parent', async () => {
  const { db } = await withEvents()
  const { value } = await db.read(place, 'current', (rows) =>
    rows.getWith(Calendar, { calendar_id: id }, Event, 'TitlesByTag'),
  )
  expect(value?.title).toBe('Work')
  expect(value?.TitlesByTag.map(({ tag, title }) => `${tag} ${title}`)).toEqual([
    'a e10',
    'b e11',
    'b e10',
  ])
})

test('an index over a property that is absent has no entry of that row', async () => {
  const { db } = await withEvents()
  const placed = { name: 'here', latitude: 1.5 }
  await db.transaction(place, (tx) => tx.update(Event, eventKey(10, 100), { place: placed }))
  const { value } = await db.read(place, 'current', (rows) =>
    rows.index(Event, 'EventsByPlace', {}),
  )
  expect(value.items).toEqual([
    { ...eventKey(10, 100), 'place.name': 'here', 'place.latitude': 1.5 },
  ])
})

test('a read of the past sees one moment, in rows and indexes alike', async () => {
  const { db } = await withEvents()
  const before = await db.read(place, 'current', (rows) => rows.index(Event, 'EventsByTag', {}))
  await db.transaction(place, async (tx) => {
    await tx.update(Event, eventKey(10, 100), { tag: ['c'] })
    await tx.delete(Event, eventKey(11, 300))
  })
  const at = before.view?.asOf ?? 0
  const { value } = await db.read(place, { at }, async (rows) => {
    const page = await rows.index(Event, 'EventsByTag', {})
    return { items: page.items, rows: (await page.rows()).length }
  })
  expect(value).toEqual({ items: before.value.items, rows: 3 })
})

test('a row tells when it was written, to the transaction that has not written it itself', async () => {
  const { db } = await withPhotos(2)
  const key = (photo_id: number) => ({ user_id: 1n, photo_id })
  const changed = await db.transaction(ann, (tx) => tx.update(Photo, key(1), { tag: ['sea'] }))
  const { value } = await db.read(ann, 'current', async (rows) => {
    const page = await rows.index(Photo, 'PhotosByTime', { user_id: 1n })
    const [first, second] = await rows.getMany(Photo, [key(1), key(2)])
    const given = [first ?? {}, second ?? {}, ...page.items, ...(await page.rows())]
    return given.map((one) => rows.timestampOf(one))
  })
  const [first, second = 0] = value
  expect(first).toBe(changed.timestamp)
  expect(second).toBeLessThan(changed.timestamp ?? 0)
  // Entries of photo 2 and 1, which the update has left alone, then their rows.
  expect(value.slice(2)).toEqual([second, second, second, first])
  await db.transaction(ann, async (tx) => {
    await tx.update(Photo, key(1), { tag: [] })
    expect(tx.timestampOf((await tx.get(Photo, key(1))) ?? {})).toBeUndefined()
    expect(() => tx.timestampOf({ ...key(1) })).toThrow(/no handle has read/)
  })
})

test('TAB-4: a cursor goes on with its own scan, and with no other one', async () => {
  const { db } = tablesBench(photoApp)
  const [mary, john] = [1n, 2n].map((user_id) => rootKey(User, { user_id }))
  if (mary === undefined || john === undefined) throw new Error('there are two users')
  for (const [of, user_id] of [
    [mary, 1n],
    [john, 2n],
  ] as const) {
    await db.transaction(of, async (tx) => {
      await tx.put(User, { user_id, name: 'a' })
      for (const photo_id of [1, 2, 3]) {
        await tx.put(Photo, { user_id, photo_id, time: 5n, full_url: 'u', tag: [] })
      }
    })
  }
  const scan = (of: typeof mary, options: object) =>
    db.read(of, 'current', (rows) => rows.scan(Photo, {}, options))
  const { cursor = '' } = (await scan(mary, { limit: 1 })).value
  expect((await scan(mary, { cursor })).value.items).toHaveLength(2)
  const refused = /this cursor is of another scan/
  await expect(scan(john, { cursor })).rejects.toThrow(refused)
  await expect(scan(mary, { cursor, reverse: true })).rejects.toThrow(refused)
  await expect(scan(mary, { cursor: cursor.slice(0, -2) })).rejects.toThrow(refused)
  await expect(scan(mary, { cursor: '' })).rejects.toThrow(refused)
  const tree = db.read(mary, 'current', (rows) => rows.scanTree(User, { user_id: 1n }, { cursor }))
  await expect(tree).rejects.toThrow(refused)
})

test('a generator is no function to be run', async () => {
  const { db } = tablesBench(photoApp)
  const generator: unknown = function* () {
    yield 1
  }
  const call: unknown = Reflect.apply(db.transaction, db, [
    rootKey(User, { user_id: 1n }),
    generator,
  ])
  await expect(call).rejects.toThrow(
    'is a generator function; expected a function that is no class',
  )
})
