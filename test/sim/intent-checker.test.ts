/** The outcomes of an intent that clients get, against a log written by hand: right and wrong answers. */
import { expect, test } from 'vitest'
import type { IntentOutcome } from '../../src/group/replica-port.ts'
import { IntentChecker, type SentIntent } from '../../sim/checkers/intent-checker.ts'
import { LogModel } from '../../sim/checkers/log-model.ts'
import { Referee } from '../../sim/checkers/referee.ts'

const group = 'g'
const done: SentIntent = { group, session: 's', sequence: 1, expiresAt: 500 }
const other: SentIntent = { ...done, sequence: 2 }

class Court {
  readonly referee = new Referee(() => 0)
  readonly model = new LogModel({ referee: this.referee })
  readonly checker = new IntentChecker(this.model, this.referee)

  /** Four entries, one every hundred; `done` took effect with the second. */
  constructor() {
    const model = this.model.of(group)
    for (const timestamp of [100, 200, 300, 400]) this.extend(timestamp)
    model.effects.set('s/1', 2)
    this.checker.onSent(done, 1)
    this.checker.onSent(other, 1)
  }

  extend(timestamp: number): void {
    const model = this.model.of(group)
    model.timestamps.push(timestamp)
    model.position += 1
    model.timestamp = timestamp
  }

  asks(sent: SentIntent, outcome: IntentOutcome, isTimed = true): string[] {
    const floorPosition = this.checker.toldPosition(group)
    this.checker.onOutcome({ ...sent, floorPosition, isTimed }, outcome)
    this.checker.atEnd()
    return [...new Set(this.referee.violations.map(({ rule }) => rule))]
  }
}

const committed = { kind: 'committed', attempt: 7, sequences: [] } as const
const none = { kind: 'none', position: 4, timestamp: 400 } as const
const forgotten = { kind: 'forgotten', position: 4, timestamp: 400 } as const

test('TXN-5: an intent is reported committed where it took effect, and nowhere else', () => {
  expect(new Court().asks(done, { ...committed, position: 2, timestamp: 200 })).toEqual([])
  expect(new Court().asks(done, { ...committed, position: 3, timestamp: 300 })).toEqual(['TXN-5'])
  expect(new Court().asks(done, { ...committed, position: 2, timestamp: 201 })).toEqual(['TXN-5'])
  expect(new Court().asks(other, { ...committed, position: 2, timestamp: 200 })).toEqual(['TXN-5'])
})

test('TXN-5: an intent that is not in effect may come to be, until its time is over', () => {
  expect(new Court().asks(other, none)).toEqual([])
  expect(new Court().asks(done, none)).toEqual(['TXN-5'])
  // As of before it took effect.
  expect(new Court().asks(done, { ...none, position: 1, timestamp: 100 })).toEqual([])
  const court = new Court()
  expect(court.asks(other, none)).toEqual([])
  court.model.of(group).effects.set('s/2', 5)
  court.checker.atEnd()
  expect(court.referee.violations).toEqual([])
  const over = new Court()
  over.extend(600)
  // Then it is `forgotten`, and so it is for a client that names no time.
  expect(over.asks(other, { ...none, position: 5, timestamp: 600 })).toEqual(['TXN-5'])
  expect(new Court().asks(other, none, false)).toEqual(['TXN-5'])
})

test('TXN-5: an intent expires once its time is over, and never took effect', () => {
  expect(new Court().asks(other, { kind: 'expired' })).toEqual(['TXN-5'])
  const over = new Court()
  over.extend(600)
  expect(over.asks(other, { kind: 'expired' })).toEqual([])
  expect(over.asks(done, { kind: 'expired' })).toEqual(['TXN-5'])
})

test('TXN-5: only what is settled, or over, is forgotten', () => {
  expect(new Court().asks(other, forgotten)).toEqual(['TXN-5'])
  // A client that does not name its time may get that for a session that never wrote there.
  expect(new Court().asks(other, forgotten, false)).toEqual([])
  expect(new Court().asks(done, forgotten, false)).toEqual(['TXN-5'])
  const before = { ...forgotten, position: 1, timestamp: 100 }
  expect(new Court().asks(done, before, false)).toEqual([])
  const settled = new Court()
  settled.checker.onSent({ ...done, sequence: 3 }, 2)
  expect(settled.asks(done, forgotten)).toEqual([])
  expect(new Court().asks(done, { ...forgotten, position: 5, timestamp: 600 })).toEqual([])
})

test('LEASE-3: the outcome of an intent is no older than any answer given before the question', () => {
  const court = new Court()
  court.checker.onCommitted(done, 2)
  expect(court.asks(other, { ...none, position: 1, timestamp: 100 })).toEqual(['LEASE-3'])
  expect(new Court().asks(other, { ...none, position: 2, timestamp: 200 })).toEqual([])
})

test('TXN-5: a call that was refused has no effect, then or later', () => {
  const court = new Court()
  court.checker.onRefused(other, 'expired')
  court.checker.atEnd()
  expect(court.referee.violations).toEqual([])
  court.checker.onRefused(done, 'expired')
  expect(court.referee.violations.map(({ rule }) => rule)).toEqual(['TXN-5'])
})

test('TXN-5: a commit is reported at its true position', () => {
  const court = new Court()
  court.checker.onCommitted(done, 2)
  expect(court.referee.violations).toEqual([])
  court.checker.onCommitted(done, 3)
  expect(court.referee.violations.map(({ rule }) => rule)).toEqual(['TXN-5'])
})
