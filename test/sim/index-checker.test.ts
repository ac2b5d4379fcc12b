/**
 * The faults that the checker of global indexes finds, and the states that it must not take for
 * faults.
 */
import { expect, test } from 'vitest'
import { IndexChecker } from '../../sim/checkers/index-checker.ts'
import { QuietRows } from '../../sim/checkers/quiet-rows.ts'
import { Referee } from '../../sim/checkers/referee.ts'
import { globalEntries, laterIndex } from '../../sim/checkers/global-model.ts'
import { modelStep, type TableState } from '../../sim/checkers/table-model.ts'
import { checkNoneGone, checkWhole, standingIn } from '../../sim/checkers/whole-answer.ts'
import { Coverage } from '../../sim/coverage.ts'
import { latin1 } from '../../src/base/bytes.ts'
import { bytesOfGroup, groupOfBytes } from '../../src/base/ids.ts'
import { encodeEntryState } from '../../src/tables/index-worklist.ts'
import { stampedEntry } from '../../src/tables/index-batcher.ts'

const target = groupOfBytes(Buffer.from('index'))
const entryKey = Buffer.from('entry')
const worklistKey = latin1(encodeEntryState({ target, key: entryKey, value: undefined }).key)
const source = 'rows'

class Court {
  readonly referee = new Referee(() => 0)
  readonly checker = new IndexChecker(this.referee, new Coverage())

  get rules(): readonly string[] {
    return this.referee.violations.map(({ rule }) => rule)
  }

  /** The group of the row says what its entry is from now on; without text it goes. */
  say(timestamp: number, text?: string): void {
    const value = text === undefined ? undefined : Buffer.from(text)
    const row = encodeEntryState({ target, key: entryKey, value })
    this.checker.onWrite({ group: source, key: worklistKey, value: row.value, timestamp })
  }

  /** The index's group takes up what was said at that time. */
  relay(madeAt: number, text?: string): void {
    const value = text === undefined ? undefined : stampedEntry(madeAt, Buffer.from(text))
    const group = latin1(bytesOfGroup(target))
    this.checker.onWrite({ group, key: latin1(entryKey), value, timestamp: madeAt + 1 })
  }

  answer(standing: readonly string[], found: readonly string[]): void {
    checkWhole(this.referee, 'IDX-10', { index: 'ByName', query: {}, standing, found })
  }

  tell(madeAt: number): void {
    const event = { kind: 'index-relayed', group: source, key: worklistKey, madeAt, lagMicros: 5 }
    this.checker.onRelayed('n1', event, madeAt + 5)
  }
}

test('an entry that comes, changes and goes is clean', () => {
  const court = new Court()
  court.say(10, 'a')
  court.relay(10, 'a')
  court.tell(10)
  court.say(20)
  court.relay(20)
  court.tell(20)
  expect(court.rules).toEqual([])
})

test('IDX-3: a lag of a change that the index has not is found', () => {
  const court = new Court()
  court.say(10, 'a')
  court.relay(10, 'a')
  court.say(20, 'b')
  court.tell(20)
  expect(court.rules).toEqual(['IDX-3'])
})

test('IDX-3: an entry deleted twice ends at the later deletion', () => {
  const court = new Court()
  court.say(10, 'a')
  court.relay(10, 'a')
  court.say(20)
  court.say(30, 'b')
  court.say(40)
  // One deletion, which does not tell by which change.
  court.relay(40)
  court.tell(40)
  expect(court.rules).toEqual([])
  // From then on what was before it comes too late.
  court.relay(30, 'b')
  expect(court.rules).toEqual(['IDX-4'])
})

test('IDX-10: a query must return entries that stood throughout; changed ones are optional', () => {
  const court = new Court()
  court.say(10, 'a')
  court.relay(10, 'a')
  const { moment } = court.checker
  const standing = court.checker.standingSince(moment).map(({ value }) => latin1(value))
  expect(standing).toEqual(['a'])
  court.answer(standing, ['a', 'b'])
  expect(court.rules).toEqual([])
  court.answer(standing, ['b'])
  expect(court.rules).toEqual(['IDX-10'])
  // It goes while the query is under way.
  court.say(20)
  expect(court.checker.standingSince(moment)).toEqual([])
})

test('IDX-10: an entry that is still on its way does not stand', () => {
  const court = new Court()
  court.say(10, 'a')
  expect(court.checker.standingSince(court.checker.moment)).toEqual([])
})

test('IDX-6: a row is quiet when no write to it has begun since, and none is left unknown', () => {
  const rows = new QuietRows()
  rows.begin(['a', 'b'])
  rows.end(['a', 'b'])
  rows.begin(['b'])
  const { moment } = rows
  expect(rows.isQuietSince('a', moment)).toBe(true)
  // Its outcome is not known: it may come still.
  expect(rows.isQuietSince('b', moment)).toBe(false)
  rows.begin(['a'])
  rows.end(['a'])
  expect(rows.isQuietSince('a', moment)).toBe(false)
})

test('IDX-6: an index that is ready without a row that was there is found', () => {
  const referee = new Referee(() => 0)
  const asked = { index: 'ByName', query: {}, standing: ['a', 'b'] }
  checkWhole(referee, 'IDX-6', { ...asked, found: ['b', 'a'] })
  expect(referee.violations).toEqual([])
  checkWhole(referee, 'IDX-6', { ...asked, found: ['b'] })
  expect(referee.violations.map(({ rule }) => rule)).toEqual(['IDX-6'])
})

/** The states of a store, one after each write of an item. */
function statesAfter(...prices: readonly (number | undefined)[]): readonly TableState[] {
  const key = { store: 'north', shelf: 1, item: 'a' }
  const states: TableState[] = []
  for (const price of prices) {
    const before = states.at(-1) ?? new Map()
    const step =
      price === undefined
        ? ({ kind: 'delete', table: 'Item', key } as const)
        : ({ kind: 'put', table: 'Item', row: { ...key, price, note: 'left' } } as const)
    states.push(modelStep(before, step, 2).state)
  }
  return states
}

test('IDX-6: an entry of a later index stands while its row and what it stores stay the same', () => {
  const [still = ''] = globalEntries(statesAfter(3)[0] ?? new Map(), laterIndex)
  expect(still).toContain('price:3')
  expect(standingIn(statesAfter(3, 3), laterIndex)).toEqual([still])
  // Another price is another entry.
  expect(standingIn(statesAfter(3, 4), laterIndex)).toEqual([])
  expect(standingIn(statesAfter(3, undefined, 3), laterIndex)).toEqual([])
  expect(standingIn([], laterIndex)).toEqual([])
})

test('IDX-6: the checker finds an index entry that fits no row at any moment of its build', () => {
  const referee = new Referee(() => 0)
  const states = statesAfter(3, 4, undefined)
  const told = states.flatMap((state) => globalEntries(state, laterIndex))
  expect(told).toHaveLength(2)
  checkNoneGone(referee, laterIndex, states, told)
  expect(referee.violations).toEqual([])
  // The build began when the item had its second price.
  checkNoneGone(referee, laterIndex, states.slice(1), told)
  expect(referee.violations.map(({ rule }) => rule)).toEqual(['IDX-6'])
})
