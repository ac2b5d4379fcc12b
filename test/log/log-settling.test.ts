/** Rows of what is settled: with them a log knows exactly what it would know folded whole. */
import { flushKey } from '../../src/journal/ordered-journal.ts'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { pack } from '../../src/base/pack.ts'
import type { LogStore } from '../../src/log/log-store.ts'
import type { LogRecord } from '../../src/replication/effect.ts'
import {
  accept,
  ballot,
  chosen,
  durable,
  FakeData,
  group,
  openLog,
  promise,
  textOf,
} from './log-fixture.ts'
import { stretchPositions } from '../../src/log/settled.ts'
import { disks, GatedStore, onDisk, type Disk } from '../store/stores.ts'
import { whole } from './whole.ts'

const names = ['a', 'b', 'a\0b'] as const
const positionsMax = 8

/** All that a log says of every open position, and the chosen values of those that `data` has applied. */
function knowledge(log: LogStore, data: FakeData): unknown {
  return names.map((name) =>
    Array.from({ length: positionsMax }, (_, at) => {
      const position = at + 1
      if (position <= data.applied(group(name)).position) {
        const found = log.chosen(group(name), position)
        return [found?.ballot, textOf(found?.value)]
      }
      const header = log.position(group(name), position)
      return header && [header, textOf(log.value(group(name), position))]
    }),
  )
}

const record = fc.record({
  name: fc.constantFrom(...names),
  position: fc.integer({ min: 1, max: positionsMax }),
  kind: fc.constantFrom('promise' as const, 'accept' as const, 'chosen' as const),
  text: fc.string({ maxLength: 20 }),
})

/** A crash loses what is on its way to the log's disk; an `older` one the last batch of the data store, too. */
const events = ['batch', 'batch', 'durable', 'durable', 'restart', 'crash', 'older crash'] as const

const steps = fc.array(
  fc.oneof({ weight: 3, arbitrary: record }, { weight: 2, arbitrary: fc.constantFrom(...events) }),
  { minLength: 1, maxLength: 120, size: 'max' },
)

type Step = typeof steps extends fc.Arbitrary<(infer One)[]> ? One : never

/** A log and the rows of it, over restarts. Its flushes reach the disk at `durable` only. */
class Life {
  readonly #disk: Disk
  readonly #carryAfterFlushes: number
  #store: GatedStore | undefined
  #log: LogStore | undefined
  #data = new FakeData()
  /** As it was a batch ago. */
  #before = new FakeData()
  #round = 0

  constructor(disk: Disk, carryAfterFlushes: number) {
    this.#disk = disk
    this.#carryAfterFlushes = carryAfterFlushes
  }

  async log(): Promise<LogStore> {
    if (this.#log !== undefined) return this.#log
    this.#store = new GatedStore(await this.#disk.open())
    const changed = { flushBytesMax: 60, carryAfterFlushes: this.#carryAfterFlushes }
    this.#log = await openLog(this.#store, changed, this.#data)
    this.#store.hold()
    return this.#log
  }

  async take(step: Step): Promise<void> {
    const log = await this.log()
    if (typeof step === 'object') {
      // Of what is applied no acceptor speaks any more (PAX-8).
      const { position } = this.#data.applied(group(step.name))
      if (step.position <= position) return
      return log.append([this.#recordOf(step)], () => undefined)
    }
    if (step === 'batch') return this.#batch(log)
    if (step === 'durable' || step === 'restart') await this.durable()
    if (step === 'durable') return
    this.#log = undefined
    if (step === 'older crash') this.#data = new FakeData(this.#before)
  }

  get data(): FakeData {
    return this.#data
  }

  async durable(): Promise<void> {
    const log = await this.log()
    this.#store?.release()
    await durable(log)
    this.#store?.hold()
  }

  #recordOf({ name, position, kind, text }: Exclude<Step, string>): LogRecord {
    this.#round += 1
    if (kind === 'promise') return promise(name, position, this.#round)
    if (kind === 'accept') return accept(name, position, this.#round, text)
    return chosen(name, position, this.#round, `${name} ${position}`)
  }

  /** Takes every group as far as it is decided without a hole. */
  async #batch(log: LogStore): Promise<void> {
    this.#before = new FakeData(this.#data)
    const groups = names.flatMap((name) => {
      const before = this.#data.applied(group(name)).position
      let position = before
      while (log.position(group(name), position + 1)?.chosen !== undefined) position += 1
      return position === before ? [] : [[name, position] as const]
    })
    this.#store?.release()
    await this.#data.batch(log, ...groups)
    this.#store?.hold()
  }
}

test('LOG-7: with rows of what is settled a log knows what it knows folded whole', async () => {
  const disk = disks[0]?.[1] ?? noDisk
  let passed = 0
  let left = 0
  await fc.assert(
    fc.asyncProperty(steps, fc.constantFrom(0, 2, 1_000), async (drawn, carryAfterFlushes) =>
      onDisk(disk, async (on) => {
        const life = new Life(on, carryAfterFlushes)
        for (const step of drawn) await life.take(step)
        await life.durable()
        const log = await life.log()
        passed += log.settledFlush
        left += log.durableFlush - log.settledFlush
        const known = knowledge(log, life.data)
        expect(known).toEqual(knowledge(await openLog(await on.open()), life.data))
      }),
    ),
    { numRuns: 500, seed: 7 },
  )
  expect([passed > 5_000, left > 5_000]).toEqual([true, true])
})

test('LOG-7: settled positions leave memory, and a start folds those after them', () =>
  onDisk(disks[0]?.[1] ?? noDisk, async (on) => {
    const data = new FakeData()
    const log = await openLog(await on.open(), {}, data)
    await durable(log, accept('a', 1, 0, 'one'), accept('b', 1, 0, 'other'), chosen('b', 1, 0))
    await durable(log, chosen('a', 1, 0), accept('a', 2, 0, 'two'))
    expect([...log.positions(group('a'), 0)].length).toBe(2)
    await data.batch(log, ['a', 1], ['b', 1])
    // Flush 1 alone: position 2 of a group in flush 2 is open.
    expect(log.settledFlush).toBe(1)
    expect([...log.positions(group('a'), 0)].map(({ position }) => position)).toEqual([2])
    expect([...log.positions(group('b'), 0)]).toEqual([])
    expect(log.position(group('a'), 1)).toBeUndefined()
    expect([log.wasSettled(group('a'), 1), log.wasSettled(group('a'), 2)]).toEqual([true, false])
    expect(textOf(log.chosen(group('a'), 1)?.value)).toBe('one')
    expect(() => log.append([promise('a', 1, 5)], () => undefined)).toThrow('LOG-7')
    const store = new GatedStore(await on.open())
    const again = await openLog(store, {}, data)
    expect(store.scanned.map(({ gte }) => gte)).toEqual([flushKey(2)])
    expect([...again.positions(group('a'), 0)].map(({ position }) => position)).toEqual([2])
    expect(textOf(again.chosen(group('a'), 1)?.value)).toBe('one')
    expect(textOf(again.chosen(group('b'), 1)?.value)).toBe('other')
    expect(again.chosen(group('a'), 2)).toBeUndefined()
  }))

test('LOG-15: the value at each of many settled positions is found, after a start, too', () =>
  onDisk(disks[0]?.[1] ?? noDisk, async (on) => {
    const data = new FakeData()
    const store = new GatedStore(await on.open())
    const log = await openLog(store, {}, data)
    const count = 3 * stretchPositions + 10
    for (let position = 1; position <= count; position++) {
      await durable(log, accept('a', position, 0, `a ${position}`), accept('b', position, 0, 'x'))
      const isLast = position % 20 === 0 || position === count
      await durable(log, chosen('a', position, 0), ...(isLast ? [] : [promise('c', 1, position)]))
      if (isLast) await data.batch(log, ['a', position])
    }
    // The mark waits for `b`, and there is a row at the end of each stretch.
    expect([log.settledFlush, [...log.positions(group('a'), 0)]]).toEqual([0, []])
    expect(data.size).toBe(3)
    const again = await openLog(store, {}, data)
    for (const one of [log, again]) {
      const texts = Array.from({ length: count }, (_, at) =>
        textOf(one.chosen(group('a'), count - at)?.value),
      )
      expect(texts).toEqual(Array.from({ length: count }, (_, at) => `a ${count - at}`))
    }
    const fresh = await openLog(store, {}, data)
    const reads = store.reads
    expect(textOf(fresh.chosen(group('a'), 1)?.value)).toBe('a 1')
    expect(store.reads - reads).toBeLessThan(3 * stretchPositions)
  }))

test('how far a group was settled when it left memory is known without a read', () =>
  onDisk(disks[0]?.[1] ?? noDisk, async (on) => {
    const data = new FakeData()
    const log = await openLog(await on.open(), {}, data)
    await durable(log, accept('a', 1, 0, 'one'), chosen('a', 1, 0))
    await durable(log)
    await data.batch(log, ['a', 1])
    expect([...log.positions(group('a'), 0)]).toEqual([])
    data.applied = () => expect.unreachable('the state record was read')
    expect(log.highest(group('a'))).toBe(1)
    await durable(log, accept('a', 2, 0, 'two'), chosen('a', 2, 0))
    expect(log.highest(group('a'))).toBe(2)
    await data.batch(log, ['a', 2])
    expect(log.highest(group('a'))).toBe(2)
  }))

test('LOG-7: a position that stays open is copied, and taken up at a start', () =>
  onDisk(disks[0]?.[1] ?? noDisk, async (on) => {
    const data = new FakeData()
    const log = await openLog(await on.open(), { carryAfterFlushes: 3 }, data)
    await durable(log, promise('open', 4, 7), accept('open', 2, 1, 'value'))
    await durable(log, promise('open', 2, 3))
    for (let position = 1; position <= 5; position++) {
      await durable(log, chosen('a', position, 1, 'x'))
      await data.batch(log, ['a', position])
      // The mark passes a flush once three others have followed it, and its open positions are copied.
      expect(log.settledFlush >= 1, `position ${position}`).toBe(position >= 2)
    }
    const again = await openLog(await on.open(), { carryAfterFlushes: 3 }, data)
    expect(again.settledFlush).toBeGreaterThan(2)
    expect([...again.groupsWithUnsettled()]).toEqual([group('open')])
    expect([...again.positions(group('open'), 0)]).toMatchObject([
      { position: 2, promised: ballot(3), accepted: ballot(1) },
      { position: 4, promised: ballot(7), accepted: undefined },
    ])
    expect(textOf(again.value(group('open'), 2))).toBe('value')
    expect(() => again.append([promise('open', 4, 6)], () => undefined)).toThrow('PAX-2')
    expect(() => again.append([promise('open', 2, 2)], () => undefined)).toThrow('PAX-2')
    await durable(
      again,
      chosen('open', 1, 1, 'one'),
      chosen('open', 2, 1),
      chosen('open', 3, 1, 'x'),
    )
    await durable(again, chosen('open', 4, 8, 'four'))
    await data.batch(again, ['open', 4])
    expect(again.settledFlush).toBe(again.durableFlush)
    expect(textOf(again.chosen(group('open'), 2)?.value)).toBe('value')
    expect([...(await openLog(await on.open(), {}, data)).groupsWithUnsettled()]).toEqual([])
  }))

test('LOG-7: applying positions makes room to carry others, though the mark waits for these', () =>
  onDisk(disks[0]?.[1] ?? noDisk, async (on) => {
    const data = new FakeData()
    const log = await openLog(await on.open(), { carryAfterFlushes: 3 }, data)
    const carried = Array.from({ length: 1_000 }, (_, at) => `open ${at}`)
    await durable(log, ...carried.map((name) => promise(name, 1, 1)))
    await durable(log, promise('one more', 1, 1))
    for (let position = 1; position <= 3; position++) {
      await durable(log, chosen('a', position, 1, 'x'))
    }
    await data.batch(log, ['a', 3])
    await settleAll(data, log)
    expect(log.settledFlush).toBe(1)
    await durable(log, ...carried.map((name) => chosen(name, 1, 2, 'x')))
    await data.batch(log, ...carried.map((name) => [name, 1] as const))
    await settleAll(data, log)
    expect(log.settledFlush).toBeGreaterThan(2)
    expect([...log.groupsWithUnsettled()]).toEqual([group('one more')])
    const again = await openLog(await on.open(), {}, data)
    expect([...again.groupsWithUnsettled()]).toEqual([group('one more')])
  }))

test('LOG-7: the log reports once an open position that finds no room to be carried', () =>
  onDisk(disks[0]?.[1] ?? noDisk, async (on) => {
    const data = new FakeData()
    const log = await openLog(await on.open(), { carryAfterFlushes: 3 }, data)
    const told: (readonly [string, number])[] = []
    log.onHeldUp = (...one) => told.push(one)
    const carried = Array.from({ length: 1_000 }, (_, at) => promise(`open ${at}`, 1, 1))
    await durable(log, ...carried)
    await durable(log, promise('one more', 2, 1))
    for (let position = 1; position <= 3; position++) {
      await durable(log, chosen('a', position, 1, 'x'))
    }
    await data.batch(log, ['a', 3])
    await settleAll(data, log)
    expect(log.settledFlush).toBe(1)
    expect(told).toEqual([[group('one more'), 2]])
    await durable(log, chosen('one more', 1, 2, 'x'), chosen('one more', 2, 2, 'x'))
    await data.batch(log, ['one more', 2])
    expect(log.settledFlush).toBeGreaterThan(2)
    expect(told.length).toBe(1)
  }))

test('rows of an unknown format, or not whole, are refused', () =>
  onDisk(disks[0]?.[1] ?? noDisk, async (on) => {
    const store = await on.open()
    for (const [bytes, code] of [
      [pack([9, 1, 1, 1]), 'invalid'],
      [pack([1, 'one', 1, 1]), 'corrupt'],
      [pack('mark'), 'corrupt'],
    ] as const) {
      const data = new FakeData()
      data.setMeta('log/mark', bytes)
      await expect(openLog(store, {}, data)).rejects.toMatchObject({ code })
    }
  }))

test('one batch passes a bounded number of groups and says whether there are more', () =>
  onDisk(disks[0]?.[1] ?? noDisk, async (on) => {
    const first = await openLog(await on.open())
    for (let flush = 0; flush < 3; flush++) {
      const records = Array.from({ length: 600 }, (_, at) => chosen(`${flush}/${at}`, 1, 0, ''))
      await durable(first, ...records)
    }
    // A data store of before there were rows: it has the groups, and knows nothing of the log.
    const data = new FakeData()
    const applied = Array.from(
      { length: 1_800 },
      (_, at) => [`${Math.floor(at / 600)}/${at % 600}`, 1] as const,
    )
    await data.batch(first, ...applied)
    const log = await openLog(await on.open(), {}, data)
    expect([...log.groupsWithUnsettled()]).toEqual([])
    expect(first.settledFlush).toBe(1)
    await data.batch(log)
    expect([log.settledFlush, log.isBehind]).toEqual([1, true])
    await data.batch(log)
    expect([log.settledFlush, log.isBehind]).toEqual([3, false])
    expect(whole(log.since(0, 100)).groups.length).toBe(600)
    const again = await openLog(await on.open(), {}, data)
    expect(textOf(again.chosen(group('2/599'), 1)?.value)).toBe('')
  }))

/** Batches until no more can be passed. */
async function settleAll(data: FakeData, log: LogStore): Promise<void> {
  for (let batch = 0; log.isBehind && batch < 100; batch++) await data.batch(log)
}

function noDisk(): Promise<Disk> {
  return Promise.reject(new Error('no disk'))
}
