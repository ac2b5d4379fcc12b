/**
 * How the data store writes things down. Keys:
 *
 *   s <group, escaped>          the group's state record: all of them lie together, so that a start may
 *                               check them without the rows (`../log/start-check.ts`)
 *   g <group, escaped> 1 <key>  newest version of a row
 *   g <group, escaped> 2 …      a version that was superseded: key, escaped, then its start with
 *                               all bits turned over, so that of each row the newest comes first
 *   l <topic's prefix> <group>  the group has something under the topic on its worklist (`worklist-index.ts`)
 *   i <group, escaped> 1|2 …    rows and history of a snapshot that is on its way here, beside the group's own
 *   j <group, escaped>          how far such a snapshot has come (`snapshot-intake.ts`)
 *   b <slot>                    batch markers
 *   m <name>                    small values of the node's own
 *   m ill/ <group>              the group's rows are wrong here (`../replica/healing.ts`)
 *   m at/ <group> <position>    where to look for the values of a stretch of positions that ends here
 *                               (`../log/settled.ts`): the position in 7 bytes, so that no group's rows have
 *                               the keys of another's
 *
 * A group's bytes are escaped (00 becomes 00 ff, and 00 01 ends them): no group's prefix opens
 * another's, everything of a group is contiguous, and groups lie in the order of their root keys.
 *
 * Values: CRC 4 (over key and all that follows) · format 2 · key id 2, zero: for encryption ·
 * stamp 8 · payload. Format 5, of state records, has before the payload two numbers, which are others at each
 * node, and a hash: flush 8, the last one of this node's log that names the group; snapshot 8, the position of the last
 * snapshot that was taken in, or 0; hash 16, of the group's rows (`group-hash.ts`). Format 4 has no hash: it is not
 * known. Format 3 has the flush alone. The stamp is a row's timestamp, the end of a version in history, a state
 * record's position, the position of a group's newest row under a topic, a marker's number.
 */
import { assert } from '../base/assert.ts'
import { asBuffer, crc32, readCount, writeCount } from '../base/bytes.ts'
import { afterPrefix } from '../base/tuple.ts'
import { groupOfBytes, type GroupId, type Position, type Timestamp } from '../base/ids.ts'
import type { KeySpan } from '../ports/storage.ts'
import { hashBytes, type GroupHash } from './group-hash.ts'

const valueFormat = 2
/** Of a state record that names a flush of the log. */
const flushedFormat = 3
const flushBytes = 8
/** The same with the position of a snapshot. */
const stateFormat = 4
const ownBytes = 16
/** The same with the hash of the group's rows. */
const hashedFormat = 5
const groupTag = 'g'.charCodeAt(0)
const headBytes = 15
const stateTag = 's'.charCodeAt(0)
const stagedTag = 'i'.charCodeAt(0)
const stagingTag = 'j'.charCodeAt(0)
export const rowSubspace = 1
export const historySubspace = 2
const startBytes = 8

export interface Stored {
  readonly stamp: number
  readonly payload: Uint8Array
  /** Of a state record: the last flush of the node's log that names the group. */
  readonly flush?: number
  /** The position of the last snapshot that was taken in here; 0: there was none. */
  readonly snapshot?: Position
  /** Of the group's rows; absent: it is not known. */
  readonly hash?: GroupHash
}

/** The bytes that open every key of a group, up to its subspace. */
export function groupPrefix(group: GroupId): Buffer {
  const prefix = Buffer.allocUnsafe(prefixLength(group))
  writePrefix(prefix, group)
  return prefix
}

function prefixLength(group: GroupId): number {
  let length = group.length + 3
  for (let i = 0; i < group.length; i++) if (group.charCodeAt(i) === 0) length += 1
  return length
}

/** Returns where it ends. */
function writePrefix(bytes: Buffer, group: GroupId): number {
  bytes[0] = groupTag
  let at = 1
  for (let i = 0; i < group.length; i++) {
    const byte = group.charCodeAt(i)
    bytes[at++] = byte
    if (byte === 0) bytes[at++] = 0xff
  }
  bytes[at++] = 0
  bytes[at++] = 1
  return at
}

/** The whole key of a row's newest version: made in one go, since every read of a row makes one. */
export function rowStoreKey(group: GroupId, key: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(prefixLength(group) + 1 + key.length)
  const at = writePrefix(bytes, group)
  bytes[at] = rowSubspace
  bytes.set(key, at + 1)
  return bytes
}

/** The prefix of the keys of a group's history; `afterHistory` is the first key beyond them. */
export function historyPrefix(prefix: Uint8Array): Buffer {
  return subspaceKey(prefix, historySubspace)
}

export function afterHistory(prefix: Uint8Array): Buffer {
  return subspaceKey(prefix, historySubspace + 1)
}

/** The prefix of the keys of all versions of a row that lie in history; escaped as groups are. */
export function versionsPrefix(history: Uint8Array, key: Uint8Array, isClosed = true): Buffer {
  let length = history.length + key.length + (isClosed ? 2 : 0)
  for (const byte of key) if (byte === 0) length += 1
  const prefix = Buffer.allocUnsafe(length)
  prefix.set(history)
  let at = history.length
  for (const byte of key) {
    prefix[at++] = byte
    if (byte === 0) prefix[at++] = 0xff
  }
  if (isClosed) prefix.set(endOfKey, at)
  return prefix
}

const endOfKey = Uint8Array.of(0, 1)

/** The first key beyond all versions of the row. */
export function afterVersions(history: Uint8Array, key: Uint8Array): Buffer {
  const bytes = versionsPrefix(history, key)
  bytes[bytes.length - 1] = 2
  return bytes
}

export function versionKey(history: Uint8Array, key: Uint8Array, start: Timestamp): Buffer {
  const versions = versionsPrefix(history, key)
  const bytes = Buffer.allocUnsafe(versions.length + startBytes)
  bytes.set(versions)
  writeCount(bytes, start, versions.length)
  for (let at = versions.length; at < bytes.length; at++) bytes[at] = ~(bytes[at] ?? 0)
  return bytes
}

/** Whether `rest`, behind the group's history prefix, is the key of a version. */
export function isVersionKey(rest: Uint8Array): boolean {
  const end = rest.length - startBytes - endOfKey.length
  if (end < 0 || rest[end] !== 0 || rest[end + 1] !== 1) return false
  for (let at = 0; at < end; at++) {
    if (rest[at] !== 0) continue
    at += 1
    if (at >= end || rest[at] !== 0xff) return false
  }
  // The first byte of a start, turned over: a safe integer has 53 bits.
  return rest[end + endOfKey.length] === 0xff
}

/** The row's key and the version's start; `rest` is what follows the group's history prefix. */
export function decodeVersionKey(rest: Uint8Array): { readonly key: Buffer; start: Timestamp } {
  const end = rest.length - startBytes - endOfKey.length
  assert(end >= 0, 'replica: a key of history is too short')
  const key = Buffer.allocUnsafe(end)
  let length = 0
  for (let at = 0; at < end; at++) {
    const byte = rest[at] ?? 0
    key[length++] = byte
    if (byte === 0) at += 1
  }
  const start = Buffer.from(rest.subarray(rest.length - startBytes))
  for (let at = 0; at < startBytes; at++) start[at] = ~(start[at] ?? 0)
  return { key: key.subarray(0, length), start: readCount(start, 0) }
}

/** `prefix`: the group's. */
export function stateKey(prefix: Uint8Array): Buffer {
  const key = Buffer.from(prefix)
  key[0] = stateTag
  return key
}

/** Where a snapshot of the group is put down: `key` is one of the group's own. */
export function stagedKey(key: Uint8Array): Buffer {
  const staged = Buffer.from(key)
  staged[0] = stagedTag
  return staged
}

/** The group's own key for what was put down under `staged`. */
export function unstagedKey(staged: Uint8Array): Buffer {
  const key = Buffer.from(staged)
  key[0] = groupTag
  return key
}

/** Of the record that says how far the snapshot has come. */
export function stagingKey(prefix: Uint8Array): Buffer {
  const key = Buffer.from(prefix)
  key[0] = stagingTag
  return key
}

/** All that a group has, its rows and its history; or what is put down of a snapshot of it. */
export function allOf(prefix: Uint8Array): KeySpan {
  return { gte: subspaceKey(prefix, rowSubspace), lt: subspaceKey(prefix, historySubspace + 1) }
}

export const allStagings: KeySpan = { gte: Buffer.from('j'), lt: Buffer.from('k') }

/** Whether the key is that of a group's row, or of a version of one. */
export function isOfRows(key: Uint8Array): boolean {
  return key[0] === groupTag
}

/** Keys of state records, or of rows, of all groups. */
export const allStates: KeySpan = { gte: Buffer.from('s'), lt: Buffer.from('t') }
export const allGroups: KeySpan = { gte: Buffer.from('g'), lt: Buffer.from('h') }

/** The prefix of the keys of a group's rows; `afterRows` is the first key beyond them. */
export function rowsPrefix(prefix: Uint8Array): Buffer {
  return subspaceKey(prefix, rowSubspace)
}

export function afterRows(prefix: Uint8Array): Buffer {
  return subspaceKey(prefix, rowSubspace + 1)
}

function subspaceKey(prefix: Uint8Array, subspace: number): Buffer {
  const key = Buffer.allocUnsafe(prefix.length + 1)
  key.set(prefix)
  key[prefix.length] = subspace
  return key
}

export function joined(prefix: Uint8Array, key: Uint8Array): Buffer {
  const whole = Buffer.allocUnsafe(prefix.length + key.length)
  whole.set(prefix)
  whole.set(key, prefix.length)
  return whole
}

/**
 * The prefix of the keys that list groups under a topic, which is given as text (`group/worklist-key.ts`).
 */
export function listedPrefix(topic: string): Buffer {
  return Buffer.from(`l${topic}`, 'latin1')
}

export function afterListed(topic: string): Uint8Array {
  const end = afterPrefix(listedPrefix(topic))
  assert(end !== undefined, 'replica: something comes after every topic')
  return end
}

export function listedKey(topic: string, group: GroupId): Buffer {
  return Buffer.from(`l${topic}${group}`, 'latin1')
}

export function groupOfListed(topic: string, key: Uint8Array): GroupId {
  return groupOfBytes(key.subarray(1 + topic.length))
}

export function markerKey(slot: number): Buffer {
  const key = Buffer.from('b\0\0', 'latin1')
  key.writeUInt16BE(slot, 1)
  return key
}

export const allMarkers: KeySpan = {
  gte: Buffer.from('b'),
  lt: Buffer.from('c'),
}

export function nameKey(name: string): Buffer {
  return Buffer.from(`m${name}`, 'latin1')
}

const asidePrefix = Buffer.from('mill/', 'latin1')

/** Of the record that says that the group's rows are wrong here (`../replica/healing.ts`). */
export function asideKey(group: GroupId): Buffer {
  return joined(asidePrefix, Buffer.from(group, 'latin1'))
}

export const allAsides: KeySpan = { gte: asidePrefix, lt: Buffer.from('mill0', 'latin1') }

export function groupInAside(key: Uint8Array): GroupId {
  return groupOfBytes(key.subarray(asidePrefix.length))
}

/** Safe integers have 53 bits. */
export const positionBytes = 7

export function positionKey(group: GroupId, position: Position): Buffer {
  const prefixBytes = positionPrefix.length
  const key = Buffer.allocUnsafe(prefixBytes + group.length + positionBytes)
  key.set(positionPrefix)
  const at = prefixBytes + key.write(group, prefixBytes, 'latin1')
  key.writeUIntBE(Math.floor(position / 2 ** 32), at, 3)
  key.writeUInt32BE(position % 2 ** 32, at + 3)
  return key
}

const positionPrefix = Buffer.from('mat/', 'latin1')

/** The log's rows on stretches of positions; earlier builds wrote one for each position. */
export const allPositions: KeySpan = { gte: positionPrefix, lt: Buffer.from('mat0', 'latin1') }

/** The small rows that votes rest on: markers, the node's own values, state records. */
export const votingSpans: readonly KeySpan[] = [
  allMarkers,
  { gte: Buffer.from('m', 'latin1'), lt: allPositions.gte },
  { gte: allPositions.lt, lt: Buffer.from('n', 'latin1') },
  allStates,
  allStagings,
]

export function encodeStored(key: Uint8Array, stamp: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(headBytes + payload.length)
  bytes[4] = valueFormat
  bytes.writeUInt16BE(0, 5)
  writeCount(bytes, stamp, 7)
  bytes.set(payload, headBytes)
  bytes.writeUInt32BE(crc32(bytes.subarray(4), crc32(key)))
  return bytes
}

/** The part of a state record that is of its own node alone. */
export interface OwnPlace {
  /** The last flush of the node's log that names the group. */
  readonly flush: number
  /** The position of the last snapshot that was taken in; 0: there was none. */
  readonly snapshot: Position
}

/** A state record: as `encodeStored`, with what is its node's own, and the hash of the group's rows where it is known. */
export function encodeState(
  key: Uint8Array,
  position: Position,
  { flush, snapshot }: OwnPlace,
  state: Uint8Array,
  hash?: GroupHash,
): Buffer {
  const hashAt = headBytes + ownBytes
  const payloadAt = hash === undefined ? hashAt : hashAt + hashBytes
  const bytes = Buffer.allocUnsafe(payloadAt + state.length)
  bytes[4] = hash === undefined ? stateFormat : hashedFormat
  bytes.writeUInt16BE(0, 5)
  writeCount(bytes, position, 7)
  writeCount(bytes, flush, headBytes)
  writeCount(bytes, snapshot, headBytes + flushBytes)
  if (hash !== undefined) bytes.write(hash, hashAt, 'latin1')
  bytes.set(state, payloadAt)
  bytes.writeUInt32BE(crc32(bytes.subarray(4), crc32(key)))
  return bytes
}

/** The value that was stored under `key`; `damaged`; or of a format that this version does not know. */
export function decodeStored(
  key: Uint8Array,
  value: Uint8Array,
): Stored | 'damaged' | 'unknown format' {
  const bytes = asBuffer(value)
  if (bytes.length < headBytes) return 'damaged'
  if (bytes.readUInt32BE() !== crc32(bytes.subarray(4), crc32(key))) return 'damaged'
  if (bytes.readUInt16BE(5) !== 0) return 'unknown format'
  const stamp = readCount(bytes, 7)
  if (bytes[4] === valueFormat) return { stamp, payload: bytes.subarray(headBytes) }
  return decodeState(bytes, stamp)
}

/** A state record behind its head. */
function decodeState(bytes: Buffer, stamp: number): Stored | 'damaged' | 'unknown format' {
  const own = ownBytesOf(bytes[4])
  if (own === undefined) return 'unknown format'
  const payloadAt = headBytes + own
  if (bytes.length < payloadAt) return 'damaged'
  const snapshot = own === flushBytes ? 0 : readCount(bytes, headBytes + flushBytes)
  const flush = readCount(bytes, headBytes)
  const stored = { stamp, flush, snapshot, payload: bytes.subarray(payloadAt) }
  if (own <= ownBytes) return stored
  return { ...stored, hash: bytes.toString('latin1', headBytes + ownBytes, payloadAt) }
}

/** The bytes between the head and the payload of a state record of that format. */
function ownBytesOf(format: number | undefined): number | undefined {
  switch (format) {
    case flushedFormat:
      return flushBytes
    case stateFormat:
      return ownBytes
    case hashedFormat:
      return ownBytes + hashBytes
    default:
      return undefined
  }
}
