/** Epoch and round as one count, as disks and messages have them. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { epochMax, packRound, roundMax, unpackBallot } from '../../src/paxos/ballot.ts'

const node = nodeId('n1')
const epoch = fc.integer({ min: 1, max: epochMax })
const round = fc.integer({ min: 0, max: roundMax })
const both = fc.record({ epoch, round })

test('a round of the first epoch is written as it was before there were epochs', () => {
  fc.assert(
    fc.property(round, (of) => {
      expect(packRound({ epoch: 1, round: of })).toBe(of)
    }),
    { seed: 1 },
  )
})

test('a packed round comes back, and orders as epoch and round do', () => {
  fc.assert(
    fc.property(both, both, (a, b) => {
      const packed = packRound(a)
      expect(Number.isSafeInteger(packed)).toBe(true)
      expect(unpackBallot(packed, node, 1)).toEqual({ ...a, node, incarnation: 1 })
      const order = a.epoch - b.epoch || a.round - b.round
      expect(Math.sign(packed - packRound(b))).toBe(Math.sign(order))
    }),
    { seed: 1 },
  )
})

test('every count that a record may hold is an epoch and a round', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), (packed) => {
      expect(packRound(unpackBallot(packed, node, 1))).toBe(packed)
    }),
    { seed: 1 },
  )
  expect(unpackBallot(Number.MAX_SAFE_INTEGER, node, 1)).toMatchObject({
    epoch: epochMax,
    round: roundMax,
  })
})

test('PAX-2: an epoch or a round that no record has room for stops', () => {
  expect(() => packRound({ epoch: 0, round: 0 })).toThrow(/PAX-2/)
  expect(() => packRound({ epoch: epochMax + 1, round: 0 })).toThrow(/PAX-2/)
  expect(() => packRound({ epoch: 1, round: roundMax + 1 })).toThrow(/PAX-5/)
})
