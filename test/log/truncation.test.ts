/** A log gives up old flushes: the mark first, then the flushes, and what its readers make of it. */
import { describe, expect, test } from 'vitest'
import { OrderedJournal, flushesFrom } from '../../src/journal/ordered-journal.ts'
import { decodeFlush } from '../../src/log/flush.ts'
import type { LogStore } from '../../src/log/log-store.ts'
import { decodeMeta, metaName } from '../../src/log/log-meta.ts'
import { openRecord } from '../../src/log/sealed-record.ts'
import { SettledRows, stretchPositions } from '../../src/log/settled.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import { accept, chosen, durable, FakeData, group, openLog, textOf } from './log-fixture.ts'
import { disks, GatedStore, onDisk } from '../store/stores.ts'
import { whole } from './whole.ts'

/** Positions `from` to `to` of the group, each chosen in a flush of its own and applied. */
async function fill(log: LogStore, data: FakeData, from: number, to: number): Promise<void> {
  for (let position = from; position <= to; position++) {
    await durable(log, accept('a', position, 0, `value ${position}`), chosen('a', position, 0))
    await data.batch(log, ['a', position])
  }
}

async function givenUp(log: LogStore, first: number): Promise<void> {
  expect(log.giveUp(first)).toBe(true)
  for (let turns = 0; log.firstFlush < first && turns < 5_000; turns++) {
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  expect(log.firstFlush).toBe(first)
}

async function flushesOn(store: OrderedStore): Promise<readonly number[]> {
  const numbers: number[] = []
  for await (const rows of store.scan(flushesFrom(1))) {
    numbers.push(...rows.map(({ value }) => decodeFlush(value)?.number ?? 0))
  }
  return numbers
}

describe.each(disks)('on %s', (_, disk) => {
  test('LOG-17: the mark is durable before a flush is deleted, and a start deletes what is left', () =>
    onDisk(disk, async (on) => {
      const data = new FakeData()
      const store = new GatedStore(await on.open())
      const log = await openLog(store, {}, data)
      await fill(log, data, 1, 80)
      const written = store.begun.length
      store.hold()
      expect(log.giveUp(60)).toBe(true)
      expect(log.giveUp(61), 'while the mark is on its way').toBe(false)
      await store.hasBegun(written + 1)
      expect(store.begun.at(-1)?.every(({ value }) => value !== undefined)).toBe(true)
      expect(log.firstFlush).toBe(1)
      store.release()
      await durable(log)
      for (let turns = 0; log.firstFlush === 1 && turns < 5_000; turns++) {
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      // A start after a crash at this moment: nothing is deleted yet.
      const again = await on.open()
      expect((await flushesOn(again))[0]).toBe(1)
      const restarted = await openLog(again, {}, data)
      expect([restarted.firstFlush, restarted.durableFlush]).toEqual([60, 80])
      await fill(restarted, data, 81, 84)
      expect((await flushesOn(again))[0]).toBe(60)
    }))

  test('the mark names the checksum of the flush before, and is of a format that earlier builds refuse', () =>
    onDisk(disk, async (on) => {
      const data = new FakeData()
      const store = await on.open()
      const log = await openLog(store, {}, data)
      const journal = new OrderedJournal(store)
      await fill(log, data, 1, 9)
      const before = decodeFlush(journal.read(4) ?? new Uint8Array())
      const wasWhole = journal.record(metaName) ?? new Uint8Array()
      await givenUp(log, 5)
      const bytes = journal.record(metaName) ?? new Uint8Array()
      expect(decodeMeta(bytes)).toMatchObject({ firstFlush: 5, previousCrc: before?.crc })
      expect([wasWhole, bytes].map((record) => openRecord(record)?.[0])).toEqual([3, 4])
    }))

  test('LOG-16: the flush of the mark stays, and those after it', () =>
    onDisk(disk, async (on) => {
      const data = new FakeData()
      const log = await openLog(await on.open(), {}, data)
      await fill(log, data, 1, 20)
      expect(log.dispensableFlush).toBe(19)
      expect(() => log.giveUp(21)).toThrow('LOG-16')
      await givenUp(log, 20)
    }))

  test('a data store that is older than what is given up is refused, and the words say what to do', () =>
    onDisk(disk, async (on) => {
      const data = new FakeData()
      const log = await openLog(await on.open(), {}, data)
      await fill(log, data, 1, 10)
      const older = new FakeData(data)
      await fill(log, data, 11, 30)
      await givenUp(log, 20)
      await log.stop()
      const refused = {
        code: 'corrupt',
        message: expect.stringContaining('Put the folder "data" back'),
      }
      await expect(openLog(await on.open(), {}, older)).rejects.toMatchObject(refused)
      const again = await openLog(await on.open(), {}, data)
      expect(again.durableFlush).toBe(30)
    }))

  test('LOG-19: a data store made anew says that it is not restored, before it keeps a mark', () =>
    onDisk(disk, async (on) => {
      const data = new FakeData()
      const log = await openLog(await on.open(), {}, data)
      await fill(log, data, 1, 30)
      await givenUp(log, 20)
      await log.stop()
      expect(new SettledRows(data).isRestored()).toBe(true)
      const empty = new FakeData()
      const again = await openLog(await on.open(), {}, empty)
      const anew = new SettledRows(empty)
      expect([again.durableFlush, anew.isRestored(), anew.mark()]).toEqual([30, false, undefined])
      anew.keepRestored(true)
      expect(anew.isRestored()).toBe(true)
    }))

  test('LOG-19: each start until then takes a decision as damaged whose value is in a flush that is gone', () =>
    onDisk(disk, async (on) => {
      const data = new FakeData()
      const log = await openLog(await on.open(), {}, data)
      await durable(log, accept('a', 1, 0, 'it goes'))
      await durable(log, accept('b', 1, 0, 'it stays'), chosen('b', 1, 0))
      await durable(log, chosen('a', 1, 0))
      await data.batch(log, ['a', 1], ['b', 1])
      await givenUp(log, 2)
      await log.stop()
      const anew = new FakeData()
      const first = await openLog(await on.open(), {}, anew)
      expect(first.value(group('a'), 1)).toBe('faulty')
      await anew.batch(first, ['b', 1])
      await first.stop()
      expect(new SettledRows(anew).mark()).toMatchObject({ number: 2 })
      const second = await openLog(await on.open(), {}, anew)
      expect(second.value(group('a'), 1)).toBe('faulty')
    }))

  test('values of flushes that are gone are not there, and count as no damage', () =>
    onDisk(disk, async (on) => {
      const data = new FakeData()
      const store = await on.open()
      const last = 3 * stretchPositions
      const log = await openLog(store, {}, data)
      await fill(log, data, 1, last)
      await givenUp(log, 100)
      await fill(log, data, last + 1, last + 10)
      await log.stop()
      const told: string[] = []
      const trace = { ...silentTrace, mark: (what: string) => told.push(what) }
      const again = await openLog(await on.open(), { trace }, data)
      const found = [1, 64, 65, 99, 100, 128, last].map((at) => again.chosen(group('a'), at)?.value)
      const texts = found.map((value) => textOf(value))
      expect(texts.slice(4)).toEqual(['value 100', 'value 128', `value ${last}`])
      expect(texts.slice(0, 4)).toEqual([undefined, undefined, undefined, undefined])
      expect(told.filter((what) => what.includes('damaged'))).toEqual([])
    }))

  test('a digest of flushes that are gone is not whole, and goes on from the first flush', () =>
    onDisk(disk, async (on) => {
      const data = new FakeData()
      const log = await openLog(await on.open(), {}, data)
      await fill(log, data, 1, 20)
      await givenUp(log, 10)
      expect(whole(log.since(9, 100))).toMatchObject({ through: 20, isWhole: true })
      expect(whole(log.since(8, 100))).toMatchObject({ through: 20, isWhole: false })
      const digest = log.since(9, 1)
      expect(log.giveUp(15)).toBe(true)
      await durable(log, accept('b', 1, 0, 'x'))
      expect(log.firstFlush).toBe(15)
      expect(whole(digest)).toMatchObject({ isWhole: false })
    }))

  test('rows that lead to flushes which are gone are removed', () =>
    onDisk(disk, async (on) => {
      const data = new FakeData()
      const log = await openLog(await on.open(), {}, data)
      await fill(log, data, 1, 4 * stretchPositions)
      const rows = new SettledRows(data)
      expect(await rows.stretchEnds(undefined, 10)).toHaveLength(4)
      await givenUp(log, 3 * stretchPositions)
      await new Promise((resolve) => setTimeout(resolve, 20))
      const left = await rows.stretchEnds(undefined, 10)
      expect(left.map(({ flush }) => flush)).toEqual([3, 4].map((at) => at * stretchPositions))
    }))

  test('the disk says how much room the log takes', () =>
    onDisk(disk, async (on) => {
      const data = new FakeData()
      const log = await openLog(await on.open(), {}, data)
      const text = 'x'.repeat(10_000)
      for (let position = 1; position <= 20; position++) {
        await durable(log, accept('a', position, 0, text), chosen('a', position, 0))
        await data.batch(log, ['a', position])
      }
      await log.stop()
      const again = await openLog(await on.open(), {}, data)
      const [all, half] = [await again.sizeAfter(0), await again.sizeAfter(10)]
      // The data of one process may be compressed on its disk, and is counted as it is there.
      expect(all).toBeGreaterThan(0)
      expect(all).toBeLessThan(400_000)
      expect(half).toBeLessThan(all)
    }))
})
