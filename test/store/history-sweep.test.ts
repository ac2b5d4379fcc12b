/** How much history is looked through between two batches: as much as is made, and never all at once. */
import { expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import type { GroupId } from '../../src/base/ids.ts'
import { compareBytes } from '../../src/base/bytes.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import type { KeyValue, OrderedStore, Range } from '../../src/ports/storage.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { DataStore } from '../../src/store/data-store.ts'
import {
  HistorySweep,
  lookVersionsMax,
  lookVersionsMin,
  sweepChunkRows,
} from '../../src/store/history-sweep.ts'
import { afterHistory, groupPrefix, historyPrefix, versionKey } from '../../src/store/row-format.ts'
import { group } from '../log/log-fixture.ts'
import { written } from './rows.ts'
import { disks, onDisk } from './stores.ts'

const nothing = new Uint8Array()

/** Groups with a number of versions each, all of which may go, and a sweep through them. */
class Bench {
  readonly scanned: Range[] = []
  readonly sweep: HistorySweep
  readonly #rows: readonly KeyValue[]
  readonly #groups: readonly GroupId[]
  scansAtOnce = 0
  #scansUnderWay = 0
  #horizon = 0

  constructor(groups: number, versions: number) {
    this.#groups = Array.from({ length: groups }, (_, at) => group(String(at).padStart(6, '0')))
    this.#rows = this.#groups.flatMap((one) => versionsOf(one, versions))
    this.sweep = new HistorySweep({
      historyMs: 1,
      oldest: (_, horizon) => horizon,
      scan: (range) => this.#scan(range),
      findEnd: () => 1,
      onFailed: (error) => expect.unreachable(String(error)),
    })
  }

  async *#scan(range: Range): AsyncGenerator<readonly KeyValue[]> {
    this.scanned.push(range)
    this.#scansUnderWay += 1
    this.scansAtOnce = Math.max(this.scansAtOnce, this.#scansUnderWay)
    await Promise.resolve()
    const { gte = nothing, gt, lt = nothing, limit } = range
    const from = this.#firstFrom(gt ?? gte, gt !== undefined)
    const chunk = this.#rows.slice(from, from + (limit ?? 0))
    yield chunk.filter(({ key }) => compareBytes(key, lt) < 0)
    this.#scansUnderWay -= 1
  }

  #firstFrom(key: Uint8Array, isBehind: boolean): number {
    let low = 0
    for (let high = this.#rows.length; low < high;) {
      const middle = (low + high) >>> 1
      const order = compareBytes(this.#rows[middle]?.key ?? nothing, key)
      if (order < 0 || (isBehind && order === 0)) low = middle + 1
      else high = middle
    }
    return low
  }

  /** A batch with all groups is durable, and their horizon moves on. */
  write(superseded: number, moves = 1_000): void {
    const horizonBefore = this.#horizon
    const horizon = (this.#horizon += moves)
    const taken = { position: 1, state: nothing, horizonBefore, horizon, rows: [] }
    const batch = this.#groups.map((one) => ({ ...taken, group: one }))
    this.sweep.onWritten(batch, superseded)
  }

  /** A batch, and how many versions the look after it found for the next one. */
  async batch(superseded: number, moves?: number): Promise<number> {
    this.write(superseded, moves)
    await this.idle()
    return this.sweep.take().length
  }

  async idle(): Promise<void> {
    for (let scans = -1; scans < this.scanned.length;) {
      scans = this.scanned.length
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

function versionsOf(one: GroupId, count: number): KeyValue[] {
  const history = historyPrefix(groupPrefix(one))
  const keys = Array.from({ length: count }, (_, at) =>
    versionKey(history, Buffer.from(String(at).padStart(6, '0')), 1),
  )
  return keys.map((key) => ({ key, value: nothing }))
}

test('MVCC-1: a look goes over twice what was superseded, a chunk at a time', async () => {
  const bench = new Bench(1, 100_000)
  for (const superseded of [0, 100, 1_000, 5_000]) {
    const found = await bench.batch(superseded)
    const owed = Math.max(lookVersionsMin, superseded * 2)
    expect([superseded, found > owed * 0.9]).toEqual([superseded, true])
    expect(found).toBeLessThan(owed + sweepChunkRows)
  }
  expect(bench.scanned.every(({ limit }) => limit === sweepChunkRows)).toBe(true)
  expect(bench.scansAtOnce).toBe(1)
})

test('many groups with few versions are looked at along with one batch', async () => {
  const bench = new Bench(2_000, 2)
  expect(await bench.batch(1_500)).toBeGreaterThanOrEqual(1_000)
  expect(await bench.batch(1_500)).toBeGreaterThanOrEqual(1_000)
})

test('one batch deletes a bounded number of versions, however many are superseded', async () => {
  const bench = new Bench(1, 2 * lookVersionsMax)
  const found = await bench.batch(1_000_000)
  expect(found).toBeLessThan(lookVersionsMax + sweepChunkRows)
  expect(found).toBeGreaterThan(lookVersionsMax * 0.9)
})

test('versions superseded during a look, or left by it, count for the next one', async () => {
  const bench = new Bench(1, 10_000)
  bench.write(0)
  bench.write(500)
  await bench.idle()
  bench.write(500)
  expect(bench.sweep.take().length).toBeLessThanOrEqual(lookVersionsMin)
  expect(await bench.batch(500)).toBeGreaterThan(1_500 * 2 * 0.9)
})

test('nothing is looked at when no horizon has moved far enough', async () => {
  const bench = new Bench(10, 10)
  for (let at = 0; at < 10; at++) expect(await bench.batch(1_000, 10)).toBe(0)
  expect(bench.scanned).toEqual([])
})

async function historyOf(store: OrderedStore, one: GroupId): Promise<number> {
  const prefix = groupPrefix(one)
  let count = 0
  for await (const rows of store.scan({ gte: historyPrefix(prefix), lt: afterHistory(prefix) })) {
    count += rows.length
  }
  return count
}

test('a group that is always written has about twice the history that is readable', async () => {
  const [, disk] = disks[0] ?? ['', () => Promise.reject(new Error('no disk'))]
  await onDisk(disk, async (on) => {
    const store = await on.open()
    const limits = { ...defaultLimits, historyMs: 1 }
    const data = await DataStore.open(store, { clock: systemClock, trace: silentTrace, limits })
    const [one, rows, readable] = [group('a'), 500, 5]
    const keys = Array.from({ length: rows }, (_, at) => Buffer.from(`row ${at}`))
    const horizonAt = (position: number): number => Math.max(0, position - readable) * 200
    for (let position = 1; position <= 60; position++) {
      const timestamp = position * 200
      const [horizonBefore, horizon] = [horizonAt(position - 1), horizonAt(position)]
      const writes = keys.map((key) => written(key, Buffer.from('value')))
      const commit = { group: one, position, timestamp, horizonBefore, horizon, writes }
      data.commit({ ...commit, encodeState: () => nothing })
      await data.drain()
      await new Promise((resolve) => setImmediate(resolve))
    }
    const history = await historyOf(store, one)
    await data.stop()
    expect(history).toBeGreaterThanOrEqual(rows * readable)
    expect(history).toBeLessThan(rows * readable * 3)
  })
})
