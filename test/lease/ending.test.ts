/** The leases of a node that is to seal its epoch: it gives none any more, and waits until all are over. */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { Grants } from '../../src/lease/grantor.ts'
import { Leases } from '../../src/lease/leases.ts'
import type { Renew, Term } from '../../src/lease/message.ts'

const [x, y, z] = [nodeId('x'), nodeId('y'), nodeId('z')]
const [g, h] = [groupOfBytes(Buffer.from('g')), groupOfBytes(Buffer.from('h'))]
const limits = { leaseMs: 1_000, clockDriftPpm: 10_000, leaseGroupsMax: 2 }
/** A lease as the grantor counts it. */
const longMs = 1_010
const own = 3

function renew(of: Partial<Renew> = {}): Renew {
  const asked = { incarnation: 1, sentAt: 77, sentWall: 88 }
  return { kind: 'renew', asked, grantor: own, serial: 0, ...of }
}

/** A grantor that no peer has to wait out because it is young, and the term that it gave to x at 0. */
function granting(): { readonly grants: Grants; readonly term: Term } {
  const grants = new Grants([x, z], own, limits, { startedMs: 0, longestLeaseMs: 1_000 })
  grants.onRenew(z, renew(), 0)
  const term = grants.onRenew(x, renew(), 0)?.term
  if (term === undefined) throw new Error('no lease')
  return { grants, term }
}

function register(grants: Grants, now: number, group = g): Term | undefined {
  return grants.register({ group, from: x, attempt: 10, position: 0, now })
}

test('LEASE-2: a grantor that ends its epoch grants no lease, makes none longer, and registers no group', () => {
  const { grants, term } = granting()
  expect(register(grants, 1)).toEqual(term)
  grants.isEnding = true
  expect(grants.onRenew(x, renew({ term }), 500)).toBe(undefined)
  expect(grants.onRenew(z, renew(), 2_000)).toBe(undefined)
  expect(register(grants, 2, h)).toBe(undefined)
  expect(register(grants, 2, g), 'a group that is registered').toBe(undefined)
  expect(grants.holders(g, 1, longMs - 1)).toHaveLength(1)
  expect(grants.holders(g, 1, longMs)).toEqual([])
})

test('LEASE-2: in the next epoch the grantor gives leases again', () => {
  const { grants } = granting()
  grants.isEnding = true
  expect(grants.onRenew(x, renew(), 2_000)).toBe(undefined)
  grants.isEnding = false
  const again = grants.onRenew(x, renew(), 2_000)?.term
  expect(again).toBeDefined()
  expect(register(grants, 2_000)).toEqual(again)
})

test('LEASE-2: grants are over when no registration counts: at the end of the lease, or as it is released', () => {
  const { grants, term } = granting()
  expect(grants.areOver(1), 'a lease without a group').toBe(true)
  register(grants, 1, g)
  register(grants, 1, h)
  grants.isEnding = true
  expect([1, longMs - 0.1, longMs].map((now) => grants.areOver(now))).toEqual([false, false, true])
  grants.release(g, x, 10)
  expect(grants.areOver(2)).toBe(false)
  grants.release(h, x, 10)
  expect(grants.areOver(2)).toBe(true)
  register(grants, 2)
  expect(grants.areOver(2), 'nothing new was registered').toBe(true)
  const handed = granting()
  register(handed.grants, 1)
  expect(handed.grants.areOver(2)).toBe(false)
  handed.grants.onHandBack(x, { kind: 'hand-back', term })
  expect(handed.grants.areOver(2)).toBe(true)
})

test('LEASE-2: a revoked registration counts until its holder has said that it dropped the group', () => {
  const { grants, term } = granting()
  register(grants, 1)
  expect(grants.revoke(g, 1, x, 2)).toBe(false)
  grants.isEnding = true
  expect(grants.areOver(3)).toBe(false)
  expect(grants.onRenew(x, renew({ term }), 4), 'of a lower serial').toBe(undefined)
  expect(grants.areOver(5)).toBe(false)
  expect(grants.onRenew(x, renew({ term, serial: 1 }), 6)).toBe(undefined)
  expect(grants.areOver(7)).toBe(true)
})

test('LEASE-2: after a restart grants are over when those of the run before are, of the longest lease that it gave', () => {
  const grants = new Grants([x, z], own, limits, { startedMs: 100, longestLeaseMs: 3_000 })
  grants.isEnding = true
  const endMs = 100 + 3_030
  expect([100, endMs - 1, endMs].map((now) => grants.areOver(now))).toEqual([false, false, true])
  // A peer that knows of this run counts on nothing older, also where it gets no lease.
  expect(grants.onRenew(x, renew(), 200)).toBe(undefined)
  expect(grants.areOver(201)).toBe(false)
  expect(grants.onRenew(z, renew({ grantor: own - 1 }), 202)).toBe(undefined)
  expect(grants.areOver(203)).toBe(false)
  expect(grants.onRenew(z, renew(), 204)).toBe(undefined)
  expect(grants.areOver(205)).toBe(true)
})

test('LEASE-2: a node that is alone, or gives no leases, has none to wait for', () => {
  const young = { startedMs: 0, longestLeaseMs: 1_000 }
  expect(new Grants([], own, limits, young).areOver(0)).toBe(true)
  const none = new Grants([x], own, { ...limits, leaseMs: 0 }, { startedMs: 0, longestLeaseMs: 0 })
  expect(none.areOver(0)).toBe(true)
})

test('LEASE-2: a node that ends its epoch gives no lease any more, and hands back those that it holds', () => {
  const options = { nodes: [x, y, z], incarnation: 1, startedMs: 0, limits: defaultLimits }
  const [holder, grantor] = [x, y].map((node) => new Leases({ ...options, node }))
  if (holder === undefined || grantor === undefined) throw new Error('no leases')
  const reading = { now: 0, wall: 5_000_000 }
  const [[, asking] = []] = holder.onLink(y, 1, reading)
  if (asking?.kind !== 'renew') throw new Error('no renewal')
  const [[, granted] = []] = grantor.onMessage(x, asking, reading, () => undefined)
  if (granted?.kind !== 'renewed') throw new Error('no lease')
  holder.onMessage(y, granted, reading, () => undefined)
  expect(holder.isHeld(y, granted.term, reading)).toBe(true)
  const { term } = granted
  const handedBack: unknown[] = []
  holder.onGivenUp = (to, message) => handedBack.push([to, message])
  holder.end()
  expect(handedBack).toEqual([[y, { kind: 'hand-back', term }]])
  expect(holder.isHeld(y, term, reading)).toBe(false)
  // The answer comes once more, and begins nothing.
  holder.onMessage(y, granted, reading, () => undefined)
  expect(holder.isHeld(y, term, reading)).toBe(false)
  holder.enter(g)
  const later = { now: 500, wall: 5_500_000 }
  expect(
    [...holder.ask(y, later), ...holder.renewals(later)],
    'the holder sends no request',
  ).toEqual([])
  holder.end()
  expect(handedBack).toHaveLength(1)
  holder.begin()
  expect(holder.ask(y, later).map(([, { kind }]) => kind)).toEqual(['hand-back', 'renew'])
  grantor.end()
  expect(grantor.onMessage(x, asking, reading, () => undefined)).toEqual([])
  // No peer has told that it counts on nothing of an earlier run.
  const endMs = defaultLimits.leaseMs * (1 + defaultLimits.clockDriftPpm / 1_000_000)
  expect([endMs - 1, endMs].map((now) => grantor.areGrantsOver(now))).toEqual([false, true])
})
