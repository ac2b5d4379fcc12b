/** TTL and EXPIRES AT: rows that a read sees until they have expired, and that are removed soon after. */
import { expect, test, vi } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { ExpiryWorker } from '../../src/tables/expiry-worker.ts'
import { expiryNote } from '../../src/tables/expiry.ts'
import { applySchema } from '../../src/tables/registry.ts'
import { rootKey, type Tables } from '../../src/tables/tables.ts'
import { Sessions } from '../../src/txn/session.ts'
import { worklistBounds } from '../../src/worklist/worklist-worker.ts'
import { testRandom } from '../txn/test-ports.ts'
import { globalBench, type GlobalBench, type RelayNode } from './global-bench.ts'

const User = table('User', { user: t.int32() }).key('user').root()
const Session = table('Session', { user: t.int32(), name: t.string(), mail: t.string() })
  .key('user', 'name')
  .in(User, { ttl: '10 seconds', onDelete: 'cascade' })
  .localIndex('ByMail', ['mail'], { unique: true })
  .globalIndex('EveryMail', ['mail'])
  .inlineIndex('Mails', User, ['user', 'mail'])
const Offer = table('Offer', { user: t.int32(), offer: t.int32(), ends: t.timestamp().optional() })
  .key('user', 'offer')
  .in(User, { expiresAt: 'ends' })
  .localIndex('ByEnd', ['ends'])
const Step = table('Step', { user: t.int32(), name: t.string(), step: t.int32() })
  .key('user', 'name', 'step')
  .in(Session)
const schema = defineSchema('Sessions', [User, Session, Offer, Step])
const one = rootKey(User, { user: 1 })
const mary = { user: 1, name: 'mary', mail: 'mary@x.org' }
const maryKey = { user: 1, name: 'mary' }
const second = 1_000_000

interface Bench extends Pick<GlobalBench, 'run' | 'world'> {
  readonly node: RelayNode
  readonly db: Tables<typeof schema.tables>
  readonly worker: ExpiryWorker
  sleep(seconds: number): Promise<unknown>
}

async function begin(): Promise<Bench> {
  const bench = globalBench()
  const { run, world } = bench
  const node = bench.node('a')
  const { replica, clock, groups } = node
  const random = testRandom()
  const options = { clock, random, intents: new Sessions(clock, random) }
  await run(applySchema(groups, schema.model, options))
  const worker = new ExpiryWorker({
    ...{ replica, clock, random, schemaTrustMs: 1_000 },
    bounds: { ...worklistBounds, lookMs: 100 },
  })
  const db = bench.open(schema, node)
  return { run, world, node, db, worker, sleep: (s) => run(world.sleep(s * second)) }
}

/** All that reads of every kind show of sessions. */
function everySession({ db, run }: Bench): Promise<readonly number[]> {
  const shown = async (): Promise<readonly number[]> => {
    const { value } = await db.read(one, 'current', async (rows) => {
      const page = await rows.index(Session, 'ByMail', { mail: mary.mail })
      const withMails = await rows.getWith(User, { user: 1 }, Session, 'Mails')
      return [
        Number((await rows.get(Session, maryKey)) !== undefined),
        (await rows.getMany(Session, [maryKey])).filter((row) => row !== undefined).length,
        (await rows.scan(Session, {})).items.length,
        (await rows.scanTree(User, { user: 1 })).items.filter((item) => item.table === 'Session')
          .length,
        page.items.length,
        (await page.rows()).length,
        withMails?.Mails.length ?? 0,
      ]
    })
    const globally = await db.index(Session, 'EveryMail', { mail: mary.mail })
    return [...value, globally.items.length, (await globally.rows()).length]
  }
  return run(shown())
}

const seen = [1, 1, 1, 1, 1, 1, 1, 1, 1]
const unseen = seen.map(() => 0)

/** An entry of the group's log, by which its time goes on. */
function tick({ db, run }: Bench): Promise<unknown> {
  return run(db.transaction(one, (tx) => tx.put(User, { user: 1 })))
}

test('TTL-1: a row that has expired at the timestamp of a read is in none, of whatever kind', async () => {
  const bench = await begin()
  const { db, run, node } = bench
  node.relay.start()
  await tick(bench)
  const { timestamp } = await run(db.transaction(one, (tx) => tx.insert(Session, mary)))
  await bench.sleep(5)
  expect(await everySession(bench)).toEqual(seen)
  await bench.sleep(5)
  await tick(bench)
  expect(await everySession(bench)).toEqual(unseen)
  const at = async (moment: number): Promise<number> => {
    const { value } = await run(
      db.read(one, { at: moment }, async (rows) => (await rows.scan(Session, {})).items.length),
    )
    return value
  }
  const made = Number(timestamp)
  expect(await at(made)).toBe(1)
  expect(await at(made + 10 * second - 1)).toBe(1)
  expect(await at(made + 10 * second)).toBe(0)
  await run(node.relay.stop())
})

test('TTL-1: a row that has expired is no row for those who write', async () => {
  const bench = await begin()
  const { db, run } = bench
  await tick(bench)
  await run(db.transaction(one, (tx) => tx.insert(Session, mary)))
  const other = { ...mary, name: 'other' }
  const taken = run(db.transaction(one, (tx) => tx.insert(Session, other)))
  await expect(taken).rejects.toMatchObject({ code: 'already-exists' })
  await bench.sleep(10)
  await tick(bench)
  const updated = run(db.transaction(one, (tx) => tx.update(Session, maryKey, { mail: 'x' })))
  await expect(updated).rejects.toMatchObject({ code: 'not-found' })
  await run(db.transaction(one, (tx) => tx.insert(Session, other)))
  await run(db.transaction(one, (tx) => tx.delete(Session, { user: 1, name: 'other' })))
  await run(db.transaction(one, (tx) => tx.insert(Session, { ...mary, mail: 'new' })))
  const { value } = await run(
    db.read(one, 'current', async (rows) => [
      ...(await rows.scan(Session, {})).items,
      ...(await rows.index(Session, 'ByMail', {})).items,
    ]),
  )
  expect(value).toEqual([
    { ...mary, mail: 'new' },
    { ...mary, mail: 'new' },
  ])
  expect(await run(db.checkIndexes(one))).toMatchObject({ faults: [] })
})

test('TTL-1: a row expires at the moment that it has, and one without it stays', async () => {
  const bench = await begin()
  const { db, run, node } = bench
  await tick(bench)
  const ends = node.clock.wallMicros() + 3 * second
  await run(
    db.transaction(one, async (tx) => {
      await tx.put(Offer, { user: 1, offer: 1, ends })
      await tx.put(Offer, { user: 1, offer: 2 })
      await tx.put(Offer, { user: 1, offer: 3, ends: 1n })
      expect((await tx.scan(Offer, {})).items.map(({ offer }) => offer)).toEqual([1, 2])
    }),
  )
  const offers = async (): Promise<readonly unknown[]> => {
    const { value } = await run(
      db.read(one, 'current', async (rows) => [
        (await rows.scan(Offer, {})).items.map(({ offer }) => offer),
        (await rows.index(Offer, 'ByEnd', {}, { limit: 1 })).items.map(({ offer }) => offer),
      ]),
    )
    return value
  }
  expect(await offers()).toEqual([[1, 2], [2]])
  await bench.sleep(3)
  await tick(bench)
  expect(await offers()).toEqual([[2], [2]])
  const read = run(db.read(one, 'inconsistent', (rows) => rows.scan(Offer, {})))
  await expect(read).rejects.toMatchObject({ code: 'invalid' })
})

test('TTL-2: expired rows are removed within a minute, with their entries, and renewed ones stay', async () => {
  const bench = await begin()
  const { db, run, node, worker } = bench
  node.relay.start()
  worker.start()
  const group = db.group(one)
  await tick(bench)
  for (const name of ['a', 'b']) {
    await run(db.transaction(one, (tx) => tx.insert(Session, { user: 1, name, mail: name })))
  }
  await bench.sleep(8)
  await run(db.transaction(one, (tx) => tx.put(Session, { user: 1, name: 'b', mail: 'b' })))
  await bench.sleep(8)
  // Nothing was written since: the worker had the log go on.
  expect(node.replica.rowsOf(group).filter(({ key }) => key[0] === 1)).toHaveLength(2)
  const read = await run(db.read(one, 'current', (rows) => rows.scan(Session, {})))
  expect(read.value.items.map(({ name }) => name)).toEqual(['b'])
  await bench.sleep(60)
  expect(node.replica.rowsOf(group).map(({ key }) => key[0])).toEqual([1])
  const entries = await run(db.index(Session, 'EveryMail', {}).then(({ items }) => items))
  expect(entries).toEqual([])
  expect(worker.figures).toMatchObject({ removed: 2, heldBack: 0, failures: 0 })
  expect(worker.figures.lagMaxMs).toBeLessThan(60_000)
  expect(node.replica.get(group, expiryNote)).toBeUndefined()
  await run(Promise.all([node.relay.stop(), worker.stop()]))
})

test('TTL-2: a row stays while rows that restrict are below it, and goes after them', async () => {
  const bench = await begin()
  const { db, run, node, worker } = bench
  node.relay.start()
  worker.start()
  const step = { user: 1, name: 'mary', step: 1 }
  await run(
    db.transaction(one, async (tx) => {
      await tx.insert(Session, mary)
      await tx.insert(Step, step)
    }),
  )
  await bench.sleep(60)
  expect(worker.figures).toMatchObject({ removed: 0, failures: 0 })
  expect(worker.figures.heldBack).toBeGreaterThan(0)
  await run(db.transaction(one, (tx) => tx.delete(Step, step)))
  await bench.sleep(60)
  expect(worker.figures).toMatchObject({ removed: 1 })
  expect(node.replica.rowsOf(db.group(one))).toEqual([])
  await run(Promise.all([node.relay.stop(), worker.stop()]))
})

test('TTL-2: a clock that is ahead removes no row that the log has not passed', async () => {
  const bench = await begin()
  const { db, run, node } = bench
  const ahead: typeof node.clock = {
    wallMicros: () => node.clock.wallMicros() + 3_600 * second,
    monotonicMs: () => node.clock.monotonicMs(),
    setTimer: (delayMs, wake) => node.clock.setTimer(delayMs, wake),
    defer: (wake) => node.clock.defer(wake),
  }
  const { replica } = node
  const worker = new ExpiryWorker({
    ...{ replica, clock: ahead, random: testRandom(2), schemaTrustMs: 1_000 },
    bounds: { ...worklistBounds, lookMs: 100 },
  })
  worker.start()
  await tick(bench)
  await run(db.transaction(one, (tx) => tx.insert(Session, mary)))
  await bench.sleep(7)
  expect((await run(db.read(one, 'current', (rows) => rows.get(Session, maryKey)))).value).toEqual(
    mary,
  )
  expect(worker.figures).toMatchObject({ removed: 0, failures: 0 })
  await bench.sleep(20)
  expect(worker.figures).toMatchObject({ removed: 1 })
  await run(worker.stop())
})

test('TTL-2: a clock that is behind the log has no group looked through over and over', async () => {
  const bench = await begin()
  const { db, run, node } = bench
  const behind: typeof node.clock = {
    wallMicros: () => node.clock.wallMicros() - 40 * second,
    monotonicMs: () => node.clock.monotonicMs(),
    setTimer: (delayMs, wake) => node.clock.setTimer(delayMs, wake),
    defer: (wake) => node.clock.defer(wake),
  }
  const { replica } = node
  const worker = new ExpiryWorker({
    ...{ replica, clock: behind, random: testRandom(2), schemaTrustMs: 1_000, sweepMs: 100 },
    bounds: { ...worklistBounds, lookMs: 100 },
  })
  worker.start()
  await run(db.transaction(one, (tx) => tx.insert(Session, mary)))
  await bench.sleep(2)
  const scans = vi.spyOn(replica, 'scan')
  // By the time of the log the row expires ten seconds from now, for as long as the log stands still.
  await bench.sleep(47)
  // The worker knows from its last look that nothing has expired.
  expect(scans.mock.calls.length).toBe(0)
  await bench.sleep(20)
  expect(worker.figures).toMatchObject({ removed: 1, failures: 0 })
  await run(worker.stop())
})

test('TTL-2: a row that is written anew while it is removed stays', async () => {
  const bench = await begin()
  const { db, run, node, worker } = bench
  await run(db.transaction(one, (tx) => tx.insert(Session, mary)))
  await bench.sleep(20)
  await tick(bench)
  const { submit } = node.replica
  let removals = 0
  node.replica.submit = async (submission, timeoutMs) => {
    const isRemoval = submission.mutations.some(
      ({ value, key }) => value === undefined && key[0] === 1,
    )
    if (isRemoval && removals++ === 0) {
      await db.transaction(one, (tx) => tx.put(Session, mary))
    }
    return submit.call(node.replica, submission, timeoutMs)
  }
  worker.start()
  await bench.sleep(2)
  expect(removals).toBe(1)
  expect((await run(db.read(one, 'current', (rows) => rows.get(Session, maryKey)))).value).toEqual(
    mary,
  )
  expect(worker.figures).toMatchObject({ removed: 0, failures: 0 })
  await run(worker.stop())
})

test('TAB-9: a row that has expired keeps no other one', async () => {
  const bench = await begin()
  const { db, run } = bench
  const ends = bench.node.clock.wallMicros() + second
  await run(
    db.transaction(one, async (tx) => {
      await tx.put(User, { user: 1 })
      await tx.put(Offer, { user: 1, offer: 1, ends })
    }),
  )
  const deleted = (): Promise<unknown> =>
    run(db.transaction(one, (tx) => tx.delete(User, { user: 1 })))
  await expect(deleted()).rejects.toMatchObject({ code: 'invalid' })
  await bench.sleep(1)
  await tick(bench)
  await deleted()
})
