/** Cells of several replica sets as one service. */
import { expect, test } from 'vitest'
import { cellBytesMax } from '../../src/base/limits.ts'
import { CellStore } from '../../src/cells/cell-store.ts'
import type { CellService, GetLog, StoredLogPage } from '../../src/cells/operation.ts'
import { Slices } from '../../src/ports/slices.ts'
import { RoutedCells } from '../../src/cells/routed-cells.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { problem, unwrapOutcome, type Outcome } from '../../src/base/problem.ts'
import { pause } from '../../src/time/moments.ts'
import { any, ask, createBench, current, datastore, packed, rowKey, settled } from './kit.ts'
import { MemoryReplica } from './memory-replica.ts'

test('a set that does not answer keeps the log of another one back for the time of a read, not of a wait', async () => {
  const { world, clockOf } = createBench()
  const clock = clockOf('node')
  const page = { shard: 0, cells: [], next: 0 }
  const answering: CellService = {
    execute: () => {
      const items: Outcome<StoredLogPage>[] = [{ kind: 'ok', value: page }]
      return Promise.resolve({ answer: { kind: 'log', items }, positions: [] })
    },
  }
  const silent: CellService = {
    execute: async (_, { timeoutMs }) => {
      await pause({ clock }, timeoutMs)
      const answer = { kind: 'problem', problem: problem('unavailable', 'nobody') } as const
      return { answer, positions: [] }
    },
  }
  const setOf = (_: string, shard: number): number => shard % 2
  const services = [answering, silent]
  const cells = new RoutedCells({ services, own: answering, setOf })
  const items = [0, 1].map((shard) => ({ kind: 'after', shard, addedId: 0 }) as const)
  const operation = { kind: 'log', datastore, items, limit: 1, waitMs: 20_000, read: any } as const
  const startMicros = world.nowMicros
  const answer = await settled(world, ask(cells, operation, { timeoutMs: 22_000 }))
  expect(answer.items.map(({ kind }) => kind)).toEqual(['ok', 'problem'])
  expect(world.nowMicros - startMicros).toBeLessThan(2_100_000)
})

test.each([
  ['a wait without an end', { waitMs: Number.MAX_SAFE_INTEGER }, 'tailWaitSecondsMax'],
  ['a page without an end', { limit: 1_000_000 }, 'pageItemsMax'],
])('a log of several sets refuses what one set would refuse: %s', async (_, given, limit) => {
  const { world, clockOf } = createBench()
  const clock = clockOf('node')
  const idle: CellService = {
    execute: async (operation) => {
      await pause({ clock }, operation.kind === 'log' ? operation.waitMs + 1 : 1)
      const items: Outcome<StoredLogPage>[] = [
        { kind: 'ok', value: { shard: 0, cells: [], next: 0 } },
      ]
      return { answer: { kind: 'log', items }, positions: [] }
    },
  }
  const other: CellService = { execute: (...asked) => idle.execute(...asked) }
  const setOf = (_: string, shard: number): number => shard % 2
  const cells = new RoutedCells({ services: [idle, other], own: idle, setOf })
  const items = [0, 1].map((shard) => ({ kind: 'after', shard, addedId: 0 }) as const)
  const few = { limit: 1, waitMs: 0 }
  const operation = { kind: 'log', datastore, items, read: any, ...few, ...given } as const
  const refused = settled(world, ask(cells, operation))
  await expect(refused).rejects.toMatchObject({ code: 'invalid', detail: { limit } })
})

test('a batch of more items than one may have is refused, however many sets it is for', async () => {
  const { world } = createBench()
  const service: CellService = {
    execute: (operation) => {
      const items = ('items' in operation ? operation.items : []).map((): Outcome<undefined> => ({
        kind: 'ok',
        value: undefined,
      }))
      return Promise.resolve({ answer: { kind: 'get', items }, positions: [] })
    },
  }
  const other: CellService = { execute: (...given) => service.execute(...given) }
  const setOf = (_: string, shard: number): number => shard % 2
  const cells = new RoutedCells({ services: [service, other], own: service, setOf })
  const items = Array.from({ length: 1001 }, (_, row) => ({ rowKey: rowKey(row), column: 'A' }))
  const operation = { kind: 'get', datastore, read: any, items } as const
  const refused = settled(world, ask(cells, operation))
  await expect(refused).rejects.toMatchObject({
    code: 'too-large',
    detail: { limit: 'batchItemsMax' },
  })
})

test('a wait for several sets goes on from where the look before it came to', async () => {
  const { world } = createBench()
  const asked: GetLog[] = []
  const service: CellService = {
    execute: (operation) => {
      if (operation.kind === 'log') asked.push(operation)
      const items = 'items' in operation ? operation.items : []
      const pages = items.map((item): Outcome<StoredLogPage> => {
        const shard = 'shard' in item ? item.shard : 0
        return { kind: 'ok', value: { shard, cells: [], next: 5, asOf: 7 } }
      })
      return Promise.resolve({ answer: { kind: 'log', items: pages }, positions: [] })
    },
  }
  const other: CellService = { execute: (...given) => service.execute(...given) }
  const setOf = (_: string, shard: number): number => shard % 2
  const cells = new RoutedCells({ services: [service, other], own: service, setOf })
  const items = [0, 1].map((shard) => ({ kind: 'since', shard, timestamp: 9 }) as const)
  const operation = { kind: 'log', datastore, items, limit: 1, waitMs: 1_000, read: any } as const
  await settled(world, ask(cells, operation, { timeoutMs: 2_000 }))
  const waits = asked.filter(({ waitMs }) => waitMs > 0).flatMap((one) => one.items)
  expect(waits).toEqual([0, 1].map((shard) => ({ kind: 'after', shard, addedId: 5, asOf: 7 })))
})

test('a wait over several sets ends soon after one set has answered', async () => {
  const { world, clockOf } = createBench()
  const clock = clockOf('node')
  const waits: number[] = []
  const idle: CellService = {
    execute: async (operation) => {
      if (operation.kind === 'log') waits.push(operation.waitMs)
      await pause({ clock }, operation.kind === 'log' ? operation.waitMs + 1 : 1)
      const items: Outcome<StoredLogPage>[] = [
        { kind: 'ok', value: { shard: 0, cells: [], next: 0 } },
      ]
      return { answer: { kind: 'log', items }, positions: [] }
    },
  }
  const other: CellService = { execute: (...given) => idle.execute(...given) }
  const setOf = (_: string, shard: number): number => shard % 2
  const cells = new RoutedCells({ services: [idle, other], own: idle, setOf })
  const items = [0, 1].map((shard) => ({ kind: 'after', shard, addedId: 0 }) as const)
  const operation = { kind: 'log', datastore, items, limit: 1, waitMs: 5_000, read: any } as const
  const startMicros = world.nowMicros
  await settled(world, ask(cells, operation, { timeoutMs: 7_000 }))
  expect(waits).toEqual([0, 0, 2_000, 2_000, 2_000, 2_000, 1_000, 1_000])
  expect(world.nowMicros - startMicros).toBeGreaterThanOrEqual(5_000_000)
})

test('a wait over several sets ends when its client goes', async () => {
  const { world, node, clockOf } = createBench()
  const { store } = node('n1')
  const clock = clockOf('node')
  const other: CellService = { execute: (...given) => store.execute(...given) }
  const setOf = (_: string, shard: number): number => shard % 2
  const cells = new RoutedCells({ services: [store, other], own: store, setOf })
  const items = [0, 1].map((shard) => ({ kind: 'after', shard, addedId: 0 }) as const)
  const operation = { kind: 'log', datastore, items, limit: 1, waitMs: 60_000, read: any } as const
  const line = new Slices(clock).open()
  clock.setTimer(3_000, () => line.close())
  const startMicros = world.nowMicros
  const asked = cells.execute(operation, { timeoutMs: 62_000, pace: line.task() })
  expect(await settled(world, asked)).toMatchObject({ answer: { problem: { code: 'closed' } } })
  expect(world.nowMicros - startMicros).toBeLessThan(3_001_000)
})

test('CELL-6: the answers of several sets fit one answer together, and the log skips nothing', async () => {
  const { world, node, clockOf, random, log } = createBench()
  const { store } = node('n1')
  const other = new CellStore({
    replica: new MemoryReplica(log, clockOf('n2')),
    clock: clockOf('n2'),
    random: random.fork('n2'),
  })
  const setOf = (_: string, shard: number): number => shard % 2
  const cells = new RoutedCells({ services: [store, other], own: store, setOf })
  const body = packed('x'.repeat(cellBytesMax - 2))
  const rows = Array.from({ length: 10 }, (_, row) => rowKey(row))
  const names = rows.map((row) => ({ rowKey: row, column: 'A', refKey: 1 }))
  for (const name of names) {
    await settled(world, ask(cells, { kind: 'put', datastore, items: [{ ...name, body }] }))
  }
  const get = { kind: 'get', datastore, read: current, items: names } as const
  const got = await settled(world, ask(cells, get))
  expect(got.items.filter((item) => item.kind === 'ok')).toHaveLength(3)
  const seen: string[] = []
  let places = rows.map((row) => ({ kind: 'after' as const, shard: shardOf(row), addedId: 0 }))
  const given = { kind: 'log', datastore, read: current, limit: 10, waitMs: 0 } as const
  while (seen.length < rows.length) {
    const { items } = await settled(world, ask(cells, { ...given, items: places }))
    const pages = items.map(unwrapOutcome)
    const found = pages.flatMap((page) => page.cells)
    expect(found.length).toBeGreaterThan(0)
    expect(found.length).toBeLessThanOrEqual(3)
    seen.push(...found.map((cell) => cell.rowKey))
    places = pages.map(({ shard, next }) => ({ kind: 'after', shard, addedId: next }))
  }
  expect(seen.toSorted()).toEqual(rows.toSorted())
})
