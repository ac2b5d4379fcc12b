/**
 * The record a log folder keeps of itself: whose it is, its incarnation, and where its flushes
 * begin. Written when the folder is first used, and again at every open, which raises the
 * incarnation.
 */
import { StoreError } from '../base/errors.ts'
import {
  isClusterId,
  isNodeId,
  isStoreId,
  type ClusterId,
  type NodeId,
  type StoreId,
} from '../base/ids.ts'
import { corruptLog, unknownFormat } from '../store/damage.ts'
import type { JournalRecord } from '../ports/journal.ts'
import { openRecord, sealRecord } from './sealed-record.ts'

/**
 * Format 2 had flushes that do not name the ones before: a build that knows no other must not open the log. A log that
 * has given up flushes is of format 4: a build of before would make a data store anew from the rest of it.
 */
const wholeFormat = 3
const cutFormat = 4
/** So does one of an epoch behind the first, or of a store that took the place of another: a build of before would vote. */
const epochsFormat = 5
const readFormats: readonly number[] = [2, wholeFormat, cutFormat, epochsFormat]

export const metaName = 'meta'
/** The same again, written along: a damaged bit leaves the other one. */
export const metaCopyName = 'meta again'

/** The store, cluster and node that the log belongs to. */
export interface Identity {
  readonly storeId: StoreId
  readonly incarnation: number
  readonly cluster: ClusterId
  readonly node: NodeId
  /** The seat of a store that took the place of another one; 0: it is its node's first. */
  readonly seat: number
}

export interface LogMeta extends Identity {
  /** Flushes before this one are given up. */
  readonly firstFlush: number
  /** The CRC that the first flush names as its predecessor's. */
  readonly previousCrc: number
  /** The longest that a read lease given by this store has lasted, in any incarnation; milliseconds. */
  readonly longestLeaseMs: number
  /** The last epoch of the replica set that the node had heard of as this was written. */
  readonly epoch: number
}

/** The node that opens a log, and how long the leases last that it gives from now on, milliseconds. */
export interface Owner {
  readonly cluster: ClusterId
  readonly node: NodeId
  readonly leaseMs: number
  /** Of an empty folder: the seat that it is to have; absent: it is the first one of its node. */
  readonly seat?: number
}

function encodeMeta(meta: LogMeta): Uint8Array {
  const { storeId, incarnation, cluster, node, firstFlush, previousCrc, longestLeaseMs } = meta
  const common = [storeId, incarnation, cluster, node, firstFlush, previousCrc, longestLeaseMs]
  const { seat, epoch } = meta
  if (seat > 0 || epoch > 1) return sealRecord(epochsFormat, [...common, seat, epoch])
  return sealRecord(firstFlush > 1 ? cutFormat : wholeFormat, common)
}

/** It, and its copy. */
export function metaRecords(meta: LogMeta): readonly [JournalRecord, JournalRecord] {
  const value = encodeMeta(meta)
  return [
    { name: metaName, value },
    { name: metaCopyName, value },
  ]
}

/** Throws `corrupt` for damaged bytes, `invalid` for a format unknown here. */
export function decodeMeta(bytes: Uint8Array): LogMeta {
  const fields = openRecord(bytes)
  if (fields === undefined) throw corruptLog('the record of its identity is damaged')
  const [format, storeId, incarnation, cluster, node, ...place] = fields
  checkFormat(format)
  const isOwned =
    isText(storeId) && isStoreId(storeId) && isText(cluster) && isClusterId(cluster) && isText(node)
  if (!isOwned || !isNumber(incarnation) || !isNodeId(node)) throw notWhole()
  return { storeId, incarnation, cluster, node, ...readPlace(place) }
}

/** A store that was last opened before there were leases has given none. */
function readPlace([
  firstFlush,
  previousCrc,
  longestLeaseMs = 0,
  seat = 0,
  epoch = 1,
]: readonly unknown[]): Omit<LogMeta, Exclude<keyof Identity, 'seat'>> {
  if (!isNumber(firstFlush) || !isNumber(previousCrc)) throw notWhole()
  if (!isNumber(longestLeaseMs) || !isNumber(seat) || !isNumber(epoch)) throw notWhole()
  return { firstFlush, previousCrc, longestLeaseMs, seat, epoch }
}

/** The same, and undefined for whatever is no such record, or damaged. */
export function tryDecodeMeta(bytes: Uint8Array): LogMeta | undefined {
  try {
    return decodeMeta(bytes)
  } catch (error) {
    if (error instanceof StoreError) return undefined
    throw error
  }
}

/** Another record has no number there: it came to the place of this one. */
function checkFormat(format: unknown): void {
  if (!isNumber(format)) throw notWhole()
  if (!readFormats.includes(format)) throw unknownFormat('log', format)
}

function notWhole(): StoreError {
  return corruptLog('the record of its identity is not whole')
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number'
}

/** Throws `invalid` when the folder is not the one that the configuration speaks of. */
export function checkOwner(meta: LogMeta, cluster: ClusterId, node: NodeId): void {
  if (meta.cluster !== cluster) throw foreign('cluster', meta.cluster, cluster)
  if (meta.node !== node) throw foreign('node', meta.node, node)
}

/** Throws `invalid` when the seat is for a store that comes after this one: the folder would be refused by all peers. */
export function checkSeat(meta: LogMeta, seat = 0): void {
  if (seat <= meta.seat) return
  throw new StoreError(
    'invalid',
    `A seat is for an empty data folder, and this one has store ${meta.storeId}. Move the folder away, and start with an ` +
      `empty one at seat ${seat}. Or start without a seat, where this is the store that votes.`,
  )
}

function foreign(what: string, found: string, wanted: string): StoreError {
  return new StoreError(
    'invalid',
    `This data folder belongs to ${what} "${found}", not to "${wanted}". Correct the ${what} id ` +
      'or the data folder in the configuration.',
  )
}
