/**
 * Where a cell's two rows are inside its shard's group, and what they hold.
 *
 *   cell  tuple('c', row key, column, ref key)   format, added id, creator, body hash, body
 *   log   tuple('l') added id (8 bytes)          the key of the cell's row
 *
 * Versions of a column, and columns of a row, are ranges in key order; the shard log is a range in
 * the order of added ids. The added id is drawn when the entry is applied, in the key of one row
 * and the value of the other, so both rows appear in the same instant on every replica (CELL-3).
 */
import { assert, present } from '../base/assert.ts'
import { bufferOf, equalBytes, readCount, sha256, writeCount } from '../base/bytes.ts'
import { afterPrefix, decodeTuple, encodeTuple } from '../base/tuple.ts'
import type { Row, RowRange } from '../replica/local-replica.ts'
import { intentOf, type Mutation } from '../replication/transaction.ts'
import { bodyHashBytes, type PackedBody } from './body.ts'
import type { CellName, StoredCell } from './cell.ts'
import { rowKeyBytes, rowKeyText } from './shard.ts'

/** The group's counter that added ids are drawn from. */
export const addedIdCounter = 1

/** A later format compresses or encrypts bodies; the byte says so. */
const plainFormat = 1
const addedIdAt = 1
const creatorAt = addedIdAt + 8
const creatorBytes = 8
const hashAt = creatorAt + creatorBytes
const bodyAt = hashAt + bodyHashBytes

const logPrefix = encodeTuple(['l'])

/** Keys that start with `prefix`. */
export function prefixRange(prefix: Uint8Array): {
  readonly gte: Uint8Array
  readonly lt: Uint8Array
} {
  return { gte: prefix, lt: present(afterPrefix(prefix), 'cells: a prefix has an end') }
}

export function cellKey(name: CellName): Uint8Array {
  return encodeTuple(['c', rowKeyBytes(name.rowKey), name.column, name.refKey])
}

export function columnPrefix(rowKey: string, column: string): Uint8Array {
  return encodeTuple(['c', rowKeyBytes(rowKey), column])
}

export function rowPrefix(rowKey: string): Uint8Array {
  return encodeTuple(['c', rowKeyBytes(rowKey)])
}

/** Log rows of added ids above `after`, in order. */
export function logRange(after: number): RowRange {
  return { gte: logKey(after + 1), lt: prefixRange(logPrefix).lt }
}

function logKey(addedId: number): Uint8Array {
  const key = Buffer.alloc(logPrefix.length + 8)
  key.set(logPrefix)
  writeCount(key, addedId, logPrefix.length)
  return key
}

export function addedIdOfLogKey(key: Uint8Array): number {
  return readCount(bufferOf(key), logPrefix.length)
}

/** Names the intent that created a cell, so that its retries are told that they did. */
export function creatorOf(intent: {
  readonly session: string
  readonly sequence: number
}): Uint8Array {
  return sha256(intentOf(intent)).subarray(0, creatorBytes)
}

/** The two rows of a new cell; their added id is the transaction's first number. */
export function cellMutations(name: CellName, body: PackedBody, creator: Uint8Array): Mutation[] {
  const key = cellKey(name)
  const value = Buffer.alloc(bodyAt + body.bytes.length)
  value[0] = plainFormat
  value.set(creator, creatorAt)
  value.set(body.hash, hashAt)
  value.set(body.bytes, bodyAt)
  return [
    { key, value, slots: [{ allocation: 0, at: 'value', offset: addedIdAt }] },
    { key: logKey(0), value: key, slots: [{ allocation: 0, at: 'key', offset: logPrefix.length }] },
  ]
}

export function addedIdOfCell(row: Row): number {
  assert(row.value[0] === plainFormat, 'cells: a cell is of a format this version knows')
  return readCount(bufferOf(row.value), addedIdAt)
}

export function bodyBytesOf(row: Row): number {
  return row.value.length - bodyAt
}

export function hasBody(row: Row, body: PackedBody): boolean {
  return equalBytes(row.value.subarray(hashAt, bodyAt), body.hash)
}

export function wasCreatedBy(row: Row, creator: Uint8Array): boolean {
  return equalBytes(row.value.subarray(creatorAt, hashAt), creator)
}

export function cellOfRow(row: Row): StoredCell {
  const name = nameOfKey(row.key)
  const body = row.value.subarray(bodyAt)
  const { rowKey, column, refKey } = name
  return { rowKey, column, refKey, addedId: addedIdOfCell(row), createdAt: row.timestamp, body }
}

export function nameOfKey(key: Uint8Array): CellName {
  const [, rowKey, column, refKey] = decodeTuple(key) ?? []
  assert(rowKey instanceof Uint8Array, 'cells: a cell key has a row key')
  assert(typeof column === 'string', 'cells: a cell key has a column')
  assert(typeof refKey === 'number', 'cells: a cell key has a ref key')
  return { rowKey: rowKeyText(rowKey), column, refKey }
}
