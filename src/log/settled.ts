/**
 * The log's facts about positions that the data store has applied, and of those that stay open so long that
 * the mark is carried over them (`log-settling.ts`): a row each, kept with the data store and written with
 * its batches, so that memory holds the log's end alone and a start folds no more than that. All of it is
 * derived: without it, the whole log is folded again.
 *
 * LOG-7  Every record of the flushes through the mark is in a row, and what such a row has of its
 *        position is all that the log has through the row's last flush. Neither tells of a flush that is
 *        not durable, and both become durable with the state records that they go with.
 */
import { asBuffer, readCount, writeCount } from '../base/bytes.ts'
import { bytesOfGroup, groupOfBytes, isNodeId, type GroupId, type Position } from '../base/ids.ts'
import { pack, unpack, type Packable } from '../base/pack.ts'
import type { Ballot } from '../paxos/ballot.ts'
import { corruptData, unknownFormat } from '../store/damage.ts'
import { positionKey } from '../store/row-format.ts'

/** Where a value stands: in record `index` (from 0) of a flush. */
export interface Place {
  readonly flush: number
  readonly index: number
}

/** The log's account of one position. */
export interface PositionRow {
  readonly promised: Ballot | undefined
  readonly accepted: Ballot | undefined
  readonly chosen: Ballot | undefined
  readonly place: Place | 'faulty' | undefined
  /** The last flush with a record of it. */
  readonly lastFlush: number
}

/** A flush, as the one after it names it. */
export interface FlushMark {
  readonly number: number
  readonly incarnation: number
  readonly crc: number
}

/** A position that is not applied, though the mark has passed its records. */
export type Carried = readonly [GroupId, Position]

export interface SettledPositions {
  /** The last flush whose records are all in rows; undefined: there are no rows. */
  mark(): FlushMark | undefined
  carried(): readonly Carried[]
  /** How far the data store durably holds the group. */
  applied(group: GroupId): Position
  row(group: GroupId, position: Position): PositionRow | undefined
  /** Durable with the next batch, as everything else that is kept. */
  keep(group: GroupId, position: Position, row: PositionRow): void
  keepMark(mark: FlushMark, carried: readonly Carried[] | undefined): void
}

/** A log by itself. */
export const nothingSettled: SettledPositions = {
  mark: () => undefined,
  carried: () => [],
  applied: () => 0,
  row: () => undefined,
  keep: () => undefined,
  keepMark: () => undefined,
}

/** As much of the data store as is needed here. */
export interface RowStore {
  statePosition(group: GroupId): Position
  meta(name: string): Uint8Array | undefined
  setMeta(name: string, value: Uint8Array): void
  /** The bytes stored under a key of its own, as far as batches have been written. */
  row(key: Uint8Array): Uint8Array | undefined
  /** Goes along with the batch that is being put together. */
  setRow(key: Uint8Array, payload: Uint8Array): void
}

const listFormat = 1
const markName = 'log/mark'
const carriedName = 'log/carried'

/**
 * A row: format 1 · last flush 8 · the value's flush 8 · its index 4 · numbers of the three ballots,
 * 1 each · the ballots that these number from 0: round 8, incarnation 8, length 1, node
 */
const rowFormat = 2
const rowHeadBytes = 24
const ballotHeadBytes = 17
/** In place of an index: there is no value; it is damaged. In place of a ballot: there is none. */
const noValue = 0xffffffff
const faultyValue = 0xfffffffe
const noBallot = 0xff

export class SettledRows implements SettledPositions {
  readonly #data: RowStore

  constructor(data: RowStore) {
    this.#data = data
  }

  mark(): FlushMark | undefined {
    const bytes = this.#data.meta(markName)
    if (bytes === undefined) return undefined
    const [number, incarnation, crc] = unpackFields(bytes)
    if (!isCount(number) || !isCount(incarnation) || !isCount(crc)) throw notWhole()
    return { number, incarnation, crc }
  }

  carried(): readonly Carried[] {
    const bytes = this.#data.meta(carriedName)
    return bytes === undefined ? [] : unpackFields(bytes).map(decodeCarried)
  }

  applied(group: GroupId): Position {
    return this.#data.statePosition(group)
  }

  row(group: GroupId, position: Position): PositionRow | undefined {
    const bytes = this.#data.row(positionKey(group, position))
    return bytes === undefined ? undefined : decodePositionRow(bytes)
  }

  keep(group: GroupId, position: Position, row: PositionRow): void {
    this.#data.setRow(positionKey(group, position), encodeRow(row))
  }

  keepMark({ number, incarnation, crc }: FlushMark, carried: readonly Carried[] | undefined): void {
    this.#data.setMeta(markName, pack([listFormat, number, incarnation, crc]))
    if (carried === undefined) return
    const list = carried.map(([group, position]): Packable => [bytesOfGroup(group), position])
    this.#data.setMeta(carriedName, pack([listFormat, ...list]))
  }
}

/** Nearly always the three ballots are one: each is named once. */
function encodeRow(row: PositionRow): Buffer {
  const { promised, accepted, chosen, place, lastFlush } = row
  const ballots: Ballot[] = []
  const numbers = [
    numberIn(ballots, promised),
    numberIn(ballots, accepted),
    numberIn(ballots, chosen),
  ]
  let length = rowHeadBytes
  for (const { node } of ballots) length += ballotHeadBytes + node.length
  const bytes = Buffer.allocUnsafe(length)
  const isPlaced = typeof place === 'object'
  const index = isPlaced ? place.index : place === 'faulty' ? faultyValue : noValue
  bytes.writeUInt8(rowFormat, 0)
  writeCount(bytes, lastFlush, 1)
  writeCount(bytes, isPlaced ? place.flush : 0, 9)
  bytes.writeUInt32BE(index, 17)
  bytes.set(numbers, 21)
  let at = rowHeadBytes
  for (const ballot of ballots) at = writeBallot(bytes, ballot, at)
  return bytes
}

function numberIn(ballots: Ballot[], ballot: Ballot | undefined): number {
  if (ballot === undefined) return noBallot
  const known = ballots.indexOf(ballot)
  return known < 0 ? ballots.push(ballot) - 1 : known
}

function writeBallot(bytes: Buffer, { round, incarnation, node }: Ballot, at: number): number {
  writeCount(bytes, round, at)
  writeCount(bytes, incarnation, at + 8)
  bytes.writeUInt8(node.length, at + 16)
  const nodeAt = at + ballotHeadBytes
  return nodeAt + bytes.write(node, nodeAt, 'latin1')
}

/** Throws `corrupt` for what is not whole, `invalid` for a format unknown here. */
export function decodePositionRow(row: Uint8Array): PositionRow {
  const bytes = asBuffer(row)
  if (bytes[0] !== rowFormat) throw unknownFormat('index of the log', bytes[0])
  if (bytes.length < rowHeadBytes) throw notWhole()
  const ballots = decodeBallots(bytes)
  const ballotAt = (at: number): Ballot | undefined => {
    const number = bytes.readUInt8(at)
    if (number === noBallot) return undefined
    const ballot = ballots[number]
    if (ballot === undefined) throw notWhole()
    return ballot
  }
  return {
    promised: ballotAt(21),
    accepted: ballotAt(22),
    chosen: ballotAt(23),
    place: decodePlace(bytes),
    lastFlush: readCount(bytes, 1),
  }
}

function decodePlace(bytes: Buffer): Place | 'faulty' | undefined {
  const index = bytes.readUInt32BE(17)
  if (index === faultyValue) return 'faulty'
  return index === noValue ? undefined : { flush: readCount(bytes, 9), index }
}

function decodeBallots(bytes: Buffer): readonly Ballot[] {
  const ballots: Ballot[] = []
  for (let at = rowHeadBytes; at < bytes.length;) {
    const nodeAt = at + ballotHeadBytes
    const end = nodeAt + (bytes[nodeAt - 1] ?? 0)
    const node = bytes.toString('latin1', nodeAt, end)
    if (end > bytes.length || !isNodeId(node)) throw notWhole()
    ballots.push({ round: readCount(bytes, at), node, incarnation: readCount(bytes, at + 8) })
    at = end
  }
  return ballots
}

function decodeCarried(fields: unknown): Carried {
  const [bytes, position]: unknown[] = Array.isArray(fields) ? fields : []
  if (!(bytes instanceof Uint8Array) || !isCount(position)) throw notWhole()
  return [groupOfBytes(bytes), position]
}

/** The fields after the format. Their bytes are sound: the data store has checked them. */
function unpackFields(bytes: Uint8Array): readonly unknown[] {
  const packed = unpack(bytes)
  const [format, ...fields]: unknown[] = Array.isArray(packed) ? packed : []
  if (format === listFormat) return fields
  throw typeof format === 'number' ? unknownFormat('index of the log', format) : notWhole()
}

function notWhole(): Error {
  return corruptData('what it says of the log is not whole')
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
