/** Snapshots open at a node: held for a time after their last use, bounded, the oldest known. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Pins } from '../../src/store/pins.ts'
import { group } from '../log/log-fixture.ts'

const a = group('a')
const b = group('b')

test('MVCC-1: a snapshot is open until its hold is over, counted from its last use', () => {
  const pins = new Pins(100)
  pins.pin(a, 7, 1_000)
  expect([
    pins.isPinned(a, 7, 1_099),
    pins.isPinned(a, 6, 1_099),
    pins.isPinned(b, 7, 1_099),
  ]).toEqual([true, false, false])
  pins.pin(a, 7, 1_099)
  expect([pins.count(1_198), pins.isPinned(a, 7, 1_198)]).toEqual([1, true])
  expect([pins.isPinned(a, 7, 1_199), pins.oldest(a, 1_199)]).toEqual([false, undefined])
  expect(pins.count(1_199)).toBe(0)
})

test('a full table holds nothing more, and goes on holding what it has', () => {
  const pins = new Pins(100, 2)
  for (const at of [1, 2, 3]) pins.pin(a, at, 0)
  expect([1, 2, 3].map((at) => pins.isPinned(a, at, 50))).toEqual([true, true, false])
  pins.pin(a, 1, 60)
  pins.pin(b, 3, 101)
  expect([pins.isPinned(a, 1, 101), pins.isPinned(a, 2, 101), pins.isPinned(b, 3, 101)]).toEqual([
    ...[true, false, true],
  ])
})

const anyUse = fc.record({
  group: fc.constantFrom(a, b),
  at: fc.integer({ min: 0, max: 9 }),
  afterMs: fc.integer({ min: 0, max: 60 }),
})

test('MVCC-1: the oldest open snapshot of each group is known, whatever was used when', () => {
  const property = fc.property(fc.array(anyUse, { maxLength: 60 }), (uses) => {
    const pins = new Pins(100)
    const usedMs = new Map<string, { group: string; at: number; ms: number }>()
    let nowMs = 0
    for (const { group: of, at, afterMs } of uses) {
      nowMs += afterMs
      pins.pin(of, at, nowMs)
      usedMs.set(`${of}/${at}`, { group: of, at, ms: nowMs })
      for (const one of [a, b]) {
        const open = [...usedMs.values()].filter((use) => use.group === one && use.ms + 100 > nowMs)
        const oldest = open.length === 0 ? undefined : Math.min(...open.map((use) => use.at))
        expect(pins.oldest(one, nowMs)).toBe(oldest)
      }
    }
  })
  fc.assert(property, { seed: 5, numRuns: 200 })
})
