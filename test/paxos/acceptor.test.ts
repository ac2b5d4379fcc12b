import { expect, test } from 'vitest'
import * as fc from 'fast-check'
import { nodeId } from '../../src/base/ids.ts'
import {
  decideAccept,
  decidePrepare,
  freshAcceptor,
  type Acceptor,
} from '../../src/paxos/acceptor.ts'
import { compareBallots, equalBallots, type Ballot } from '../../src/paxos/ballot.ts'

const ballot = (round: number, node = 'n1', incarnation = 1): Ballot => ({
  epoch: 1,
  round,
  node: nodeId(node),
  incarnation,
})
const value = (text: string): Uint8Array => Buffer.from(text)

const anyBallot = fc.record({
  epoch: fc.integer({ min: 1, max: 2 }),
  round: fc.integer({ min: 0, max: 3 }),
  node: fc.constantFrom(nodeId('n1'), nodeId('n2')),
  incarnation: fc.integer({ min: 1, max: 2 }),
})
const request = fc.record({ kind: fc.constantFrom('prepare', 'accept'), ballot: anyBallot })

/** One value a ballot, as proposers promise (PAX-5). */
const valueOf = (of: Ballot): Uint8Array => value(JSON.stringify(of))

test('PAX-5: ballots are totally ordered, and equal only in epoch, round, node and incarnation', () => {
  expect(compareBallots(ballot(1, 'n1'), ballot(1, 'n2'))).toBeLessThan(0)
  expect(compareBallots(ballot(1, 'n1', 1), ballot(1, 'n1', 2))).toBeLessThan(0)
  expect(compareBallots(ballot(2, 'n1'), ballot(1, 'n2'))).toBeGreaterThan(0)
  expect(compareBallots({ ...ballot(0, 'n1'), epoch: 2 }, ballot(9, 'n2'))).toBeGreaterThan(0)
  fc.assert(
    fc.property(anyBallot, anyBallot, (a, b) => {
      expect(Math.sign(compareBallots(a, b))).toBe(-Math.sign(compareBallots(b, a)) + 0 || 0)
      const isSame =
        a.epoch === b.epoch &&
        a.round === b.round &&
        a.node === b.node &&
        a.incarnation === b.incarnation
      expect(equalBallots(a, b)).toBe(isSame)
    }),
    { seed: 1 },
  )
})

test('PAX-2: over any requests the promise never goes down and an acceptance is never lost', () => {
  fc.assert(
    fc.property(fc.array(request, { maxLength: 12 }), (requests) => {
      let acceptor: Acceptor = freshAcceptor
      for (const one of requests) {
        const decision =
          one.kind === 'prepare'
            ? decidePrepare(acceptor, one.ballot)
            : decideAccept(acceptor, one.ballot, valueOf(one.ballot))
        if (decision.kind === 'refused') continue
        const { promised } = decision.next
        expect(promised).toBeDefined()
        if (acceptor.promised && promised) {
          expect(compareBallots(promised, acceptor.promised)).toBeGreaterThanOrEqual(0)
        }
        if (acceptor.accepted) expect(decision.next.accepted).toBeDefined()
        acceptor = decision.next
      }
    }),
    { seed: 2 },
  )
})

test('PAX-3: accepts at its promise and above, which it has then promised', () => {
  const { next } = narrow(decidePrepare(freshAcceptor, ballot(2)))
  const same = narrow(decideAccept(next, ballot(2), value('a')))
  expect(same.next.accepted?.ballot).toEqual(ballot(2))
  const above = narrow(decideAccept(next, ballot(3), value('a')))
  expect(above.next.promised).toEqual(ballot(3))
})

test('PAX-3: refuses to accept below its promise, ballot zero too, and says what it promised', () => {
  const { next } = narrow(decidePrepare(freshAcceptor, ballot(1)))
  expect(decideAccept(next, ballot(0), value('a'))).toEqual({
    kind: 'refused',
    promised: ballot(1),
  })
})

test('PAX-2: refuses to promise below its promise, from another node of the same round too', () => {
  const { next } = narrow(decidePrepare(freshAcceptor, ballot(1, 'n2')))
  expect(decidePrepare(next, ballot(1, 'n1')).kind).toBe('refused')
})

test('PAX-5: a repeated request changes nothing, and another value at one ballot stops it', () => {
  const { next } = narrow(decideAccept(freshAcceptor, ballot(1), value('a')))
  expect(narrow(decideAccept(next, ballot(1), value('a'))).next).toBe(next)
  expect(narrow(decidePrepare(next, ballot(1))).next).toBe(next)
  expect(() => decideAccept(next, ballot(1), value('b'))).toThrow('PAX-5')
})

test('PAX-5: a promise tells of the value accepted before', () => {
  const { next } = narrow(decideAccept(freshAcceptor, ballot(1), value('a')))
  expect(decidePrepare(next, ballot(2))).toMatchObject({
    kind: 'promised',
    accepted: { ballot: ballot(1), value: value('a') },
  })
})

function narrow<D extends { readonly kind: string }>(decision: D): Exclude<D, { kind: 'refused' }> {
  if (isKept(decision)) return decision
  throw new Error('refused')
}

function isKept<D extends { readonly kind: string }>(
  decision: D,
): decision is Exclude<D, { kind: 'refused' }> {
  return decision.kind !== 'refused'
}
