/** How far a peer's flushes are known here for good: through what the own log durably holds. */
import { expect, test } from 'vitest'
import type { GroupId, Position } from '../../src/base/ids.ts'
import { PeerDigestCursor, type OwnLog } from '../../src/peers/peer-digest-cursor.ts'
import { group } from '../log/log-fixture.ts'

const [a, b] = [group('a'), group('b')]

class Log implements OwnLog {
  lastFlush = 5
  durableFlush = 5
  readonly positions = new Map<GroupId, Position>()
  /** The number of its lookups. */
  looks = 0

  highest(of: GroupId): Position {
    this.looks += 1
    return this.positions.get(of) ?? 0
  }
}

test('LOG-9: a digest counts once the node’s own log durably has all that it names', () => {
  const log = new Log()
  const mark = new PeerDigestCursor(log, 10)
  expect([mark.advance(), mark.through]).toEqual([false, 10])
  mark.take(
    20,
    [
      [a, 3],
      [b, 1],
    ],
    true,
  )
  mark.advance()
  log.positions.set(a, 4)
  expect([mark.advance(), mark.through]).toEqual([false, 10])
  log.positions.set(b, 1)
  log.lastFlush = 7
  expect([mark.advance(), mark.through]).toEqual([false, 10])
  log.durableFlush = 6
  // A later flush of the log does not put it off.
  log.lastFlush = 9
  expect([mark.advance(), mark.through]).toEqual([false, 10])
  log.durableFlush = 7
  expect([mark.advance(), mark.through, mark.coveredByFlush]).toEqual([true, 20, 7])
})

test('LOG-9: digests that come while some of an earlier one lacks hold nothing up, and are not passed', () => {
  const log = new Log()
  const mark = new PeerDigestCursor(log, 0)
  mark.advance()
  mark.take(1, [[a, 1]], true)
  mark.advance()
  mark.take(2, [[b, 1]], true)
  mark.take(3, [], true)
  log.positions.set(b, 1)
  expect([mark.advance(), mark.through]).toEqual([false, 0])
  log.positions.set(a, 1)
  expect([mark.advance(), mark.through]).toEqual([true, 3])
  expect(mark.advance()).toBe(false)
})

test('LOG-9: the second of two lots counts no earlier than it is durable, though the first one does', () => {
  const log = new Log()
  const mark = new PeerDigestCursor(log, 0)
  mark.take(1, [[a, 1]], true)
  mark.advance()
  mark.take(2, [[b, 1]], true)
  for (const one of [a, b]) log.positions.set(one, 1)
  log.lastFlush = 6
  expect([mark.advance(), mark.through]).toEqual([false, 0])
  log.durableFlush = 6
  log.lastFlush = 7
  expect([mark.advance(), mark.through]).toEqual([true, 1])
  log.durableFlush = 7
  expect([mark.advance(), mark.through]).toEqual([true, 2])
})

test('LOG-9: a group that two digests name is waited for to the higher position', () => {
  const log = new Log()
  const mark = new PeerDigestCursor(log, 0)
  mark.take(1, [[a, 7]], true)
  mark.take(2, [[a, 5]], true)
  mark.advance()
  log.positions.set(a, 5)
  expect(mark.advance()).toBe(false)
  log.positions.set(a, 7)
  expect([mark.advance(), mark.through]).toEqual([true, 2])
})

test('LOG-9: while one group lacks, no others are looked at again', () => {
  const log = new Log()
  const mark = new PeerDigestCursor(log, 0)
  const many = Array.from({ length: 100 }, (_, i) => [group(`g${i}`), 1] as const)
  mark.take(1, many, true)
  // The first lot is empty.
  mark.advance()
  for (let tick = 0; tick < 49; tick++) mark.advance()
  expect(log.looks).toBe(50)
  for (const [one] of many) log.positions.set(one, 1)
  expect([mark.advance(), mark.through]).toEqual([true, 1])
  expect(log.looks).toBe(150)
})

test('LOG-9: behind what was named and does not come, nothing counts as known', () => {
  const log = new Log()
  const mark = new PeerDigestCursor(log, 0)
  mark.take(1, [[a, 1]], true)
  mark.take(2, [], false)
  mark.take(3, [[b, 1]], true)
  for (const one of [a, b]) log.positions.set(one, 1)
  const moves = [1, 2, 3, 4].map(() => mark.advance())
  expect([moves.filter(Boolean).length, mark.through]).toEqual([1, 1])
})

test('the mark lets go of named groups as they arrive, in any order, and a stuck one delays no count', () => {
  const log = new Log()
  const mark = new PeerDigestCursor(log, 0)
  const many = Array.from({ length: 2_000 }, (_, i) => [group(`g${i}`), 1] as const)
  mark.take(1, many, true)
  expect([mark.isFull(2_001), log.looks]).toEqual([false, 0])
  expect([mark.isFull(1_000), mark.isFull(1_000)]).toEqual([true, true])
  expect(log.looks).toBeLessThan(600)
  for (const [one] of many.slice(999)) log.positions.set(one, 1)
  const answers: boolean[] = []
  while (answers.length < 10 && answers.at(-1) !== false) answers.push(mark.isFull(1_000))
  expect(answers.at(-1)).toBe(false)
  expect(mark.isFull(999)).toBe(true)
})
