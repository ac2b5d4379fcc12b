/** Positions held of a group: settling a part costs that part, and released ones are not found. */
import { expect, test } from 'vitest'
import { LogIndex, type GroupPositions } from '../../src/log/log-index.ts'
import { nothingSettled, type PositionRow } from '../../src/log/settled.ts'
import { ballot, group } from './log-fixture.ts'

const hot = group('hot')

/** Positions 1 to `count` of one group, each decided in a flush of its own, and rows of what is kept. */
function indexOf(count: number): { readonly index: LogIndex; readonly found: GroupPositions } {
  const rows = new Map<number, PositionRow>()
  const index = new LogIndex({
    ...nothingSettled,
    row: (_, position) => rows.get(position),
    keep: (_, position, row) => rows.set(position, row),
  })
  for (let flush = 1; flush <= count; flush++) decide(index, flush, flush)
  return { index, found: decide(index, count, count) }
}

function decide(index: LogIndex, position: number, flush: number): GroupPositions {
  const record = { kind: 'chosen', group: hot, position, ballot: ballot(0) } as const
  return index.fold(record, { flush, index: 0 }, flush)
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
  const { index, found } = indexOf(count)
  const reads = readsOf(found, (step) => {
    for (let position = 4; position <= count; position += 4) {
      step()
      index.settle(hot, position)
      expect(index.keepRows(found, count, position)).toBe(true)
      index.release(found)
    }
  })
  expect(reads).toBeLessThan(count * 100)
  expect([found.cells, [...index.above(hot, 0)]]).toEqual([[], []])
})

test('passing flush after flush of a group does not look at what has its row', () => {
  const count = 2_000
  const { index, found } = indexOf(count)
  index.settle(hot, count)
  const reads = readsOf(found, (step) => {
    step()
    for (let flush = 1; flush <= count; flush++) {
      expect(index.keepRows(found, count, flush)).toBe(true)
    }
  })
  expect(reads).toBeLessThan(count * 100)
})

test('the index holds no released position as held, and takes it back with its row', () => {
  const { index, found } = indexOf(100)
  for (const settled of [10, 49, 51, 70]) {
    index.settle(hot, settled)
    index.keepRows(found, 100, settled)
    index.release(found)
    expect([...index.above(hot, 0)].map(({ position }) => position)).toEqual(
      Array.from({ length: 100 - settled }, (_, at) => settled + at + 1),
    )
    expect([1, settled, settled + 1].map((at) => index.wasSettled(hot, at))).toEqual([
      ...[true, true, false],
    ])
    expect(index.place(hot, settled)).toEqual({ flush: settled, index: 0 })
    expect([index.highest(hot), index.hasOpen(found)]).toEqual([100, false])
  }
  index.fold({ kind: 'promise', group: hot, position: 20, ballot: ballot(3) }, undefined, 101)
  expect(index.header(hot, 20)).toMatchObject({ promised: ballot(3), chosen: ballot(0) })
  expect(index.wasSettled(hot, 20)).toBe(false)
  // Its record is on its way to the disk.
  index.keepRows(found, 100, 70)
  index.release(found)
  expect(index.wasSettled(hot, 20)).toBe(false)
  expect(index.keepRows(found, 101, 20)).toBe(true)
  index.release(found)
  expect(index.wasSettled(hot, 20)).toBe(true)
  expect([...index.above(hot, 0)][0]).toMatchObject({ position: 71 })
})
