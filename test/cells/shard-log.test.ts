import { expect, test } from 'vitest'
import type { CellName } from '../../src/cells/cell.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import type { GetLog } from '../../src/cells/operation.ts'
import {
  ask,
  createBench,
  current,
  datastore,
  log,
  passMs,
  put,
  rowKey,
  settled,
  type Bench,
} from './kit.ts'

const row = rowKey(1)
const shard = shardOf(row)

function cell(refKey: number): CellName {
  return { rowKey: row, column: 'BASE', refKey }
}

async function putSome(
  bench: Bench,
  store: Parameters<typeof put>[0],
  count: number,
): Promise<void> {
  for (let i = 0; i < count; i++) {
    await settled(bench.world, put(store, cell(i), { i }))
    await passMs(bench.world, 10)
  }
}

test('CELL-3: added ids are dense from 1 in commit order, on every replica the same', async () => {
  const bench = createBench()
  const [a, b] = [bench.node('n1'), bench.node('n2')]
  const all = Array.from({ length: 12 }, (_, i) => i)
  const puts = all.map((i) => put(i % 2 === 0 ? a.store : b.store, cell(i), { i }))
  await settled(bench.world, Promise.all(puts))
  const place = { kind: 'after', shard, addedId: 0 } as const
  const one = await settled(bench.world, log(a.store, place))
  expect(one.cells.map(({ addedId }) => addedId)).toStrictEqual(all.map((i) => i + 1))
  const times = one.cells.map(({ createdAt }) => createdAt)
  expect(times).toStrictEqual([...times].sort((x, y) => x - y))
  expect(await settled(bench.world, log(b.store, place))).toStrictEqual(one)
})

test('CELL-3: refused and repeated puts draw no number', async () => {
  const bench = createBench()
  const { store } = bench.node('n1')
  await settled(bench.world, put(store, cell(0), 1))
  await settled(bench.world, put(store, cell(0), 1))
  await expect(settled(bench.world, put(store, cell(0), 2))).rejects.toThrow('another body')
  expect(await settled(bench.world, put(store, cell(1), 1))).toMatchObject({ addedId: 2 })
})

test('the log goes on behind an added id, page by page, and ends where it ends', async () => {
  const bench = createBench()
  const { store } = bench.node('n1')
  await putSome(bench, store, 5)
  const page = (addedId: number, limit: number): Promise<unknown> =>
    settled(
      bench.world,
      log(store, { kind: 'after', shard, addedId }, { limit }).then(({ cells, next }) => ({
        ids: cells.map((one) => one.addedId),
        next,
      })),
    )
  expect(await page(0, 2)).toStrictEqual({ ids: [1, 2], next: 2 })
  expect(await page(2, 2)).toStrictEqual({ ids: [3, 4], next: 4 })
  expect(await page(4, 2)).toStrictEqual({ ids: [5], next: 5 })
  expect(await page(5, 2)).toStrictEqual({ ids: [], next: 5 })
  // Nothing would ever be found there: a current read says where the end is.
  await expect(page(6, 2)).rejects.toMatchObject({ code: 'invalid' })
  await expect(page(70, 2)).rejects.toThrow(
    `the log of shard ${shard} of trips ends at added id 5, and 70 is behind its end; go on after 5`,
  )
  // A replica alone may be behind: its end is not the log's.
  const any = { level: 'snapshot', atLeast: [] } as const
  const behind = log(store, { kind: 'after', shard, addedId: 70 }, { read: any })
  expect(await settled(bench.world, behind)).toMatchObject({ cells: [], next: 70 })
})

test('a time finds the first cell of it or later', async () => {
  const bench = createBench()
  const { store } = bench.node('n1')
  const since = async (timestamp: number): Promise<{ first: number | undefined; next: number }> => {
    const page = await settled(bench.world, log(store, { kind: 'since', shard, timestamp }))
    return { first: page.cells[0]?.addedId, next: page.next }
  }
  expect(await since(0)).toStrictEqual({ first: undefined, next: 0 })
  await putSome(bench, store, 9)
  const place = { kind: 'after', shard, addedId: 0 } as const
  const { cells } = await settled(bench.world, log(store, place))
  for (const { addedId, createdAt } of cells) {
    expect(await since(createdAt)).toMatchObject({ first: addedId, next: 9 })
    expect(await since(createdAt + 1)).toMatchObject({
      first: addedId === 9 ? undefined : addedId + 1,
    })
  }
  expect(await since(cells[0]?.createdAt ?? 0)).toMatchObject({ first: 1 })
  expect(await since(0)).toStrictEqual({ first: 1, next: 9 })
})

test('a call that waits is woken by a new cell, at a replica that only hears of it too', async () => {
  const bench = createBench()
  const [a, b] = [bench.node('n1'), bench.node('n2')]
  await putSome(bench, a.store, 2)
  const place = { kind: 'after', shard, addedId: 2 } as const
  const waiting = log(b.store, place, { waitMs: 60_000 })
  await passMs(bench.world, 500)
  const startMicros = bench.world.nowMicros
  await settled(bench.world, put(a.store, cell(5), { fresh: true }))
  const page = await settled(bench.world, waiting)
  expect(page).toMatchObject({ cells: [{ addedId: 3 }], next: 3 })
  expect(bench.world.nowMicros - startMicros).toBeLessThan(100_000)
  expect(b.replica.watches).toBe(0)
})

test('a cell that comes between the looking and the waiting is not waited past', async () => {
  const bench = createBench()
  const { store, replica } = bench.node('n1')
  replica.afterScan.push(() => put(store, cell(0), 'quick'))
  const startMicros = bench.world.nowMicros
  const place = { kind: 'after', shard, addedId: 0 } as const
  const page = await settled(bench.world, log(store, place, { waitMs: 60_000 }))
  expect(page).toMatchObject({ cells: [{ addedId: 1 }] })
  expect(bench.world.nowMicros - startMicros).toBeLessThan(100_000)
})

test('a call that waits in vain ends when its time is up, with its place', async () => {
  const bench = createBench()
  const { store, replica } = bench.node('n1')
  const startMicros = bench.world.nowMicros
  const place = { kind: 'since', shard, timestamp: 5 } as const
  const page = await settled(bench.world, log(store, place, { waitMs: 3_000 }))
  expect(page).toStrictEqual({ shard, cells: [], next: 0, asOf: 0 })
  expect(bench.world.nowMicros - startMicros).toBeGreaterThanOrEqual(3_000_000)
  expect(replica.watches).toBe(0)
})

test('a store that stops lets go of those who wait', async () => {
  const bench = createBench()
  const { store, replica } = bench.node('n1')
  const waiting = log(store, { kind: 'after', shard, addedId: 0 }, { waitMs: 60_000 })
  await passMs(bench.world, 100)
  store.stop()
  const startMicros = bench.world.nowMicros
  expect(await settled(bench.world, waiting)).toMatchObject({ cells: [] })
  expect(bench.world.nowMicros).toBe(startMicros)
  expect(replica.watches).toBe(0)
})

test('one call reads and waits for many shards; wrong places fail alone', async () => {
  const bench = createBench()
  const { store } = bench.node('n1')
  await putSome(bench, store, 1)
  const after = (of: number): GetLog['items'][number] => ({ kind: 'after', shard: of, addedId: 0 })
  const operation: GetLog = {
    ...{ kind: 'log', datastore, read: current, limit: 10, waitMs: 0 },
    items: [after(shard), after(3), after(4096), { kind: 'after', shard: 3, addedId: -1 }],
  }
  const { items } = await settled(bench.world, ask(store, operation))
  expect(items).toMatchObject([
    { kind: 'ok', value: { shard, cells: [{ addedId: 1 }] } },
    { kind: 'ok', value: { shard: 3, cells: [], next: 0 } },
    { kind: 'problem', problem: { code: 'invalid' } },
    { kind: 'problem', problem: { code: 'invalid' } },
  ])
  const all: GetLog = {
    ...{ ...operation, waitMs: 10_000 },
    items: Array.from({ length: 4096 }, (_, of) =>
      of === shard ? { kind: 'after', shard: of, addedId: 1 } : after(of),
    ),
  }
  const waiting = ask(store, all, { timeoutMs: 20_000 })
  await passMs(bench.world, 100)
  await settled(bench.world, put(store, cell(3), 'new'))
  const answer = await settled(bench.world, waiting)
  expect(answer.items[shard]).toMatchObject({ value: { cells: [{ addedId: 2 }] } })
})
