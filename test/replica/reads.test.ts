/** A read under a lease looks at the clock before its point is taken, and again after it. */
import { expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import type { Reading } from '../../src/lease/reading.ts'
import { Pins } from '../../src/mvcc/pins.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { ReadPoint } from '../../src/replica/local-replica.ts'
import { Reads } from '../../src/replica/reads.ts'
import { group } from './log-fixture.ts'

const applied = { position: 3, timestamp: 30, horizon: 0 }
const asked: ReadPoint = { position: 4, timestamp: 40 }

/** Time passes between any two looks at the clock: 10 ms, and so on. */
function readsOfLease(endsMs: number): Reads {
  let now = 0
  const covers = ({ now: at }: Reading): boolean => at < endsMs
  return new Reads({
    clock: { ...systemClock, monotonicMs: () => (now += 10) },
    trace: silentTrace,
    limits: defaultLimits,
    replica: {
      applied: () => applied,
      appliedInMemory: () => applied,
      leased: (_, reading) => (covers(reading) ? applied : undefined),
      isStillLeased: (_, reading) => covers(reading),
    },
    data: {
      get: () => undefined,
      getAll: (_, keys) => keys.map(() => undefined),
      getAllAt: () => Promise.resolve([]),
      scan: () => Promise.resolve([]),
      scanAt: () => Promise.resolve([]),
      pins: new Pins(1_000),
    },
    requests: { count: 0, read: () => Promise.resolve(asked) },
    isOver: () => false,
    wake: () => undefined,
    begin: () => undefined,
  })
}

test('LEASE-1: a lease that holds at both looks is read under', async () => {
  const { position, timestamp } = applied
  expect(await readsOfLease(21).read(group('g'), 'current', 1_000)).toEqual({ position, timestamp })
  const { point } = readsOfLease(21).rowsNow(group('g'), 'current', 0, []) ?? {}
  expect(point).toEqual({ position, timestamp })
})

test('LEASE-1: a majority is asked where the lease has run out between the two looks', async () => {
  expect(await readsOfLease(20).read(group('g'), 'current', 1_000)).toEqual(asked)
  expect(readsOfLease(20).rowsNow(group('g'), 'current', 0, [])).toBeUndefined()
})
