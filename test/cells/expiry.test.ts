/** TTLs of columns: cells that a read sees until they have expired, and that are removed soon after. */
import { expect, test } from 'vitest'
import { CellExpiryWorker } from '../../src/cells/cell-expiry-worker.ts'
import {
  cellExpiryNote,
  findShardGroup,
  purgedRefKey,
  shardKey,
} from '../../src/cells/cell-table.ts'
import {
  checkTtl,
  clearColumnTtl,
  readColumnTtls,
  setColumnTtl,
} from '../../src/cells/column-ttl.ts'
import { getNow } from '../../src/cells/get-now.ts'
import { compareCellIndex } from '../../src/cells/index-build.ts'
import { applyIndex } from '../../src/cells/index-registry.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { worklistBounds } from '../../src/worklist/worklist-worker.ts'
import { testRandom } from '../txn/test-ports.ts'
import { ann, bench, declared, definition, type DriverBench } from './driver-index.ts'
import { any, ask, current, datastore, get, log, rowKey } from './kit.ts'
import { makeReady } from './ready-index.ts'

const row = rowKey(1)
const shard = shardOf(row)
const of = { datastore, shard }
const ttl = 3_600

function cell(refKey: number, column = 'BASE'): { rowKey: string; column: string; refKey: number } {
  return { rowKey: row, column, refKey }
}

interface Expiring extends DriverBench {
  readonly worker: CellExpiryWorker
  sleep(seconds: number): Promise<unknown>
  /** An entry of the shard's log, by which its time goes on. */
  tick(): Promise<unknown>
}

/** Cells of BASE and LOG live an hour, those of STATUS stay. */
async function begin(): Promise<Expiring> {
  const one = bench()
  const { world, run, store, tables, clock, replica } = one
  for (const column of ['BASE', 'LOG']) await run(setColumnTtl(tables, datastore, { column, ttl }))
  const worker = new CellExpiryWorker({
    ...{ replica, clock, random: testRandom(), expiring: store.expiring },
    bounds: { ...worklistBounds, lookMs: 100 },
  })
  const sleep = async (seconds: number): Promise<void> => {
    for (let left = seconds; left > 0; left -= 1_000) {
      await run(world.sleep(Math.min(left, 1_000) * 1_000_000))
    }
  }
  let ticks = 0
  const tick = (): Promise<unknown> => one.write(1, 'TICK', (ticks += 1), {})
  return { ...one, worker, sleep, tick }
}

/** The ref keys of BASE that each way of reading shows. */
async function everyWay({ store, run, replica }: Expiring, refKey: number): Promise<unknown> {
  const read = current
  const isOfBase = ({ column }: { readonly column: string }): boolean => column === 'BASE'
  const refOf = (found: { readonly refKey: number } | undefined) => found?.refKey
  replica.isAtOnce = true
  const now = getNow(replica, { kind: 'get', datastore, read, items: [cell(refKey)] })?.answer
  replica.isAtOnce = false
  const versions = { kind: 'versions', datastore, read, rowKey: row, column: 'BASE' } as const
  const all = { kind: 'row', datastore, read, rowKey: row, limit: 10 } as const
  const batch = { kind: 'get', datastore, read, items: [cell(refKey), cell(refKey)] } as const
  const ofBatch = (await run(ask(store, batch))).items
  const page = async (reverse: boolean): Promise<readonly number[]> => {
    const asked = await run(ask(store, { ...versions, limit: 10, reverse }))
    return asked.page.cells.map((found) => found.refKey)
  }
  return {
    now: now?.kind === 'get' && now.items[0]?.kind === 'ok' ? refOf(now.items[0].value) : 'wrong',
    get: refOf(await run(get(store, cell(refKey)))),
    batch: ofBatch.map((one) => (one.kind === 'ok' ? refOf(one.value) : one.problem)),
    latest: refOf(
      (await run(ask(store, { ...batch, items: [{ rowKey: row, column: 'BASE' }] }))).items.map(
        (one) => (one.kind === 'ok' ? one.value : undefined),
      )[0],
    ),
    versions: await page(false),
    falling: await page(true),
    row: (await run(ask(store, all))).page.cells.filter(isOfBase).map(refOf),
    log: (await run(log(store, { kind: 'after', shard, addedId: 0 }))).cells
      .filter(isOfBase)
      .map(refOf),
  }
}

const shown = (refKey: number): unknown => ({
  ...{ now: refKey, get: refKey, batch: [refKey, refKey], latest: refKey },
  ...{ versions: [refKey], falling: [refKey], row: [refKey], log: [refKey] },
})
const unseen = {
  ...{ now: undefined, get: undefined, batch: [undefined, undefined], latest: undefined },
  ...{ versions: [], falling: [], row: [], log: [] },
}

test('TTL-3: a cell that has expired at the timestamp of a read is in none, of whatever kind', async () => {
  const one = await begin()
  await one.write(1, 'BASE', 5, { n: 1 })
  await one.sleep(ttl - 1)
  await one.tick()
  expect(await everyWay(one, 5)).toEqual(shown(5))
  await one.sleep(2)
  await one.tick()
  expect(await everyWay(one, 5)).toEqual(unseen)
  // The replica of another timestamp goes by that one.
  expect((await one.run(log(one.store, { kind: 'after', shard, addedId: 0 }))).next).toBe(3)
})

test('CELL-2: the latest of a column is the highest ref key of those that have not expired', async () => {
  const one = await begin()
  await one.write(1, 'BASE', 9, { n: 1 })
  await one.sleep(1_800)
  await one.write(1, 'BASE', 4, { n: 2 })
  expect(await one.run(get(one.store, cell(9)))).toBeDefined()
  await one.sleep(1_900)
  await one.tick()
  expect(await everyWay(one, 4)).toEqual(shown(4))
})

test('TTL-3: a cell keeps the TTL of its put, whatever its column has later', async () => {
  const one = await begin()
  await one.write(1, 'BASE', 1, {})
  await one.run(setColumnTtl(one.tables, datastore, { column: 'BASE', ttl: 2 * ttl }))
  await one.sleep(20)
  await one.write(1, 'BASE', 2, {})
  await one.run(clearColumnTtl(one.tables, datastore, 'BASE'))
  await one.sleep(20)
  await one.write(1, 'BASE', 3, {})
  const living = async (): Promise<unknown> => {
    const asked = { kind: 'versions', datastore, read: any, rowKey: row, column: 'BASE' } as const
    const { page } = await one.run(ask(one.store, { ...asked, limit: 10, reverse: false }))
    return page.cells.map(({ refKey }) => refKey)
  }
  expect(await living()).toEqual([1, 2, 3])
  await one.sleep(ttl)
  await one.tick()
  expect(await living()).toEqual([2, 3])
  await one.sleep(ttl)
  await one.tick()
  expect(await living()).toEqual([3])
})

test('CELL-7: a cell that has expired is not written again, before it is removed and after', async () => {
  const one = await begin()
  await one.write(1, 'BASE', 5, { n: 1 })
  await one.sleep(ttl + 1)
  await one.tick()
  const again = { code: 'immutable', message: expect.stringContaining('has expired') }
  await expect(one.write(1, 'BASE', 5, { n: 1 })).rejects.toMatchObject(again)
  await expect(one.write(1, 'BASE', 5, { n: 2 })).rejects.toMatchObject(again)
  one.worker.start()
  await one.sleep(60)
  expect(one.worker.figures).toMatchObject({ removed: 1, failures: 0, oldestDueMs: 0 })
  await expect(one.write(1, 'BASE', 5, { n: 1 })).rejects.toMatchObject(again)
  await expect(one.write(1, 'BASE', 4, { n: 1 })).rejects.toMatchObject(again)
  expect(await one.write(1, 'BASE', 6, { n: 1 })).toMatchObject({ created: true })
  await one.run(one.worker.stop())
})

test('TTL-4: expired cells are removed within a minute with their places in the log, and no others', async () => {
  const one = await begin()
  for (let refKey = 1; refKey <= 70; refKey++) await one.write(1, 'BASE', refKey, {})
  await one.write(1, 'STATUS', 1, {})
  await one.sleep(1_800)
  for (let refKey = 71; refKey <= 73; refKey++) await one.write(1, 'BASE', refKey, {})
  one.worker.start()
  await one.sleep(1_700)
  expect(one.worker.figures.removed).toBe(0)
  // No client writes: the worker has the log pass the moment.
  await one.sleep(160)
  expect(one.worker.figures).toMatchObject({ removed: 70, failures: 0 })
  expect(one.worker.figures.lagMaxMs).toBeLessThan(60_000)
  const { cells, next } = await one.run(log(one.store, { kind: 'after', shard, addedId: 0 }))
  expect(cells.map(({ addedId }) => addedId)).toEqual([71, 72, 73, 74])
  expect(next).toBe(74)
  const { value } = await one.run(
    one.tables.read(shardKey(of), 'current', (rows) =>
      purgedRefKey(rows, of, { rowKey: row, column: 'BASE' }),
    ),
  )
  expect(value).toBe(70)
  await one.sleep(1_900)
  expect(one.worker.figures).toMatchObject({ removed: 73, busyGroups: 0 })
  expect(one.replica.get(findShardGroup(of), cellExpiryNote)).toBeUndefined()
  await one.run(one.worker.stop())
})

test('TTL-4: a clock that is ahead removes no cell that the log has not passed', async () => {
  const one = await begin()
  await one.write(1, 'BASE', 1, {})
  await one.sleep(1)
  await one.tick()
  const { expiring } = one.store
  const ahead = one.clock.wallMicros() + 2 * ttl * 1_000_000
  const swept = await one.run(expiring.sweep(of, ahead))
  expect(swept.removed).toEqual([])
  expect(swept.next).toBeLessThan(ahead)
  expect(await one.run(get(one.store, cell(1)))).toBeDefined()
})

test('CELL-3: a log of nothing but expired cells is passed over, page by page, and no place is lost', async () => {
  const one = await begin()
  for (let refKey = 1; refKey <= 25; refKey++) await one.write(1, 'BASE', refKey, {})
  await one.sleep(ttl + 1)
  await one.write(1, 'STATUS', 1, {})
  await one.write(1, 'STATUS', 2, {})
  const page = (addedId: number) =>
    one.run(log(one.store, { kind: 'after', shard, addedId }, { limit: 2 }))
  const first = await page(0)
  expect(first.cells.map(({ addedId }) => addedId)).toEqual([26])
  expect(first.next).toBe(26)
  expect((await page(26)).next).toBe(27)
  expect((await page(7)).cells).toHaveLength(2)
  expect(await page(27)).toMatchObject({ cells: [], next: 27 })
})

test('IDX-7: an index shows nothing of a cell that has expired, at once and after it is removed', async () => {
  const one = await begin()
  const { tables, clock, run, index } = one
  await run(applyIndex(tables, definition(), clock))
  // The TTLs are two changes before it.
  const parts = { ...one.parts, definition: { ...declared(), number: 3 } }
  await run(makeReady(tables, clock, parts.definition))
  await one.sleep(20)
  await one.write(1, 'BASE', 1, { driver: ann, at: '2026-01-05T00:00:00Z' })
  await one.write(1, 'STATUS', 1, { done: true })
  await one.rest()
  const found = async () => (await run(index.query({ driver: ann }))).items.length
  expect(await found()).toBe(1)
  await one.sleep(ttl)
  await one.tick()
  expect(await found()).toBe(0)
  expect((await run(compareCellIndex(parts))).faults).toEqual([])
  one.worker.start()
  await one.sleep(60)
  await one.rest()
  expect(await found()).toBe(0)
  expect(one.worker.figures.removed).toBe(1)
  expect((await run(compareCellIndex(parts))).faults).toEqual([])
  await one.run(one.worker.stop())
})

test('TTLs of columns are listed, and those that say nothing are refused with what is right', async () => {
  const { run, tables } = await begin()
  expect(await run(readColumnTtls(tables, datastore))).toEqual([
    { column: 'BASE', seconds: ttl, ttl: '1 HOURS' },
    { column: 'LOG', seconds: ttl, ttl: '1 HOURS' },
  ])
  await run(clearColumnTtl(tables, datastore, 'LOG'))
  expect(await run(readColumnTtls(tables, datastore))).toHaveLength(1)
  await expect(run(clearColumnTtl(tables, datastore, 'LOG'))).rejects.toMatchObject({
    code: 'not-found',
    message: expect.stringContaining('these have one: BASE'),
  })
  expect(checkTtl('30 DAYS')).toBe(30 * 86_400)
  for (const wrong of ['0 days', '30', '36501 days', 30, undefined]) {
    expect(() => checkTtl(wrong)).toThrow("such as '30 days'")
  }
})
