/** Rows that are purged, and rows that are held. */
import { expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { purgeNoteKey } from '../../src/group/purge-note.ts'
import { ExpiryWorker } from '../../src/tables/expiry-worker.ts'
import { HoldCount } from '../../src/tables/hold-count.ts'
import { clearHold, listHolds, setHold, type HoldScope } from '../../src/tables/holds.ts'
import { applySchema } from '../../src/tables/registry.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { Sessions } from '../../src/txn/session.ts'
import { worklistBounds } from '../../src/worklist/worklist-worker.ts'
import { testRandom } from '../txn/test-ports.ts'
import { globalBench } from './global-bench.ts'

const User = table('User', { user: t.int32(), name: t.string().optional() }).key('user').root()
const Letter = table('Letter', { user: t.int32(), letter: t.int32(), text: t.string() })
  .key('user', 'letter')
  .in(User, { onDelete: 'cascade' })
const Token = table('Token', { user: t.int32(), token: t.int32() })
  .key('user', 'token')
  .in(User, { ttl: '10 seconds', onDelete: 'cascade' })
const schema = defineSchema('Letters', [User, Letter, Token])
const one = rootKey(User, { user: 1 })
const letter = { user: 1, letter: 1 }

async function begin() {
  const { run, world, node: nodeOf, open } = globalBench()
  const node = nodeOf('a')
  const { replica, clock, groups } = node
  const random = testRandom()
  const options = { clock, random, intents: new Sessions(clock, random) }
  await run(applySchema(groups, schema.model, options))
  const db = open(schema, node)
  const group = db.group(one)
  const write = (work: Parameters<typeof db.transaction>[1]) => run(db.transaction(one, work))
  const hold = (scope: HoldScope) =>
    run(setHold(groups, group, { scope, reason: 'case 17' }, options))
  const setGroup = (reason: string) => setHold(groups, group, { scope: ['group'], reason }, options)
  const clear = (scope: HoldScope) => run(clearHold(groups, group, scope, options))
  const list = () => run(listHolds(groups, group, { clock, timeoutMs: 1_000 }))
  const letters = async (at?: number): Promise<readonly string[]> => {
    const level = at === undefined ? 'current' : { at }
    const { value } = await run(db.read(one, level, async (rows) => rows.scan(Letter, {})))
    return value.items.map(({ text }) => text)
  }
  const sleep = (seconds: number) => run(world.sleep(seconds * 1_000_000))
  return { run, sleep, db, group, replica, clock, write, hold, setGroup, clear, list, letters }
}

test('PURGE-1: a purged row has no version left to read, and the group is read on from there', async () => {
  const { write, letters, replica, group } = await begin()
  await write((tx) => tx.put(Letter, { ...letter, text: 'first' }))
  const second = await write((tx) => tx.put(Letter, { ...letter, text: 'second' }))
  await write((tx) => tx.put(Letter, { user: 1, letter: 2, text: 'other' }))
  const before = second.timestamp ?? 0
  expect(await letters(before)).toEqual(['second'])
  await write((tx) => tx.delete(Letter, letter))
  expect(await letters(before)).toEqual(['second'])
  const purged = await write((tx) => tx.purge(Letter, letter))
  const tooOld = { code: 'snapshot-too-old', message: expect.stringContaining('were purged at') }
  await expect(letters(before)).rejects.toMatchObject(tooOld)
  expect(await letters(purged.timestamp)).toEqual(['other'])
  expect(await letters()).toEqual(['other'])
  const note = replica.get(group, purgeNoteKey)
  expect(Buffer.from(note?.value ?? []).toString()).toBe('purged Letter (user 1, letter 1)')
  // Sent again, and a row of that key may come anew.
  await write((tx) => tx.purge(Letter, letter))
  await write((tx) => tx.put(Letter, { ...letter, text: 'new' }))
  expect(await letters()).toEqual(['new', 'other'])
})

test('HOLD-1: a held group refuses every deletion and purge with the reason, and lets writes go on', async () => {
  const { write, hold, clear, list, letters } = await begin()
  await write((tx) => tx.put(Letter, { ...letter, text: 'first' }))
  await hold(['group'])
  const held = { code: 'invalid', message: expect.stringContaining('is held (case 17)') }
  await expect(write((tx) => tx.delete(Letter, letter))).rejects.toMatchObject(held)
  await expect(write((tx) => tx.purge(Letter, letter))).rejects.toMatchObject(held)
  await expect(write((tx) => tx.delete(User, { user: 1 }))).rejects.toMatchObject(held)
  await write((tx) => tx.put(Letter, { ...letter, text: 'second' }))
  expect(await letters()).toEqual(['second'])
  expect(await list()).toMatchObject([{ scope: ['group'], reason: 'case 17' }])
  expect(await clear(['group'])).toBe(true)
  expect(await clear(['group'])).toBe(false)
  await write((tx) => tx.delete(Letter, letter))
  expect(await list()).toEqual([])
})

test('HOLD-1: a held table keeps its rows, also from a deletion above them, and no others', async () => {
  const { write, hold, letters } = await begin()
  await write((tx) => tx.put(Letter, { ...letter, text: 'first' }))
  await write((tx) => tx.put(User, { user: 1 }))
  await hold(['table', 'Letter'])
  const held = { code: 'invalid', message: expect.stringContaining('is held') }
  await expect(write((tx) => tx.delete(User, { user: 1 }))).rejects.toMatchObject(held)
  await write((tx) => tx.delete(Token, { user: 1, token: 1 }))
  expect(await letters()).toEqual(['first'])
})

test('HOLD-1: rows of a held group that have expired stay, and go when the hold is lifted', async () => {
  const { run, sleep, db, write, hold, clear, replica, clock, group } = await begin()
  const worker = new ExpiryWorker({
    ...{ replica, clock, random: testRandom(7), schemaTrustMs: 1_000 },
    bounds: { ...worklistBounds, lookMs: 100 },
  })
  await write((tx) => tx.put(Token, { user: 1, token: 1 }))
  await hold(['group'])
  worker.start()
  await sleep(60)
  expect(worker.figures).toMatchObject({ removed: 0, failures: 0 })
  expect(worker.figures.heldBack).toBeGreaterThan(0)
  expect(worker.figures.oldestDueMs).toBeGreaterThan(30_000)
  const stored = async () => (await replica.scan(group, {})).filter(({ key }) => key[0] === 1)
  expect(await run(stored())).toHaveLength(1)
  // It is not shown meanwhile: a hold keeps what is there, and brings nothing back.
  const shown = await run(db.read(one, 'current', async (rows) => rows.scan(Token, {})))
  expect(shown.value.items).toEqual([])
  await clear(['group'])
  await sleep(30)
  expect(worker.figures.removed).toBe(1)
  expect(await run(stored())).toEqual([])
  await run(worker.stop())
})

test('HOLD-1: a hold and a deletion of the same moment are put in order, and one sees the other', async () => {
  const { run, db, write, setGroup, letters } = await begin()
  await write((tx) => tx.put(Letter, { ...letter, text: 'first' }))
  let isHeld = false
  const deletion = run(
    db.transaction(one, async (tx) => {
      await tx.delete(Letter, letter)
      if (!isHeld) await setGroup('case 17')
      isHeld = true
    }),
  )
  await expect(deletion).rejects.toMatchObject({ message: expect.stringContaining('is held') })
  expect(await letters()).toEqual(['first'])
})

test.each(['', '  ', 'x'.repeat(501)])('a hold is refused whose reason is "%s"', async (reason) => {
  const { run, setGroup } = await begin()
  const message = expect.stringContaining('1 to 500 characters')
  await expect(run(setGroup(reason))).rejects.toMatchObject({ code: 'invalid', message })
})

test('a node counts the holds that it has, and not more often than every half minute', async () => {
  const { hold, clear, replica, clock, sleep } = await begin()
  const failures: unknown[] = []
  const count = new HoldCount({ replica, clock, onFailed: (error) => failures.push(error) })
  const look = async (): Promise<number | undefined> => {
    count.refresh()
    await sleep(1)
    return count.held
  }
  expect(count.held).toBeUndefined()
  expect(await look()).toBe(0)
  await hold(['group'])
  await hold(['table', 'Letter'])
  expect(await look()).toBe(0)
  await sleep(30)
  expect(await look()).toBe(2)
  await clear(['group'])
  await clear(['table', 'Letter'])
  await sleep(30)
  expect(await look()).toBe(0)
  expect(failures).toEqual([])
})
