/** As of which moment a node has a peer's writes of a group. */
import { beforeEach, expect, test } from 'vitest'
import type { GroupId, Position } from '../../src/base/ids.ts'
import type { ClockReading } from '../../src/lease/clock-reading.ts'
import { PeerRounds } from '../../src/peers/peer-rounds.ts'
import { group } from '../log/log-fixture.ts'

const [a, b] = [group('a'), group('b')]
let applied: Map<GroupId, Position>
let rounds: PeerRounds

/** In which the rounds are. */
let epoch = 0

function at(now: number): ClockReading {
  return { now, wall: now * 1_000 }
}

/** A round that began at `now`, and is over at once. */
function round(number: number, now: number, through: number): void {
  rounds.ask(number, at(now))
  expect(rounds.answer(number, through, epoch)).toBe(true)
  rounds.end(through)
}

beforeEach(() => {
  applied = new Map()
  epoch = 0
  rounds = new PeerRounds((of) => applied.get(of) ?? 0)
})

test('STALE-2: a round counts from its question, and only once all is named', () => {
  rounds.ask(1, at(10))
  expect(rounds.freshAt(a, 0)).toBeUndefined()
  expect(rounds.answer(1, 7, epoch)).toBe(true)
  rounds.end(6)
  expect(rounds.freshAt(a, 0)).toBeUndefined()
  rounds.end(7)
  expect(rounds.freshAt(a, 0)).toEqual(at(10))
})

test('STALE-1: a group counts as of the last round through which nothing of it is missing', () => {
  round(1, 10, 5)
  rounds.name(a, 3)
  round(2, 20, 6)
  rounds.name(a, 4)
  round(3, 30, 7)
  expect(rounds.freshAt(a, 2)).toEqual(at(10))
  expect(rounds.freshAt(a, 3)).toEqual(at(20))
  expect(rounds.freshAt(a, 4)).toEqual(at(30))
  expect(rounds.freshAt(b, 0)).toEqual(at(30))
})

test('STALE-1: a position that was named before the first round is missing in all of them', () => {
  rounds.name(a, 3)
  round(1, 10, 5)
  round(2, 20, 6)
  expect(rounds.freshAt(a, 2)).toBeUndefined()
  expect(rounds.freshAt(a, 3)).toEqual(at(20))
})

test('STALE-1: rounds that were merged leave nothing out', () => {
  for (let one = 1; one <= 20; one++) {
    if (one === 3) rounds.name(a, 5)
    round(one, 10 * one, one)
  }
  expect(rounds.freshAt(a, 4)).toBeUndefined()
  expect(rounds.freshAt(a, 5)).toEqual(at(200))
})

test('STALE-1: one that is let go is applied', () => {
  round(1, 10, 5)
  rounds.name(a, 3)
  applied.set(a, 2)
  for (let position = 1; position < 300; position++) rounds.name(b, position)
  round(2, 20, 6)
  expect(rounds.freshAt(a, 2)).toEqual(at(10))
})

test('STALE-2: an answer counts once, and none to an earlier question behind it', () => {
  rounds.ask(1, at(10))
  rounds.ask(2, at(20))
  expect(rounds.answer(2, 5, epoch)).toBe(true)
  expect(rounds.answer(2, 5, epoch)).toBe(false)
  expect(rounds.answer(1, 5, epoch)).toBe(false)
  expect(rounds.answer(3, 5, epoch)).toBe(false)
})

test('STALE-2: answers whose order was changed on the way count from the latest question that is over', () => {
  for (const one of [1, 2, 3]) rounds.ask(one, at(10 * one))
  // The second answer left before the first one, and came behind it.
  expect(rounds.answer(1, 9, epoch)).toBe(true)
  expect(rounds.answer(2, 7, epoch)).toBe(true)
  expect(rounds.answer(3, 12, epoch)).toBe(true)
  rounds.end(8)
  expect(rounds.freshAt(a, 0)).toEqual(at(20))
  rounds.name(a, 1)
  // The first question is of no use behind that, and no round is of it.
  rounds.end(9)
  expect(rounds.freshAt(a, 1)).toEqual(at(20))
  rounds.end(12)
  expect(rounds.freshAt(a, 1)).toEqual(at(30))
})

test('STALE-3: with another epoch no round counts, and missing positions stay so', () => {
  round(1, 10, 5)
  rounds.name(a, 3)
  round(2, 20, 6)
  rounds.name(b, 2)
  rounds.ask(3, at(30))
  epoch = 2
  rounds.takeUp(epoch)
  expect(rounds.answer(3, 7, epoch)).toBe(false)
  expect(rounds.freshAt(b, 2)).toBeUndefined()
  round(4, 40, 8)
  expect(rounds.freshAt(a, 2)).toBeUndefined()
  expect(rounds.freshAt(a, 3)).toEqual(at(40))
  expect(rounds.freshAt(b, 1)).toBeUndefined()
  expect(rounds.freshAt(b, 2)).toEqual(at(40))
})

test('rounds that are not over are few, and the oldest come to their end first', () => {
  for (let one = 1; one <= 200; one++) {
    rounds.ask(one, at(one))
    rounds.answer(one, one, epoch)
  }
  rounds.end(10)
  expect(rounds.freshAt(a, 0)).toEqual(at(10))
  rounds.end(200)
  expect(rounds.freshAt(a, 0)).toEqual(at(64))
})
