/** The log store's promises on a sound disk: order, durability, what it knows, and restarts. */
import { flushKey } from '../../src/journal/ordered-journal.ts'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AssertionError } from '../../src/base/assert.ts'
import { clusterId, nodeId } from '../../src/base/ids.ts'
import type { LogRecord } from '../../src/replication/effect.ts'
import { decodeFlush } from '../../src/log/flush.ts'
import type { LogStore } from '../../src/log/log-store.ts'
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
import { disks, GatedStore, onDisk } from '../store/stores.ts'
import { whole } from './whole.ts'

describe.each(disks)('on %s', (_, disk) => {
  test('PAX-4: the log answers nothing before the flush is durable, and then answers in order', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const log = await openLog(store)
      const answered: string[] = []
      store.hold()
      log.append([accept('a', 1, 0, 'one')], () => answered.push('first'))
      log.append([promise('b', 1, 3)], () => answered.push('second'))
      await store.hasBegun(2)
      log.append([accept('c', 1, 0, 'two')], () => answered.push('third'))
      log.append([], () => answered.push('fourth'))
      expect(answered).toEqual([])
      expect(log.durableFlush).toBe(0)
      store.release()
      await durable(log)
      expect(answered).toEqual(['first', 'second', 'third', 'fourth'])
      expect(log.durableFlush).toBe(2)
    }))

  test('one write is in flight, and what arrives meanwhile forms the next', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const log = await openLog(store)
      store.hold()
      log.append([accept('a', 1, 0, 'x')], () => undefined)
      await store.hasBegun(2)
      for (let position = 2; position <= 50; position++) {
        log.append([accept('a', position, 0, 'x')], () => undefined)
      }
      store.release()
      await durable(log)
      expect(store.begun.length).toBe(3)
      expect(log.durableFlush).toBe(2)
    }))

  test('LOG-14: a sync forces out what was noted, and rejects when the disk refuses', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const log = await openLog(store)
      await durable(log, accept('a', 1, 0, 'one'))
      await log.sync()
      expect(log.durableFlush, 'nothing is left to be synced').toBe(1)
      log.note([chosen('a', 1, 0)])
      log.checkLogged([{ group: group('a'), position: 1 }])
      expect(() => log.checkLogged([{ group: group('a'), position: 2 }])).toThrow('LOG-14')
      await log.sync()
      expect(log.durableFlush).toBe(2)
      store.mode = 'refuse'
      log.note([chosen('b', 1, 0, 'two')])
      await expect(log.sync()).rejects.toThrow('the disk is gone')
      await expect(log.sync(), 'a log that has failed').rejects.toThrow('the disk is gone')
      expect(log.durableFlush).toBe(2)
    }))

  test('an append that waits for nothing is answered at once', () =>
    onDisk(disk, async (on) => {
      const log = await openLog(await on.open())
      let isAnswered = false
      log.append([], () => {
        isAnswered = true
      })
      expect(isAnswered).toBe(true)
    }))

  test('the log answers an append made during answers after all of them', () =>
    onDisk(disk, async (on) => {
      const log = await openLog(await on.open())
      const answered: string[] = []
      log.append([promise('a', 1, 1)], () => {
        answered.push('first')
        log.append([], () => answered.push('third'))
      })
      log.append([promise('b', 1, 1)], () => answered.push('second'))
      await durable(log, promise('c', 1, 1))
      await durable(log)
      expect(answered).toEqual(['first', 'second', 'third'])
    }))

  test('a note forces no flush and goes along with the next', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const log = await openLog(store)
      await durable(log, accept('a', 1, 0, 'one'))
      log.note([chosen('a', 1, 0)])
      expect(log.position(group('a'), 1)?.chosen).toEqual(ballot(0))
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
      expect(store.begun.length).toBe(2)
      await durable(log, accept('b', 1, 0, 'two'))
      expect(store.begun.length).toBe(3)
      const flush = decodeFlush(store.getSync(flushKey(2)) ?? new Uint8Array())
      expect(flush?.records.map(({ kind }) => kind)).toEqual(['chosen', 'accept'])
    }))

  test('a flush takes no more than its bound, and an append is never torn', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const log = await openLog(store, { flushBytesMax: 1000 })
      const text = 'x'.repeat(300)
      const pair = (at: number): LogRecord[] => [accept('a', at, 0, text), accept('b', at, 0, text)]
      for (let position = 1; position <= 4; position++) log.append(pair(position), () => undefined)
      await durable(log)
      expect(log.durableFlush).toBe(4)
      for (let number = 1; number <= 4; number++) {
        const flush = decodeFlush(store.getSync(flushKey(number)) ?? new Uint8Array())
        expect(flush?.records.map(({ position }) => position)).toEqual([number, number])
      }
    }))

  test('flush numbers are dense and each flush names its predecessor', () =>
    onDisk(disk, async (on) => {
      const store = await on.open()
      const log = await openLog(store)
      for (let position = 1; position <= 5; position++) {
        await durable(log, accept('a', position, 0, `value ${position}`))
      }
      let previousCrc = 0
      for (let number = 1; number <= 5; number++) {
        const flush = decodeFlush(store.getSync(flushKey(number)) ?? new Uint8Array())
        expect(flush).toMatchObject({ number, previousCrc, incarnation: 1 })
        previousCrc = flush?.crc ?? 0
      }
    }))

  test('a value is there from the moment of its append, and after a restart', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const log = await openLog(store)
      store.hold()
      log.append([accept('a', 1, 0, 'one')], () => undefined)
      expect(textOf(log.value(group('a'), 1))).toBe('one')
      await store.hasBegun(2)
      log.append([accept('a', 2, 0, '')], () => undefined)
      expect(textOf(log.value(group('a'), 2))).toBe('')
      store.release()
      await durable(log)
      expect(textOf(log.value(group('a'), 1))).toBe('one')
      const again = await openLog(await on.open())
      expect(textOf(again.value(group('a'), 1))).toBe('one')
      expect(textOf(again.value(group('a'), 2))).toBe('')
      expect(again.value(group('a'), 3)).toBeUndefined()
      expect(again.value(group('b'), 1)).toBeUndefined()
    }))

  test('PAX-2: the fold of a log is the same after a restart', () =>
    onDisk(disk, async (on) => {
      const log = await openLog(await on.open())
      await durable(log, accept('a', 1, 0, 'one'), promise('a', 3, 4), promise('b', 2, 1))
      await durable(log, chosen('a', 1, 0), accept('a', 3, 5, 'three'), accept('b', 1, 0, 'b'))
      await durable(log, chosen('b', 2, 7, 'b two'), promise('a', 3, 6))
      const before = [[...log.positions(group('a'), 0)], [...log.positions(group('b'), 0)]]
      expect(before[0]).toEqual(
        [
          ...[{ position: 1, promised: ballot(0), accepted: ballot(0), chosen: ballot(0) }],
          ...[{ position: 3, promised: ballot(6), accepted: ballot(5) }],
        ].map((header) => ({ ...header, faulty: false })),
      )
      const again = await openLog(await on.open())
      expect([[...again.positions(group('a'), 0)], [...again.positions(group('b'), 0)]]).toEqual(
        before,
      )
      expect([...again.positions(group('a'), 1)].map(({ position }) => position)).toEqual([3])
      expect([...again.positions(group('c'), 0)]).toEqual([])
      expect(textOf(again.value(group('b'), 2))).toBe('b two')
      expect([again.highest(group('a')), again.highest(group('b'))]).toEqual([3, 2])
    }))

  test('a store keeps its id, and its incarnation rises durably at every open', () =>
    onDisk(disk, async (on) => {
      const first = (await openLog(await on.open())).identity
      const second = (await openLog(await on.open())).identity
      const third = (await openLog(await on.open())).identity
      expect([first.incarnation, second.incarnation, third.incarnation]).toEqual([1, 2, 3])
      expect(new Set([first.storeId, second.storeId, third.storeId]).size).toBe(1)
    }))

  test('a folder of another cluster or node is refused and left as it was', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      await openLog(store)
      const other = { cluster: clusterId('other') }
      await expect(openLog(store, other)).rejects.toMatchObject({ code: 'invalid' })
      const stranger = { node: nodeId('node-2') }
      await expect(openLog(store, stranger)).rejects.toMatchObject({ code: 'invalid' })
      expect(store.begun.length).toBe(1)
    }))

  test('settled goes up to the first flush with a record that is not, over restarts', () =>
    onDisk(disk, async (on) => {
      const data = new FakeData()
      const log = await openLog(await on.open(), {}, data)
      await durable(log, chosen('a', 1, 0, 'x'), chosen('b', 1, 0, 'x'))
      await durable(log, chosen('a', 2, 0, 'x'))
      await durable(log, chosen('c', 1, 0, 'x'), chosen('a', 3, 0, 'x'))
      await data.batch(log, ['a', 2])
      expect(log.settledFlush).toBe(0)
      await data.batch(log, ['b', 1])
      expect(log.settledFlush).toBe(2)
      expect([...log.groupsWithUnsettled()]).toEqual([group('c'), group('a')])
      const again = await openLog(await on.open(), {}, data)
      expect(again.settledFlush).toBe(2)
      expect([...again.groupsWithUnsettled()]).toEqual([group('c'), group('a')])
      await data.batch(again, ['a', 3], ['c', 1])
      expect(again.settledFlush).toBe(3)
      const rebuilt = await openLog(await on.open(), {}, new FakeData())
      expect([...rebuilt.groupsWithUnsettled()]).toEqual([group('a'), group('b'), group('c')])
    }))

  test('a peer learns what was written since a flush, in bounded parts', () =>
    onDisk(disk, async (on) => {
      const log = await openLog(await on.open())
      await durable(log, accept('a', 1, 0, 'x'), promise('z', 1, 1))
      await durable(log, accept('b', 4, 0, 'x'), accept('c', 1, 0, 'x'), accept('d', 1, 0, 'x'))
      await durable(log, chosen('a', 2, 0, 'x'))
      expect(whole(log.since(0, 100))).toEqual({
        ...{ through: 3, isWhole: true },
        groups: [
          ...[
            [group('a'), 2],
            [group('b'), 4],
          ],
          ...[
            [group('c'), 1],
            [group('d'), 1],
          ],
        ],
      })
      const parts = [
        whole(log.since(0, 2)),
        whole(log.since(1, 2)),
        whole(log.since(2, 2)),
        whole(log.since(3, 2)),
      ]
      expect(parts.map(({ through }) => through)).toEqual([1, 2, 3, 3])
      expect(parts.map(({ groups }) => groups.length)).toEqual([1, 3, 1, 0])
    }))

  test('a long log of large flushes is taken up whole', () =>
    onDisk(disk, async (on) => {
      const log = await openLog(await on.open())
      const text = 'x'.repeat(5000)
      for (let position = 1; position <= 40; position++) {
        await durable(log, accept('a', position, 0, `${position} ${text}`))
      }
      const again = await openLog(await on.open())
      expect(again.durableFlush).toBe(40)
      expect(textOf(again.value(group('a'), 40))).toBe(`40 ${text}`)
    }))

  test('stop writes what was given, answers it, and takes nothing more', () =>
    onDisk(disk, async (on) => {
      const log = await openLog(await on.open())
      const answered: string[] = []
      log.append([accept('a', 1, 0, 'one')], () => answered.push('in time'))
      const stopped = log.stop()
      log.append([accept('a', 2, 0, 'two')], () => answered.push('late'))
      await stopped
      await log.stop()
      expect(answered).toEqual(['in time'])
      const again = await openLog(await on.open())
      expect([...again.positions(group('a'), 0)].length).toBe(1)
    }))

  test('stop does not lose notes', () =>
    onDisk(disk, async (on) => {
      const log = await openLog(await on.open())
      await durable(log, accept('a', 1, 0, 'one'))
      log.note([chosen('a', 1, 0)])
      await log.stop()
      const again = await openLog(await on.open())
      expect(again.position(group('a'), 1)?.chosen).toEqual(ballot(0))
    }))
})

test('PAX-4: after a failed write the log answers nothing more, and its owner hears of it once', async () => {
  for (const [, disk] of disks) {
    await onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const log = await openLog(store)
      const answered: string[] = []
      store.mode = 'refuse'
      const failed = new Promise<Error>((resolve) => {
        log.onFailure = resolve
      })
      log.append([accept('a', 1, 0, 'one')], () => answered.push('refused'))
      expect((await failed).message).toBe('the disk is gone')
      store.mode = 'write'
      log.append([accept('a', 2, 0, 'two')], () => answered.push('later'))
      log.append([], () => answered.push('empty'))
      await log.stop()
      expect(answered).toEqual([])
      expect(store.begun.length).toBe(2)
    })
  }
})

test('PAX-2: a promise that goes down stops the node before it is written', async () => {
  const [, disk] = disks[0] ?? ['', () => Promise.reject(new Error('no disk'))]
  await onDisk(disk, async (on) => {
    const log = await openLog(await on.open())
    await durable(log, promise('a', 1, 5))
    expect(() => log.append([promise('a', 1, 4)], () => undefined)).toThrow(AssertionError)
    expect(() => log.append([accept('a', 1, 4, 'x')], () => undefined)).toThrow(AssertionError)
  })
})

/** Any log that acceptors may write: rounds only rise, decisions name what was accepted. */
const anyRecords = fc
  .array(
    fc.record({
      name: fc.constantFrom('a', 'b', 'a\0b', 'long name'),
      position: fc.integer({ min: 1, max: 6 }),
      kind: fc.constantFrom('promise' as const, 'accept' as const, 'chosen' as const),
      text: fc.string({ maxLength: 20 }),
    }),
    { minLength: 1, maxLength: 60 },
  )
  .map((rows) =>
    rows.map(({ name, position, kind, text }, round): LogRecord => {
      if (kind === 'promise') return promise(name, position, round)
      if (kind === 'accept') return accept(name, position, round, text)
      return chosen(name, position, round, `${name} ${position}`)
    }),
  )

test('a log knows the same however its records were flushed, and after a restart', async () => {
  const [, disk] = disks[0] ?? ['', () => Promise.reject(new Error('no disk'))]
  await fc.assert(
    fc.asyncProperty(anyRecords, fc.integer({ min: 1, max: 500 }), async (records, flushBytesMax) =>
      onDisk(disk, async (on) => {
        const log = await openLog(await on.open(), { flushBytesMax })
        for (const record of records) log.append([record], () => undefined)
        const pending = knowledge(log, records)
        await durable(log)
        expect(knowledge(log, records)).toEqual(pending)
        expect(knowledge(await openLog(await on.open()), records)).toEqual(pending)
      }),
    ),
    { numRuns: 60, seed: 4 },
  )
})

function knowledge(log: LogStore, records: readonly LogRecord[]): unknown {
  const groups = [...new Set(records.map((record) => record.group))]
  return groups.map((name) => ({
    highest: log.highest(name),
    positions: [...log.positions(name, 0)].map((header) => [
      header,
      textOf(log.value(name, header.position)),
    ]),
  }))
}
