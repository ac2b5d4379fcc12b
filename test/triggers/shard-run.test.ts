/** One trigger in one shard: what becomes of saves that are under way when all begins anew. */
import { expect, test } from 'vitest'
import { createClock } from '../../sim/clock.ts'
import { SeededRandom } from '../../sim/random.ts'
import { SimProcess } from '../../sim/sim-process.ts'
import { defaultTriggerLimits } from '../../src/triggers/bounds.ts'
import { defineTriggers } from '../../src/triggers/definition.ts'
import { OffsetStore } from '../../src/triggers/offset-store.ts'
import { ShardRun } from '../../src/triggers/shard-run.ts'
import { Slots } from '../../src/triggers/slots.ts'
import { exactClock } from '../cells/kit.ts'
import { datastore, quick, service, shards, TriggerBench } from './kit.ts'

/** Saves wait until they are let go on. */
class SlowStore extends OffsetStore {
  readonly saves: number[] = []
  goOn: () => void = () => undefined
  readonly #gate = new Promise<void>((resolve) => (this.goOn = resolve))

  override async save(
    ...asked: Parameters<OffsetStore['save']>
  ): Promise<Awaited<ReturnType<OffsetStore['save']>>> {
    this.saves.push(asked[2])
    await this.#gate
    return super.save(...asked)
  }
}

test('TRIG-2: what is handled anew while an older save is under way is saved after it', async () => {
  const bench = new TriggerBench()
  const [shard = 0] = shards
  for (let i = 0; i < 3; i++) await bench.put(shard)
  const cells = bench.client.cells(datastore)
  const page = await bench.settle(cells.shardLog(shard))
  const handled: number[] = []
  const handle = ({ addedId }: { readonly addedId: number }): void => void handled.push(addedId)
  const triggers = [{ name: 'bill', column: 'BASE', handle }]
  const [trigger = expect.fail()] = defineTriggers({ service, datastore, triggers }).triggers
  const offsets = new SlowStore(bench.tables, datastore, { service, trigger: 'bill' }, 1_000)
  const random = new SeededRandom('run')
  const process = new SimProcess(bench.cluster.bench.world, 'run')
  const run = new ShardRun({
    ...{ trigger, offsets, cells, random, slots: new Slots(1) },
    claim: { shard, generation: 1, owner: 'worker' },
    clock: createClock(process, exactClock, random),
    limits: { ...defaultTriggerLimits, ...quick },
    mayRun: () => true,
    report: () => Promise.resolve(),
    ...{ onReady: () => undefined, onEvent: () => undefined },
    ...{ onDisplaced: () => expect.fail(), onFailed: (error) => expect.fail(String(error)) },
  })
  const begin = async (): Promise<void> => {
    await bench.settle(run.open())
    run.take(page, run.wanted?.asked ?? expect.fail(), () => undefined)
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
