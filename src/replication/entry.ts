/**
 * The value at a log position (Megastore, 4.4.2 and 4.6): a timestamp, how far back the group's past
 * must stay readable, the leader of the next position, and transactions, or none of them (a no-op).
 * Encoded once, by its proposer.
 */
import { pack, unpack } from '../base/pack.ts'
import { isNodeId, type NodeId, type Position, type Timestamp } from '../base/ids.ts'
import { decodeTransaction, isCount, type Transaction } from './transaction.ts'

const entryFormat = 2

/** Who may use ballot zero at the next position: a node, in one incarnation. */
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

/** What an entry is made from: its transactions as the bytes they came in. */
export interface EntryParts {
  readonly position: Position
  readonly timestamp: Timestamp
  readonly horizon: Timestamp
  readonly nextLeader: Leader
  readonly transactions: readonly Uint8Array[]
}

export function encodeEntry(parts: EntryParts): Uint8Array {
  const { position, timestamp, horizon, nextLeader, transactions } = parts
  // `undefined` keeps the place of the key id and nonce that encryption of entries will fill.
  return pack([
    entryFormat,
    undefined,
    position,
    timestamp,
    horizon,
    nextLeader.node,
    nextLeader.incarnation,
    transactions,
  ])
}

/** The entry, or undefined when the bytes are not one of a known format. */
export function decodeEntry(bytes: Uint8Array): Entry | undefined {
  const fields = unpack(bytes)
  if (!Array.isArray(fields) || fields.length !== 8 || fields[0] !== entryFormat) return undefined
  const [, , position, timestamp, horizon, node, incarnation, transactionBytes]: unknown[] = fields
  if (!isPositive(position) || !isPositive(timestamp) || !isPositive(incarnation)) return undefined
  if (!isCount(horizon) || horizon > timestamp) return undefined
  if (typeof node !== 'string' || !isNodeId(node) || !Array.isArray(transactionBytes)) {
    return undefined
  }
  const transactions: Transaction[] = []
  for (const one of transactionBytes) {
    const transaction = one instanceof Uint8Array ? decodeTransaction(one) : undefined
    if (transaction === undefined) return undefined
    transactions.push(transaction)
  }
  return { position, timestamp, horizon, nextLeader: { node, incarnation }, transactions }
}

function isPositive(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1
}
