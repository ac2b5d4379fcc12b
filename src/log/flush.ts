/**
 * A flush: the acceptor records of all groups that become durable together, as one value of the
 * journal. Flush numbers are dense, and each flush names its predecessor's
 * CRC, so that a lost one is seen.
 *
 *   head      format 1 · number 8 · incarnation 8 · predecessor's CRC 4 · counts of groups, ballots
 *             and records 4 each · header length 4
 *   tables    groups (length 2, bytes, the flush before that names the group 8) · ballots (epoch
 *             and round 8, incarnation 8, length 1, node)
 *   records   kind 1 · group 4 · ballot 4 · position 8 · payload offset 4 · length 4 · CRC 4
 *   CRC 4     of all the header above; it stands for the whole flush, since it covers the CRCs
 *   payloads  the values' bytes as they came
 *
 * The header has a CRC of its own: one bad payload costs one position, a bad header all of them.
 * Numbers are big-endian; those of 8 bytes are safe integers. Format 1, of earlier builds, does not name
 * the flush before of a group; it is read, and not written any more.
 */
import { assert, present } from '../base/assert.ts'
import { asBuffer, crc32, readCount, writeCount } from '../base/bytes.ts'
import { groupOfBytes, isNodeId, type GroupId, type Position } from '../base/ids.ts'
import { packRound, unpackBallot, type Ballot } from '../paxos/ballot.ts'
import type { LogRecord } from '../replication/effect.ts'
import { BallotTable } from './ballot-table.ts'

const flushFormat = 2
const formatWithoutPrevious = 1
const previousBytes = 8
/** Records in one flush: it bounds what must be named when the groups of a flush are listed. */
export const flushRecordsMax = 10_000
/** About what a record costs beside its group's name and its value. */
export const recordBytes = 29
const headBytes = 37
const crcBytes = 4

const kindCodes = { promise: 1, accept: 2, chosen: 3, copied: 5 } as const
/** A `chosen` record that brings its value; a copy whose value the disk had damaged. */
const chosenValueCode = 4
const copiedFaultyCode = 6

/**
 * An acceptance of an earlier flush, written again so that its flush is not needed any more. It promises its
 * ballot as it did then; a higher promise stands beside it.
 */
export interface CopiedAcceptance {
  readonly kind: 'copied'
  readonly group: GroupId
  readonly position: Position
  readonly ballot: Ballot
  /** Absent: the disk had damaged it. */
  readonly value?: Uint8Array
}

/** A record of a flush: an acceptor's, or a copy of an older one. */
export type FlushRecord = Exclude<LogRecord, { readonly kind: 'copied' }> | CopiedAcceptance

/** The identity of a flush, as its header gives it. */
export interface FlushStamp {
  readonly number: number
  /** Of the store when it wrote this. */
  readonly incarnation: number
  /** The predecessor's header CRC; of flush 1, zero. */
  readonly previousCrc: number
}

/** Where a value stands in its flush. */
export interface Piece {
  readonly offset: number
  readonly length: number
  readonly crc: number
}

export interface RecordHeader {
  readonly kind: FlushRecord['kind']
  readonly group: GroupId
  readonly position: Position
  readonly ballot: Ballot
  /** Absent: the record has no value. */
  readonly piece?: Piece
}

/** A group of a flush. */
export interface NamedGroup {
  readonly group: GroupId
  /** The last flush before this one that names it, 0 for none; undefined where an earlier build wrote this one. */
  readonly previous: number | undefined
}

export interface FlushHeader extends FlushStamp {
  readonly crc: number
  readonly groups: readonly NamedGroup[]
  readonly records: readonly RecordHeader[]
}

/** The records of a flush, and the groups that they are of. */
export interface FlushContent {
  readonly records: readonly FlushRecord[]
  /** Of each record, its group's number; groups are numbered from 0 in the order of their first records. */
  readonly groupNumbers: readonly number[]
  /** Of each group, the last flush before this one that names it; 0 for none. */
  readonly previous: readonly number[]
}

/** The value of one flush, and the CRC that its successor names. */
export function encodeFlush(
  stamp: FlushStamp,
  content: FlushContent,
): { readonly bytes: Buffer; readonly crc: number } {
  const { records } = content
  const tables = buildTables(content)
  const { groups, ballots } = tables
  const headerBytes = headBytes + tables.bytes + records.length * recordBytes + crcBytes
  const bytes = Buffer.allocUnsafe(headerBytes + tables.payloadBytes)
  bytes[0] = flushFormat
  writeCount(bytes, stamp.number, 1)
  writeCount(bytes, stamp.incarnation, 9)
  bytes.writeUInt32BE(stamp.previousCrc, 17)
  bytes.writeUInt32BE(groups.length, 21)
  bytes.writeUInt32BE(ballots.length, 25)
  bytes.writeUInt32BE(records.length, 29)
  bytes.writeUInt32BE(headerBytes, 33)
  const recordsAt = writeTables(bytes, tables)
  writeRecords(bytes, records, tables, recordsAt)
  const crcAt = headerBytes - crcBytes
  const crc = crc32(bytes.subarray(0, crcAt))
  bytes.writeUInt32BE(crc, crcAt)
  return { bytes, crc }
}

/** The common values of a flush's records, written once; and each record's share of them. */
interface Tables {
  readonly groups: readonly GroupId[]
  readonly previous: readonly number[]
  readonly ballots: readonly Ballot[]
  readonly groupOfRecord: readonly number[]
  readonly ballotOfRecord: readonly number[]
  readonly bytes: number
  readonly payloadBytes: number
}

function buildTables({ records, groupNumbers: groupOfRecord, previous }: FlushContent): Tables {
  const groups: GroupId[] = []
  const table = new BallotTable()
  const ballotOfRecord: number[] = []
  let bytes = 0
  let payloadBytes = 0
  for (const [index, record] of records.entries()) {
    const number = groupOfRecord[index]
    if (number === groups.length) {
      groups.push(record.group)
      bytes += 2 + record.group.length + previousBytes
    }
    const isNamed = number !== undefined && groups[number] === record.group
    assert(isNamed, 'replica: a record is written under the number of its group')
    ballotOfRecord.push(table.findNumber(record.ballot))
    payloadBytes += readValue(record)?.length ?? 0
  }
  const { ballots } = table
  for (const ballot of ballots) bytes += 17 + ballot.node.length
  assert(previous.length === groups.length, 'LOG-15: a group without the flush before it')
  return { groups, previous, ballots, groupOfRecord, ballotOfRecord, bytes, payloadBytes }
}

/** The value a record brings, if it brings one. */
export function readValue(record: FlushRecord): Uint8Array | undefined {
  return record.kind === 'promise' ? undefined : record.value
}

function writeTables(bytes: Buffer, tables: Tables): number {
  let at = headBytes
  for (const [slot, group] of tables.groups.entries()) {
    bytes.writeUInt16BE(group.length, at)
    at += 2 + bytes.write(group, at + 2, 'latin1')
    writeCount(bytes, tables.previous[slot] ?? 0, at)
    at += previousBytes
  }
  for (const ballot of tables.ballots) {
    const { incarnation, node } = ballot
    writeCount(bytes, packRound(ballot), at)
    writeCount(bytes, incarnation, at + 8)
    bytes[at + 16] = node.length
    at += 17 + bytes.write(node, at + 17, 'latin1')
  }
  return at
}

function codeOf(kind: FlushRecord['kind'], hasValue: boolean): number {
  if (kind === 'chosen' && hasValue) return chosenValueCode
  return kind === 'copied' && !hasValue ? copiedFaultyCode : kindCodes[kind]
}

function writeRecords(
  bytes: Buffer,
  records: readonly FlushRecord[],
  tables: Tables,
  recordsAt: number,
): void {
  let at = recordsAt
  let payloadAt = recordsAt + records.length * recordBytes + crcBytes
  for (const [index, record] of records.entries()) {
    const value = readValue(record)
    bytes[at] = codeOf(record.kind, value !== undefined)
    bytes.writeUInt32BE(tables.groupOfRecord[index] ?? 0, at + 1)
    bytes.writeUInt32BE(tables.ballotOfRecord[index] ?? 0, at + 5)
    writeCount(bytes, record.position, at + 9)
    bytes.writeUInt32BE(payloadAt, at + 17)
    bytes.writeUInt32BE(value?.length ?? 0, at + 21)
    bytes.writeUInt32BE(value === undefined ? 0 : crc32(value), at + 25)
    at += recordBytes
    if (value === undefined) continue
    bytes.set(value, payloadAt)
    payloadAt += value.length
  }
  assert(payloadAt === bytes.length, 'replica: a flush is not as long as was reckoned')
}

/** The header, or undefined when it is damaged or of no known format. */
export function decodeFlush(flush: Uint8Array): FlushHeader | undefined {
  const bytes = asBuffer(flush)
  const crc = crcOfHeader(bytes)
  if (crc === undefined) return undefined
  const groups: NamedGroup[] = []
  const isWithoutPrevious = bytes[0] === formatWithoutPrevious
  let at = headBytes
  for (let left = bytes.readUInt32BE(21); left > 0; left--) {
    const end = at + 2 + bytes.readUInt16BE(at)
    const previous = isWithoutPrevious ? undefined : readCount(bytes, end)
    groups.push({ group: groupOfBytes(bytes.subarray(at + 2, end)), previous })
    at = isWithoutPrevious ? end : end + previousBytes
  }
  const ballots: Ballot[] = []
  for (let left = bytes.readUInt32BE(25); left > 0; left--) {
    const end = at + 17 + bytes.readUInt8(at + 16)
    const node = bytes.toString('latin1', at + 17, end)
    if (!isNodeId(node)) return undefined
    ballots.push(unpackBallot(readCount(bytes, at), node, readCount(bytes, at + 8)))
    at = end
  }
  const records: RecordHeader[] = []
  for (let left = bytes.readUInt32BE(29); left > 0; left--, at += recordBytes) {
    records.push(readRecord(bytes, at, groups, ballots))
  }
  const number = readCount(bytes, 1)
  const incarnation = readCount(bytes, 9)
  return { number, incarnation, previousCrc: bytes.readUInt32BE(17), crc, groups, records }
}

/** The header's CRC if it is the right one. */
function crcOfHeader(bytes: Buffer): number | undefined {
  if (bytes.length < headBytes + crcBytes) return undefined
  if (bytes[0] !== flushFormat && bytes[0] !== formatWithoutPrevious) return undefined
  const headerBytes = bytes.readUInt32BE(33)
  if (headerBytes > bytes.length || headerBytes < headBytes + crcBytes) return undefined
  const crc = bytes.readUInt32BE(headerBytes - crcBytes)
  return crc32(bytes.subarray(0, headerBytes - crcBytes)) === crc ? crc : undefined
}

/** The kinds of records with values, by their codes. */
const valueKinds: Readonly<Record<number, 'chosen' | 'copied'>> = {
  [chosenValueCode]: 'chosen',
  [kindCodes.copied]: 'copied',
}

function readRecord(
  bytes: Buffer,
  at: number,
  groups: readonly NamedGroup[],
  ballots: readonly Ballot[],
): RecordHeader {
  const code = bytes.readUInt8(at)
  const { group } = present(
    groups[bytes.readUInt32BE(at + 1)],
    'replica: a record without its group',
  )
  const ballot = present(ballots[bytes.readUInt32BE(at + 5)], 'replica: a record without a ballot')
  const position = readCount(bytes, at + 9)
  if (code === kindCodes.promise) return { kind: 'promise', group, position, ballot }
  if (code === kindCodes.chosen) return { kind: 'chosen', group, position, ballot }
  if (code === copiedFaultyCode) return { kind: 'copied', group, position, ballot }
  const kind = valueKinds[code] ?? 'accept'
  return { kind, group, position, ballot, piece: readPiece(bytes, at) }
}

function readPiece(bytes: Buffer, at: number): Piece {
  return {
    offset: bytes.readUInt32BE(at + 17),
    length: bytes.readUInt32BE(at + 21),
    crc: bytes.readUInt32BE(at + 25),
  }
}

/** Whether `bytes` are flush `number` with a sound header. */
export function isSoundFlush(flush: Uint8Array, number: number): boolean {
  const bytes = asBuffer(flush)
  return crcOfHeader(bytes) !== undefined && readCount(bytes, 1) === number
}

/** The piece of record `index` of a sound flush. */
export function pieceAt(flush: Uint8Array, index: number): Piece {
  const bytes = asBuffer(flush)
  const recordsEnd = bytes.readUInt32BE(33) - crcBytes
  const count = bytes.readUInt32BE(29)
  assert(index < count, 'replica: a record beyond its flush')
  return readPiece(bytes, recordsEnd - (count - index) * recordBytes)
}

/** The piece's bytes, or undefined when they are not what was written. */
export function readPayload(flush: Uint8Array, piece: Piece): Uint8Array | undefined {
  const payload = flush.subarray(piece.offset, piece.offset + piece.length)
  return payload.length === piece.length && crc32(payload) === piece.crc ? payload : undefined
}
