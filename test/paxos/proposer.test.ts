import { expect, test } from 'vitest'
import { nodeId, type NodeId } from '../../src/base/ids.ts'
import type { Ballot } from '../../src/paxos/ballot.ts'
import * as proposer from '../../src/paxos/proposer.ts'

const [a, b, c, d] = [nodeId('a'), nodeId('b'), nodeId('c'), nodeId('d')]
const voters = [a, b, c]
const ballot = (round: number, node: NodeId = a): Ballot => ({
  epoch: 1,
  round,
  node,
  incarnation: 1,
})
const at = (round: number, text: string) => ({ ballot: ballot(round), value: Buffer.from(text) })

test('PAX-7: a majority of the voters wins, each counted once, others not at all', () => {
  let phase = proposer.accept(ballot(0), Buffer.from('v'))
  phase = proposer.countAcceptance(phase, a)
  phase = proposer.countAcceptance(phase, a)
  phase = proposer.countAcceptance(phase, d)
  expect(proposer.isWon(phase, voters)).toBe(false)
  expect(proposer.isWon(proposer.countAcceptance(phase, c), voters)).toBe(true)
})

test('PAX-7: of four voters two are no majority, and two refusals end the phase', () => {
  const four = [a, b, c, d]
  let phase = proposer.prepare(ballot(1))
  phase = proposer.countPromise(proposer.countPromise(phase, a, undefined), b, undefined)
  expect(proposer.isWon(phase, four)).toBe(false)
  phase = proposer.countRefusal(phase, c)
  expect(proposer.isLost(phase, four)).toBe(false)
  expect(proposer.isLost(proposer.countRefusal(phase, d), four)).toBe(true)
})

test('PAX-5: adopts what was accepted at the highest ballot, whatever came first', () => {
  let phase = proposer.prepare(ballot(9))
  phase = proposer.countPromise(phase, a, at(1, 'old'))
  phase = proposer.countPromise(phase, b, at(3, 'new'))
  phase = proposer.countPromise(phase, c, at(2, 'middle'))
  expect(proposer.valueToAdopt(phase)).toEqual(at(3, 'new'))
})

test('PAX-5: the proposer is free to choose only when no acceptor accepted a value', () => {
  let phase = proposer.prepare(ballot(1))
  phase = proposer.countPromise(proposer.countPromise(phase, a, undefined), b, undefined)
  expect(proposer.valueToAdopt(phase)).toBeUndefined()
})

test('PAX-6: ballot zero cannot be prepared', () => {
  expect(() => proposer.prepare(ballot(0))).toThrow('PAX-6')
})

test('PAX-3: an answer that names an acceptance above the ballot asked for stops the proposer', () => {
  const phase = proposer.prepare(ballot(1))
  expect(() => proposer.countPromise(phase, b, at(2, 'v'))).toThrow('PAX-3')
})
