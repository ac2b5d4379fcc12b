/**
 * Cells that wait for their shard's replica set, as rows of groups on other sets. Rows are on the
 * worklist of their group under `bufferTopic` until they are in their shards; those that their shards
 * would not have stay under `rejectedTopic`, with the reason.
 *
 *   group: a tuple ('buffer', datastore, shard, salt)        the salt puts it on the set wanted
 *   row:   worklist key, then a tuple (row key, column, ref key, hash of the body)
 *
 * A cell that is buffered again, with an equal body, is the same row.
 */
import { afterWorklist, worklistPrefix } from '../group/worklist-key.ts'
import { AssertionError } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { groupOfBytes, type GroupId, type Timestamp } from '../base/ids.ts'
import { pack, unpack } from '../base/pack.ts'
import { codeOfWord, problem, wordOfCode, type Problem } from '../base/problem.ts'
import { decodeTuple, encodeTuple } from '../base/tuple.ts'
import type { CellName, ShardName } from './cell.ts'

export const bufferTopic = 'buffer'
export const rejectedTopic = 'rejected'

export interface BufferedCell extends CellName {
  /** Packed. */
  readonly body: Uint8Array
  /** By the clock of the node that took it. */
  readonly bufferedAt: Timestamp
  /** Names the intent under which its caller put it (CELL-4), if there was one. */
  readonly creator: Uint8Array | undefined
}

export interface RejectedCell extends Omit<BufferedCell, 'creator'> {
  readonly reason: Problem
}

/** A row with the cell in it. */
export interface BufferRow<Cell> {
  readonly key: Uint8Array
  readonly cell: Cell
}

export type BufferTopic = typeof bufferTopic | typeof rejectedTopic

const groupWord = 'buffer'
/** Each salt hits the set wanted with a chance of one in the number of sets. */
const saltMax = 10_000

/** The group that takes cells of the shard on a set. */
export function bufferGroup(
  { datastore, shard }: ShardName,
  set: number,
  setOf: (group: GroupId) => number,
): GroupId {
  for (let salt = 0; salt < saltMax; salt++) {
    const group = groupOfBytes(encodeTuple([groupWord, datastore, shard, salt]))
    if (setOf(group) === set) return group
  }
  throw new AssertionError('BUF-1: some salt puts a buffer on each set')
}

/** The shard whose cells a group buffers; undefined when it is no such group. */
export function shardOfBuffer(group: GroupId): ShardName | undefined {
  const [word, datastore, shard] = decodeTuple(Buffer.from(group, 'latin1')) ?? []
  if (word !== groupWord || typeof datastore !== 'string' || typeof shard !== 'number') {
    return undefined
  }
  return { datastore, shard }
}

/** All rows of a group under a topic. */
export function bufferRange(topic: BufferTopic): {
  readonly gte: Uint8Array
  readonly lt: Uint8Array
} {
  return { gte: worklistPrefix(topic), lt: afterWorklist(topic) }
}

export function bufferKey(topic: BufferTopic, name: CellName, bodyHash: Uint8Array): Uint8Array {
  const { rowKey, column, refKey } = name
  const tuple = encodeTuple([rowKey.toLowerCase(), column, refKey, bodyHash])
  return Buffer.concat([worklistPrefix(topic), tuple])
}

/** The same row under another topic. */
export function underTopic(key: Uint8Array, from: BufferTopic, to: BufferTopic): Uint8Array {
  return Buffer.concat([worklistPrefix(to), key.subarray(worklistPrefix(from).length)])
}

export function encodeBuffered(cell: Omit<BufferedCell, keyof CellName>): Uint8Array {
  return pack([cell.body, cell.bufferedAt, cell.creator])
}

export function encodeRejected({ body, bufferedAt, reason }: RejectedCell): Uint8Array {
  return pack([body, bufferedAt, wordOfCode(reason.code), reason.message])
}

export function decodeBuffered(key: Uint8Array, value: Uint8Array): BufferedCell {
  const [body, bufferedAt, creator] = unpackFields(value)
  if (!(body instanceof Uint8Array) || typeof bufferedAt !== 'number') throw unreadable()
  const named = creator instanceof Uint8Array ? creator : undefined
  return { body, bufferedAt, creator: named, ...decodeName(key, bufferTopic) }
}

export function decodeRejected(key: Uint8Array, value: Uint8Array): RejectedCell {
  const [body, bufferedAt, word, message] = unpackFields(value)
  if (!(body instanceof Uint8Array) || typeof bufferedAt !== 'number') throw unreadable()
  const code = codeOfWord(word)
  if (code === undefined) throw unreadable()
  if (typeof message !== 'string') throw unreadable()
  return { body, bufferedAt, reason: problem(code, message), ...decodeName(key, rejectedTopic) }
}

function unpackFields(value: Uint8Array): readonly unknown[] {
  try {
    const fields = unpack(value)
    return Array.isArray(fields) ? fields : []
  } catch {
    // It is not even MessagePack.
    return []
  }
}

/**
 * Clients may write any row. A row that is no cell holds its buffer up and is counted as a failure, and no
 * more.
 */
function unreadable(): StoreError {
  return new StoreError('corrupt', 'a row of a buffer is of no known form')
}

function decodeName(key: Uint8Array, topic: BufferTopic): CellName {
  const parts = decodeTuple(key.subarray(worklistPrefix(topic).length)) ?? []
  const [rowKey, column, refKey] = parts
  if (typeof rowKey !== 'string' || typeof column !== 'string') throw unreadable()
  if (typeof refKey !== 'number') throw unreadable()
  return { rowKey, column, refKey }
}
