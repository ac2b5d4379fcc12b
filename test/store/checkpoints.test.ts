/** When the applier brings a group to the data store: late enough that entries share a state record, and no later. */
import { expect, test } from 'vitest'
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import type { GroupId } from '../../src/base/ids.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { DataStore } from '../../src/store/data-store.ts'
import { groupPrefix, stateKey } from '../../src/store/row-format.ts'
import { group } from '../log/log-fixture.ts'
import { written } from './rows.ts'
import { GatedStore, simulatedDisk } from './stores.ts'

/** Stands still until the test moves it. */
class HandClock implements Clock {
  #nowMs = 10_000
  #timers: { readonly atMs: number; readonly run: () => void }[] = []

  wallMicros(): number {
    return this.#nowMs * 1_000
  }

  monotonicMs(): number {
    return this.#nowMs
  }

  defer(run: () => void): void {
    setImmediate(run)
  }

  setTimer(delayMs: number, run: () => void): { cancel(): void } {
    const timer = { atMs: this.#nowMs + delayMs, run }
    this.#timers.push(timer)
    return { cancel: () => (this.#timers = this.#timers.filter((one) => one !== timer)) }
  }

  /** Resolves when what is due by then has run, and its batches are written. */
  async pass(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms
    for (;;) {
      await settle()
      const [next] = this.#timers.toSorted((one, other) => one.atMs - other.atMs)
      if (next === undefined || next.atMs > endMs) break
      this.#nowMs = next.atMs
      this.#timers = this.#timers.filter((one) => one !== next)
      next.run()
    }
    this.#nowMs = endMs
  }
}

async function settle(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
}

class Bench {
  readonly clock = new HandClock()
  readonly store: GatedStore
  readonly data: DataStore
  readonly #positions = new Map<GroupId, number>()
  #told = 0

  private constructor(store: GatedStore, clock: HandClock, data: DataStore) {
    this.store = store
    this.clock = clock
    this.data = data
  }

  static async open(limits: Partial<Limits> = {}): Promise<Bench> {
    const clock = new HandClock()
    const store = new GatedStore(await (await simulatedDisk()).open())
    const options = { clock, trace: silentTrace, limits: { ...defaultLimits, ...limits } }
    return new Bench(store, clock, await DataStore.open(store, options))
  }

  commit(name: string, bytes = 10): void {
    const of = group(name)
    const position = (this.#positions.get(of) ?? 0) + 1
    this.#positions.set(of, position)
    const writes = [written(Buffer.from(`${position}`), Buffer.alloc(bytes))]
    const horizons = { horizonBefore: 0, horizon: 0 }
    const encodeState = (): Buffer => Buffer.from(`${name} ${position}`)
    this.data.commit({
      ...{ group: of, position, timestamp: position, ...horizons, writes, encodeState },
    })
  }

  /** The states that were written since the last call, batch by batch. */
  states(...names: readonly string[]): string[][] {
    const batches = this.store.begun.slice(this.#told)
    this.#told = this.store.begun.length
    return batches.map((puts) =>
      names.filter((name) => {
        const key = stateKey(groupPrefix(group(name)))
        return puts.some((put) => put.value !== undefined && Buffer.compare(put.key, key) === 0)
      }),
    )
  }
}

test('LOG-6: entries of a group share one state record for as long as a checkpoint waits', async () => {
  const bench = await Bench.open()
  for (let second = 0; second < 5; second++) {
    bench.commit('a')
    await bench.clock.pass(900)
  }
  expect(bench.states('a')).toEqual([])
  await bench.clock.pass(500)
  expect(bench.states('a')).toEqual([['a']])
  expect(Buffer.from(bench.data.state(group('a')) ?? []).toString()).toBe('a 5')
  expect(bench.data.overlayBytes).toBe(0)
})

test('groups that waited nearly as long share the batch, and younger ones have one of their own', async () => {
  const bench = await Bench.open()
  bench.commit('a')
  await bench.clock.pass(400)
  bench.commit('b')
  await bench.clock.pass(200)
  bench.commit('c')
  await bench.clock.pass(4_400)
  expect(bench.states('a', 'b', 'c')).toEqual([['a', 'b']])
  await bench.clock.pass(600)
  expect(bench.states('a', 'b', 'c')).toEqual([['c']])
})

test('a large group waits no longer than a moment, and takes no other along', async () => {
  const bench = await Bench.open({ checkpointGroupBytesMax: 1_000 })
  bench.commit('a')
  bench.commit('b', 2_000)
  await bench.clock.pass(defaultLimits.applierDelayMs)
  expect(bench.states('a', 'b')).toEqual([['b']])
  await bench.clock.pass(5_000)
  expect(bench.states('a', 'b')).toEqual([['a']])
})

test('where much waits, the groups that waited longest go at once, one batch after the other', async () => {
  const bench = await Bench.open({ checkpointBytesMax: 8_000, applierBatchBytesMax: 3_000 })
  for (const name of ['a', 'b', 'c', 'd']) bench.commit(name, 1_500)
  await bench.clock.pass(0)
  expect(bench.states('a', 'b', 'c', 'd')).toEqual([['a']])
  await bench.clock.pass(5_000)
  expect(bench.states('a', 'b', 'c', 'd')).toEqual([['b'], ['c'], ['d']])
})

test('groups that wait leave room in memory for others', async () => {
  const bench = await Bench.open({ groupsInMemoryMax: 12 })
  bench.commit('a')
  bench.commit('b')
  await bench.clock.pass(0)
  expect(bench.states('a', 'b', 'c')).toEqual([])
  bench.commit('c')
  await bench.clock.pass(0)
  expect(bench.states('a', 'b', 'c')).toEqual([['a', 'b', 'c']])
})

test('writes are not refused for rows that wait for nothing but company', async () => {
  const bench = await Bench.open({ overlayBytesMax: 4_000 })
  bench.commit('a', 2_000)
  await bench.clock.pass(0)
  expect(bench.data.overlayBytes).toBe(0)
})

test('a caller that waits for the end waits for no company', async () => {
  const bench = await Bench.open()
  bench.commit('a')
  bench.commit('b')
  await bench.data.drain()
  expect(bench.states('a', 'b')).toEqual([['a', 'b']])
})
