/** When groups with rows that expire are looked through, by the log and by the clock. */
import { expect, test } from 'vitest'
import { groupOfBytes } from '../../src/base/ids.ts'
import { SweepTimes } from '../../src/tables/sweep-times.ts'
import { TestClock } from '../txn/test-ports.ts'

const second = 1_000_000
const bounds = { sweepMs: 5_000, sleepMsMax: 600_000, groupsKnownMax: 1 }
const group = groupOfBytes(Buffer.from('a group'))
/** The clock shows one second as a test begins. The log is an hour ahead. */
const log = 3_600 * second
const next = log + 10 * second

test('TTL-2: the sweep returns to a group when the first of its rows expires, and not before', () => {
  const times = new SweepTimes(new TestClock(), bounds)
  expect(times.putOff(group, 7, log), 'nothing is known of it').toBe(undefined)
  expect(times.note(group, 7, next, log)).toBe(30_000)
  expect(times.putOff(group, 7, next - 1)).toBe(30_000)
  expect(times.putOff(group, 7, next), 'the log has moved on').toBe(undefined)
  expect(times.putOff(group, 8, log), 'something that expires was written').toBe(undefined)
})

test('TTL-2: a group that is put off waits again, and was looked through when it was', () => {
  const clock = new TestClock()
  const times = new SweepTimes(clock, bounds)
  times.note(group, 7, next, log)
  clock.nowMs += 30_000
  expect(times.waitMs(group, 7)).toBe(0)
  expect(times.putOff(group, 7, log)).toBe(30_000)
  expect(times.waitMs(group, 7)).toBe(30_000)
  expect(times.waitMs(group, 8), 'the last look is longer ago than `sweepMs`').toBe(0)
  clock.nowMs += bounds.sleepMsMax
  expect(times.putOff(group, 7, log), 'the last look is too long ago').toBe(undefined)
})

test('TTL-2: a row that has expired and stays is looked for again each time', () => {
  const times = new SweepTimes(new TestClock(), bounds)
  times.note(group, 7, log - second, log)
  expect(times.putOff(group, 7, log)).toBe(undefined)
})
