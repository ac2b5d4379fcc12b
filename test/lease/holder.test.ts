/** The leases from its peers that a node counts on. */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type GroupId } from '../../src/base/ids.ts'
import { HeldLeases } from '../../src/lease/holder.ts'
import type { Renew, Renewed, Term } from '../../src/lease/message.ts'
import type { ClockReading } from '../../src/lease/clock-reading.ts'

const [p, q, stranger] = [nodeId('p'), nodeId('q'), nodeId('stranger')]
const [g, h] = [groupOfBytes(Buffer.from('g')), groupOfBytes(Buffer.from('h'))]
const limits = { leaseMs: 1_000, clockDriftPpm: 10_000, leaseGroupsMax: 10 }
/** A lease as the holder counts it. */
const longMs = 930
const [first, second]: [Term, Term] = [
  { incarnation: 1, number: 1 },
  { incarnation: 1, number: 2 },
]
const reborn: Term = { incarnation: 2, number: 1 }

/** Both clocks; since the start the wall clock has gained `aheadMs` on the other. */
const at = (now: number, aheadMs = 0): ClockReading => ({
  now,
  wall: (5_000 + now + aheadMs) * 1000,
})
const ignore = (): void => undefined

interface Options {
  readonly peer?: typeof p
  readonly renewed?: Partial<Renewed>
  readonly drop?: (group: GroupId) => void
}

class Holder {
  readonly held: HeldLeases = new HeldLeases([p, q], 7, limits)

  request(now: number, peer: typeof p = p): Renew {
    const renewal = this.held.renewal(peer, at(now))
    if (renewal === undefined) throw new Error('no request')
    return renewal
  }

  take(request: Renew, now: number, { peer = p, renewed = {}, drop = ignore }: Options): boolean {
    const { asked } = request
    const common = { kind: 'renewed', asked, leaseMs: 1_000, term: first, serial: 0 } as const
    return this.held.onRenewed(peer, { ...common, revoked: [], ...renewed }, at(now), drop)
  }

  /** Asks and is answered at once. */
  obtain(now: number, options: Options = {}): boolean {
    return this.take(this.request(now, options.peer), now, options)
  }

  confirmHeld(now: number, term: Term = first, peer: typeof p = p): boolean {
    return this.held.confirmHeld(peer, term, at(now))
  }
}

test('LEASE-2: a lease counts from when its request left, less drift and unnoticed suspension', () => {
  const holder = new Holder()
  const request = holder.request(100)
  expect(holder.confirmHeld(100)).toBe(false)
  holder.take(request, 500, {})
  expect(holder.confirmHeld(500)).toBe(true)
  expect(holder.confirmHeld(100 + longMs - 0.1)).toBe(true)
  expect(holder.confirmHeld(100 + longMs)).toBe(false)
  expect(holder.held.confirmLive(p, at(100 + longMs - 0.1))).toBe(true)
  expect(holder.held.confirmLive(p, at(100 + longMs))).toBe(false)
})

test('LEASE-2: an answer that comes when its lease is over gives nothing', () => {
  const holder = new Holder()
  const request = holder.request(100)
  holder.take(request, 100 + longMs, {})
  expect(holder.confirmHeld(100 + longMs)).toBe(false)
})

test('LEASE-2: a registration under another term, or with another peer, is not held', () => {
  const holder = new Holder()
  holder.obtain(0)
  expect(holder.confirmHeld(1, second)).toBe(false)
  expect(holder.confirmHeld(1, reborn)).toBe(false)
  expect(holder.confirmHeld(1, first, q)).toBe(false)
  expect(holder.held.confirmLive(q, at(1))).toBe(false)
})

test('LEASE-2: a holder sends a node that is no peer nothing and takes nothing from it', () => {
  const holder = new Holder()
  expect(holder.held.renewal(stranger, at(0))).toBeUndefined()
  holder.take(holder.request(0), 0, { peer: stranger })
  holder.held.onLink(stranger, 3)
  expect(holder.confirmHeld(0, first, stranger)).toBe(false)
  expect(holder.held.confirmLive(stranger, at(0))).toBe(false)
})

test('LEASE-2: an answer to a request of an earlier life gives nothing, and drops nothing', () => {
  const holder = new Holder()
  const dropped: GroupId[] = []
  const asked = { ...holder.request(0).asked, incarnation: 6 }
  const renewed = { asked, serial: 1, revoked: [g] }
  const isAwaited = holder.take(holder.request(0), 0, {
    renewed,
    drop: (group) => dropped.push(group),
  })
  expect([isAwaited, dropped]).toEqual([false, []])
  expect(holder.confirmHeld(0)).toBe(false)
})

test('LEASE-2: an answer to a request that has not left yet extends nothing', () => {
  const holder = new Holder()
  const request = holder.request(100)
  holder.take(request, 99, {})
  expect(holder.confirmHeld(99)).toBe(false)
})

test('LEASE-2: a request leaves no later than its reading says', () => {
  const { asked } = new Holder().request(0.123_9)
  expect(asked).toMatchObject({ incarnation: 7, sentAt: 123 })
})

test('LEASE-2: the time that the grantor names counts, whatever the limits say here', () => {
  const holder = new Holder()
  holder.obtain(0, { renewed: { leaseMs: 100 } })
  // A fiftieth, and 50 ms.
  expect(holder.confirmHeld(47.9)).toBe(true)
  expect(holder.confirmHeld(48)).toBe(false)
})

test('LEASE-2: the answer to an earlier request does not shorten what a later one gave', () => {
  const holder = new Holder()
  const earlier = holder.request(0)
  holder.obtain(500)
  holder.take(earlier, 600, {})
  expect(holder.confirmHeld(500 + longMs - 1)).toBe(true)
})

test.each([
  ['of the same incarnation', second, first],
  ['of an earlier incarnation', reborn, { incarnation: 1, number: 9 }],
])('LEASE-2: an answer that names an older term %s is ignored', (_, newer, older) => {
  const holder = new Holder()
  const dropped: GroupId[] = []
  holder.obtain(0, { renewed: { term: newer } })
  const renewed = { term: older, serial: 4, revoked: [g] }
  expect(holder.obtain(500, { renewed, drop: (group) => dropped.push(group) })).toBe(false)
  expect(dropped).toEqual([])
  expect(holder.confirmHeld(500, older)).toBe(false)
  expect(holder.confirmHeld(500, newer)).toBe(true)
  expect(holder.confirmHeld(longMs + 1, newer)).toBe(false)
})

test.each([
  ['of the same incarnation', second],
  ['of a later incarnation', reborn],
])('LEASE-2: a newer term %s ends the one before and counts from its own request', (_, newer) => {
  const holder = new Holder()
  const earlier = holder.request(0)
  holder.obtain(500)
  holder.take(earlier, 600, { renewed: { term: newer } })
  expect(holder.confirmHeld(600)).toBe(false)
  expect(holder.confirmHeld(600, newer)).toBe(true)
  expect(holder.confirmHeld(longMs, newer)).toBe(false)
})

test('LEASE-2: when a grantor is heard to have restarted, nothing that it gave before counts', () => {
  const holder = new Holder()
  const earlier = holder.request(0)
  holder.obtain(0)
  expect(holder.confirmHeld(1)).toBe(true)
  holder.held.onLink(p, 2)
  expect(holder.confirmHeld(1)).toBe(false)
  holder.take(earlier, 2, {})
  expect(holder.confirmHeld(2)).toBe(false)
  const request = holder.request(3)
  expect(request).toMatchObject({ grantor: 2, serial: 0 })
  expect(request).not.toHaveProperty('term')
  holder.held.onLink(p, 1)
  expect(holder.request(4)).toMatchObject({ grantor: 2 })
})

test('LEASE-2: with a new link a term is given up for good, and the grantor told until it names another', () => {
  const holder = new Holder()
  const [later, handBack] = [{ term: second }, { kind: 'hand-back', term: first }]
  const earlier = holder.request(0)
  holder.obtain(0)
  expect(holder.held.handBackTo(p)).toBeUndefined()
  holder.held.onLink(p, 1)
  expect(holder.confirmHeld(1)).toBe(false)
  expect(holder.request(1)).not.toHaveProperty('term')
  expect(holder.held.handBackTo(p)).toEqual(handBack)
  // Answers of before, or of a grantor that has not heard of it.
  holder.take(earlier, 2, {})
  holder.obtain(2)
  expect(holder.confirmHeld(2)).toBe(false)
  expect(holder.held.handBackTo(p)).toEqual(handBack)
  holder.obtain(3, { renewed: later })
  expect(holder.confirmHeld(3, second)).toBe(true)
  expect(holder.held.handBackTo(p)).toBeUndefined()
  holder.obtain(4)
  expect([holder.confirmHeld(4), holder.confirmHeld(4, second)]).toEqual([false, true])
})

test('LEASE-2: a term that is given up says nothing of a grantor that has restarted since', () => {
  const holder = new Holder()
  holder.obtain(0, { renewed: { term: second } })
  holder.held.onLink(p, 1)
  holder.held.onLink(p, 2)
  expect(holder.held.handBackTo(p)).toBeUndefined()
  holder.obtain(1, { renewed: { term: reborn } })
  expect(holder.confirmHeld(1, reborn)).toBe(true)
  expect(holder.held.handBackTo(stranger)).toBeUndefined()
})

test('LEASE-2: a link that comes up twice before the grantor is heard gives up the same term', () => {
  const holder = new Holder()
  holder.obtain(0)
  holder.held.onLink(p, 1)
  holder.held.onLink(p, 1)
  expect(holder.held.handBackTo(p)).toEqual({ kind: 'hand-back', term: first })
  holder.obtain(1)
  expect(holder.confirmHeld(1)).toBe(false)
})

test('LEASE-2: a request names the grantor as known, and the term that is held', () => {
  const holder = new Holder()
  expect(holder.request(0)).toMatchObject({ kind: 'renew', grantor: 0, serial: 0 })
  holder.obtain(1, { renewed: { term: reborn } })
  expect(holder.request(2)).toMatchObject({ grantor: 2, serial: 0, term: reborn })
})

test('LEASE-2: a holder drops revoked groups before it extends the lease', () => {
  const holder = new Holder()
  holder.obtain(0)
  const seen: unknown[] = []
  const drop = (group: GroupId): void => void seen.push([group, holder.confirmHeld(1_000)])
  holder.obtain(900, { renewed: { serial: 2, revoked: [g, h] }, drop })
  expect(seen).toEqual([
    [g, false],
    [h, false],
  ])
  expect(holder.confirmHeld(1_000)).toBe(true)
})

test('LEASE-2: a holder drops a revoked group once, whatever copies of the answer come later', () => {
  const holder = new Holder()
  const dropped: GroupId[] = []
  const obtain = (now: number, serial: number, ...revoked: readonly GroupId[]): boolean =>
    holder.obtain(now, { renewed: { serial, revoked }, drop: (group) => dropped.push(group) })
  expect([obtain(0, 1, g), obtain(1, 1, g), obtain(2, 2, g, h), obtain(3, 1, g)]).toEqual([
    true,
    false,
    true,
    false,
  ])
  expect(dropped).toEqual([g, g, h])
})

test('LEASE-2: a holder drops revoked groups also under a new term', () => {
  const holder = new Holder()
  const dropped: GroupId[] = []
  const renewed = { serial: 1, revoked: [g] }
  expect(holder.obtain(0, { renewed, drop: (group) => dropped.push(group) })).toBe(true)
  expect(dropped).toEqual([g])
})

test('LEASE-2: the next request says which revocations are carried out', () => {
  const holder = new Holder()
  holder.obtain(0)
  expect(holder.obtain(1, { renewed: { serial: 2, revoked: [g] } })).toBe(true)
  expect(holder.request(2)).toMatchObject({ serial: 2, term: first })
})

test('LEASE-2: a copy of an earlier answer takes back nothing of what is said to be carried out', () => {
  const holder = new Holder()
  holder.obtain(0, { renewed: { serial: 2, revoked: [g] } })
  expect(holder.obtain(1, { renewed: { serial: 1, revoked: [h] } })).toBe(false)
  expect(holder.request(2)).toMatchObject({ serial: 2 })
})

test('LEASE-2: a holder acknowledges at once only revocations that are new and open', () => {
  const holder = new Holder()
  expect(holder.obtain(0, { renewed: { serial: 3, revoked: [] } })).toBe(false)
  expect(holder.obtain(1, { renewed: { serial: 4, revoked: [g] } })).toBe(true)
  expect(holder.obtain(2, { renewed: { serial: 4, revoked: [g] } })).toBe(false)
})

test('LEASE-2: revocations carried out under one term say nothing of the next', () => {
  const holder = new Holder()
  holder.obtain(0, { renewed: { serial: 5, revoked: [g] } })
  holder.obtain(1, { renewed: { term: second } })
  expect(holder.request(2)).toMatchObject({ serial: 0, term: second })
})

test('LEASE-2: nothing is held any more once the wall clock tells that the machine was suspended', () => {
  const holder = new Holder()
  holder.obtain(0)
  holder.obtain(0, { peer: q })
  // A hundredth of what has passed, and 50 ms.
  expect(holder.held.confirmHeld(p, first, at(200, 52))).toBe(true)
  expect(holder.held.confirmHeld(p, first, at(200, 52.1))).toBe(false)
  expect([holder.confirmHeld(201), holder.confirmHeld(201, first, q)]).toEqual([false, false])
  expect([p, q].map((peer) => holder.held.confirmLive(peer, at(201)))).toEqual([false, false])
  expect(holder.request(202)).not.toHaveProperty('term')
})

test('LEASE-2: the answer to a request that left before a suspension gives nothing', () => {
  const holder = new Holder()
  const request = holder.request(0)
  holder.take(request, 10, {})
  expect(holder.held.confirmLive(p, at(10, 500))).toBe(false)
  holder.take(request, 11, {})
  expect(holder.held.confirmHeld(p, first, at(11, 500))).toBe(false)
})

test('LEASE-2: after a suspension a lease is obtained anew', () => {
  const holder = new Holder()
  holder.obtain(0)
  expect(holder.held.confirmHeld(p, first, at(10, 500))).toBe(false)
  const request = holder.held.renewal(p, at(20, 500))
  if (request === undefined) throw new Error('no request')
  holder.take(request, 21, {})
  expect(holder.held.confirmHeld(p, first, at(22, 500))).toBe(true)
})

test('LEASE-2: a wall clock that falls behind lengthens no lease', () => {
  const holder = new Holder()
  holder.obtain(0)
  expect(holder.held.confirmHeld(p, first, at(500, -3_000))).toBe(true)
  expect(holder.held.confirmHeld(p, first, at(longMs, -3_000))).toBe(false)
})

test('a holder does not ask the same peer for a lease twice within the interval', () => {
  const { held } = new Holder()
  expect(held.renewal(p, at(0), 125)).toBeDefined()
  expect(held.renewal(p, at(124), 125)).toBeUndefined()
  expect(held.renewal(q, at(124), 125)).toBeDefined()
  expect(held.renewal(p, at(125), 125)).toBeDefined()
  expect(held.renewal(p, at(125))).toBeDefined()
})

test('LEASE-2: a node that hands its leases back counts on none, and names each term once', () => {
  const holder = new Holder()
  holder.obtain(0)
  expect(holder.held.handBack()).toEqual([[p, { kind: 'hand-back', term: first }]])
  expect(holder.confirmHeld(1)).toBe(false)
  expect(holder.held.handBack()).toEqual([])
})
