/** One trigger in one shard: its claims and saves when things happen at once. */
import { expect, test } from 'vitest'
import { createClock } from '../../sim/world/clock.ts'
import { SeededRandom } from '../../sim/world/random.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'
import type { MarkedCell, Offset } from '../../src/triggers/offset-rows.ts'
import type { LogPage } from '../../src/client/options.ts'
import type { LoggedCell } from '../../src/client/tail.ts'
import { defaultTriggerLimits } from '../../src/triggers/limits.ts'
import { defineTriggers } from '../../src/triggers/definition.ts'
import type { TriggerEvent } from '../../src/triggers/event.ts'
import { OffsetStore, type Changed } from '../../src/triggers/offset-store.ts'
import { ShardRun, type ShardRunParts } from '../../src/triggers/shard-run.ts'
import { Slots } from '../../src/base/concurrency.ts'
import { exactClock } from '../cells/kit.ts'
import { datastore, quick, service, shards, TriggerBench } from './kit.ts'

const [shard = 0] = shards
const triggerName = { service, trigger: 'bill' }

/** Saves wait until they are let go on. */
class SlowStore extends OffsetStore {
  readonly saves: number[] = []
  goOn: () => void = () => undefined
  readonly #gate = new Promise<void>((resolve) => (this.goOn = resolve))

  override async save(...asked: Parameters<OffsetStore['save']>): Promise<Changed> {
    this.saves.push(asked[2])
    await this.#gate
    return super.save(...asked)
  }
}

/** A row in memory, which no other run has. */
class RowStore extends OffsetStore {
  row: Offset = { generation: 1, owner: 'worker', after: 0, marked: 0, revision: 0 }
  claims = 0
  beforeSave: () => Promise<void> = () => Promise.resolve()

  override peek(): Promise<Offset> {
    return Promise.resolve(this.row)
  }

  override claim(): Promise<Changed> {
    this.claims += 1
    return Promise.resolve({ kind: 'done', offset: this.row })
  }

  override async save(...[, , after]: Parameters<OffsetStore['save']>): Promise<Changed> {
    await this.beforeSave()
    this.row = { ...this.row, after }
    return { kind: 'done', offset: this.row }
  }

  override marked(): Promise<readonly MarkedCell[]> {
    return Promise.resolve([])
  }
}

type Handle = (cell: LoggedCell) => Promise<void> | void

function runOf(
  bench: TriggerBench,
  offsets: OffsetStore,
  handle: Handle,
  more: Partial<ShardRunParts> = {},
): ShardRun {
  const triggers = [{ name: 'bill', column: 'BASE', handle }]
  const [trigger = expect.fail()] = defineTriggers({ service, datastore, triggers }).triggers
  const random = new SeededRandom('run')
  const process = new SimProcess(bench.cluster.bench.world, 'run')
  return new ShardRun({
    ...{ trigger, offsets, random, slots: new Slots(1), opens: new Slots(1) },
    cells: bench.client.cells(datastore),
    claim: { shard, generation: 1, owner: 'worker' },
    clock: createClock(process, exactClock, random),
    limits: { ...defaultTriggerLimits, ...quick },
    mayRun: () => true,
    report: () => Promise.resolve(),
    ...{ onReady: () => undefined, onNoneMarked: () => undefined, onEvent: () => undefined },
    ...{ onDisplaced: () => expect.fail(), onFailed: (error) => expect.fail(String(error)) },
    ...more,
  })
}

function give(run: ShardRun, page: LogPage): void {
  run.take(page, run.wanted?.asked ?? expect.fail(), () => undefined)
}

async function written(bench: TriggerBench, count: number): Promise<LogPage> {
  for (let i = 0; i < count; i++) await bench.put(shard)
  return bench.settle(bench.client.cells(datastore).shardLog(shard))
}

async function ticks(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await Promise.resolve()
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

test('TRIG-2: a run saves what it handles again during an older save after that save', async () => {
  const bench = new TriggerBench()
  const page = await written(bench, 3)
  const offsets = new SlowStore(bench.tables, datastore, triggerName, 1_000)
  const handled: number[] = []
  const run = runOf(bench, offsets, ({ addedId }) => void handled.push(addedId))
  const begin = async (): Promise<void> => {
    await bench.settle(run.open())
    give(run, page)
    await bench.pass(1_000)
  }
  await begin()
  expect([handled, offsets.saves]).toEqual([[1, 2, 3], [1]])
  // As when the trigger is resumed by hand.
  await begin()
  expect([handled, offsets.saves]).toEqual([[1, 2, 3, 1, 2, 3], [1]])
  offsets.goOn()
  await bench.pass(1_000)
  expect(await bench.settle(offsets.current(shard))).toMatchObject({ after: 3 })
  await bench.settle(run.stop())
})

test.each([
  [Object.create(null), 'it threw what has no words'],
  [new Error('🙂'.repeat(400)), `Error: ${'🙂'.repeat(246)}`],
])(
  'whatever a handler throws counts as one failure, and the next attempt sees the cell as it was: %#',
  async (thrown, error) => {
    const bench = new TriggerBench()
    const page = await written(bench, 1)
    const offsets = new RowStore(bench.tables, datastore, triggerName, 1_000)
    const seen: string[] = []
    const told: string[] = []
    const handle = (cell: LoggedCell): void => {
      seen.push(JSON.stringify(cell.body))
      Object.assign(cell.body ?? {}, { changed: seen.length })
      if (seen.length < 3) throw thrown
    }
    const onEvent = (event: TriggerEvent): void => {
      if (event.kind === 'failed') told.push(event.error)
    }
    const run = runOf(bench, offsets, handle, { onEvent })
    await bench.settle(run.open())
    give(run, page)
    await bench.pass(60_000)
    expect(told).toEqual([error, error])
    expect(seen).toHaveLength(3)
    expect(new Set(seen).size).toBe(1)
    await bench.settle(run.stop())
  },
)

test('TRIG-2: a cell that is done with just as the save of the one before ends is saved', async () => {
  const bench = new TriggerBench()
  const page = await written(bench, 2)
  for (let ofSave = 0; ofSave < 10; ofSave++) {
    for (let ofHandler = 0; ofHandler < 10; ofHandler++) {
      // Both answers are in one frame.
      let goOn: () => void = () => undefined
      const frame = new Promise<void>((resolve) => (goOn = resolve))
      const offsets = new RowStore(bench.tables, datastore, triggerName, 1_000)
      offsets.beforeSave = () => frame.then(() => ticks(ofSave))
      const run = runOf(bench, offsets, async ({ addedId }) => {
        if (addedId === 2) await frame.then(() => ticks(ofHandler))
      })
      await run.open()
      give(run, page)
      await turn()
      goOn()
      await turn()
      expect(offsets.row.after, `${ofSave} and ${ofHandler} ticks`).toBe(2)
    }
  }
})

test('TRIG-4: a shard that is opened anew while it tells what is marked is claimed anew', async () => {
  const bench = new TriggerBench()
  const page = await written(bench, 1)
  const offsets = new RowStore(bench.tables, datastore, triggerName, 1_000)
  offsets.row = { ...offsets.row, marked: 1 }
  let told: () => void = () => undefined
  const reports = [new Promise<void>((resolve) => (told = resolve))]
  const report = (): Promise<void> => reports.shift() ?? Promise.resolve()
  const run = runOf(bench, offsets, () => undefined, { report })
  await run.open()
  await turn()
  expect([offsets.claims, reports.length]).toEqual([1, 0])
  // By hand, what was marked was taken away.
  offsets.row = { ...offsets.row, marked: 0, revision: 1 }
  await run.open()
  give(run, page)
  told()
  await turn()
  expect([offsets.claims, offsets.row.after]).toEqual([2, 1])
})
