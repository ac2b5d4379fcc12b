/** The hash of a group's rows: kept up by batches, it is what a count of all rows gives, whatever happens to the group. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { fromLatin1 } from '../../src/base/bytes.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import type { RowWritten } from '../../src/replication/apply.ts'
import type { DataStore } from '../../src/store/data-store.ts'
import { hashOfNothing, RowsSum } from '../../src/store/group-hash.ts'
import { resumeSwitches } from '../../src/store/snapshot-intake.ts'
import { forgetHash, recordOf, recounted, rowHash, textOf, told } from './hash-kit.ts'
import { written } from './rows.ts'
import {
  a,
  b,
  commit,
  EndingStore,
  gone,
  openData,
  put,
  readWhole,
  snapshotOf,
  takeIn,
  type Whole,
} from './snapshot-kit.ts'
import { disks, flipBit, onDisk, runsOn, simulatedDisk } from './stores.ts'

function hexOf(sum: RowsSum): string {
  return Buffer.from(sum.hash, 'latin1').toString('hex')
}

const anyRow = fc.record({
  key: fc.uint8Array({ maxLength: 6 }),
  timestamp: fc.maxSafeNat(),
  value: fc.uint8Array({ maxLength: 40 }),
})

test('HASH-1: a sum is that of the hashes of its rows modulo 2^128, in any order, and less those that went', () => {
  const property = fc.property(fc.array(anyRow), fc.array(anyRow), (stay, go) => {
    const sum = new RowsSum()
    for (const { key, timestamp, value } of [...stay, ...go]) sum.add(key, timestamp, value)
    for (const { key, timestamp, value } of go) sum.subtract(key, timestamp, value)
    const hashes = stay.map(({ key, timestamp, value }) => rowHash(key, timestamp, value))
    expect(hexOf(sum)).toBe(textOf(hashes.reduce((all, one) => all + one, 0n)))
    const again = new RowsSum(sum.hash)
    for (const { key, timestamp, value } of stay) again.subtract(key, timestamp, value)
    expect(again.hash).toBe(hashOfNothing)
    again.addAll(sum.hash)
    expect(again.hash).toBe(sum.hash)
  })
  fc.assert(property)
})

test('HASH-1: rows differ by key, value and timestamp, and by where the key ends; a row that is there twice counts twice', () => {
  const rows: readonly (readonly [string, number, string])[] = [
    ['ab', 1, 'c'],
    ['a', 1, 'bc'],
    ['', 1, 'abc'],
    ['ab', 2, 'c'],
    ['ab', 1, 'd'],
    ['ab', 2 ** 32 + 1, 'c'],
  ]
  const hashes = rows.map(([key, timestamp, value]) => {
    const sum = new RowsSum()
    sum.add(fromLatin1(key), timestamp, fromLatin1(value))
    return sum.hash
  })
  const twice = new RowsSum(hashes[0])
  twice.addAll(hashes[0] ?? '')
  expect(new Set([...hashes, twice.hash, hashOfNothing]).size).toBe(rows.length + 2)
})

test('HASH-1: a value that is larger than the memory for small ones counts whole', () => {
  const value = Buffer.alloc(200_000, 'v')
  const sum = new RowsSum()
  sum.add(Buffer.from('key'), 5, value)
  expect(hexOf(sum)).toBe(textOf(rowHash(Buffer.from('key'), 5, value)))
})

const names = ['', 'a', 'b', '\0', 'a\0']
const anyWrite = fc.record({
  name: fc.constantFrom(...names),
  value: fc.option(fc.string({ maxLength: 4 })),
})
const anyStep = fc.oneof(
  { weight: 6, arbitrary: fc.array(anyWrite, { maxLength: 5 }) },
  fc.constantFrom('drain' as const, 'turn' as const, 'restart' as const, 'old' as const),
  fc.constantFrom('snapshot of few' as const, 'snapshot of many' as const),
)
type Step = typeof anyStep extends fc.Arbitrary<infer S> ? S : never

/** A group whose horizon follows its newest entry closely: much of its history goes at once. */
class Life {
  readonly #store: () => Promise<OrderedStore>
  readonly #known = new Set<string>()
  #data: DataStore
  #opened: OrderedStore
  #position = 0
  #horizon = 0

  private constructor(store: () => Promise<OrderedStore>, opened: OrderedStore, data: DataStore) {
    this.#store = store
    this.#opened = opened
    this.#data = data
  }

  static async begin(store: () => Promise<OrderedStore>): Promise<Life> {
    const opened = await store()
    return new Life(store, opened, await openData(opened, limits))
  }

  async take(step: Step): Promise<void> {
    if (typeof step !== 'string') return this.#commit(step)
    if (step === 'turn') return new Promise((resolve) => setImmediate(resolve))
    await this.#data.drain()
    if (step === 'drain') return
    if (step === 'snapshot of few' || step === 'snapshot of many') {
      await this.#install(step === 'snapshot of few' ? 1_000_000 : 10)
      return
    }
    await this.#data.stop()
    this.#opened = await this.#store()
    if (step === 'old' && this.#position > 0) await forgetHash(this.#opened, a)
    this.#data = await openData(this.#opened, limits)
  }

  #commit(writes: readonly { readonly name: string; readonly value: string | null }[]): void {
    this.#position += 1
    const rows = writes.map(({ name, value }, at): RowWritten => {
      const isFirst = writes.findIndex((one) => one.name === name) === at
      const isNew = value !== null && isFirst && !this.#known.has(name)
      return written(fromLatin1(name), value === null ? undefined : Buffer.from(value), isNew)
    })
    for (const { name, value } of writes) {
      if (value === null) this.#known.delete(name)
      else this.#known.add(name)
    }
    const [horizonBefore, horizon] = [this.#horizon, Math.max(0, this.#position - 2)]
    this.#horizon = horizon
    const position = this.#position
    this.#data.commit({
      ...{ group: a, position, timestamp: position, horizonBefore, horizon, writes: rows },
      encodeState: () => Buffer.from(`state ${position}`),
    })
  }

  /** Of the group as it is, but further on by a position that writes one row. */
  async #install(bytes: number): Promise<void> {
    const position = this.#position + 1
    const before = this.#data.openSnapshot(a)
    const rows = before === undefined ? [] : [...(await readWhole(before)).rows]
    const kept = rows.filter(({ subspace, key }) => subspace === 1 && key.length > 0)
    const added = { subspace: 1, key: Buffer.from('z'), stamp: position, payload: Buffer.from('z') }
    const state = Buffer.from(`state ${position}`)
    const all = [...kept.filter(({ key }) => key[0] !== 122), added]
    const whole: Whole = { position, rows: all, state, crc: 0, parts: [] }
    await takeIn(this.#data, a, whole, bytes)
    this.#position = position
    this.#known.delete('')
  }

  /** The hash as the disk tells it, and as a count gives it: equal at any moment. */
  async look(): Promise<readonly [told: string, counted: string]> {
    if (this.#position === 0) return ['unknown', 'unknown']
    for (;;) {
      const before = this.#found()
      const counting = recounted(this.#opened, a)
      const after = this.#found()
      const counted = await counting
      // Else a batch became durable between the two.
      if (before === after) return [before, counted]
    }
  }

  #found(): string {
    return this.#data.applied(a).position === 0 ? 'unknown' : told(this.#opened, a)
  }

  /** A group of which an earlier build wrote the state record is counted once it is written. */
  async end(): Promise<readonly [told: string, counted: string]> {
    await this.#data.drain()
    for (let tries = 0; tries < 20 && this.#position > 0; tries++) {
      if ((await this.look())[0] !== 'unknown') break
      this.#commit([])
      await this.#data.drain()
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await this.#data.stop()
    return this.look()
  }
}

const limits = { applierBatchBytesMax: 300, historyMs: 1 }

test.each(disks)(
  'HASH-1: batches keep up the hash that a count of all rows gives, on %s',
  async (name, disk) => {
    const property = fc.asyncProperty(fc.array(anyStep, { maxLength: 40, size: 'max' }), (steps) =>
      onDisk(disk, async (on) => {
        const life = await Life.begin(() => on.open())
        for (const step of steps) {
          await life.take(step)
          const [found, counted] = await life.look()
          expect([step, found]).toEqual([step, found === 'unknown' ? found : counted])
        }
        const [found, counted] = await life.end()
        expect(found).toBe(counted)
      }),
    )
    await fc.assert(property, { numRuns: runsOn(name, 150), seed: 7 })
  },
  60_000,
)

test('HASH-1: two nodes with other batches, other history and another way there have the same hash at the same position', async () => {
  const hashes: string[] = []
  for (const [drains, historyMs] of [
    [1, 1],
    [7, 3_600_000],
    [100, 60_000],
  ] as const) {
    await onDisk(simulatedDisk, async (disk) => {
      const store = await disk.open()
      const data = await openData(store, { historyMs })
      for (let position = 1; position <= 60; position++) {
        commit(
          data,
          a,
          position,
          put(`row ${position % 7}`, `${position}`),
          gone(`row ${position % 5}`),
        )
        if (position % drains === 0) await data.drain()
      }
      await data.drain()
      hashes.push(told(store, a))
      await data.stop()
    })
  }
  const whole = await snapshotOf(a, (data) => {
    for (let position = 1; position <= 60; position++) {
      commit(
        data,
        a,
        position,
        put(`row ${position % 7}`, `${position}`),
        gone(`row ${position % 5}`),
      )
    }
  })
  await onDisk(simulatedDisk, async (disk) => {
    const store = await disk.open()
    const data = await openData(store)
    await takeIn(data, a, whole, 100)
    hashes.push(told(store, a))
    await data.stop()
  })
  expect(hashes).toHaveLength(4)
  expect(new Set(hashes).size).toBe(1)
})

test('HASH-1: wherever the process ends in a large snapshot, the hash is that of the rows which the next start finds', async () => {
  const whole = await snapshotOf(a, (data) => {
    for (let position = 1; position <= 30; position++) {
      commit(data, a, position, put(`row ${position % 9}`, `${position}`))
    }
  })
  const seen = new Set<string>()
  for (let writesMax = 0; writesMax < 40; writesMax++) {
    await onDisk(simulatedDisk, async (disk) => {
      const first = await openData(await disk.open())
      commit(first, a, 1, put('row 1', '1'), put('before', '1'))
      await first.drain()
      await first.stop()
      const cut = await openData(new EndingStore(await disk.open(), writesMax))
      await takeIn(cut, a, whole, 100).catch(() => undefined)
      await cut.stop()
      const store = await disk.open()
      const again = await openData(store)
      await resumeSwitches(again)
      expect([writesMax, told(store, a)]).toEqual([writesMax, await recounted(store, a)])
      seen.add(told(store, a))
      const next = again.applied(a).position + 1
      commit(again, a, next, put('row 2', 'next'), gone('row 1'))
      await again.drain()
      expect([writesMax, told(store, a)]).toEqual([writesMax, await recounted(store, a)])
      await again.stop()
    })
  }
  // The group as it was, and as the snapshot has it.
  expect(seen.size).toBe(2)
})

test('HASH-1: a group of an earlier build is counted once it is written, with what is written meanwhile, and only then has a hash', () =>
  onDisk(simulatedDisk, async (disk) => {
    const first = await openData(await disk.open())
    for (let at = 0; at < 600; at++) commit(first, a, at + 1, put(`row ${at}`, `${at}`))
    commit(first, b, 1, put('other', '1'))
    await first.drain()
    await first.stop()
    const store = await disk.open()
    await forgetHash(store, a)
    await forgetHash(store, b)
    const data = await openData(store)
    data.placeOf = () => ({ flush: 9, snapshot: 3 })
    commit(data, a, 601, put('row 1', 'changed'), gone('row 2'), put('new', '1'))
    await data.drain()
    expect(told(store, a)).toBe('unknown')
    // While it is counted.
    commit(data, a, 602, put('row 3', 'changed'), put('new', '2'), gone('row 599'))
    await data.drain()
    for (let tries = 0; tries < 100 && told(store, a) === 'unknown'; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 2))
      data.wantBatch()
      await data.drain()
    }
    expect(told(store, a)).toBe(await recounted(store, a))
    expect(recordOf(store, a)).toMatchObject({ stamp: 602, flush: 9, snapshot: 3 })
    expect(told(store, b)).toBe('unknown')
    await data.stop()
  }))

test('HASH-1: a snapshot whose rows are not those that the state record counts says so at its end', () =>
  onDisk(simulatedDisk, async (disk) => {
    const data = await openData(await disk.open())
    commit(data, a, 1, put('one', '1'), put('two', '2'))
    await data.drain()
    await data.stop()
    const store = await disk.open()
    const again = await openData(store)
    const sound = again.openSnapshot(a)
    expect(await sound?.next(1_000)).toMatchObject({ isDamaged: false })
    await sound?.close()
    const keys: Uint8Array[] = []
    for await (const rows of store.scan({ gte: Buffer.from('g'), lt: Buffer.from('h') })) {
      keys.push(...rows.map(({ key }) => key))
    }
    expect(keys).toHaveLength(2)
    await store.write(keys.slice(1).map((key) => ({ key })))
    const damaged = again.openSnapshot(a)
    const first = await damaged?.next(1)
    expect([first?.crc, first?.isDamaged]).toEqual([undefined, undefined])
    expect(await damaged?.next(1_000)).toMatchObject({ rows: [], isDamaged: true })
    await damaged?.close()
    await again.stop()
  }))

test('HASH-1: damage in the hash is damage of the state record', () =>
  onDisk(simulatedDisk, async (disk) => {
    const data = await openData(await disk.open())
    commit(data, a, 1, put('one', '1'))
    await data.drain()
    await data.stop()
    const store = await disk.open()
    const { hash } = recordOf(store, a)
    const again = await openData(store)
    for await (const rows of store.scan({ gte: Buffer.from('s'), lt: Buffer.from('t') })) {
      for (const { key, value } of rows) {
        const at = Buffer.from(value).indexOf(Buffer.from(hash ?? '', 'latin1'))
        expect(at).toBe(31)
        await flipBit(store, key, at + 3)
      }
    }
    expect(() => again.state(a)).toThrow('checksum')
    await again.stop()
  }))
