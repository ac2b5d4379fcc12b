/**
 * What the log says of positions that the data store has applied: a row each, kept with the data
 * store and written with its batches, so that memory holds the log's end alone and a start folds no
 * more than that. All of it is derived: without it, the whole log is folded again.
 *
 * LOG-7  Every record of the flushes through the mark is in a row, and what such a row has of its
 *        position is all that the log has through the row's last flush. Neither tells of a flush that is
 *        not durable, and both become durable with the state records that they go with.
 */
import { latin1 } from '../base/bytes.ts'
import { bytesOfGroup, groupOfBytes, isNodeId, type GroupId, type Position } from '../base/ids.ts'
import { pack, unpack, type Packable } from '../base/pack.ts'
import type { Ballot } from '../paxos/ballot.ts'
import { corruptData, unknownFormat } from './damage.ts'

/** Where a value stands: in record `index` (from 0) of a flush. */
export interface Place {
  readonly flush: number
  readonly index: number
}

/** What the log says of one position. */
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
}

const rowFormat = 1
const markName = 'log/mark'
const carriedName = 'log/carried'
/** In place of an index: the value is damaged. */
const faulty = -1

export class SettledRows implements SettledPositions {
  readonly #data: RowStore

  constructor(data: RowStore) {
    this.#data = data
  }

  mark(): FlushMark | undefined {
    const bytes = this.#data.meta(markName)
    if (bytes === undefined) return undefined
    const [number, incarnation, crc] = fieldsOf(bytes)
    if (!isCount(number) || !isCount(incarnation) || !isCount(crc)) throw notWhole()
    return { number, incarnation, crc }
  }

  carried(): readonly Carried[] {
    const bytes = this.#data.meta(carriedName)
    return bytes === undefined ? [] : fieldsOf(bytes).map(decodeCarried)
  }

  applied(group: GroupId): Position {
    return this.#data.statePosition(group)
  }

  row(group: GroupId, position: Position): PositionRow | undefined {
    const bytes = this.#data.meta(rowName(group, position))
    return bytes === undefined ? undefined : decodeRow(bytes)
  }

  keep(group: GroupId, position: Position, row: PositionRow): void {
    this.#data.setMeta(rowName(group, position), encodeRow(row))
  }

  keepMark({ number, incarnation, crc }: FlushMark, carried: readonly Carried[] | undefined): void {
    this.#data.setMeta(markName, pack([rowFormat, number, incarnation, crc]))
    if (carried === undefined) return
    const list = carried.map(([group, position]): Packable => [bytesOfGroup(group), position])
    this.#data.setMeta(carriedName, pack([rowFormat, ...list]))
  }
}

/** No group's rows have the names of another's: what follows its bytes is always as long. */
function rowName(group: GroupId, position: Position): string {
  const bytes = Buffer.allocUnsafe(positionBytes)
  bytes.writeUIntBE(Math.floor(position / 2 ** 32), 0, 3)
  bytes.writeUInt32BE(position % 2 ** 32, 3)
  return `at/${group}${latin1(bytes)}`
}

/** Safe integers have 53 bits. */
const positionBytes = 7

/** Nearly always the three ballots are one: each is named once. */
function encodeRow({ promised, accepted, chosen, place, lastFlush }: PositionRow): Uint8Array {
  const ballots: Ballot[] = []
  const numbers = [promised, accepted, chosen].map((ballot) => {
    if (ballot === undefined) return undefined
    const known = ballots.indexOf(ballot)
    return known < 0 ? ballots.push(ballot) - 1 : known
  })
  const { flush, index } =
    typeof place === 'object' ? place : { flush: undefined, index: undefined }
  const where = place === 'faulty' ? [undefined, faulty] : [flush, index]
  const named = ballots.map(({ round, incarnation, node }): Packable => [round, incarnation, node])
  return pack([rowFormat, lastFlush, ...where, ...numbers, ...named])
}

function decodeRow(bytes: Uint8Array): PositionRow {
  const [lastFlush, flush, index, ...rest] = fieldsOf(bytes)
  const [promised, accepted, chosen, ...named] = rest
  if (!isCount(lastFlush)) throw notWhole()
  const ballots = named.map(decodeBallot)
  const ballotOf = (number: unknown): Ballot | undefined => {
    if (number === null) return undefined
    const ballot = typeof number === 'number' ? ballots[number] : undefined
    if (ballot === undefined) throw notWhole()
    return ballot
  }
  return {
    promised: ballotOf(promised),
    accepted: ballotOf(accepted),
    chosen: ballotOf(chosen),
    place: decodePlace(flush, index),
    lastFlush,
  }
}

function decodePlace(flush: unknown, index: unknown): Place | 'faulty' | undefined {
  if (index === faulty) return 'faulty'
  if (index === null) return undefined
  if (!isCount(flush) || !isCount(index)) throw notWhole()
  return { flush, index }
}

function decodeBallot(fields: unknown): Ballot {
  const [round, incarnation, node]: unknown[] = Array.isArray(fields) ? fields : []
  const isNode = typeof node === 'string' && isNodeId(node)
  if (!isCount(round) || !isCount(incarnation) || !isNode) throw notWhole()
  return { round, node, incarnation }
}

function decodeCarried(fields: unknown): Carried {
  const [bytes, position]: unknown[] = Array.isArray(fields) ? fields : []
  if (!(bytes instanceof Uint8Array) || !isCount(position)) throw notWhole()
  return [groupOfBytes(bytes), position]
}

/** What follows the format. Its bytes are sound: the data store has checked them. */
function fieldsOf(bytes: Uint8Array): readonly unknown[] {
  const packed = unpack(bytes)
  const [format, ...fields]: unknown[] = Array.isArray(packed) ? packed : []
  if (format === rowFormat) return fields
  throw typeof format === 'number' ? unknownFormat('index of the log', format) : notWhole()
}

function notWhole(): Error {
  return corruptData('what it says of the log is not whole')
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
