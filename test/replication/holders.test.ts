/** Whom a proposer waits for after a majority has accepted, against the rule as it is written. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { nodeId, type NodeId } from '../../src/base/ids.ts'
import type { LeaseHolder } from '../../src/lease/message.ts'
import { accept, countAcceptance, isWon, type Accepting } from '../../src/paxos/proposer.ts'
import {
  awaitedHolders,
  findListers,
  noHolders,
  noteAcknowledged,
  noteHolders,
  noteRevoked,
} from '../../src/replication/holders.ts'

const [a, b, c, d, e] = [nodeId('a'), nodeId('b'), nodeId('c'), nodeId('d'), nodeId('e')]
const voters = [a, b, c]
const noPhase = accept({ epoch: 1, round: 0, node: a, incarnation: 1 }, Buffer.from('v'))
const acceptedBy = (...nodes: readonly NodeId[]): Accepting =>
  nodes.reduce((phase, node) => countAcceptance(phase, node), noPhase)
const of = (node: NodeId, incarnation = 1): LeaseHolder => ({ node, incarnation })

test('LEASE-1: a holder that a majority has listed is waited for until it has accepted the value', () => {
  const table = noHolders()
  noteHolders(table, a, [of(d)])
  noteHolders(table, b, [of(d)])
  expect(awaitedHolders(table, acceptedBy(a, b), voters, a)).toEqual([d])
  expect(awaitedHolders(table, acceptedBy(a, b, d), voters, a)).toEqual([])
})

test('LEASE-1: one voter that lists a holder is enough, until a majority has accepted without listing it', () => {
  const table = noHolders()
  noteHolders(table, a, [])
  noteHolders(table, b, [of(d)])
  expect(awaitedHolders(table, acceptedBy(a, b), voters, a)).toEqual([d])
  noteHolders(table, c, [])
  expect(awaitedHolders(table, acceptedBy(a, b, c), voters, a)).toEqual([])
})

test('LEASE-1: half of the voters without the holder are no majority', () => {
  const table = noHolders()
  for (const voter of [a, b]) noteHolders(table, voter, [])
  for (const voter of [c, d]) noteHolders(table, voter, [of(e)])
  expect(awaitedHolders(table, acceptedBy(a, b, c, d), [a, b, c, d], a)).toEqual([e])
})

test('LEASE-1: a node that is no voter does not count towards the majority without a holder', () => {
  const table = noHolders()
  noteHolders(table, a, [])
  noteHolders(table, b, [of(d)])
  noteHolders(table, e, [])
  expect(awaitedHolders(table, acceptedBy(a, b, e), voters, a)).toEqual([d])
})

test('LEASE-1: only an acknowledgement from the life that was listed, or a later one, counts', () => {
  const table = noHolders()
  noteHolders(table, a, [of(d, 3)])
  noteHolders(table, b, [of(d, 2)])
  noteAcknowledged(table, d, 2)
  expect(awaitedHolders(table, acceptedBy(a, b), voters, a)).toEqual([d])
  noteAcknowledged(table, d, 3)
  noteAcknowledged(table, d, 1)
  expect(awaitedHolders(table, acceptedBy(a, b), voters, a)).toEqual([])
})

test('LEASE-1: each voter that listed a holder has to end its registration, unless others make a majority', () => {
  const table = noHolders()
  noteHolders(table, a, [of(d)])
  noteHolders(table, b, [of(d), of(e)])
  expect([...findListers(table, d)]).toEqual([a, b])
  noteRevoked(table, a, d)
  expect(awaitedHolders(table, acceptedBy(a, b), voters, c)).toEqual([d, e])
  noteRevoked(table, b, d)
  expect(awaitedHolders(table, acceptedBy(a, b), voters, c)).toEqual([e])
  expect([...findListers(table, d)]).toEqual([])
  expect([...findListers(table, c)]).toEqual([])
})

test('LEASE-1: a voter that answers again counts by its last list', () => {
  const table = noHolders()
  noteHolders(table, a, [])
  noteHolders(table, b, [of(d)])
  noteHolders(table, b, [])
  expect(awaitedHolders(table, acceptedBy(a, b), voters, a)).toEqual([])
  noteHolders(table, a, [of(d)])
  expect(awaitedHolders(table, acceptedBy(a, b), voters, a)).toEqual([d])
})

test('LEASE-1: the proposer does not wait for itself', () => {
  const table = noHolders()
  noteHolders(table, b, [of(a)])
  noteHolders(table, c, [of(a)])
  expect(awaitedHolders(table, acceptedBy(b, c), voters, a)).toEqual([])
})

type Step =
  | { readonly kind: 'accepted'; readonly by: NodeId; readonly holders: readonly LeaseHolder[] }
  | { readonly kind: 'acknowledged'; readonly holder: NodeId; readonly incarnation: number }
  | { readonly kind: 'revoked'; readonly by: NodeId; readonly holder: NodeId }

/** Whether the voter, by what it said last, may have the holder registered. */
function isListing(steps: readonly Step[], voter: NodeId, holder: NodeId): boolean {
  const last = steps.findLast(
    (step) =>
      (step.kind === 'accepted' && step.by === voter) ||
      (step.kind === 'revoked' && step.by === voter && step.holder === holder),
  )
  return last?.kind === 'accepted' && last.holders.some(({ node }) => node === holder)
}

/** The rule of `src/replication/holders.ts`, word for word. */
function mayBeShown(steps: readonly Step[], all: readonly NodeId[], holder: NodeId): boolean {
  const accepted = new Set(steps.flatMap((step) => (step.kind === 'accepted' ? [step.by] : [])))
  const lists = steps.flatMap((step) => (step.kind === 'accepted' ? step.holders : []))
  const lives = lists.filter(({ node }) => node === holder).map(({ incarnation }) => incarnation)
  if (lives.length === 0 || accepted.has(holder)) return true
  const hasAcknowledged = steps.some(
    (step) =>
      step.kind === 'acknowledged' &&
      step.holder === holder &&
      lives.every((incarnation) => step.incarnation >= incarnation),
  )
  if (hasAcknowledged) return true
  const without = all.filter((voter) => accepted.has(voter) && !isListing(steps, voter, holder))
  return without.length > all.length / 2
}

const node = fc.constantFrom(a, b, c, d, e)
const incarnation = fc.integer({ min: 1, max: 3 })
const holders = fc.uniqueArray(fc.record({ node, incarnation }), {
  maxLength: 3,
  selector: (one) => one.node,
})
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('accepted'), by: node, holders }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('acknowledged'), holder: node, incarnation }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('revoked'), by: node, holder: node }) },
)
const drawn = fc.record({
  count: fc.integer({ min: 1, max: 5 }),
  self: node,
  steps: fc.array(step, { maxLength: 14 }),
})

test('LEASE-1: a writer awaits exactly the holders of the rule, for answers in any order', () => {
  const nodes = [a, b, c, d, e]
  let awaitedInAll = 0
  fc.assert(
    fc.property(drawn, ({ count, self, steps }) => {
      const [table, all] = [noHolders(), nodes.slice(0, count)]
      let phase = noPhase
      for (const [index, one] of steps.entries()) {
        if (one.kind === 'revoked') noteRevoked(table, one.by, one.holder)
        else if (one.kind === 'acknowledged') noteAcknowledged(table, one.holder, one.incarnation)
        else {
          noteHolders(table, one.by, one.holders)
          phase = countAcceptance(phase, one.by)
        }
        const past = steps.slice(0, index + 1)
        for (const holder of nodes) {
          const listing = nodes.filter((voter) => isListing(past, voter, holder))
          expect([...findListers(table, holder)].toSorted()).toEqual(listing)
        }
        if (!isWon(phase, all)) continue
        const expected = nodes.filter((one) => one !== self && !mayBeShown(past, all, one))
        expect([...awaitedHolders(table, phase, all, self)].toSorted()).toEqual(expected)
        awaitedInAll += expected.length
      }
    }),
    { numRuns: 1_000 },
  )
  expect(awaitedInAll).toBeGreaterThan(500)
})
