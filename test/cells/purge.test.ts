import { expect, test } from 'vitest'
import type { Json } from '../../src/cells/body.ts'
import type { CellName } from '../../src/cells/cell.ts'
import type { CellStore } from '../../src/cells/cell-store.ts'
import { cellVersion } from '../../src/cells/cell-table.ts'
import { purgeItemsMax } from '../../src/cells/limits.ts'
import type { Answer, PurgeCells } from '../../src/cells/operation.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import {
  any,
  ask,
  bodyOf,
  createBench,
  datastore,
  get,
  intents,
  log,
  passMs,
  put,
  rowKey,
  settled,
  type Bench,
} from './kit.ts'

const row = rowKey(1)
const shard = shardOf(row)
const never = Number.MAX_SAFE_INTEGER

function cell(refKey: number, column = 'BASE'): CellName {
  return { rowKey: row, column, refKey }
}

type Asked = Partial<Omit<PurgeCells, 'kind' | 'datastore' | 'shard'>>

async function purge(store: CellStore, asked: Asked = {}): Promise<number[]> {
  const pages: number[] = []
  let after: number | undefined = asked.after ?? 0
  while (after !== undefined) {
    const all: PurgeCells = {
      ...{ kind: 'purge', datastore, shard, before: never },
      ...{ keepLatest: true, limit: purgeItemsMax, ...asked, after },
    }
    const { purged, next }: Answer & { readonly kind: 'purge' } = await ask(store, all)
    pages.push(purged)
    after = next
  }
  return pages
}

interface Purging {
  readonly bench: Bench
  readonly store: CellStore
  run<Value>(work: Promise<Value>): Promise<Value>
  /** Columns and ref keys of the log, with their added ids. */
  logged(): Promise<string[]>
}

/** A store with these cells, put one after another: `BASE/0` and so on. */
async function storeOf(...names: readonly string[]): Promise<Purging> {
  const bench = createBench()
  const { store } = bench.node('n1')
  const run = <Value>(work: Promise<Value>): Promise<Value> => settled(bench.world, work)
  for (const name of names) {
    const [column = '', refKey] = name.split('/')
    await run(put(store, cell(Number(refKey), column), { name }))
    await passMs(bench.world, 10)
  }
  const logged = async (): Promise<string[]> => {
    const { cells } = await run(log(store, { kind: 'after', shard, addedId: 0 }))
    return cells.map(({ column, refKey, addedId }) => `${addedId} ${column}/${refKey}`)
  }
  return { bench, store, run, logged }
}

async function versions(store: CellStore, column = 'BASE'): Promise<number[]> {
  const asked = { kind: 'versions', datastore, read: any, rowKey: row, column } as const
  const { page } = await ask(store, { ...asked, limit: 1000, reverse: false })
  return page.cells.map(({ refKey }) => refKey)
}

test('CELL-7: superseded cells are gone on every path, and the latest stays', async () => {
  const { store, run, logged, bench } = await storeOf('BASE/0', 'BASE/2', 'STATUS/0', 'BASE/1')
  expect(await run(purge(store))).toEqual([2, 0])
  expect(await run(get(store, cell(0)))).toBeUndefined()
  expect(await run(get(store, cell(1)))).toBeUndefined()
  expect(await run(versions(store))).toEqual([2])
  expect(await logged()).toEqual(['2 BASE/2', '3 STATUS/0'])
  expect(bodyOf(await run(get(store, cell(2))))).toEqual({ name: 'BASE/2' })
  const all = { kind: 'row', datastore, read: any, rowKey: row, limit: 10 } as const
  const { page } = await run(ask(store, all))
  expect(page.cells.map(({ column, refKey }) => `${column}/${refKey}`)).toEqual([
    'BASE/2',
    'STATUS/0',
  ])
  const other = bench.node('n2').store
  expect(await run(get(other, cell(1)))).toBeUndefined()
  expect(await run(versions(other))).toEqual([2])
})

test('CELL-7: no writer can write a purged cell again, or an earlier one of its column', async () => {
  const { store, run } = await storeOf('BASE/3', 'BASE/5', 'BASE/7')
  await run(purge(store))
  const putOf = (refKey: number, body: Json, column = 'BASE'): Promise<unknown> =>
    run(put(store, cell(refKey, column), body).catch((error: unknown) => error))
  const refused = { code: 'immutable', message: expect.stringContaining('was purged') }
  expect(await putOf(5, { name: 'BASE/5' })).toMatchObject(refused)
  expect(await putOf(5, 'another')).toMatchObject(refused)
  expect(await putOf(4, 'never there')).toMatchObject(refused)
  expect(await putOf(6, 'between')).toMatchObject({ created: true, addedId: 4 })
  expect(await putOf(8, 'later')).toMatchObject({ created: true, addedId: 5 })
  expect(await putOf(0, 'another column', 'OTHER')).toMatchObject({ created: true })
  expect(await run(versions(store))).toEqual([6, 7, 8])
})

test('CELL-7: a put below a purged ref key finds a cell that is still there', async () => {
  const { store, run, bench } = await storeOf('BASE/9', 'BASE/5')
  const [before] = (await run(log(store, { kind: 'after', shard, addedId: 1 }))).cells
  await run(put(store, cell(3), 'younger'))
  await passMs(bench.world, 10)
  // Older than the third cell, and no latest: only the second one.
  expect(await run(purge(store, { before: (before?.createdAt ?? 0) + 1 }))).toEqual([1])
  expect(await run(versions(store))).toEqual([3, 9])
  expect(await run(put(store, cell(3), 'younger'))).toMatchObject({ created: false, addedId: 3 })
  await expect(run(put(store, cell(3), 'older'))).rejects.toThrow('another body')
  await expect(run(put(store, cell(4), 'older'))).rejects.toThrow('was purged')
})

test('CELL-8: a purge spares newer cells, other columns and, unless asked otherwise, the latest cell', async () => {
  const { store, run, logged } = await storeOf('BASE/0', 'LOG/0', 'BASE/1', 'LOG/1', 'BASE/2')
  const { cells } = await run(log(store, { kind: 'after', shard, addedId: 0 }))
  expect(await run(purge(store, { before: cells[0]?.createdAt ?? 0 }))).toEqual([0])
  expect(await run(purge(store, { before: cells[1]?.createdAt ?? 0 }))).toEqual([1])
  expect(await logged()).toEqual(['2 LOG/0', '3 BASE/1', '4 LOG/1', '5 BASE/2'])
  expect(await run(purge(store, { column: 'LOG' }))).toEqual([1, 0])
  expect(await logged()).toEqual(['3 BASE/1', '4 LOG/1', '5 BASE/2'])
  expect(await run(purge(store, { column: 'LOG', keepLatest: false }))).toEqual([1, 0])
  expect(await logged()).toEqual(['3 BASE/1', '5 BASE/2'])
  expect(await run(purge(store, { keepLatest: false }))).toEqual([2, 0])
  expect(await logged()).toEqual([])
  expect(await run(purge(store, { keepLatest: false }))).toEqual([0])
})

test('CELL-3: after a purge the log goes on by the ids that are there, from any place', async () => {
  const names = Array.from({ length: 10 }, (_, i) => `BASE/${i}`)
  const { store, run, bench } = await storeOf(...names, 'LOG/0', 'LOG/1')
  const before = await run(log(store, { kind: 'after', shard, addedId: 0 }))
  await run(purge(store, { before: before.cells[8]?.createdAt ?? 0 }))
  const ids = async (addedId: number, limit = 100): Promise<unknown> => {
    const page = await run(log(store, { kind: 'after', shard, addedId }, { limit }))
    return [page.cells.map((one) => one.addedId), page.next]
  }
  expect(await ids(0)).toEqual([[9, 10, 11, 12], 12])
  expect(await ids(3, 2)).toEqual([[9, 10], 10])
  expect(await ids(12)).toEqual([[], 12])
  for (const [i, { createdAt }] of before.cells.entries()) {
    const page = await run(log(store, { kind: 'since', shard, timestamp: createdAt }))
    expect(page.cells[0]?.addedId).toBe(Math.max(9, i + 1))
  }
  await run(purge(store, { keepLatest: false }))
  expect(await ids(0)).toEqual([[], 0])
  expect(await ids(7)).toEqual([[], 7])
  // Numbers go on: a reader that has come to 12 finds the next ones.
  expect(await run(put(store, cell(100), 'new'))).toMatchObject({ addedId: 13 })
  const waiting = log(store, { kind: 'after', shard, addedId: 13 }, { waitMs: 900 })
  await passMs(bench.world, 50)
  await run(purge(store, { keepLatest: false }))
  await run(put(store, cell(101), 'newer'))
  expect((await run(waiting)).cells.map(({ addedId }) => addedId)).toEqual([14])
})

test('a purge goes page by page, each a transaction, and is bounded', async () => {
  const bench = createBench()
  const { store } = bench.node('n1')
  const items = Array.from({ length: 450 }, (_, refKey) => put(store, cell(refKey), refKey))
  await settled(bench.world, Promise.all(items))
  const entries = bench.log.entryCount()
  expect(await settled(bench.world, purge(store))).toEqual([200, 200, 49, 0])
  expect(bench.log.entryCount()).toBe(entries + 3)
  const asked = { before: never, keepLatest: true, after: 0 }
  for (const [limit, code] of [
    [0, 'invalid'],
    [purgeItemsMax + 1, 'invalid'],
  ] as const) {
    const refused = store.execute(
      { kind: 'purge', datastore, shard, ...asked, limit },
      { timeoutMs: 99 },
    )
    const { answer } = await settled(bench.world, refused)
    expect(answer).toMatchObject({ kind: 'problem', problem: { code } })
  }
})

test('CELL-8: cells put while a purge goes on stay, and are numbered on', async () => {
  const bench = createBench()
  const [a, b] = [bench.node('n1').store, bench.node('n2').store]
  for (let i = 0; i < 50; i++) await settled(bench.world, put(a, cell(i), i))
  // The first put to a datastore through a node waits for the indexes that there are.
  await settled(bench.world, put(b, cell(0), 0))
  const writing = Array.from({ length: 50 }, (_, i) => put(b, cell(50 + i), i))
  const purging = purge(a, { limit: 10 })
  const written = await settled(bench.world, Promise.all(writing))
  await settled(bench.world, purging)
  expect(written.every(({ created }) => created)).toBe(true)
  const left = await settled(bench.world, versions(a))
  expect(left.at(-1)).toBe(99)
  expect(left.every((refKey) => refKey >= 49)).toBe(true)
})

test('CELL-4: a put that is sent again after its cell was purged is no second cell', async () => {
  const { store, run, bench } = await storeOf('BASE/9')
  const own = intents('s', 1, bench.clockOf('c'))
  expect(await run(put(store, cell(0), 'mine', { intents: own }))).toMatchObject({ created: true })
  await run(purge(store))
  const again = put(store, cell(0), 'mine', { intents: own })
  await expect(run(again)).rejects.toMatchObject({ code: 'immutable' })
  expect(await run(versions(store))).toEqual([9])
})

test('the numbers under which cells are stored stay as they were', () => {
  expect(cellVersion.numbers.stored).toEqual({
    ...{ Shard: 1, Cell: 2, CellsByAddedId: 3, Purged: 4, TriggerOffset: 5, MarkedCell: 6 },
    ...{ TriggerService: 7, TriggerWorker: 8, Trigger: 9, TriggerMarks: 10 },
    ...{ Indexed: 11, Datastore: 12, IndexDefinition: 13, IndexedByPlace: 14 },
    ...{ ColumnTtl: 15, CellsByTtl: 16, DatastoreList: 17, DeclaredDatastore: 18 },
  })
  expect(cellVersion.numbers.properties).toMatchObject({
    ...{ 'Cell.row_key': 3, 'Cell.column': 4, 'Cell.ref_key': 5, 'Cell.added_id': 6 },
    ...{ 'Cell.creator': 7, 'Cell.body_hash': 8, 'Cell.body': 9, 'Shard.purged_to': 3 },
    'Cell.ttl': 10,
  })
})
