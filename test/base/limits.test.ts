/** Bounds that contradict one another are refused when they are read, not when they are met. */
import { expect, test } from 'vitest'
import { checkLimits, defaultLimits, heldMs, type Limits } from '../../src/base/limits.ts'

test('limits: every bound is a whole number above zero', () => {
  const wrong = Object.entries(defaultLimits).filter(
    ([, value]: [string, unknown]) => !Number.isSafeInteger(value) || Number(value) < 1,
  )
  expect(wrong).toEqual([])
})

test('limits: the bounds of a running store do not contradict one another', () => {
  expect(() => checkLimits(defaultLimits)).not.toThrow()
})

const contradictions: readonly (readonly [string, Partial<Limits>])[] = [
  ['suspected too soon', { heartbeatMs: 400, suspectMs: 1_199 }],
  ['back-off starts above', { backoffMs: 11, backoffMaxMs: 10 }],
  ['an entry is larger', { entryBytesMax: defaultLimits.entryBytesMax + 1 }],
  ['validation window is empty', { validationWindow: 0 }],
  ['a version is gone as soon', { historyMs: 0 }],
  ['beyond all clocks', { historyMs: 200 * 366 * 86_400_000 }],
  ['is not held between', { snapshotHoldMs: 0 }],
  ['under such clocks', { clockDriftPpm: 200_001 }],
  ['every message makes', { clockLeadMsMax: 99 }],
  ['hardly held', { leaseMs: 104 }],
  ['hardly held', { leaseMs: 499, clockDriftPpm: 200_000 }],
]

for (const [said, changed] of contradictions) {
  test(`limits: refuses bounds where ${said}: ${JSON.stringify(changed)}`, () => {
    expect(() => checkLimits({ ...defaultLimits, ...changed })).toThrow(said)
  })
}

test.each([
  [0, 10_000],
  [105, 10_000],
  [167, 100_000],
  [500, 200_000],
])(
  'LEASE-2: a lease of %d ms is held for half its time where clocks drift by %d ppm',
  (ms, ppm) => {
    const limits = { ...defaultLimits, leaseMs: ms, clockDriftPpm: ppm }
    expect(() => checkLimits(limits)).not.toThrow()
    if (ms > 0) expect(heldMs(ms, ppm)).toBeGreaterThanOrEqual(ms / 2)
    if (ms > 0) expect(heldMs(ms - 1, ppm)).toBeLessThan((ms - 1) / 2)
  },
)

test('limits: bounds may meet', () => {
  const met: Limits = {
    ...defaultLimits,
    heartbeatMs: 400,
    suspectMs: 1_200,
    backoffMs: 10,
    backoffMaxMs: 10,
    validationWindow: 1,
  }
  expect(() => checkLimits(met)).not.toThrow()
})
