/** The rules of what may be read and what may be forgotten, against their meaning spelled out. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { isSeenAt, isSweepDue, mayGo, oldestReadable } from '../../src/store/collection.ts'

const time = fc.integer({ min: 0, max: 20 })

test('MVCC-1: no permitted or open snapshot sees a version that may go', () => {
  fc.assert(
    fc.property(time, time, time, fc.option(time), (start, end, horizon, pin) => {
      const oldest = oldestReadable(horizon, pin ?? undefined)
      const readable = Array.from({ length: 41 }, (_, at) => at).filter(
        (at) => at >= horizon || at === pin,
      )
      const isSeen = readable.some((at) => isSeenAt(at, start, end))
      if (mayGo(end, oldest)) expect(isSeen).toBe(false)
    }),
    { seed: 6, numRuns: 1000 },
  )
})

test('a version that ends at the horizon may go, and one that ends after it may not', () => {
  expect([mayGo(9, 10), mayGo(10, 10), mayGo(11, 10)]).toEqual([true, true, false])
})

test('history is looked through about four times in its length, however the horizon gets there', () => {
  const historyMs = 1_000
  for (const step of [1_000, 70_000, 249_999]) {
    let due = 0
    for (let at = step; at <= 10_000_000; at += step) {
      if (isSweepDue(at - step, at, historyMs)) due += 1
    }
    expect(due).toBeGreaterThanOrEqual(39)
    expect(due).toBeLessThanOrEqual(40)
  }
  expect(isSweepDue(5, 5, 1)).toBe(false)
})
