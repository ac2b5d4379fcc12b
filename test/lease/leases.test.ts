/** The leases of one node as a whole, and with one peer. */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import { Leases, type OutgoingMessage } from '../../src/lease/leases.ts'
import type { Renewed, Term } from '../../src/lease/message.ts'
import type { ClockReading } from '../../src/lease/clock-reading.ts'

const [x, y, z] = [nodeId('x'), nodeId('y'), nodeId('z')]
const groupNamed = (name: string): GroupId => groupOfBytes(Buffer.from(name))
const [g, h, i] = [groupNamed('g'), groupNamed('h'), groupNamed('i')]
const at = (now: number): ClockReading => ({ now, wall: (5_000 + now) * 1000 })
const ignore = (): void => undefined

function leasesOf(node: NodeId, limits: Partial<Limits> = {}): Leases {
  const options = { node, nodes: [x, y, z], incarnation: 1, startedMs: 0 }
  return new Leases({ ...options, limits: { ...defaultLimits, ...limits } })
}

const receivers = (told: readonly OutgoingMessage[]): readonly NodeId[] => told.map(([to]) => to)

/** Carries what one node says to the other, and what that one answers. */
function carry(
  told: readonly OutgoingMessage[],
  from: NodeId,
  nodes: Map<NodeId, Leases>,
  now: number,
): void {
  for (const [to, message] of told) {
    const answers = nodes.get(to)?.onMessage(from, message, at(now), ignore) ?? []
    carry(answers, to, nodes, now)
  }
}

/** x holds a lease of y; `register`: a group under it, by attempt 5 of x. */
function linked(): {
  readonly holder: Leases
  readonly grantor: Leases
  readonly nodes: Map<NodeId, Leases>
  readonly register: (group: GroupId) => Term
} {
  const [holder, grantor] = [leasesOf(x), leasesOf(y)]
  const nodes = new Map([
    [x, holder],
    [y, grantor],
  ])
  carry(holder.onLink(y, 1, at(0)), x, nodes, 0)
  const register = (group: GroupId): Term => {
    const term = grantor.register({ group, from: x, attempt: 5, position: 0, now: 0 })
    if (term === undefined) throw new Error('not registered')
    return term
  }
  return { holder, grantor, nodes, register }
}

test('a node serves a bounded number of groups by itself, and none where leases are off', () => {
  const leases = leasesOf(x, { leaseGroupsMax: 2 })
  expect([g, h, i].map((group) => leases.enter(group))).toEqual([true, true, false])
  leases.leave(g)
  expect(leases.heldGroups).toBe(1)
  expect(leases.enter(i)).toBe(true)
  expect(leasesOf(x, { leaseMs: 0 }).enter(g)).toBe(false)
})

test('leases are renewed with every peer as long as there is a group to be served', () => {
  const leases = leasesOf(x)
  expect(leases.renewals(at(0))).toEqual([])
  leases.enter(g)
  expect(receivers(leases.renewals(at(0)))).toEqual([y, z])
  leases.leave(g)
  expect(leases.renewals(at(1_000))).toEqual([])
})

test('a holder asks a peer for a lease once in an eighth of its time', () => {
  const leases = leasesOf(x, { leaseMs: 800 })
  leases.enter(g)
  expect(receivers(leases.ask(y, at(0)))).toEqual([y])
  expect(leases.ask(y, at(99))).toEqual([])
  expect(receivers(leases.renewals(at(99)))).toEqual([z])
  expect(receivers(leases.ask(y, at(100)))).toEqual([y])
})

test('LEASE-2: a holder tells a peer whose link comes up that it counts on nothing older', () => {
  const leases = leasesOf(x)
  leases.ask(y, at(0))
  const told = leases.onLink(y, 4, at(1))
  expect(told).toEqual([[y, expect.objectContaining({ kind: 'renew', grantor: 4, serial: 0 })]])
  expect(leasesOf(x, { leaseMs: 0 }).onLink(y, 4, at(1))).toEqual([])
})

test('LEASE-2: a revocation is carried out and acknowledged without waiting for the next renewal', () => {
  const { holder, grantor, nodes, register } = linked()
  const term = register(g)
  expect(holder.confirmHeld(y, term, at(1))).toBe(true)
  expect(holder.confirmLive(y, at(1))).toBe(true)
  expect(grantor.grantedGroups).toBe(1)
  expect(grantor.holders(g, 1, 1)).toContainEqual({ node: x, incarnation: 1 })
  expect(grantor.revoke(g, 1, x, 1)).toBe(false)
  carry(holder.ask(y, at(200)), x, nodes, 200)
  expect(grantor.revoke(g, 1, x, 200)).toBe(true)
  expect(grantor.grantedGroups).toBe(0)
})

test('LEASE-2: a grantor tells a holder at once of a revocation, and the holder acknowledges it', () => {
  const { holder, grantor, nodes, register } = linked()
  const [term] = [register(g), register(h), register(i)]
  const told: Renewed[] = []
  grantor.onRevoking = (_, message) => told.push(message)
  const ends = (group: GroupId, now: number): boolean => grantor.revoke(group, 1, x, now)
  expect([ends(g, 10), ends(h, 11), ends(i, 72), ends(g, 73)]).toEqual([false, false, false, false])
  // Once in a sixteenth of a lease, for all groups together; with no more time than was given before.
  expect(told.map(({ revoked, asked }) => [revoked, asked.sentAt])).toEqual([
    [[g], 0],
    [[g, h, i], 0],
  ])
  for (const message of told) carry([[x, message]], y, nodes, 73)
  expect([ends(g, 74), ends(h, 74), ends(i, 74)]).toEqual([true, true, true])
  expect(holder.confirmHeld(y, term, at(929))).toBe(true)
  expect(holder.confirmHeld(y, term, at(931 + 73))).toBe(false)
})

test('LEASE-2: a lease handed back is over at both sides', () => {
  const { holder, grantor, nodes, register } = linked()
  const term = register(g)
  carry(holder.handBack(), x, nodes, 1)
  expect(holder.confirmHeld(y, term, at(1))).toBe(false)
  expect(grantor.revoke(g, 1, x, 1)).toBe(true)
})

test('LEASE-2: a release takes a group out of the lease', () => {
  const { grantor, register } = linked()
  register(g)
  grantor.release(g, x, 5)
  expect(grantor.revoke(g, 1, x, 1)).toBe(true)
})

test('a holder that makes writers wait three times in ten seconds gets no leases for a while', () => {
  const leases = leasesOf(y)
  expect(leases.noteSlow(x, 0)).toBe(false)
  expect(leases.noteSlow(x, 5_000)).toBe(false)
  // The first is forgotten.
  expect(leases.noteSlow(x, 10_000)).toBe(false)
  expect(leases.noteSlow(z, 10_500)).toBe(false)
  expect(leases.noteSlow(x, 11_000)).toBe(true)
  const [, request] = leasesOf(x).onLink(y, 1, at(11_000))[0] ?? []
  if (request === undefined) throw new Error('no request')
  expect(leases.onMessage(x, request, at(40_999), ignore)).toEqual([])
  expect(receivers(leases.onMessage(x, request, at(41_000), ignore))).toEqual([x])
  expect(leases.noteSlow(x, 11_500)).toBe(false)
})

test('one stop of a holder counts once, however many writers waited', () => {
  const leases = leasesOf(y)
  const slow = [0, 1, 199, 300, 499, 500]
  expect(slow.filter((now) => leases.noteSlow(x, now))).toEqual([500])
})

test('a holder that another node found slow gets no leases here either', () => {
  const leases = leasesOf(y)
  expect(leases.onMessage(z, { kind: 'slow', holder: x }, at(0), ignore)).toEqual([])
  const [, request] = leasesOf(x).onLink(y, 1, at(0))[0] ?? []
  if (request === undefined) throw new Error('no request')
  expect(leases.onMessage(x, request, at(29_999), ignore)).toEqual([])
  expect(receivers(leases.onMessage(x, request, at(30_000), ignore))).toEqual([x])
})
