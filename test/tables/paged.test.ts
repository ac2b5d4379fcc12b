/** Scans may be iterated over: every row, page after page, in one view. */
import { expect, test } from 'vitest'
import { Photo, photoApp, User } from '../../schema/examples/photos.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { globalBench } from './global-bench.ts'
import { tablesBench } from './bench.ts'

const ann = rootKey(User, { user_id: 1n })
const photo = (photo_id: number) => ({
  ...{ user_id: 1n, photo_id, time: BigInt(photo_id), full_url: `${photo_id}.jpg`, tag: ['sea'] },
})

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

test('TAB-4: a scan that is iterated over gives every row once, where a page ends at 1,000', async () => {
  const { db } = tablesBench(photoApp)
  const ids = Array.from({ length: 2_345 }, (_, id) => id)
  await db.transaction(ann, async (tx) => {
    await tx.put(User, { user_id: 1n, name: 'Ann' })
    await Promise.all(ids.slice(0, 1_200).map((id) => tx.insert(Photo, photo(id))))
  })
  await db.transaction(ann, async (tx) => {
    await Promise.all(ids.slice(1_200).map((id) => tx.insert(Photo, photo(id))))
  })
  const { value } = await db.read(ann, 'current', async (rows) => {
    const page = await rows.scan(Photo, { user_id: 1n })
    const scanned = await all(rows.scan(Photo, { user_id: 1n }))
    const backwards = await all(rows.scan(Photo, { user_id: 1n }, { reverse: true, limit: 700 }))
    const rest = await all(rows.scan(Photo, { user_id: 1n }, { cursor: page.cursor ?? '' }))
    const tree = await all(rows.scanTree(User, { user_id: 1n }, { limit: 1_000 }))
    const entries = await all(rows.index(Photo, 'PhotosByTime', { user_id: 1n }))
    return { page: page.items.length, scanned, backwards, rest, tree, entries }
  })
  expect(value.page).toBe(1_000)
  expect(value.scanned.map((row) => row.photo_id)).toEqual(ids)
  expect(value.backwards.map((row) => row.photo_id)).toEqual(ids.toReversed())
  expect(value.rest.map((row) => row.photo_id)).toEqual(ids.slice(1_000))
  expect(value.tree.map(({ table }) => table)).toEqual(['User', ...ids.map(() => 'Photo')])
  expect(value.entries.map((entry) => entry.photo_id)).toEqual(ids)
})

test('a scan that is refused says so to the one who iterates, and a loop that is left reads no more', async () => {
  const { db } = tablesBench(photoApp)
  await db.transaction(ann, async (tx) => {
    for (const id of [1, 2, 3]) await tx.insert(Photo, photo(id))
  })
  const refused = db.read(ann, 'current', (rows) => all(rows.scan(Photo, {}, { limit: 0 })))
  await expect(refused).rejects.toMatchObject({ code: 'invalid' })
  const { value } = await db.read(ann, 'current', async (rows) => {
    for await (const row of rows.scan(Photo, { user_id: 1n }, { limit: 1 })) return row.photo_id
    return undefined
  })
  expect(value).toBe(1)
})

test('IDX-10: a global index that is iterated over gives the entries of all its pages', async () => {
  const { node, open, run, rest } = globalBench()
  const a = node('a')
  a.relay.start()
  const db = open(photoApp, a)
  await run(
    db.transaction(ann, async (tx) => {
      for (const id of [1, 2, 3, 4, 5]) await tx.insert(Photo, photo(id))
    }),
  )
  await rest()
  const entries = await run(all(db.index(Photo, 'PhotosByTag', { tag: 'sea' }, { limit: 2 })))
  expect(entries.map((entry) => entry.photo_id)).toEqual([1, 2, 3, 4, 5])
})
