import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { present } from '../../src/base/assert.ts'
import { compareBytes } from '../../src/base/bytes.ts'
import { bytesOfGroup } from '../../src/base/ids.ts'
import { decodeTuple } from '../../src/base/tuple.ts'
import { isColumn, isDatastore, isRowKey, nameProblem } from '../../src/cells/cell.ts'
import {
  cellKey,
  cellMutations,
  cellOfRow,
  columnPrefix,
  nameOfKey,
  prefixRange,
  rowPrefix,
} from '../../src/cells/layout.ts'
import { shardCount, shardGroup, shardOf } from '../../src/cells/shard.ts'
import { fillSlots } from '../../src/replication/transaction.ts'
import { rowKey } from './kit.ts'
import { packBody } from '../../src/cells/body.ts'

const columns = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,8}$/)
const cellNames = fc.record({
  rowKey: fc.integer({ min: 0, max: 5 }).map(rowKey),
  column: columns,
  refKey: fc.oneof(fc.nat(), fc.constantFrom(0, Number.MAX_SAFE_INTEGER)),
})

test('keys of a column order by ref key, keys of a row by column', () => {
  fc.assert(
    fc.property(cellNames, cellNames, (a, b) => {
      const [x, y] = [a, { ...b, rowKey: a.rowKey }]
      const byName =
        x.column === y.column ? Math.sign(x.refKey - y.refKey) : x.column < y.column ? -1 : 1
      expect(Math.sign(compareBytes(cellKey(x), cellKey(y)))).toBe(byName)
    }),
    { seed: 1, numRuns: 300 },
  )
})

test('a row is a range of keys, and so is a column of it', () => {
  const isIn = (key: Uint8Array, prefix: Uint8Array): boolean => {
    const { gte, lt } = prefixRange(prefix)
    return compareBytes(key, gte) >= 0 && compareBytes(key, lt) < 0
  }
  fc.assert(
    fc.property(cellNames, cellNames, (a, b) => {
      const isSameRow = a.rowKey === b.rowKey
      expect(isIn(cellKey(a), rowPrefix(b.rowKey))).toBe(isSameRow)
      const isSameColumn = isSameRow && a.column === b.column
      expect(isIn(cellKey(a), columnPrefix(b.rowKey, b.column))).toBe(isSameColumn)
      expect(nameOfKey(cellKey(a))).toEqual(a)
    }),
    { seed: 2, numRuns: 300 },
  )
})

test('a cell is two rows that get the same added id when they are applied', () => {
  const name = { rowKey: rowKey(1), column: 'BASE', refKey: 7 }
  const packed = packBody({ fare: 12.5 })
  const body = packed.kind === 'ok' ? packed.body : { bytes: Buffer.of(), hash: Buffer.of() }
  const mutations = cellMutations(name, body, Buffer.alloc(8, 1))
  const [cell, log] = mutations.map((mutation) => fillSlots(mutation, [4711]))
  expect(mutations).toHaveLength(2)
  const value = present(cell?.value, 'the cell has a value')
  const stored = cellOfRow({ key: cellKey(name), value, timestamp: 99 })
  expect(stored).toStrictEqual({ ...name, addedId: 4711, createdAt: 99, body: body.bytes })
  expect(log?.value).toStrictEqual(cell?.key)
  expect(Buffer.from(log?.key ?? []).readBigUInt64BE((log?.key.length ?? 8) - 8)).toBe(4711n)
})

test('shards are the first 12 bits of the SHA-256 of the row key, in either case', () => {
  // printf '00112233445566778899aabbccddeeff' | xxd -r -p | sha256sum
  expect(shardOf('00112233-4455-6677-8899-aabbccddeeff')).toBe(0xa8f)
  expect(shardOf('00112233-4455-6677-8899-AABBCCDDEEFF')).toBe(0xa8f)
  const counts = new Map<number, number>()
  for (let seed = 0; seed < 20_000; seed++) {
    const shard = shardOf(rowKey(seed))
    counts.set(shard, (counts.get(shard) ?? 0) + 1)
  }
  expect(Math.max(...counts.keys())).toBeLessThan(shardCount)
  expect(counts.size).toBeGreaterThan(4000)
})

test('a shard is a group of its own', () => {
  expect(decodeTuple(bytesOfGroup(shardGroup('trips', 12)))).toStrictEqual(['cells', 'trips', 12])
})

test('names that are no names are told apart', () => {
  expect(['trips', 'a', 'a_1', 'a'.repeat(64)].every(isDatastore)).toBe(true)
  const bad = ['', 'Trips', '1a', '_a', 'a-b', 'a/b', 'a'.repeat(65), 'é', 'a\n']
  expect(bad.some(isDatastore)).toBe(false)
  expect(['BASE', '_x', 'a1', 'A'.repeat(64)].every(isColumn)).toBe(true)
  expect(['', '1a', 'a-b', 'a b', 'A'.repeat(65), 'a\n', '__proto__\0'].some(isColumn)).toBe(false)
  expect(isRowKey('00112233-4455-6677-8899-AABBCCDDEEFF')).toBe(true)
  expect(['', '0011', 'g0112233-4455-6677-8899-aabbccddeeff'].some(isRowKey)).toBe(false)
  for (const refKey of [-1, 1.5, Number.NaN, 2 ** 53, Infinity]) {
    expect(nameProblem({ refKey })?.code).toBe('invalid')
  }
  expect(nameProblem({ refKey: Number.MAX_SAFE_INTEGER })).toBeUndefined()
})
