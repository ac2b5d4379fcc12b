/** The system's clock and randomness do what their ports promise. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { systemClock, wallRefiner } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { isUuid } from '../../src/base/ids.ts'
import { randomUuid } from '../../src/ports/random.ts'

test('the wall clock stays within its millisecond, whatever either clock does', () => {
  const readings = fc.array(
    fc.record({
      wallMs: fc.integer({ min: 0, max: 4_000_000_000_000 }),
      monotonicMs: fc.double({ min: 0, max: 1e10, noNaN: true }),
    }),
    { minLength: 1, maxLength: 50 },
  )
  fc.assert(
    fc.property(readings, (all) => {
      const refine = wallRefiner()
      for (const { wallMs, monotonicMs } of all) {
        const micros = refine(wallMs, monotonicMs)
        expect(Number.isSafeInteger(micros)).toBe(true)
        expect(Math.floor(micros / 1000)).toBe(wallMs)
      }
    }),
  )
})

test('within one millisecond of the wall clock the microseconds go on', () => {
  const refine = wallRefiner()
  const first = refine(1_700_000_000_000, 5)
  expect(refine(1_700_000_000_000, 5.25) - first).toBe(250)
  expect(refine(1_700_000_000_000, 5.5) - first).toBe(500)
})

test('clocks that agree never make time go back', () => {
  const steps = fc.array(fc.integer({ min: 0, max: 3_000 }), { minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(steps, fc.integer({ min: 0, max: 999 }), (deltas, startMicros) => {
      const refine = wallRefiner()
      let micros = startMicros
      let last = -1
      for (const delta of deltas) {
        micros += delta
        const wall = refine(1_700_000_000_000 + Math.floor(micros / 1000), micros / 1000)
        expect(wall).toBeGreaterThanOrEqual(last)
        last = wall
      }
    }),
  )
})

test('after a sleep that only the wall clock saw, it is right at the first reading', () => {
  const refine = wallRefiner()
  refine(1_000_000, 10)
  const afterSleep = refine(1_000_000 + 3_600_000, 11)
  expect(Math.floor(afterSleep / 1000)).toBe(4_600_000)
})

test('the system clock tells the time of the system', () => {
  const before = Date.now()
  const micros = systemClock.wallMicros()
  const after = Date.now()
  expect(Math.floor(micros / 1000)).toBeGreaterThanOrEqual(before)
  expect(Math.floor(micros / 1000)).toBeLessThanOrEqual(after)
})

test('random numbers stay in their range, and reach both of its ends', () => {
  const seen = new Set(Array.from({ length: 400 }, () => systemRandom.int(-2, 2)))
  expect([...seen].sort((a, b) => a - b)).toEqual([-2, -1, 0, 1, 2])
  expect(systemRandom.int(7, 7)).toBe(7)
  const safe = fc.integer({ min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER })
  fc.assert(
    fc.property(safe, safe, (a, b) => {
      const [from, to] = [Math.min(a, b), Math.max(a, b)]
      const drawn = systemRandom.int(from, to)
      expect(Number.isSafeInteger(drawn)).toBe(true)
      expect(drawn).toBeGreaterThanOrEqual(from)
      expect(drawn).toBeLessThanOrEqual(to)
    }),
    { numRuns: 1000 },
  )
})

test('random bytes are as many as asked for, and make UUIDs that differ', () => {
  expect(systemRandom.bytes(0)).toHaveLength(0)
  expect(systemRandom.bytes(33)).toHaveLength(33)
  const uuids = Array.from({ length: 100 }, () => randomUuid(systemRandom))
  expect(uuids.every(isUuid)).toBe(true)
  expect(new Set(uuids).size).toBe(100)
})
