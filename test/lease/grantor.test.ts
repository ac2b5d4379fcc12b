/** The leases that a node has granted to its peers, and the peers that it lists as holders. */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
import { Grants } from '../../src/lease/grantor.ts'
import type { Renew, Renewed, Term } from '../../src/lease/message.ts'

const [x, z, stranger] = [nodeId('x'), nodeId('z'), nodeId('stranger')]
const group = (name: string): GroupId => groupOfBytes(Buffer.from(name))
const [g, h, k] = [group('g'), group('h'), group('k')]
const limits = { leaseMs: 1_000, clockDriftPpm: 10_000, leaseGroupsMax: 2 }
/** Just started, and as it always was. */
const young = { startedMs: 0, longestLeaseMs: 1_000 }
/** A lease as the grantor counts it. */
const longMs = 1_010
const own = 3

interface Asking {
  readonly from?: NodeId
  readonly incarnation?: number
  /** The grantor's, as the holder knows it. */
  readonly grantor?: number
  readonly term?: Term
  readonly serial?: number
}

function renew({ incarnation = 1, grantor = own, term, serial = 0 }: Asking): Renew {
  const asked = { incarnation, sentAt: 77, sentWall: 88 }
  const common = { kind: 'renew', asked, grantor, serial } as const
  return term === undefined ? common : { ...common, term }
}

class Grantor {
  readonly grants: Grants = new Grants([x, z], own, limits, young)

  ask(now: number, asking: Asking = {}): Renewed | undefined {
    return this.grants.onRenew(asking.from ?? x, renew(asking), now)
  }

  /** Asks, and is granted a lease. */
  grant(now: number, asking: Asking = {}): Term {
    const renewed = this.ask(now, asking)
    if (renewed === undefined) throw new Error('no lease')
    return renewed.term
  }

  /** Grants a lease and registers a group, of an attempt 10. */
  registered(now: number, ...groups: readonly GroupId[]): Term {
    const term = this.grant(now)
    for (const one of groups)
      this.grants.register({ group: one, from: x, attempt: 10, position: 0, now: now })
    return term
  }

  holders(one: GroupId, now: number): readonly NodeId[] {
    return this.grants.holders(one, 1, now).map(({ node }) => node)
  }

  isOver(one: GroupId, now: number): boolean {
    return this.grants.revoke(one, 1, x, now)
  }
}

/** No holder has to be awaited because this node is young. */
function known(): Grantor {
  const grantor = new Grantor()
  grantor.ask(0, { from: z })
  grantor.ask(0, { from: x })
  return grantor
}

test('LEASE-2: a lease ends one lease time after the request came, lengthened by what clocks may drift', () => {
  const grantor = known()
  grantor.registered(100, g)
  expect(grantor.holders(g, 100 + longMs - 0.1)).toEqual([x])
  expect(grantor.holders(g, 100 + longMs)).toEqual([])
  expect(grantor.holders(h, 100)).toEqual([])
})

test('LEASE-2: an answer carries the request back and says how long the lease is', () => {
  const { asked } = renew({})
  expect(known().ask(5)).toEqual({
    ...{ kind: 'renewed', asked, leaseMs: 1_000, serial: 0, revoked: [] },
    term: { incarnation: own, number: expect.any(Number) },
  })
})

test('only a peer gets a lease, and none does where leases are off', () => {
  const grantor = known()
  expect(grantor.ask(0, { from: stranger })).toBeUndefined()
  expect(
    grantor.grants.register({ group: g, from: stranger, attempt: 10, position: 0, now: 0 }),
  ).toBeUndefined()
  expect(grantor.grants.revoke(g, 1, stranger, 0)).toBe(true)
  const none = new Grants([x], own, { ...limits, leaseMs: 0 }, { startedMs: 0, longestLeaseMs: 0 })
  expect(none.onRenew(x, renew({}), 0)).toBeUndefined()
  expect(none.holders(g, 1, 0)).toEqual([])
})

test('LEASE-2: as long as a lease is renewed, its term and what is registered go on', () => {
  const grantor = known()
  const term = grantor.registered(0, g)
  expect(grantor.grant(longMs - 1)).toEqual(term)
  expect(grantor.holders(g, 2 * longMs - 2)).toEqual([x])
})

test('LEASE-2: a lease that has run out is followed by another term, in which nothing is registered', () => {
  const grantor = known()
  const term = grantor.registered(0, g)
  const next = grantor.grant(longMs, { term })
  expect(next.number).toBeGreaterThan(term.number)
  expect(grantor.holders(g, longMs)).toEqual([])
  expect(grantor.grants.count).toBe(0)
})

test('LEASE-2: terms of two peers are never the same', () => {
  const grantor = known()
  expect(grantor.grant(0)).not.toEqual(grantor.grant(0, { from: z }))
})

test('LEASE-2: a group is registered only under a live term', () => {
  const grantor = new Grantor()
  expect(
    grantor.grants.register({ group: g, from: x, attempt: 10, position: 0, now: 0 }),
  ).toBeUndefined()
  const term = grantor.grant(0)
  expect(
    grantor.grants.register({ group: g, from: x, attempt: 10, position: 0, now: longMs - 1 }),
  ).toEqual(term)
  expect(
    grantor.grants.register({ group: h, from: x, attempt: 10, position: 0, now: longMs }),
  ).toBeUndefined()
})

test('LEASE-2: after a start every peer counts as holding every group for one lease time', () => {
  const { grants } = new Grantor()
  const everybody = [
    { node: x, incarnation: 1 },
    { node: z, incarnation: 1 },
  ]
  expect(grants.holders(g, 1, longMs - 0.1)).toEqual(everybody)
  expect(grants.revoke(g, 1, x, longMs - 0.1)).toBe(false)
  expect(grants.holders(g, 1, longMs)).toEqual([])
  expect(grants.revoke(g, 1, x, longMs)).toBe(true)
})

test('LEASE-2: a peer that knows of this start counts as holding only what it has registered', () => {
  const grantor = new Grantor()
  grantor.ask(1, { grantor: 0 })
  grantor.ask(2, { grantor: own - 1 })
  expect(grantor.holders(g, 3)).toEqual([x, z])
  grantor.ask(4)
  expect(grantor.holders(g, 5)).toEqual([z])
  expect(grantor.isOver(g, 5)).toBe(true)
})

test('LEASE-2: a group registered by a peer that may hold older leases is revoked like any other', () => {
  const grantor = new Grantor()
  const term = grantor.grant(0, { grantor: own - 1 })
  grantor.grants.register({ group: g, from: x, attempt: 10, position: 0, now: 0 })
  expect(grantor.isOver(g, 1)).toBe(false)
  expect(grantor.ask(2, { grantor: own - 1, term })).toMatchObject({ serial: 1, revoked: [g] })
  grantor.ask(3, { grantor: own - 1, term, serial: 1 })
  expect(grantor.isOver(g, 4)).toBe(false)
  grantor.ask(5, { term, serial: 1 })
  expect(grantor.isOver(g, 6)).toBe(true)
})

test('LEASE-2: a holder that has restarted gets another term, and its earlier life no more', () => {
  const grantor = known()
  const term = grantor.registered(0, g)
  expect(grantor.grants.holders(g, 1, 1)).toEqual([{ node: x, incarnation: 1 }])
  const next = grantor.grant(1, { incarnation: 2 })
  expect(next).not.toEqual(term)
  expect(grantor.holders(g, 1)).toEqual([])
  grantor.grants.register({ group: g, from: x, attempt: 20, position: 0, now: 1 })
  expect(grantor.ask(2, { incarnation: 1, term })).toBeUndefined()
  expect(grantor.grants.holders(g, 1, 2)).toEqual([{ node: x, incarnation: 2 }])
})

test('LEASE-2: a group that no holder has registered counts as revoked', () => {
  const grantor = known()
  grantor.registered(0, g)
  expect(grantor.isOver(h, 1)).toBe(true)
  expect(grantor.grants.revoke(g, 1, z, 1)).toBe(true)
  expect(grantor.ask(2)).toMatchObject({ serial: 0, revoked: [] })
})

test('LEASE-2: a revoked group is named in every answer until the holder says that it is dropped', () => {
  const grantor = known()
  const term = grantor.registered(0, g)
  expect(grantor.isOver(g, 1)).toBe(false)
  expect(grantor.ask(2)).toMatchObject({ serial: 1, revoked: [g] })
  expect(grantor.ask(3, { term })).toMatchObject({ serial: 1, revoked: [g] })
  expect(grantor.isOver(g, 4)).toBe(false)
  expect(grantor.holders(g, 4)).toEqual([x])
  expect(grantor.ask(5, { term, serial: 1 })).toMatchObject({ term, serial: 1, revoked: [] })
  expect(grantor.isOver(g, 6)).toBe(true)
  expect(grantor.holders(g, 6)).toEqual([])
})

test.each([
  ['another incarnation', { incarnation: own - 1, number: 2 }],
  ['another number', { incarnation: own, number: 1 }],
  ['no term', undefined],
])('LEASE-2: a revocation carried out under %s ends nothing', (_, other) => {
  const grantor = known()
  grantor.registered(0, g)
  grantor.isOver(g, 1)
  grantor.ask(2, other === undefined ? { serial: 1 } : { term: other, serial: 1 })
  expect(grantor.isOver(g, 3)).toBe(false)
})

test('LEASE-2: each of two revocations ends when its own serial is acknowledged', () => {
  const grantor = known()
  const term = grantor.registered(0, g, h)
  grantor.isOver(h, 1)
  grantor.isOver(g, 2)
  expect(grantor.ask(3)).toMatchObject({ serial: 2, revoked: [h, g] })
  grantor.ask(4, { term, serial: 1 })
  expect([grantor.isOver(h, 5), grantor.isOver(g, 5)]).toEqual([true, false])
  expect(grantor.ask(6, { term, serial: 2 })).toMatchObject({ serial: 2, revoked: [] })
  expect(grantor.isOver(g, 7)).toBe(true)
})

test('LEASE-2: a repeated revocation keeps its serial', () => {
  const grantor = known()
  const term = grantor.registered(0, g)
  grantor.isOver(g, 1)
  grantor.isOver(g, 2)
  expect(grantor.ask(3)).toMatchObject({ serial: 1 })
  grantor.ask(4, { term, serial: 1 })
  expect(grantor.isOver(g, 5)).toBe(true)
})

test('LEASE-2: a revocation ends with the lease as it stood, however often that is renewed since', () => {
  const grantor = known()
  const term = grantor.registered(0, g, h)
  expect(grantor.isOver(g, 10)).toBe(false)
  expect(grantor.grant(500)).toEqual(term)
  expect(grantor.isOver(g, longMs - 0.1)).toBe(false)
  expect(grantor.isOver(g, longMs)).toBe(true)
  expect(grantor.holders(g, longMs)).toEqual([])
  expect(grantor.holders(h, longMs)).toEqual([x])
  // The holder has not said that it dropped the group: it may not register it anew.
  expect(
    grantor.grants.register({ group: g, from: x, attempt: 11, position: 0, now: longMs }),
  ).toBeUndefined()
  expect(grantor.ask(longMs)).toMatchObject({ revoked: [g] })
})

test('LEASE-2: a group that is being revoked is not registered anew before the holder has dropped it', () => {
  const grantor = known()
  const term = grantor.registered(0, g)
  grantor.isOver(g, 1)
  expect(
    grantor.grants.register({ group: g, from: x, attempt: 11, position: 0, now: 2 }),
  ).toBeUndefined()
  expect(grantor.isOver(g, 3)).toBe(false)
  grantor.ask(4, { term, serial: 1 })
  expect(grantor.grants.register({ group: g, from: x, attempt: 12, position: 0, now: 5 })).toEqual(
    term,
  )
  expect(grantor.holders(g, 6)).toEqual([x])
})

test('LEASE-2: an acknowledgement of one revocation does not end the next of the same group', () => {
  const grantor = known()
  const term = grantor.registered(0, g)
  grantor.isOver(g, 1)
  grantor.ask(2, { term, serial: 1 })
  grantor.grants.register({ group: g, from: x, attempt: 11, position: 0, now: 3 })
  expect(grantor.isOver(g, 4)).toBe(false)
  expect(grantor.ask(5, { term, serial: 1 })).toMatchObject({ serial: 2, revoked: [g] })
  expect(grantor.isOver(g, 6)).toBe(false)
})

test('LEASE-2: a release ends registrations of attempts up to its own', () => {
  const grantor = known()
  grantor.registered(0, g)
  grantor.grants.release(g, x, 9)
  expect(grantor.holders(g, 1)).toEqual([x])
  grantor.grants.release(h, x, 10)
  grantor.grants.release(g, z, 10)
  grantor.grants.release(g, stranger, 10)
  expect(grantor.holders(g, 1)).toEqual([x])
  grantor.grants.release(g, x, 10)
  expect(grantor.holders(g, 1)).toEqual([])
})

test('LEASE-2: a copy of an earlier attempt that comes late does not lower the attempt', () => {
  const grantor = known()
  grantor.registered(0, g)
  grantor.grants.register({ group: g, from: x, attempt: 9, position: 0, now: 1 })
  grantor.grants.release(g, x, 9)
  expect(grantor.holders(g, 2)).toEqual([x])
})

test('LEASE-2: a release does not end a revocation for later registrations', () => {
  const grantor = known()
  const term = grantor.registered(0, g)
  grantor.isOver(g, 1)
  grantor.grants.release(g, x, 10)
  expect(grantor.isOver(g, 2)).toBe(true)
  expect(
    grantor.grants.register({ group: g, from: x, attempt: 11, position: 0, now: 3 }),
  ).toBeUndefined()
  grantor.ask(4, { term, serial: 1 })
  expect(grantor.grants.register({ group: g, from: x, attempt: 11, position: 0, now: 5 })).toEqual(
    term,
  )
})

test('LEASE-2: a term that is handed back is over, and another one is not', () => {
  const grantor = known()
  const term = grantor.registered(0, g)
  grantor.grants.onHandBack(x, { kind: 'hand-back', term: { ...term, number: term.number - 1 } })
  grantor.grants.onHandBack(z, { kind: 'hand-back', term })
  expect(grantor.holders(g, 1)).toEqual([x])
  grantor.grants.onHandBack(x, { kind: 'hand-back', term })
  expect(grantor.holders(g, 1)).toEqual([])
  expect(grantor.grant(2)).not.toEqual(term)
})

test('LEASE-2: a peer that was found slow holds what it has until its lease runs out, and gets no more', () => {
  const grantor = known()
  const term = grantor.registered(0, g)
  grantor.isOver(g, 1)
  grantor.grants.refuse(x, 2, 3_000)
  grantor.grants.refuse(x, 2, 1_000)
  expect(
    grantor.grants.register({ group: h, from: x, attempt: 11, position: 0, now: 3 }),
  ).toBeUndefined()
  expect(grantor.ask(4, { term })).toBeUndefined()
  expect(grantor.holders(g, longMs - 1)).toEqual([x])
  expect(grantor.holders(g, longMs)).toEqual([])
  expect(grantor.ask(3_001)).toBeUndefined()
  expect(grantor.ask(3_002)).toBeDefined()
  grantor.grants.refuse(stranger, 2, 3_000)
})

test('LEASE-2: a peer that gets no more leases may still say what it has dropped', () => {
  const grantor = known()
  const term = grantor.registered(0, g)
  grantor.isOver(g, 1)
  grantor.grants.refuse(x, 2, 3_000)
  expect(grantor.ask(3, { term, serial: 1 })).toBeUndefined()
  expect(grantor.isOver(g, 4)).toBe(true)
})

test('a peer may register a bounded number of groups, and the same ones again', () => {
  const grantor = known()
  const term = grantor.registered(0, g, h)
  expect(
    grantor.grants.register({ group: k, from: x, attempt: 10, position: 0, now: 1 }),
  ).toBeUndefined()
  expect(grantor.grants.register({ group: g, from: x, attempt: 11, position: 0, now: 1 })).toEqual(
    term,
  )
  expect(grantor.grants.count).toBe(2)
  grantor.grants.release(h, x, 10)
  expect(grantor.grants.register({ group: k, from: x, attempt: 12, position: 0, now: 2 })).toEqual(
    term,
  )
  expect(grantor.grants.count).toBe(2)
})

test('LEASE-1: a holder registered at a position is listed only for later positions', () => {
  const { grants } = known()
  grants.onRenew(x, renew({}), 0)
  const register = (attempt: number, position: number): void => {
    grants.register({ group: g, from: x, attempt, position, now: 0 })
  }
  const isListed = (position: number): boolean => grants.holders(g, position, 1).length > 0
  register(10, 5)
  expect([4, 5, 6].map(isListed)).toEqual([false, false, true])
  expect([5, 6].map((position) => grants.revoke(h, position, x, 1))).toEqual([true, true])
  expect(grants.revoke(g, 5, x, 1)).toBe(true)
  // The same attempt was answered twice: either answer may be the one that counts.
  register(10, 4)
  register(10, 8)
  expect([4, 5].map(isListed)).toEqual([false, true])
  // An answer to an earlier attempt counts no more, one to a later attempt alone.
  register(9, 1)
  expect([4, 5].map(isListed)).toEqual([false, true])
  register(11, 7)
  expect([7, 8].map(isListed)).toEqual([false, true])
})

test('LEASE-2: a grantor that gave longer leases once waits for those after a restart', () => {
  const grants = new Grants([x], own, limits, { startedMs: 0, longestLeaseMs: 3_000 })
  expect(grants.holders(g, 1, 3_029)).toHaveLength(1)
  expect(grants.holders(g, 1, 3_030)).toEqual([])
})
