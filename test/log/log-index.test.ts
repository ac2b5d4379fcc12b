/** Positions held of a group: settling a part costs that part, and settled ones are not held. */
import { expect, test } from 'vitest'
import { LogIndex, type GroupPositions } from '../../src/log/log-index.ts'
import { nothingSettled, stretchPositions } from '../../src/log/settled.ts'
import { ballot, group } from './log-fixture.ts'

const hot = group('hot')

/** Positions 1 to `count` of one group, each decided in a flush of its own, and the ends of stretches that are kept. */
function indexOf(count: number): {
  readonly index: LogIndex
  readonly found: GroupPositions
  readonly ends: Map<number, number>
} {
  const ends = new Map<number, number>()
  const index = new LogIndex({
    ...nothingSettled,
    stretchEnd: (_, position) => ends.get(position),
    keepStretchEnd: (_, position, flush) => ends.set(position, flush),
  })
  index.onFolded()
  for (let flush = 1; flush <= count; flush++) decide(index, flush, flush)
  return { index, found: decide(index, count, count), ends }
}

function decide(index: LogIndex, position: number, flush: number): GroupPositions {
  const record = { kind: 'chosen', group: hot, position, ballot: ballot(0) } as const
  const found = index.fold(record, { flush, index: 0 }, flush)
  found.lastFlush = flush
  return found
}

/** How many cells are read in the course of `work`, which comes back to this between its steps. */
function readsOf(found: GroupPositions, work: (step: () => void) => void): number {
  let reads = 0
  let counted: number[] | undefined
  work(() => {
    if (found.cells === counted) return
    counted = new Proxy(found.cells, {
      get: (cells, name, self): unknown => {
        reads += 1
        return Reflect.get(cells, name, self)
      },
    })
    found.cells = counted
  })
  return reads
}

test('settling a group a few positions at a time looks at each of them a few times', () => {
  const count = 4_000
  const { index, found, ends } = indexOf(count)
  const reads = readsOf(found, (step) => {
    for (let position = 4; position <= count; position += 4) {
      step()
      index.settle(hot, position)
      index.release(found)
    }
  })
  expect(reads).toBeLessThan(count * 50)
  expect([found.cells, [...index.above(hot, 0)]]).toEqual([[], []])
  const multiples = Array.from({ length: Math.floor(count / stretchPositions) }, (_, at) => [
    (at + 1) * stretchPositions,
    (at + 1) * stretchPositions,
  ])
  expect([...ends]).toEqual(multiples)
})

test('the index holds no settled position, and knows from which flush a search for it begins', () => {
  const { index, found } = indexOf(100)
  for (const settled of [10, 49, 51, 70]) {
    index.settle(hot, settled)
    index.release(found)
    expect([...index.above(hot, 0)].map(({ position }) => position)).toEqual(
      Array.from({ length: 100 - settled }, (_, at) => settled + at + 1),
    )
    expect([1, settled, settled + 1].map((at) => index.wasSettled(hot, at))).toEqual([
      ...[true, true, false],
    ])
    expect(index.place(hot, settled)).toBeUndefined()
    expect(index.place(hot, settled + 1)).toEqual({ flush: settled + 1, index: 0 })
    expect([index.highest(hot), index.hasOpen(found)]).toEqual([100, true])
  }
  expect([1, 64, 65, 70].map((position) => index.searchFrom(hot, position))).toEqual([
    ...[64, 64, 100, 100],
  ])
  const late = { kind: 'promise', group: hot, position: 20, ballot: ballot(3) } as const
  expect(() => index.fold(late, undefined, 101)).toThrow('LOG-7')
})

test('a group of which nothing is open leaves, and comes back with what was known', () => {
  const { index, found } = indexOf(100)
  index.settle(hot, 100)
  index.release(found)
  expect([index.wasSettled(hot, 100), index.highest(hot), index.lastFlush(hot)]).toEqual([
    ...[true, 100, 100],
  ])
  const again = decide(index, 101, 103)
  expect(again).not.toBe(found)
  expect([again.settled, again.settledFlush, index.highest(hot)]).toEqual([100, 100, 101])
})

test('PAX-1: a decision may be folded before its value, more than once, and has it once all is folded', () => {
  const index = new LogIndex()
  const decision = { kind: 'chosen', group: hot, position: 1, ballot: ballot(1) } as const
  // The acceptance stands in a flush before the mark; two runs of the node have noted the decision since.
  index.fold(decision, undefined, 5)
  index.fold(decision, undefined, 6)
  expect(() => index.onFolded()).toThrow('PAX-1')
  index.fold({ ...decision, kind: 'copied' }, { flush: 7, index: 0 }, 7)
  index.onFolded()
  expect(index.place(hot, 1)).toEqual({ flush: 7, index: 0 })
})
