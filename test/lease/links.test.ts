/** A lease and the links between its holder and its grantor: with a new link begins a new term. */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { Leases, type OutgoingMessage } from '../../src/lease/leases.ts'
import type { Term } from '../../src/lease/message.ts'
import type { ClockReading } from '../../src/lease/clock-reading.ts'

const [x, y] = [nodeId('x'), nodeId('y')]
const groupNamed = (name: string): GroupId => groupOfBytes(Buffer.from(name))
const [g, h] = [groupNamed('g'), groupNamed('h')]
const at = (now: number): ClockReading => ({ now, wall: (5_000 + now) * 1000 })

/** A holder x and its grantor y. */
class Pair {
  readonly holder: Leases = this.#start(x)
  readonly grantor: Leases = this.#start(y)

  #start(node: NodeId): Leases {
    const options = { node, nodes: [x, y], incarnation: 1, startedMs: 0 }
    return new Leases({ ...options, limits: defaultLimits })
  }

  /** Carries what the holder says to the grantor, and the answers back. */
  carry(told: readonly OutgoingMessage[], now: number): void {
    for (const [, message] of told) {
      const answers = this.grantor.onMessage(x, message, at(now), () => undefined)
      for (const [, answer] of answers) this.holder.onMessage(y, answer, at(now), () => undefined)
    }
  }

  register(group: GroupId, attempt: number, now: number): Term {
    const term = this.grantor.register({ group, from: x, attempt, position: 0, now })
    if (term === undefined) throw new Error('not registered')
    return term
  }
}

test('LEASE-2: a new link hands the old term back, and nothing registered under it counts', () => {
  const pair = new Pair()
  const { holder, grantor } = pair
  pair.carry(holder.onLink(y, 1, at(0)), 0)
  // The word that the one was given up is lost with the link; the other one is read on.
  const [before] = [pair.register(g, 5, 0), pair.register(h, 6, 0)]
  const told = holder.onLink(y, 1, at(10))
  expect(told.map(([, { kind }]) => kind)).toEqual(['hand-back', 'renew'])
  expect(holder.confirmHeld(y, before, at(10))).toBe(false)
  pair.carry(told, 10)
  expect(grantor.grantedGroups).toBe(0)
  expect(holder.confirmHeld(y, before, at(11))).toBe(false)
  const after = pair.register(h, 7, 11)
  expect(holder.confirmHeld(y, after, at(11))).toBe(true)
  expect(holder.ask(y, at(500)).map(([, { kind }]) => kind)).toEqual(['renew'])
})

test('LEASE-2: a link whose first words are lost ends the term with the next ones', () => {
  const pair = new Pair()
  const { holder, grantor } = pair
  pair.carry(holder.onLink(y, 1, at(0)), 0)
  pair.register(g, 5, 0)
  holder.onLink(y, 1, at(10))
  pair.carry(holder.ask(y, at(200)), 200)
  expect(grantor.grantedGroups).toBe(0)
  expect(holder.confirmLive(y, at(200))).toBe(true)
})

test('LEASE-2: a hand-back that the request for a new lease has overtaken ends no later term', () => {
  const pair = new Pair()
  const { holder, grantor } = pair
  pair.carry(holder.onLink(y, 1, at(0)), 0)
  pair.register(g, 5, 0)
  const told = holder.onLink(y, 1, at(10))
  pair.carry(told.slice(1), 11)
  // The term goes on at the grantor, and counts no more.
  expect(grantor.grantedGroups).toBe(1)
  expect(holder.confirmLive(y, at(11))).toBe(false)
  pair.carry(holder.ask(y, at(200)), 200)
  const term = pair.register(h, 6, 200)
  pair.carry(told.slice(0, 1), 201)
  expect(grantor.grantedGroups).toBe(1)
  expect(holder.confirmHeld(y, term, at(201))).toBe(true)
})
