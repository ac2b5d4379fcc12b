/**
 * A holder whose machine stands still, its monotonic clock with it, for too short a time to notice: one
 * holder and one grantor, each suspended for that time at every moment of a lease.
 */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { defaultLimits, leaseMsMin } from '../../src/base/limits.ts'
import { Grants } from '../../src/lease/grantor.ts'
import { HeldLeases } from '../../src/lease/holder.ts'
import type { Term } from '../../src/lease/message.ts'
import type { ClockReading } from '../../src/lease/clock-reading.ts'

const [x, y] = [nodeId('x'), nodeId('y')]
const group = groupOfBytes(Buffer.from('g'))
const { clockDriftPpm } = defaultLimits
const drift = clockDriftPpm / 1_000_000

/** The gain of a clock on true time. */
interface Gains {
  readonly holder: number
  readonly wall: number
  readonly grantor: number
}

interface Case extends Gains {
  readonly leaseMs: number
  readonly suspendedAt: number
  readonly lengthMs: number
}

/** The holder's clocks at a true time. */
function readingOf({ holder, wall, suspendedAt, lengthMs }: Case, real: number): ClockReading {
  const stoodMs = Math.min(Math.max(real - suspendedAt, 0), lengthMs)
  const now = (real - stoodMs) * (1 + holder)
  return { now, wall: Math.round((5_000 + real * (1 + wall)) * 1000) }
}

/** Asks, and registers the group. */
function register(one: Case): { holder: HeldLeases; grantor: Grants; term: Term } {
  const limits = { ...defaultLimits, leaseMs: one.leaseMs }
  const holder = new HeldLeases([y], 1, limits)
  const grantor = new Grants([x], 1, limits, { startedMs: -10_000, longestLeaseMs: 0 })
  const request = holder.renewal(y, readingOf(one, 0))
  const renewed = request && grantor.onRenew(x, request, 0)
  if (renewed === undefined) throw new Error('no lease')
  holder.onRenewed(y, renewed, readingOf(one, 0), () => undefined)
  grantor.register({ group, from: x, attempt: 1, position: 0, now: 0 })
  return { holder, grantor, term: renewed.term }
}

/** The last true time at which the holder counts on it, and at which the grantor lists the holder. */
function lastOf(one: Case): { readonly counted: number; readonly listed: number } {
  const { holder, grantor, term } = register(one)
  let [counted, listed] = [-1, -1]
  for (let real = 0; real <= 1.2 * one.leaseMs + one.lengthMs; real += 1) {
    const isStanding = real > one.suspendedAt && real < one.suspendedAt + one.lengthMs
    if (!isStanding && holder.confirmHeld(y, term, readingOf(one, real))) counted = real
    if (grantor.isHolder(x, group, 1, real * (1 + one.grantor))) listed = real
  }
  return { counted, listed }
}

const worst: Gains = { holder: -drift, wall: -drift, grantor: drift }

test.each([
  ['clocks that are right', 1_000, { holder: 0, wall: 0, grantor: 0 }],
  ['clocks that are off as far as they may', 1_000, worst],
  ['the shortest lease', leaseMsMin(clockDriftPpm), worst],
])(
  'LEASE-2: however long the holder stands still, and when, it counts on nothing that is over: %s',
  (_, leaseMs, gains) => {
    const broken: Case[] = []
    for (let lengthMs = 0; lengthMs <= 60; lengthMs += 2) {
      for (let suspendedAt = 1; suspendedAt < leaseMs; suspendedAt += leaseMs / 40) {
        const one: Case = { ...gains, leaseMs, suspendedAt, lengthMs }
        const { counted, listed } = lastOf(one)
        if (counted > listed) broken.push(one)
      }
    }
    expect(broken).toEqual([])
  },
)

test('LEASE-2: a holder that never stands still counts on a lease for most of its time', () => {
  const right: Gains = { holder: 0, wall: 0, grantor: 0 }
  const one = { ...right, suspendedAt: 0, lengthMs: 0 }
  expect(lastOf({ ...one, leaseMs: 1_000 }).counted).toBe(929)
  expect(lastOf({ ...one, leaseMs: leaseMsMin(clockDriftPpm) }).counted).toBe(52)
})
