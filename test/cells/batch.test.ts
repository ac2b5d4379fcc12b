/** A batch in parts, and the answers of the parts as one. */
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { problem, type Outcome } from '../../src/base/problem.ts'
import { cellBytesMax } from '../../src/base/limits.ts'
import {
  batchOfPart,
  getItems,
  mergeAnswers,
  missingItem,
  readOutcomes,
  putItems,
  splitBatch,
  withRefused,
} from '../../src/cells/batch.ts'
import type { StoredCell, Written } from '../../src/cells/cell.ts'
import type { Answered, GetCells } from '../../src/cells/operation.ts'
import { packed, rowKey } from './kit.ts'

test('a batch is split by where its items go, in the order of their first items', () => {
  const parts = splitBatch(['b1', 'a1', 'none', 'b2', 'a2'], (item) =>
    item === 'none' ? undefined : item[0],
  )
  expect(parts).toMatchObject([
    { to: 'b', places: [0, 3] },
    { to: 'a', places: [1, 4] },
  ])
})

test('a part holds no more bytes than it may, and an item that weighs more is alone', () => {
  const items = ['a3', 'a4', 'b9', 'a1', 'a20', 'a1']
  const limit = { sizeInBytes: (item: string) => Number(item.slice(1)), bytesMax: 7 }
  expect(splitBatch(items, (item) => item[0], limit)).toMatchObject([
    { to: 'a', places: [0, 1] },
    { to: 'b', places: [2] },
    { to: 'a', places: [3] },
    { to: 'a', places: [4] },
    { to: 'a', places: [5] },
  ])
})

test('the batch of a part has its items, and all else of the batch', () => {
  const items = [1, 2, 3].map((row) => ({ rowKey: rowKey(row), column: 'A' }))
  const read = { level: 'snapshot', atLeast: [] } as const
  const batch: GetCells = { kind: 'get', datastore: 'd', read, items }
  const part = batchOfPart(batch, { to: undefined, places: [0, 2] })
  expect(part).toEqual({ ...batch, items: [items[0], items[2]] })
})

const parts = [
  { to: 'x', places: [0, 3] },
  { to: 'y', places: [1, 2] },
]

function written(shard: number): Outcome<Written> {
  return { kind: 'ok', value: { shard, addedId: 1, createdAt: 2, created: true } }
}

function putAnswer(...shards: number[]): Answered {
  return { answer: { kind: 'put', items: shards.map(written) }, positions: [] }
}

const down: Answered = {
  answer: { kind: 'problem', problem: problem('unavailable', 'nobody') },
  positions: [],
}

test('answers of parts are merged into the order of the batch', () => {
  const x: Answered = { ...putAnswer(10, 13), positions: [[10, 5]], leaders: [[13, nodeId('n2')]] }
  const y: Answered = { ...putAnswer(11, 12), positions: [[11, 6]] }
  expect(mergeAnswers('put', parts, [x, y])).toEqual({
    answer: { kind: 'put', items: [10, 11, 12, 13].map(written) },
    positions: [
      [10, 5],
      [11, 6],
    ],
    leaders: [[13, 'n2']],
  })
})

test('an item that its part does not answer is corrupt, and the others keep their places', () => {
  expect(mergeAnswers('put', parts, [putAnswer(10), putAnswer(11, 12)]).answer).toEqual({
    kind: 'put',
    items: [written(10), written(11), written(12), missingItem],
  })
  expect(missingItem).toMatchObject({ problem: { code: 'corrupt' } })
})

test('outcomes beyond the items of a part are in no place of the batch', () => {
  const merged = mergeAnswers('put', parts, [putAnswer(10, 13, 99), putAnswer(11, 12, 98)])
  expect(merged.answer).toEqual({ kind: 'put', items: [10, 11, 12, 13].map(written) })
})

test('the problem of a part is one of each of its items, and an answer of another kind has none', () => {
  expect(mergeAnswers('put', parts, [down, putAnswer(11, 12)]).answer).toEqual({
    kind: 'put',
    items: [down.answer, written(11), written(12), down.answer],
  })
  const other: Answered = { answer: { kind: 'get', items: [] }, positions: [] }
  expect(mergeAnswers('put', parts, [other, putAnswer(11, 12)]).answer).toEqual({
    kind: 'put',
    items: [missingItem, written(11), written(12), missingItem],
  })
})

test('a cell that finds no room in the answer comes to too-large', () => {
  const body = packed('x'.repeat(cellBytesMax - 2))
  const cell = (row: number): Outcome<StoredCell> => {
    const name = { rowKey: rowKey(row), column: 'A', refKey: 1 }
    return { kind: 'ok', value: { ...name, addedId: row, createdAt: row, body } }
  }
  const answerOf = (...rows: number[]): Answered => {
    return { answer: { kind: 'get', items: rows.map(cell) }, positions: [] }
  }
  const merged = mergeAnswers('get', parts, [answerOf(1, 4), answerOf(2, 3)])
  const items = getItems(merged.answer)?.map((one) =>
    one.kind === 'ok' ? one.value?.addedId : one.problem.code,
  )
  expect(items).toEqual([1, 2, 3, 'too-large'])
})

test('an answer gives one outcome for each item, whatever it holds', () => {
  expect(readOutcomes(putAnswer(1, 2, 3).answer, putItems, 2)).toEqual([1, 2].map(written))
  expect(readOutcomes(putAnswer(1).answer, putItems, 2)).toEqual([written(1), missingItem])
  expect(readOutcomes(down.answer, putItems, 2)).toEqual([down.answer, down.answer])
})

test('an item that the client refused keeps its place among the answered ones', () => {
  const wrong: Outcome<Written> = { kind: 'problem', problem: problem('invalid', 'no cell') }
  const refused = [undefined, wrong, undefined, undefined]
  expect(withRefused(refused, [1, 2].map(written))).toEqual([
    written(1),
    wrong,
    written(2),
    missingItem,
  ])
})
