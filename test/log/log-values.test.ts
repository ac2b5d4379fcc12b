/** The log keeps flushes that it has read for peers while they ask, within a bound, and drops them later. */
import { expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { present } from '../../src/base/assert.ts'
import { ChosenPlaces } from '../../src/log/chosen-places.ts'
import type { LogStore } from '../../src/log/log-store.ts'
import { unaskedMs } from '../../src/log/log-values.ts'
import { HandClock } from '../ports/hand-clock.ts'
import { disks, GatedStore, onDisk } from '../store/stores.ts'
import { accept, ballot, chosen, durable, FakeData, group, openLog, textOf } from './log-fixture.ts'

const count = 10

interface Asked {
  readonly log: LogStore
  readonly pass: (ms: number) => void
  /** Asks for each value, and gives how many of them were read from the disk. */
  readonly ask: () => number
}

/** A log of flushes that are settled, each with the next position of a group. */
async function onSettledLog(run: (asked: Asked) => Promise<void>): Promise<void> {
  const [, disk] = present(disks[0], 'test: there is a disk')
  await onDisk(disk, async (on) => {
    const store = new GatedStore(await on.open())
    const hand = new HandClock()
    const clock = { ...systemClock, setTimer: hand.setTimer.bind(hand) }
    const data = new FakeData()
    const log = await openLog(store, { clock }, data)
    for (let position = 1; position <= count; position++) {
      await durable(log, accept('a', position, 0, `value ${position}`), chosen('a', position, 0))
      await data.batch(log, ['a', position])
    }
    const ask = (): number => {
      const before = store.reads
      for (let position = 1; position <= count; position++) {
        expect(textOf(log.chosen(group('a'), position)?.value)).toBe(`value ${position}`)
      }
      return store.reads - before
    }
    await run({ log, pass: (ms) => hand.pass(ms), ask })
  })
}

test('the log reads a flush once for a peer that goes on asking', () =>
  onSettledLog(async ({ log, pass, ask }) => {
    expect(ask()).toBe(count)
    for (let times = 0; times < 5; times++) {
      pass(unaskedMs - 1)
      expect(ask()).toBe(0)
    }
    await log.stop()
  }))

test('the log drops such flushes when no peer has asked for a while, and reads them anew then', () =>
  onSettledLog(async ({ log, pass, ask }) => {
    expect(ask()).toBe(count)
    for (let times = 0; times < 2; times++) {
      pass(unaskedMs)
      pass(unaskedMs)
      expect(ask()).toBe(count)
    }
    await log.stop()
  }))

test('a log that is stopped sets no timer, and leaves none behind', () =>
  onSettledLog(async ({ log, pass, ask }) => {
    ask()
    await log.stop()
    for (let times = 0; times < 3; times++) {
      pass(unaskedMs)
      expect(ask()).toBe(0)
    }
  }))

test('the places of values are held of no more positions than the bound, and those of one flush', () => {
  const [bound, perFlush, flushes] = [100, 30, 100]
  const places = new ChosenPlaces(bound)
  for (let flush = 1; flush <= flushes; flush++) {
    const records = Array.from({ length: perFlush }, (_, at) => ({
      ...{ kind: 'chosen' as const, group: group('a'), position: flush * perFlush + at },
      ballot: ballot(0),
    }))
    places.add(flush, records)
    const held = Array.from({ length: flushes }, (_, at) => at + 1).filter((n) => places.has(n))
    expect(held.at(-1)).toBe(flush)
    expect(held.length * perFlush).toBeLessThanOrEqual(bound + perFlush)
  }
})
