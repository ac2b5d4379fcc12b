/**
 * The past in the data store against plain versions of everything: any mix of commits, batches,
 * restarts, open snapshots and collection, with reads at any timestamp that may still be read.
 */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareBytes, fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { DataStore } from '../../src/store/data-store.ts'
import type { PageRange, Row } from '../../src/group/replica-port.ts'
import {
  afterHistory,
  decodeStored,
  decodeVersionKey,
  groupPrefix,
  historyPrefix,
} from '../../src/store/row-format.ts'
import { group } from '../log/log-fixture.ts'
import { HandClock } from '../ports/hand-clock.ts'
import { disks, onDisk, runsOn } from './stores.ts'
import { pageOf, written } from './rows.ts'

const where = group('a\0')
const limits = {
  ...{ ...defaultLimits, applierBatchBytesMax: 300, applierDelayMs: 0, checkpointMs: 0 },
  ...{ historyMs: 1, snapshotHoldMs: 50 },
}

const anyKey = fc
  .array(fc.constantFrom(0, 1, 97, 255), { maxLength: 2 })
  .map((bytes) => latin1(Uint8Array.from(bytes)))
const anyRange = fc.record(
  {
    gte: anyKey.map(fromLatin1),
    gt: anyKey.map(fromLatin1),
    lt: anyKey.map(fromLatin1),
    reverse: fc.boolean(),
    limit: fc.integer({ min: 0, max: 5 }),
    bytesMax: fc.nat(12),
  },
  { requiredKeys: [] },
)
/** Of the span from the oldest readable timestamp to the newest. */
const anyMoment = fc.integer({ min: 0, max: 100 })

const anyStep = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('commit' as const),
      writes: fc.array(fc.tuple(anyKey, fc.option(fc.string({ maxLength: 3 }))), { maxLength: 5 }),
      waits: fc.integer({ min: 1, max: 400 }),
      horizon: anyMoment,
    }),
  },
  fc.record({ kind: fc.constant('scan' as const), range: anyRange, moment: anyMoment }),
  fc.record({ kind: fc.constant('get' as const), keys: fc.array(anyKey), moment: anyMoment }),
  fc.record({ kind: fc.constant('open' as const), moment: anyMoment }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 40 }) }),
  fc.record({ kind: fc.constant('batch' as const) }),
  fc.record({ kind: fc.constant('drain' as const) }),
  fc.record({ kind: fc.constant('restart' as const) }),
)
type Step = typeof anyStep extends fc.Arbitrary<infer S> ? S : never

interface Version {
  readonly key: string
  readonly value: Uint8Array | undefined
  readonly timestamp: number
}

/** A store under test, and what it should hold. */
class Bench {
  readonly clock = new HandClock()
  readonly #open: () => Promise<OrderedStore>
  #store: OrderedStore | undefined
  #data: DataStore | undefined
  readonly #versions: Version[] = []
  #position = 0
  #timestamp = 0
  #horizon = 0
  readonly #opened = new Map<number, number>()
  #reads: Promise<void>[] = []

  constructor(open: () => Promise<OrderedStore>) {
    this.#open = open
  }

  async start(): Promise<void> {
    await this.#data?.stop()
    this.#store = await this.#open()
    const { clock } = this
    this.#data = await DataStore.open(this.#store, { clock, trace: silentTrace, limits })
  }

  get data(): DataStore {
    if (this.#data === undefined) throw new Error('not started')
    return this.#data
  }

  async take(step: Step): Promise<void> {
    if (step.kind === 'commit') return this.#commit(step)
    // A read begun here goes on while commits, batches and collection come.
    if (step.kind === 'scan') this.#reads.push(this.#scan(step.range, this.#at(step.moment)))
    if (step.kind === 'get') this.#reads.push(this.#get(step.keys, this.#at(step.moment)))
    if (step.kind === 'drain') return this.drain()
    if (step.kind === 'batch') {
      this.#goOn()
      return new Promise((resolve) => setImmediate(resolve))
    }
    if (step.kind === 'wait') this.clock.nowMs += step.ms
    if (step.kind === 'open') this.#pin(this.#at(step.moment))
    if (step.kind === 'restart') {
      await this.drain()
      this.#opened.clear()
      await this.start()
    }
  }

  /** Begins the batch that is due, while no time passes. */
  #goOn(): void {
    while (this.clock.turn());
    this.clock.pass(0)
  }

  async drain(): Promise<void> {
    let isDone = false
    const drained = this.data.drain().then(() => (isDone = true))
    for (;;) {
      this.#goOn()
      await new Promise((resolve) => setImmediate(resolve))
      if (isDone) break
    }
    await drained
    await Promise.all(this.#reads.splice(0))
  }

  #commit({ writes, waits, horizon }: Step & { kind: 'commit' }): void {
    const horizonBefore = this.#horizon
    this.#position += 1
    this.#timestamp += waits
    this.#horizon += Math.floor(((this.#timestamp - this.#horizon) * horizon) / 100)
    const rows = writes.map(([key, value]) =>
      written(fromLatin1(key), value === null ? undefined : Buffer.from(value)),
    )
    this.data.commit({
      ...{ group: where, position: this.#position, timestamp: this.#timestamp },
      ...{ horizonBefore, horizon: this.#horizon, writes: rows },
      encodeState: () => Buffer.from('state'),
    })
    for (const [key, value] of writes) {
      this.#versions.push({
        ...{ key, timestamp: this.#timestamp },
        value: value === null ? undefined : Buffer.from(value),
      })
    }
  }

  /** Any timestamp that may be read, open snapshots included. */
  #at(moment: number): number {
    for (const [at, untilMs] of this.#opened) {
      if (untilMs <= this.clock.nowMs) this.#opened.delete(at)
    }
    const below = [...this.#opened.keys()].filter((at) => at < this.#horizon)
    const span = this.#timestamp - this.#horizon + 1
    const index = Math.floor(((below.length * 4 + span - 1) * moment) / 100)
    return below[Math.floor(index / 4)] ?? this.#horizon + index - below.length * 4
  }

  #pin(at: number): void {
    this.data.pins.pin(where, at, this.clock.nowMs)
    this.#opened.set(at, this.clock.nowMs + limits.snapshotHoldMs)
  }

  #rowsAt(at: number): Map<string, Row> {
    const rows = new Map<string, Row>()
    for (const { key, value, timestamp } of this.#versions) {
      if (timestamp > at) break
      if (value === undefined) rows.delete(key)
      else rows.set(key, { key: fromLatin1(key), value, timestamp })
    }
    return rows
  }

  async #get(keys: readonly string[], at: number): Promise<void> {
    const rows = await this.data.getAllAt(where, keys.map(fromLatin1), at)
    const model = this.#rowsAt(at)
    const expected = keys.map((key) => model.get(key))
    agree(
      rows.map((row) => row && plain([row])),
      expected.map((row) => row && plain([row])),
    )
  }

  async #scan(range: PageRange, at: number): Promise<void> {
    const { gte, gt, lt, reverse } = range
    const rows = [...this.#rowsAt(at).values()].filter(
      ({ key }) =>
        (gte === undefined || compareBytes(key, gte) >= 0) &&
        (gt === undefined || compareBytes(key, gt) > 0) &&
        (lt === undefined || compareBytes(key, lt) < 0),
    )
    rows.sort((one, other) => compareBytes(one.key, other.key) * (reverse === true ? -1 : 1))
    agree(plain(await this.data.scanAt(where, range, at)), plain(pageOf(rows, range)))
  }

  /** Everything readable, at every moment at which something changed. */
  async checkAll(): Promise<void> {
    for (const at of new Set([this.#horizon, ...this.#versions.map((one) => one.timestamp)])) {
      if (at >= this.#horizon) await this.#scan({}, at)
    }
  }

  /** Versions in history as [key, start, end], in their order. */
  async history(): Promise<(readonly [string, number, number])[]> {
    const prefix = groupPrefix(where)
    const range = { gte: historyPrefix(prefix), lt: afterHistory(prefix) }
    const found: (readonly [string, number, number])[] = []
    for await (const rows of this.#store?.scan(range) ?? []) {
      for (const { key, value } of rows) {
        const { key: row, start } = decodeVersionKey(key.subarray(prefix.length + 1))
        const stored = decodeStored(key, value)
        if (typeof stored !== 'object') throw new Error('a version does not decode')
        found.push([latin1(row), start, stored.stamp])
      }
    }
    return found
  }

  /** Ends of what is in history are starts of what came next; nothing is there twice. */
  async checkHistory(): Promise<void> {
    for (const [key, start, end] of await this.history()) {
      const own = this.#versions.filter((one) => one.key === key).map((one) => one.timestamp)
      const next = own.find((timestamp) => timestamp > start)
      agree([own.includes(start), end], [true, next])
    }
  }
}

function agree(seen: unknown, expected: unknown): void {
  expect(seen).toEqual(expected)
}

function plain(rows: readonly Row[]): unknown[] {
  return rows.map(({ key, value, timestamp }) => [latin1(key), latin1(value), timestamp])
}

test.each(disks)(
  'MVCC-1: reads of the past agree with plain versions, on %s',
  async (name, disk) => {
    const property = fc.asyncProperty(fc.array(anyStep, { maxLength: 60 }), (steps) =>
      onDisk(disk, async (on) => {
        const bench = new Bench(() => on.open())
        await bench.start()
        for (const step of steps) await bench.take(step)
        await bench.checkAll()
        await bench.drain()
        await bench.checkAll()
        await bench.checkHistory()
      }),
    )
    await fc.assert(property, { numRuns: runsOn(name, 150), seed: 7 })
  },
)

test.each(disks)(
  'MVCC-1: a restart between any two commits leaves the same versions and ends, on %s',
  async (name, disk) => {
    const commits = fc.array(
      fc.tuple(
        fc.array(fc.tuple(anyKey, fc.option(fc.string({ maxLength: 2 }))), {
          minLength: 1,
          maxLength: 3,
        }),
        fc.boolean(),
      ),
      { minLength: 1, maxLength: 12 },
    )
    const property = fc.asyncProperty(commits, (steps) =>
      onDisk(disk, async (one) =>
        onDisk(disk, async (other) => {
          const whole = new Bench(() => one.open())
          const broken = new Bench(() => other.open())
          await whole.start()
          await broken.start()
          for (const [writes, isBreak] of steps) {
            const step = { kind: 'commit', writes, waits: 10, horizon: 0 } as const
            await whole.take(step)
            await broken.take(step)
            if (isBreak) await broken.take({ kind: 'restart' })
          }
          await whole.drain()
          await broken.drain()
          expect(await broken.history()).toEqual(await whole.history())
        }),
      ),
    )
    await fc.assert(property, { numRuns: runsOn(name, 60), seed: 8 })
  },
)

test.each(disks)(
  'history goes as the horizon moves on, but for open snapshots: on %s',
  async (_, disk) => {
    await onDisk(disk, async (on) => {
      const bench = new Bench(() => on.open())
      await bench.start()
      const commit = (horizon: number): Promise<void> =>
        bench.take({ kind: 'commit', writes: [['k', 'v']], waits: 1_000, horizon })
      for (let i = 1; i <= 20; i++) {
        await commit(0)
        await bench.drain()
      }
      expect((await bench.history()).length).toBe(19)
      bench.data.pins.pin(where, 9_500, bench.clock.nowMs)
      // All but the newest is behind the horizon now. Deletions go along with later batches.
      await commit(100)
      for (let i = 1; i <= 3; i++) {
        await bench.drain()
        await commit(100)
      }
      const held = await bench.history()
      expect(held.filter(([, , end]) => end <= 9_500)).toEqual([])
      expect(held).toContainEqual(['k', 9_000, 10_000])
      bench.clock.nowMs += limits.snapshotHoldMs
      for (let i = 1; i <= 3; i++) {
        await commit(100)
        await bench.drain()
      }
      expect(await bench.history()).toEqual([])
    })
  },
)
