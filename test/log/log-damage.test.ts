/** The log store on a damaged disk: it loses a position at most, or refuses; it never says "absent". */
import { flushKey, recordKey } from '../../src/journal/ordered-journal.ts'
import { describe, expect, test } from 'vitest'
import { crc32 } from '../../src/base/bytes.ts'
import { pack } from '../../src/base/pack.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import { metaName } from '../../src/log/log-meta.ts'
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
import { disks, flipBit, onDisk, type Disk } from '../store/stores.ts'
import { whole } from './whole.ts'

/** Three flushes; the second holds two values, whose bytes stand at its end. */
async function written(on: Disk): Promise<OrderedStore> {
  const log = await openLog(await on.open())
  await durable(log, accept('a', 1, 0, 'one'))
  await durable(log, accept('a', 2, 0, 'two'), accept('b', 1, 0, 'other'))
  await durable(log, accept('a', 3, 0, 'three'), chosen('a', 1, 0))
  return on.open()
}

const refused = { code: 'corrupt', retry: 'never' }

describe.each(disks)('on %s', (_, disk) => {
  test('PAX-2: a flipped bit in a value makes that position faulty, and no other', () =>
    onDisk(disk, async (on) => {
      await flipBit(await written(on), flushKey(2), -1)
      const log = await openLog(await on.open())
      expect(log.value(group('b'), 1)).toBe('faulty')
      expect([...log.positions(group('b'), 0)]).toEqual([
        { position: 1, promised: ballot(0), accepted: ballot(0), faulty: true },
      ])
      expect(log.highest(group('b'))).toBe(1)
      const texts = [1, 2, 3].map((position) => textOf(log.value(group('a'), position)))
      expect(texts).toEqual(['one', 'two', 'three'])
    }))

  test('damage that comes after the start is found by the read', () =>
    onDisk(disk, async (on) => {
      const log = await openLog(await written(on))
      const store = await on.open()
      const later = await openLog(store)
      await flipBit(store, flushKey(2), -1)
      expect(later.value(group('b'), 1)).toBe('faulty')
      expect(later.position(group('b'), 1)?.faulty).toBe(true)
      expect(textOf(later.value(group('a'), 2))).toBe('two')
      expect(log.identity.storeId).toBe(later.identity.storeId)
    }))

  test('a header that is damaged after the start makes the positions read from it faulty', () =>
    onDisk(disk, async (on) => {
      const store = await written(on)
      const log = await openLog(store)
      await flipBit(store, flushKey(2), 60)
      expect(log.value(group('a'), 2)).toBe('faulty')
      expect(log.value(group('b'), 1)).toBe('faulty')
      expect(textOf(log.value(group('a'), 1))).toBe('one')
    }))

  test('a faulty position heals when its decided value comes in, for good', () =>
    onDisk(disk, async (on) => {
      await flipBit(await written(on), flushKey(2), -1)
      const log = await openLog(await on.open())
      await durable(log, chosen('b', 1, 3, 'healed'))
      expect(textOf(log.value(group('b'), 1))).toBe('healed')
      const again = await openLog(await on.open())
      expect(textOf(again.value(group('b'), 1))).toBe('healed')
      expect(again.position(group('b'), 1)).toMatchObject({ chosen: ballot(3), faulty: false })
    }))

  test('a flipped bit anywhere in a header is refused', () =>
    onDisk(disk, async (on) => {
      const store = await written(on)
      const length = store.getSync(flushKey(2))?.length ?? 0
      const payloadBytes = 'two'.length + 'other'.length
      for (const at of [0, 1, 8, 17, 24, 36, 40, length - payloadBytes - 1]) {
        await flipBit(store, flushKey(2), at)
        await expect(openLog(store), `byte ${at}`).rejects.toMatchObject(refused)
        await flipBit(store, flushKey(2), at)
      }
      expect(textOf((await openLog(store)).value(group('b'), 1))).toBe('other')
    }))

  test('a missing flush is refused, wherever another one follows it', () =>
    onDisk(disk, async (on) => {
      const store = await written(on)
      for (const number of [1, 2]) {
        const value = store.getSync(flushKey(number)) ?? new Uint8Array()
        await store.write([{ key: flushKey(number) }])
        await expect(openLog(store)).rejects.toMatchObject(refused)
        await store.write([{ key: flushKey(number), value }])
      }
      expect((await openLog(store)).durableFlush).toBe(3)
    }))

  test('a flush of another history is refused', () =>
    onDisk(disk, async (on) => {
      const log = await openLog(await on.open())
      await durable(log, promise('a', 1, 1))
      await durable(log, promise('a', 2, 1))
      const store = await on.open()
      const second = store.getSync(flushKey(2)) ?? new Uint8Array()
      await onDisk(disk, async (elsewhere) => {
        const other = await openLog(await elsewhere.open())
        await durable(other, promise('a', 1, 2))
        const opened = await elsewhere.open()
        await opened.write([{ key: flushKey(2), value: second }])
        await expect(openLog(opened)).rejects.toMatchObject(refused)
      })
    }))

  test('flushes without the record of whose they are, or with a damaged one, are refused', () =>
    onDisk(disk, async (on) => {
      const store = await written(on)
      await flipBit(store, recordKey(metaName), 9)
      await expect(openLog(store)).rejects.toMatchObject(refused)
      await store.write([{ key: recordKey(metaName) }])
      await expect(openLog(store)).rejects.toMatchObject(refused)
    }))

  test('an identity record older than the flushes is refused: incarnations are used once', () =>
    onDisk(disk, async (on) => {
      const store = await written(on)
      const old = store.getSync(recordKey(metaName)) ?? new Uint8Array()
      const log = await openLog(store)
      await durable(log, promise('c', 1, 1))
      await store.write([{ key: recordKey(metaName), value: old }])
      await expect(openLog(store)).rejects.toMatchObject(refused)
    }))

  test('a log of an unknown format is refused, and says so', () =>
    onDisk(disk, async (on) => {
      const store = await written(on)
      const packed = pack([9, 'whatever'])
      const crc = Buffer.alloc(4)
      crc.writeUInt32BE(crc32(packed))
      await store.write([{ key: recordKey(metaName), value: Buffer.concat([crc, packed]) }])
      await expect(openLog(store)).rejects.toMatchObject({
        code: 'invalid',
        message: expect.stringContaining('format 9'),
      })
    }))

  test('LOG-6: a log that ends before what the data store holds is refused', () =>
    onDisk(disk, async (on) => {
      const { data, store } = await settled(on)
      await store.write([{ key: flushKey(3) }])
      await expect(openLog(store, {}, data)).rejects.toMatchObject({
        ...refused,
        message: expect.stringContaining('it ends before flush 3'),
      })
    }))

  test('a log of another history than the data store has taken in is refused', () =>
    onDisk(disk, async (on) => {
      const { data, store } = await settled(on)
      await store.write([{ key: flushKey(3), value: store.getSync(flushKey(2)) ?? nothing }])
      await expect(openLog(store, {}, data)).rejects.toMatchObject(refused)
      await flipBit(store, flushKey(3), 17)
      await expect(openLog(store, {}, data)).rejects.toMatchObject(refused)
    }))

  test('LOG-8, LOG-9: a digest says that a flush of it could not be read', () =>
    onDisk(disk, async (on) => {
      const { data, store } = await settled(on)
      const log = await openLog(store, {}, data)
      expect(whole(log.since(0, 100))).toMatchObject({ through: 3, isWhole: true })
      // Of a value that is damaged it is still known where it stood.
      await flipBit(store, flushKey(2), -1)
      const withValue = await openLog(store, {}, data)
      const flushes = [whole(withValue.since(0, 100)), whole(withValue.since(1, 1))]
      expect(flushes.map(({ isWhole, groups }) => [isWhole, groups.length])).toEqual([
        [true, 2],
        [true, 2],
      ])
      await flipBit(store, flushKey(2), 40)
      const damaged = await openLog(store, {}, data)
      expect(whole(damaged.since(0, 100))).toEqual({
        ...{ through: 3, isWhole: false, groups: [[group('a'), 3]] },
      })
      expect([whole(damaged.since(2, 100)).isWhole, whole(damaged.since(3, 100)).isWhole]).toEqual([
        true,
        true,
      ])
    }))

  test('LOG-15: damage of a settled flush costs the values in it, and no others', () =>
    onDisk(disk, async (on) => {
      const { data, store } = await settled(on)
      await flipBit(store, flushKey(2), -1)
      const log = await openLog(store, {}, data)
      expect(log.chosen(group('b'), 1)).toBeUndefined()
      expect(textOf(log.chosen(group('a'), 2)?.value)).toBe('two')
      await store.write([{ key: flushKey(2) }])
      const again = await openLog(store, {}, data)
      expect([again.chosen(group('a'), 2), again.chosen(group('b'), 1)]).toEqual([
        ...[undefined, undefined],
      ])
      // The way to what stands before it leads around it.
      expect(textOf(again.chosen(group('a'), 1)?.value)).toBe('one')
      expect([again.highest(group('a')), again.highest(group('b'))]).toEqual([3, 1])
      expect(whole(again.since(0, 100))).toMatchObject({ through: 3, isWhole: false })
    }))
})

const nothing = new Uint8Array()

/** The three flushes, all of them settled. */
async function settled(
  on: Disk,
): Promise<{ readonly data: FakeData; readonly store: OrderedStore }> {
  const log = await openLog(await on.open())
  await durable(log, accept('a', 1, 0, 'one'))
  await durable(log, accept('a', 2, 0, 'two'), chosen('b', 1, 0, 'other'))
  const last = [chosen('a', 1, 0), chosen('a', 2, 0), chosen('a', 3, 0, 'three')]
  await durable(log, ...last)
  const data = new FakeData()
  await data.batch(await openLog(await on.open(), {}, data), ['a', 3], ['b', 1])
  const store = await on.open()
  expect((await openLog(store, {}, data)).settledFlush).toBe(3)
  return { data, store }
}
