/** Local indexes: changed with their rows, unique where they say so, and checked. */
import { expect, test } from 'vitest'
import { Photo, photoApp, User } from '../../schema/examples/photos.ts'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { desc, table } from '../../schema/table.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { runTransaction } from '../../src/txn/run.ts'
import { Sessions } from '../../src/txn/session.ts'
import { TestClock, testRandom } from '../txn/test-ports.ts'
import { tablesBench } from './bench.ts'

const Team = table('Team', { team: t.string() }).key('team').root()
const Member = table('Member', {
  team: t.string(),
  number: t.sequence(),
  email: t.string(),
  score: t.double(),
  skill: t.message({ name: t.string(), level: t.int32() }).repeated(),
})
  .key('team', 'number')
  .in(Team)
  .localIndex('ByEmail', ['email'], { unique: true })
  .localIndex('ByScore', [desc('score')], { storing: ['email'] })
  .localIndex('BySkill', ['skill.name', desc('skill.level')])
const teams = defineSchema('Teams', [Team, Member])
const red = rootKey(Team, { team: 'red' })
const member = (email: string, score = 1) => ({ team: 'red', email, score })

test('IDX-1: a change of an indexed property takes the old entry away', async () => {
  const { db } = tablesBench(teams)
  await db.transaction(red, (tx) =>
    tx.insert(Member, {
      ...member('a'),
      skill: [
        { name: 'go', level: 1 },
        { name: 'go', level: 2 },
      ],
    }),
  )
  await db.transaction(red, (tx) =>
    tx.update(Member, { team: 'red', number: 1 }, { score: -2, skill: [{ name: 'go', level: 2 }] }),
  )
  const { value } = await db.read(red, 'current', async (rows) => [
    (await rows.index(Member, 'ByScore', {})).items,
    (await rows.index(Member, 'BySkill', { 'skill.name': 'go', 'skill.level': { gte: 1 } })).items,
  ])
  expect(value).toEqual([
    [{ team: 'red', number: 1, score: -2, email: 'a' }],
    [{ team: 'red', number: 1, 'skill.name': 'go', 'skill.level': 2 }],
  ])
  expect(await db.checkIndexes(red)).toEqual({ rows: 1, entries: 3, faults: [] })
})

test('IDX-1: a unique index lets one of two through, of one transaction or of two at once', async () => {
  const { db, port } = tablesBench(teams)
  const other = tablesBench(teams, {}, port).db
  const both = db.transaction(red, async (tx) => {
    await tx.insert(Member, member('a'))
    await tx.insert(Member, member('a'))
  })
  await expect(both).rejects.toThrow(/index ByEmail is unique, and another row has the same email/)
  let isFirst = true
  port.beforeCommit = async () => {
    if (isFirst) {
      isFirst = false
      await other.transaction(red, (tx) => tx.insert(Member, member('a')))
    }
    return undefined
  }
  const late = db.transaction(red, (tx) => tx.insert(Member, member('a')))
  await expect(late).rejects.toMatchObject({ code: 'already-exists' })
  const { numbers } = await db.transaction(red, (tx) => tx.insert(Member, member('b')))
  expect(numbers).toEqual([{ table: 'Member', number: 2 }])
})

test('IDX-1: a refused insert that is caught leaves no number, entry or row', async () => {
  const { db } = tablesBench(teams)
  await db.transaction(red, (tx) => tx.insert(Member, member('a')))
  await db.transaction(red, async (tx) => {
    const taken = tx.insert(Member, member('a', 9))
    await expect(taken).rejects.toMatchObject({ code: 'already-exists' })
    await tx.insert(Member, member('b'))
  })
  const { value } = await db.read(red, 'current', (rows) => rows.scan(Member, {}))
  expect(value.items.map(({ number, email }) => [number, email])).toEqual([
    [1, 'a'],
    [2, 'b'],
  ])
  expect((await db.checkIndexes(red)).faults).toEqual([])
})

test('IDX-1: the check lists entries that are missing, left over, or of other content', async () => {
  const { db, port } = tablesBench(teams)
  await db.transaction(red, (tx) => tx.insert(Member, member('a')))
  const group = db.group(red)
  const [, byEmail, byScore] = port.rowsOf(group)
  const clock = new TestClock()
  const random = testRandom(99)
  const intents = new Sessions(clock, random)
  await runTransaction(port, group, { clock, random, intents }, async (raw) => {
    if (byEmail === undefined || byScore === undefined) throw new Error('there are two entries')
    raw.delete(byEmail.key)
    raw.put(byScore.key, Buffer.from('019101', 'hex'))
    const left = Buffer.from(byScore.key)
    left.writeUInt8(2, left.length - 1)
    raw.put(left, byScore.value)
  })
  expect((await db.checkIndexes(red)).faults).toEqual([
    { kind: 'missing', index: 'ByEmail', entry: 'index ByEmail (email "a")' },
    { kind: 'other-content', index: 'ByScore', entry: 'index ByScore (score 1)' },
    { kind: 'left-over', index: 'ByScore', entry: 'index ByScore (score 1)' },
  ])
  const rows = db.read(red, 'current', async (reads) => {
    const page = await reads.index(Member, 'ByScore', {}, { reverse: true, limit: 1 })
    return page.rows()
  })
  await expect(rows).rejects.toThrow(/IDX-2: index ByScore has an entry of no row/)
})

test('IDX-2: without a common moment, a row that no longer fits its entry is left out', async () => {
  const { db } = tablesBench(photoApp)
  const ann = rootKey(User, { user_id: 1n })
  const photo = (photo_id: number) => ({ user_id: 1n, photo_id, time: 5n, full_url: 'x' })
  await db.transaction(ann, async (tx) => {
    for (const one of [1, 2, 3]) await tx.insert(Photo, photo(one))
  })
  const { value } = await db.read(ann, 'inconsistent', async (rows) => {
    const page = await rows.index(Photo, 'PhotosByTime', { user_id: 1n, time: 5n })
    await db.transaction(ann, async (tx) => {
      await tx.update(Photo, { user_id: 1n, photo_id: 1 }, { time: 6n })
      await tx.delete(Photo, { user_id: 1n, photo_id: 3 })
    })
    return [page.items.length, (await page.rows()).map(({ photo_id }) => photo_id)]
  })
  expect(value).toEqual([3, [2]])
})

const Order = table('Order', {
  team: t.string(),
  name: t.string(),
  rank: t.sequence(),
  note: t.string(),
})
  .key('team', 'name')
  .childOf(Team)
  .localIndex('ByRank', ['rank'], { storing: ['note'] })
  .localIndex('ByNote', ['note'], { storing: ['rank'] })
const orders = defineSchema('Orders', [Team, Order])

test('IDX-1: a number beside the key is filled in where the row, its entries and what they store have it', async () => {
  const { db } = tablesBench(orders)
  const order = (name: string, note: string) => ({ team: 'red', name, note })
  await db.transaction(red, async (tx) => {
    await tx.insert(Order, order('b', 'x'))
    await tx.insert(Order, order('a', 'y'))
    const own = tx.get(Order, { team: 'red', name: 'b' })
    await expect(own).rejects.toThrow(/whose number is known only after commit/)
  })
  await db.transaction(red, (tx) => tx.put(Order, order('b', 'z')))
  const { value } = await db.read(red, 'current', async (rows) => ({
    rows: (await rows.scan(Order, {})).items,
    byRank: (await rows.index(Order, 'ByRank', { rank: { lte: 2 } })).items,
    byNote: (await rows.index(Order, 'ByNote', {})).items,
  }))
  const [a, b] = [
    { team: 'red', name: 'a', rank: 2, note: 'y' },
    { team: 'red', name: 'b', rank: 1, note: 'z' },
  ]
  expect(value).toEqual({ rows: [a, b], byRank: [b, a], byNote: [a, b] })
  expect((await db.checkIndexes(red)).faults).toEqual([])
})

test('IDX-1: a value too large for an index is refused with its name, and leaves nothing', async () => {
  const { db } = tablesBench(teams)
  await db.transaction(red, async (tx) => {
    const long = tx.insert(Member, member('x'.repeat(1024)))
    await expect(long).rejects.toThrow(
      /an entry of index ByEmail is too large: \d+ bytes, keyBytesMax/,
    )
    await tx.insert(Member, member('a'))
  })
  expect(await db.checkIndexes(red)).toEqual({ rows: 1, entries: 2, faults: [] })
})

test('a global index is not read inside a group', async () => {
  const { db } = tablesBench(photoApp)
  const ann = rootKey(User, { user_id: 1n })
  const read = db.read(ann, 'current', (rows) => rows.index(Photo, 'PhotosByTag', { tag: 'a' }))
  await expect(read).rejects.toThrow(/index "PhotosByTag" is global/)
})

const Task = table('Task', {
  team: t.string(),
  task: t.int32(),
  due: t.timestamp().optional(),
  mail: t.string().optional(),
  place: t.message({ room: t.string() }).optional(),
  step: t.message({ name: t.string().optional(), by: t.string() }).repeated(),
})
  .key('team', 'task')
  .in(Team)
  .localIndex('ByDue', ['due', 'task'], { storing: ['mail'] })
  .localIndex('ByLatest', [desc('due')])
  .localIndex('ByMail', ['mail'], { unique: true })
  .localIndex('ByRoom', ['place.room'], { wherePresent: true })
  .localIndex('ByStep', ['step.name', 'step.by'])
const tasks = defineSchema('Tasks', [Team, Task])

test('IDX-1: a row without an optional part has its entry, before all values', async () => {
  const { db } = tablesBench(tasks)
  const task = (number: number, more: object) => ({ team: 'red', task: number, ...more })
  await db.transaction(red, async (tx) => {
    await tx.insert(Task, task(1, { due: 5 }))
    await tx.insert(Task, task(2, { mail: 'a', place: { room: 'x' } }))
    await tx.insert(Task, task(3, { due: -5, step: [{ by: 'z' }, { by: 'z', name: 'n' }] }))
    await tx.insert(Task, task(4, {}))
  })
  const { value } = await db.read(red, 'current', async (rows) => {
    const numbers = (page: { items: readonly { task: number }[] }): readonly number[] =>
      page.items.map((one) => one.task)
    return {
      all: (await rows.index(Task, 'ByDue', {})).items,
      absent: numbers(await rows.index(Task, 'ByDue', { due: null })),
      one: numbers(await rows.index(Task, 'ByDue', { due: null, task: { gt: 2 } })),
      below: numbers(await rows.index(Task, 'ByDue', { due: { lt: 9 } })),
      above: numbers(await rows.index(Task, 'ByDue', { due: { gte: -5 } })),
      latest: numbers(await rows.index(Task, 'ByLatest', {})),
      latestBelow: numbers(await rows.index(Task, 'ByLatest', { due: { lte: 5 } })),
      latestAbove: numbers(await rows.index(Task, 'ByLatest', { due: { gt: -9 } })),
      rooms: numbers(await rows.index(Task, 'ByRoom', {})),
      steps: (await rows.index(Task, 'ByStep', {})).items,
      rows: (await (await rows.index(Task, 'ByDue', { due: null })).rows()).map((one) => one.task),
    }
  })
  expect(value).toEqual({
    all: [task(2, { mail: 'a' }), task(4, {}), task(3, { due: -5 }), task(1, { due: 5 })],
    absent: [2, 4],
    one: [4],
    below: [3, 1],
    above: [3, 1],
    latest: [1, 3, 2, 4],
    latestBelow: [1, 3],
    latestAbove: [1, 3],
    rooms: [2],
    steps: [task(3, { 'step.by': 'z' }), task(3, { 'step.by': 'z', 'step.name': 'n' })],
    rows: [2, 4],
  })
  expect(await db.checkIndexes(red)).toEqual({ rows: 4, entries: 15, faults: [] })
})

test('IDX-1: a unique index has each value once, and rows without one as often as they come', async () => {
  const { db } = tablesBench(tasks)
  const put = (task: number, mail?: string) =>
    db.transaction(red, (tx) => tx.put(Task, { team: 'red', task, ...(mail && { mail }) }))
  await put(1)
  await put(2)
  await put(3, 'a')
  await expect(put(1, 'a')).rejects.toMatchObject({ code: 'already-exists' })
  await put(3)
  await put(1, 'a')
  const { value } = await db.read(red, 'current', (rows) => rows.index(Task, 'ByMail', {}))
  expect(value.items.map(({ task, mail }) => [task, mail])).toEqual([
    [2, undefined],
    [3, undefined],
    [1, 'a'],
  ])
})

test('IDX-1: null selects absent parts, and only of a part that may be absent', async () => {
  const { db } = tablesBench(tasks)
  const ask = (name: 'ByRoom' | 'ByStep', query: object) =>
    db.read(red, 'current', (rows) => rows.index(Task, name, query))
  await expect(ask('ByRoom', { 'place.room': null })).rejects.toThrow(/place.room is null/)
  await expect(ask('ByStep', { 'step.name': 'n', 'step.by': null })).rejects.toThrow(
    /step.by is null/,
  )
})
