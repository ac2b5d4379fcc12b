/**
 * The facts about the log that the data store keeps, written with its batches: how far each group is applied,
 * the last flush that names it, and the mark. So memory holds the log's end alone, and a start folds no more
 * than that. All of it is derived: without it, a start folds the whole log again.
 *
 * LOG-7   Every record of the flushes through the mark is of a position that the data store has applied, or
 *         stands in a flush after the mark again.
 * LOG-15  From the last flush that names a group, each flush that names it leads to the one before. So a
 *         reader finds the value at any position without a row for each. A row at every 64th position
 *         (`stretchPositions`) says where the search may begin, so that it is short.
 */
import { asBuffer, readCount, writeCount } from '../base/bytes.ts'
import { groupOfBytes, isNodeId, type GroupId, type Position } from '../base/ids.ts'
import { pack, unpack } from '../base/pack.ts'
import { unpackBallot, type Ballot } from '../paxos/ballot.ts'
import { corruptData, unknownFormat } from '../store/damage.ts'
import type { Range } from '../ports/storage.ts'
import { allPositions, positionKey } from '../store/row-format.ts'

/** Where a value stands: in record `index` (from 0) of a flush. */
export interface Place {
  readonly flush: number
  readonly index: number
}

/** The account of one position, as earlier builds wrote it for each: read where flushes lead nowhere. */
export interface PositionRow {
  readonly promised: Ballot | undefined
  readonly accepted: Ballot | undefined
  readonly chosen: Ballot | undefined
  readonly place: Place | 'faulty' | undefined
  /** The last flush with a record of it. */
  readonly lastFlush: number
}

/** How far the data store holds a group. */
export interface Applied {
  readonly position: Position
  /** The last flush that names the group, as of that position; 0: unknown, or there is none. */
  readonly lastFlush: number
  /** The position of the last snapshot that was taken in: the log need not have the values up to there. 0: there was none. */
  readonly snapshot: Position
}

export const nothingApplied: Applied = { position: 0, lastFlush: 0, snapshot: 0 }

/** Positions between two rows that say where a search for a value may begin. */
export const stretchPositions = 64

/** A flush, as the one after it names it. */
export interface FlushMark {
  readonly number: number
  readonly incarnation: number
  readonly crc: number
}

/** An open position whose promise earlier builds kept in its row alone. */
export type Carried = readonly [GroupId, Position]

/** A row that names a flush for searches. Flush Infinity: an earlier build wrote it, for a position alone. */
export interface StretchEnd {
  readonly key: Uint8Array
  readonly flush: number
}

export interface SettledPositions {
  /** The last flush that a start need not fold; undefined: it has to fold all. */
  mark(): FlushMark | undefined
  /** Durable with the next batch, as everything else that is kept. */
  keepMark(mark: FlushMark): void
  /** False: the data store was made anew from a log that had given up flushes, and may lack some of them (LOG-19). */
  isRestored(): boolean
  /** Durable before, or with, the first mark that is kept after it. */
  keepRestored(isRestored: boolean): void
  /** How far the data store durably holds the group. */
  applied(group: GroupId): Applied
  /** Whether entries of the group wait for a batch of the data store: the next ones settle them. */
  isWaiting(group: GroupId): boolean
  /** The flush from which a search for the value at this multiple of `stretchPositions`, or before it, may begin. */
  stretchEnd(group: GroupId, position: Position): number | undefined
  keepStretchEnd(group: GroupId, position: Position, flush: number): void
  /** The next such rows behind a key, in order of their keys: as many as `limit`, or all that are left. */
  stretchEnds(after: Uint8Array | undefined, limit: number): Promise<readonly StretchEnd[]>
  /** Durable with the next batch. `key`: of `stretchEnds`. */
  dropStretchEnd(key: Uint8Array): void
  /** The row of one position that an earlier build wrote. */
  row(group: GroupId, position: Position): PositionRow | undefined
  carried(): readonly Carried[]
  /** All of them stand in flushes again. */
  dropCarried(): void
}

/** A log by itself. */
export const nothingSettled: SettledPositions = {
  mark: () => undefined,
  keepMark: () => undefined,
  isRestored: () => true,
  keepRestored: () => undefined,
  applied: () => nothingApplied,
  isWaiting: () => false,
  stretchEnd: () => undefined,
  keepStretchEnd: () => undefined,
  stretchEnds: () => Promise.resolve([]),
  dropStretchEnd: () => undefined,
  row: () => undefined,
  carried: () => [],
  dropCarried: () => undefined,
}

/** As much of the data store as is needed here. */
export interface RowStore {
  applied(group: GroupId): Applied
  isWaiting(group: GroupId): boolean
  meta(name: string): Uint8Array | undefined
  setMeta(name: string, value: Uint8Array): void
  /** The bytes stored under a key of its own, as far as batches have been written. */
  row(key: Uint8Array): Uint8Array | undefined
  /** Goes along with the batch that is being put together. */
  setRow(key: Uint8Array, payload: Uint8Array): void
  dropRow(key: Uint8Array): void
  /** Stored rows of a range, as far as batches have been written. */
  rows(range: Range): Promise<readonly { readonly key: Uint8Array; readonly payload: Uint8Array }[]>
}

const listFormat = 1
const markName = 'log/mark'
const carriedName = 'log/carried'
const restoredName = 'log/restored'

/** Of the row at the end of a stretch: format 1, flush 8. */
const stretchFormat = 3
const stretchBytes = 9

/**
 * The row of one position, of earlier builds: format 1 · last flush 8 · the value's flush 8 · its index 4 ·
 * numbers of the three ballots, 1 each · the ballots that these number from 0: epoch and round 8, incarnation 8,
 * length 1, node
 */
const positionFormat = 2
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

  keepMark({ number, incarnation, crc }: FlushMark): void {
    this.#data.setMeta(markName, pack([listFormat, number, incarnation, crc]))
  }

  isRestored(): boolean {
    const bytes = this.#data.meta(restoredName)
    if (bytes === undefined) return true
    const [isRestored] = unpackFields(bytes)
    if (typeof isRestored !== 'boolean') throw notWhole()
    return isRestored
  }

  keepRestored(isRestored: boolean): void {
    this.#data.setMeta(restoredName, pack([listFormat, isRestored]))
  }

  applied(group: GroupId): Applied {
    return this.#data.applied(group)
  }

  isWaiting(group: GroupId): boolean {
    return this.#data.isWaiting(group)
  }

  stretchEnd(group: GroupId, position: Position): number | undefined {
    const bytes = this.#data.row(positionKey(group, position))
    return bytes !== undefined && isStretchEnd(bytes) ? decodeStretchEnd(bytes) : undefined
  }

  keepStretchEnd(group: GroupId, position: Position, flush: number): void {
    const bytes = Buffer.allocUnsafe(stretchBytes)
    bytes.writeUInt8(stretchFormat, 0)
    writeCount(bytes, flush, 1)
    this.#data.setRow(positionKey(group, position), bytes)
  }

  async stretchEnds(after: Uint8Array | undefined, limit: number): Promise<readonly StretchEnd[]> {
    const { gte, lt } = allPositions
    const from = after === undefined ? { gte } : { gt: after }
    const rows = await this.#data.rows({ ...from, lt, limit })
    return rows.map(({ key, payload }) => {
      return { key, flush: isStretchEnd(payload) ? decodeStretchEnd(payload) : Infinity }
    })
  }

  dropStretchEnd(key: Uint8Array): void {
    this.#data.dropRow(key)
  }

  row(group: GroupId, position: Position): PositionRow | undefined {
    const bytes = this.#data.row(positionKey(group, position))
    return bytes === undefined || isStretchEnd(bytes) ? undefined : decodePositionRow(bytes)
  }

  carried(): readonly Carried[] {
    const bytes = this.#data.meta(carriedName)
    return bytes === undefined ? [] : unpackFields(bytes).map(decodeCarried)
  }

  dropCarried(): void {
    this.#data.setMeta(carriedName, pack([listFormat]))
  }
}

/** The flush of a row at the end of a stretch. Throws `corrupt` for what is not whole. */
export function decodeStretchEnd(row: Uint8Array): number {
  const bytes = asBuffer(row)
  if (bytes.length !== stretchBytes || !isStretchEnd(bytes)) throw notWhole()
  return readCount(bytes, 1)
}

/** Whether a row says where searches begin, or all of one position. */
export function isStretchEnd(row: Uint8Array): boolean {
  return row[0] === stretchFormat
}

/** Throws `corrupt` for what is not whole, `invalid` for a format unknown here. */
export function decodePositionRow(row: Uint8Array): PositionRow {
  const bytes = asBuffer(row)
  if (bytes[0] !== positionFormat) throw unknownFormat('index of the log', bytes[0])
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
    ballots.push(unpackBallot(readCount(bytes, at), node, readCount(bytes, at + 8)))
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
