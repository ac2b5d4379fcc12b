/** Queries of indexes over cells come over the wire as they were sent, times beyond the numbers included. */
import { expect, test } from 'vitest'
import { pack, unpack } from '../../src/base/pack.ts'
import type { IndexAnswer, QueryIndex } from '../../src/cells/operation.ts'
import {
  packIndexAnswer,
  packQueryIndex,
  readIndexAnswer,
  readQueryIndex,
} from '../../src/wire/client/index-codec.ts'
import { rowKey } from '../cells/kit.ts'

const times = [-62_135_596_800_000_000n, -1, 0, 2 ** 53 - 1, 253_402_300_799_999_999n] as const

function listOf(bytes: Uint8Array): readonly unknown[] {
  const value = unpack(bytes)
  return Array.isArray(value) ? value : []
}

test('a query', () => {
  const query: QueryIndex = {
    ...{ kind: 'index', datastore: 'd', name: 'by_time', read: { level: 'snapshot', atLeast: [] } },
    where: [...times, 'x', 1.5, true].map((value) => ({ field: 'at', comparison: 'gte', value })),
    ...{ limit: 5, reverse: false, verify: true },
  }
  const read = readQueryIndex(listOf(pack(packQueryIndex(query, null))), () => {
    return { datastore: query.datastore, read: query.read }
  })
  expect(read).toEqual(query)
})

test('an answer', () => {
  const answer: IndexAnswer = {
    ...{ kind: 'index', fields: ['at'], types: ['datetime'] },
    entries: [...times, null].map((value, i) => ({ rowKey: rowKey(i), values: [value] })),
  }
  expect(readIndexAnswer(listOf(pack(packIndexAnswer(answer))))).toEqual(answer)
})

test.each([[Buffer.alloc(7)], [Buffer.alloc(9)], [Buffer.alloc(8, 0x7f)], [[1]]])(
  'a value of %o is malformed',
  (value) => {
    const fields = ['d', null, 'by_time', [['at', 0, value]], null, null, false, null, 1, false]
    const target = { datastore: 'd', read: { level: 'snapshot', atLeast: [] } } as const
    expect(() => readQueryIndex(fields, () => target)).toThrow('a value is of no known type')
  },
)
