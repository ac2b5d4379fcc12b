/** When a node that lacks much has the others serve its clients. */
import { expect, test } from 'vitest'
import { silentTrace } from '../../src/ports/trace.ts'
import { holdMs, Returning } from '../../src/peers/returning.ts'
import { createBench, passMs } from '../cells/kit.ts'

function createReturning() {
  const { world, clockOf } = createBench()
  const now = { lacking: 0, others: true }
  const returning = new Returning({
    ...{ clock: clockOf('n1'), trace: silentTrace, limits: { fetchesMax: 32 } },
    lacking: () => now.lacking,
    areOthersEnough: () => now.others,
  })
  const isAt = (lacking: number): boolean => {
    now.lacking = lacking
    return returning.isUnderWay
  }
  return { now, returning, isAt, pass: (ms: number) => passMs(world, ms) }
}

test('LIVE-8: a node returns from when it lacks many groups until it lacks few', () => {
  const { isAt } = createReturning()
  expect([0, 100, 127].map(isAt)).toEqual([false, false, false])
  expect([128, 4_000, 100, 17, 16, 100].map(isAt)).toEqual([true, true, true, true, false, false])
})

test('LIVE-8: it lasts no longer than its time, and begins anew once it was over', async () => {
  const { isAt, pass } = createReturning()
  expect(isAt(4_000)).toBe(true)
  await pass(holdMs - 10)
  expect(isAt(3_000)).toBe(true)
  await pass(20)
  expect([2_000, 3_000, 0, 2_000].map(isAt)).toEqual([false, false, false, true])
})

test('LIVE-8: the status reports catching up while much is lacking, with or without others serving', async () => {
  const { now, returning, isAt, pass } = createReturning()
  expect(returning.isCatchingUp).toBe(false)
  now.lacking = 4_000
  expect(returning.isCatchingUp).toBe(true)
  await pass(holdMs + 10)
  expect([isAt(100), returning.isCatchingUp]).toEqual([false, true])
  now.others = false
  expect([isAt(17), returning.isCatchingUp]).toEqual([false, true])
  expect([isAt(16), returning.isCatchingUp]).toEqual([false, false])
})

test('LIVE-8: where the others are no majority, clients are served', () => {
  const { now, isAt } = createReturning()
  expect(isAt(4_000)).toBe(true)
  now.others = false
  expect(isAt(4_000)).toBe(false)
})
