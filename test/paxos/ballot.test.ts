/** Epoch and round as one count, as disks and messages have them. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { epochMax, packRound, roundMax, unpackRound } from '../../src/paxos/ballot.ts'

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
      expect(unpackRound(packed)).toEqual(a)
      const order = a.epoch - b.epoch || a.round - b.round
      expect(Math.sign(packed - packRound(b))).toBe(Math.sign(order))
    }),
    { seed: 1 },
  )
})

test('every count that a record may hold is an epoch and a round', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), (packed) => {
      expect(packRound(unpackRound(packed))).toBe(packed)
    }),
    { seed: 1 },
  )
  expect(unpackRound(Number.MAX_SAFE_INTEGER)).toEqual({ epoch: epochMax, round: roundMax })
})

test('PAX-2: an epoch or a round that no record has room for stops', () => {
  expect(() => packRound({ epoch: 0, round: 0 })).toThrow(/PAX-2/)
  expect(() => packRound({ epoch: epochMax + 1, round: 0 })).toThrow(/PAX-2/)
  expect(() => packRound({ epoch: 1, round: roundMax + 1 })).toThrow(/PAX-5/)
})
