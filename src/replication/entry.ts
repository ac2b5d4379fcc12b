/**
 * The value at a log position (Megastore, 4.4.2 and 4.6): a timestamp, how far back the group's past
 * must stay readable, the leader of the next position, and transactions, or none of them (a no-op).
 * Encoded once, by its proposer.
 */
import { readAll, type ByteReader } from '../base/byte-reader.ts'
import { ByteWriter } from '../base/byte-writer.ts'
import { varBytesMax } from '../base/bytes.ts'
import { isNodeId, type NodeId, type Position, type Timestamp } from '../base/ids.ts'
import { decodeTransaction, type Transaction } from '../group/transaction.ts'

const entryFormat = 3
const noKey = 0
const lengthBytes = 1
const nodeBytesMax = 32
/** The most bytes that an entry takes up without its transactions: see `encodeEntry`. */
export const entryHeadBytesMax: number = 2 + 4 * varBytesMax + 2 * 8 + nodeBytesMax
/** The most bytes that a transaction takes up in an entry beside its own. */
export const transactionHeadBytesMax: number = varBytesMax

/** The proposer that may use ballot zero at the next position: a node, in one incarnation. */
export interface Leader {
  readonly node: NodeId
  readonly incarnation: number
}

export interface Entry {
  /** The one position this entry was validated for. */
  readonly position: Position
  readonly timestamp: Timestamp
  /** Reads at this timestamp and after are permitted; what only earlier ones see may be forgotten. */
  readonly horizon: Timestamp
  readonly nextLeader: Leader
  /** In the order in which they take effect; empty for a no-op. */
  readonly transactions: readonly Transaction[]
}

/** The parts of an entry: its transactions as the bytes they came in. */
export interface EntryParts {
  readonly position: Position
  readonly timestamp: Timestamp
  readonly horizon: Timestamp
  readonly nextLeader: Leader
  readonly transactions: readonly Uint8Array[]
}

const writer = new ByteWriter()

/**
 * format, 1 byte · key id, 1 byte, zero: for encryption · position · timestamp, horizon 8 each · the next leader's
 * incarnation, its node · transactions: how many, each: length, bytes. Numbers without a length are counts.
 */
export function encodeEntry(parts: EntryParts): Uint8Array {
  const { nextLeader, transactions } = parts
  writer.begin(entryFormat)
  writer.uint8(noKey)
  writer.count(parts.position)
  writer.wide(parts.timestamp)
  writer.wide(parts.horizon)
  writer.count(nextLeader.incarnation)
  writer.text(nextLeader.node)
  writer.count(transactions.length)
  for (const one of transactions) {
    writer.count(one.length)
    writer.bytes(one)
  }
  return writer.take()
}

/** The entry, or undefined when the bytes are not one of a known format. */
export function decodeEntry(bytes: Uint8Array): Entry | undefined {
  return readAll(bytes, readEntry)
}

function readEntry(reader: ByteReader): Entry {
  if (reader.uint8() !== entryFormat || reader.uint8() !== noKey) reader.refuse()
  const position = reader.count()
  const timestamp = reader.wide()
  const horizon = reader.wide()
  const incarnation = reader.count()
  const isWhole = position > 0 && timestamp > 0 && incarnation > 0 && horizon <= timestamp
  const node = reader.text()
  if (!isWhole || !isNodeId(node)) return reader.refuse()
  const transactions: Transaction[] = []
  for (let left = reader.length(lengthBytes); left > 0; left--) {
    const one = decodeTransaction(reader.bytes(reader.count()))
    transactions.push(one ?? reader.refuse())
  }
  return { position, timestamp, horizon, nextLeader: { node, incarnation }, transactions }
}
