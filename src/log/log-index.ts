/**
 * The log's facts about each (group, position), folded over its records in order: the promise, the
 * acceptance, the decision, and where the value stands. It is the same at run time and after a restart,
 * because both go through `fold`.
 *
 * PAX-2  A promise never goes down; an acceptance is never below it.
 *
 * Held here are the positions that the log's end speaks of. A position with a row in the data store
 * (`settled.ts`) leaves, and comes back from there when a later record goes on from it. One flat array of
 * numbers a group, eight a position, ascending by position: no object is kept for a record.
 */
import { assert } from '../base/assert.ts'
import { BoundedMap } from '../base/bounded-map.ts'
import type { GroupId, Position } from '../base/ids.ts'
import { compareBallots, type Ballot } from '../paxos/ballot.ts'
import type { LogRecord } from '../replication/effect.ts'
import { BallotTable } from './ballot-table.ts'
import { nothingSettled, type Place, type PositionRow, type SettledPositions } from './settled.ts'

/** The log's knowledge of one position. */
export interface PositionHeader {
  readonly position: Position
  readonly promised: Ballot | undefined
  readonly accepted: Ballot | undefined
  readonly chosen: Ballot | undefined
  /** There should be a value, and the disk has damaged it. */
  readonly faulty: boolean
}

/** A record without its bytes. */
export interface Fold {
  readonly kind: LogRecord['kind']
  readonly group: GroupId
  readonly position: Position
  readonly ballot: Ballot
}

/** All that is held of a group. `cells` belongs to this file; the rest to the flush ledger. */
export interface GroupPositions {
  readonly group: GroupId
  cells: number[]
  /** Where the first row is: those before it have left. */
  firstRow: number
  /** All rows before this one are in the data store, as they are here. */
  unkeptRow: number
  /** The data store holds everything through here, durably or with the batch under way. */
  settled: Position
  /** The last flush with a record of this group, and the group's number in it. */
  lastFlush: number
  lastSlot: number
}

const cellsPerPosition = 8
const promisedAt = 1
const acceptedAt = 2
const chosenAt = 3
const flushAt = 4
const indexAt = 5
/** The last flush with a record of the position; and the one through which its row has them. */
const lastFlushAt = 6
const rowFlushAt = 7
/** In place of a ballot's number, a flush, an index: there is none. */
const none = -1
/** In place of an index: the value is damaged. */
const faulty = -2
/** Groups whose settled position is held after all else of them has left. */
const leftGroupsMax = 20_000

export class LogIndex {
  readonly #groups = new Map<GroupId, GroupPositions>()
  /** How far groups were settled when they left: they come back with the next entry, or a peer's digest. */
  readonly #left = new BoundedMap<GroupId, Position>(leftGroupsMax)
  readonly #ballots = new BallotTable()
  readonly #rows: SettledPositions

  constructor(rows: SettledPositions = nothingSettled) {
    this.#rows = rows
  }

  /**
   * Takes the next record in, one of flush `flush`. `place` says where its value stands: `faulty`
   * when the bytes there are bad, undefined when the record brings none.
   */
  fold(record: Fold, place: Place | 'faulty' | undefined, flush: number): GroupPositions {
    const found = this.#ensureGroup(record.group)
    const { cells } = found
    const row = this.#rowFor(found, record.position)
    // Taken up from a row that was written after this record.
    if ((cells[row + rowFlushAt] ?? none) >= flush) return found
    cells[row + lastFlushAt] = flush
    found.unkeptRow = Math.min(found.unkeptRow, row)
    const ballot = this.#ballots.findNumber(record.ballot)
    if (record.kind === 'chosen') {
      const isKnown = place !== undefined || cells[row + acceptedAt] === ballot
      assert(isKnown, 'PAX-1: decided without a value at a ballot that was not accepted here')
      cells[row + chosenAt] = ballot
      if (place !== undefined) setPlace(cells, row, place)
      return found
    }
    const promised = this.#ballotIn(cells, row + promisedAt)
    const isHigher = promised === undefined || compareBallots(record.ballot, promised) >= 0
    assert(isHigher, 'PAX-2: a promise goes down in the log')
    cells[row + promisedAt] = ballot
    if (record.kind === 'promise') return found
    cells[row + acceptedAt] = ballot
    // A decided value stays, whatever is accepted beside it later.
    if (cells[row + chosenAt] === none) setPlace(cells, row, place ?? 'faulty')
    return found
  }

  #ensureGroup(group: GroupId): GroupPositions {
    let found = this.#groups.get(group)
    if (found === undefined) {
      const settled = this.#settledWhenLeft(group)
      found = noPositions(group, settled)
      this.#groups.set(group, found)
    }
    return found
  }

  #held(group: GroupId): GroupPositions {
    return this.#groups.get(group) ?? noPositions(group, 0)
  }

  #settledWhenLeft(group: GroupId): Position {
    return this.#left.get(group) ?? this.#rows.applied(group)
  }

  /** The row of `position`, made when it is not here. Nearly always that is the last one, or after it. */
  #rowFor(found: GroupPositions, position: Position): number {
    const { group, cells, settled } = found
    const last = cells.length - cellsPerPosition
    if (cells[last] === position) return last
    const row = lowerBound(found, position)
    if (cells[row] === position) return row
    const kept = position <= settled ? this.#rows.row(group, position) : undefined
    this.#insert(found, row, position, kept)
    return row
  }

  #insert(found: GroupPositions, row: number, position: Position, kept?: PositionRow): void {
    const { cells } = found
    // Nothing is said of it yet that the data store has not.
    if (row <= found.unkeptRow) found.unkeptRow += cellsPerPosition
    if (kept === undefined && row === cells.length) {
      cells.push(position, none, none, none, none, none, none, none)
      return
    }
    const { promised, accepted, chosen, place, lastFlush = none } = kept ?? {}
    const ballots = [promised, accepted, chosen].map((ballot) => this.#findNumber(ballot))
    const fresh = [position, ...ballots, none, none, lastFlush, lastFlush]
    if (place !== undefined) setPlace(fresh, 0, place)
    if (row === cells.length) cells.push(...fresh)
    else cells.splice(row, 0, ...fresh)
  }

  #findNumber(ballot: Ballot | undefined): number {
    return ballot === undefined ? none : this.#ballots.findNumber(ballot)
  }

  #ballotIn(cells: readonly number[], at: number): Ballot | undefined {
    const number = cells[at] ?? none
    return number === none ? undefined : this.#ballots.at(number)
  }

  /** Takes up a position that only its row tells of, though the data store has not applied it. */
  carry(group: GroupId, position: Position, of: PositionRow): GroupPositions {
    const found = this.#ensureGroup(group)
    const row = lowerBound(found, position)
    assert(found.cells[row] !== position, 'replica: a position is carried over once')
    this.#insert(found, row, position, of)
    return found
  }

  /** A batch of the data store takes the group to this position. Gives what is held of it. */
  settle(group: GroupId, position: Position): GroupPositions | undefined {
    const found = this.#groups.get(group)
    if (found === undefined) this.#left.set(group, position)
    else found.settled = position
    return found
  }

  /**
   * Writes the rows that are missing or behind of what the log durably says: of positions that are
   * settled, and of all through `through`. False: one of the latter is still being written to.
   */
  keepRows(found: GroupPositions, durableFlush: number, through: Position): boolean {
    const { group, cells, settled } = found
    let isWhole = true
    let unkept: number | undefined
    let row = found.unkeptRow
    for (; row < cells.length; row += cellsPerPosition) {
      const position = cells[row] ?? 0
      if (position > settled && position > through) break
      const lastFlush = cells[row + lastFlushAt] ?? none
      if (lastFlush > durableFlush) {
        unkept ??= row
        isWhole &&= position > through
      } else if (cells[row + rowFlushAt] !== lastFlush) {
        this.#rows.keep(group, position, this.#rowAt(cells, row))
        cells[row + rowFlushAt] = lastFlush
      }
    }
    found.unkeptRow = unkept ?? row
    return isWhole
  }

  #rowAt(cells: readonly number[], row: number): PositionRow {
    const { promised, accepted, chosen } = this.#headerAt(cells, row)
    const place = placeAt(cells, row)
    return { promised, accepted, chosen, place, lastFlush: cells[row + lastFlushAt] ?? none }
  }

  /**
   * The rows are durable: a settled position that no record has changed since need not stay. Positions
   * leave up to the first that has to stay: those behind it leave when that one has its row.
   */
  release(found: GroupPositions): void {
    const { group, cells, settled } = found
    let row = found.firstRow
    for (; row < cells.length; row += cellsPerPosition) {
      const isKept = cells[row + rowFlushAt] === cells[row + lastFlushAt]
      if (!isKept || (cells[row] ?? 0) > settled) break
    }
    leaveOut(found, row)
    // A group that left before, and has come back since, is another one.
    if (found.cells.length > 0 || this.#groups.get(group) !== found) return
    this.#groups.delete(group)
    this.#left.set(group, settled)
  }

  /** Positions that have a row, though the data store has not applied them. */
  *open(found: GroupPositions): Generator<Position, void> {
    const { cells, settled } = found
    for (let row = lowerBound(found, settled + 1); row < cells.length; row += cellsPerPosition) {
      if (cells[row + rowFlushAt] !== none) yield cells[row] ?? 0
    }
  }

  hasOpen(found: GroupPositions): boolean {
    return this.open(found).next().done !== true
  }

  /**
   * The positions above `above` that are held here, ascending: all that the data store has not. One at
   * a time: there may be millions, of which a part is wanted.
   */
  *above(group: GroupId, above: Position): Generator<PositionHeader, void> {
    const found = this.#held(group)
    const { cells } = found
    for (let row = lowerBound(found, above + 1); row < cells.length; row += cellsPerPosition) {
      yield this.#headerAt(cells, row)
    }
  }

  header(group: GroupId, position: Position): PositionHeader | undefined {
    const found = this.#held(group)
    const { cells } = found
    const row = lowerBound(found, position)
    if (cells[row] === position) return this.#headerAt(cells, row)
    const kept = this.#rows.row(group, position)
    if (kept === undefined) return undefined
    const { promised, accepted, chosen, place } = kept
    return { position, promised, accepted, chosen, faulty: place === 'faulty' }
  }

  #headerAt(cells: readonly number[], row: number): PositionHeader {
    return {
      position: cells[row] ?? 0,
      promised: this.#ballotIn(cells, row + promisedAt),
      accepted: this.#ballotIn(cells, row + acceptedAt),
      chosen: this.#ballotIn(cells, row + chosenAt),
      faulty: cells[row + indexAt] === faulty,
    }
  }

  /** Whether a position that is not held here has a row: the data store has had it applied. */
  wasSettled(group: GroupId, position: Position): boolean {
    const found = this.#held(group)
    const isHeld = found.cells[lowerBound(found, position)] === position
    return !isHeld && this.#rows.row(group, position) !== undefined
  }

  /** Where the position's value stands. */
  place(group: GroupId, position: Position): Place | 'faulty' | undefined {
    const found = this.#held(group)
    const { cells } = found
    const row = lowerBound(found, position)
    return cells[row] === position ? placeAt(cells, row) : this.#rows.row(group, position)?.place
  }

  /** At which ballot the position was chosen, if that is known, and where its value stands. */
  chosen(
    group: GroupId,
    position: Position,
  ):
    | { readonly ballot: Ballot | undefined; readonly place: Place | 'faulty' | undefined }
    | undefined {
    const found = this.#held(group)
    const { cells } = found
    const row = lowerBound(found, position)
    if (cells[row] === position) {
      return { ballot: this.#ballotIn(cells, row + chosenAt), place: placeAt(cells, row) }
    }
    const kept = this.#rows.row(group, position)
    return kept && { ballot: kept.chosen, place: kept.place }
  }

  /** The position's value turned out to be damaged. Of what is not held here, each read finds that. */
  damage(group: GroupId, position: Position): void {
    const found = this.#held(group)
    const { cells } = found
    const row = lowerBound(found, position)
    if (cells[row] === position) setPlace(cells, row, 'faulty')
  }

  /** The group's highest position with a value, accepted, decided or applied; 0 when there is none. */
  highest(group: GroupId): Position {
    const found = this.#groups.get(group)
    if (found === undefined) return this.#settledWhenLeft(group)
    const { cells, firstRow, settled } = found
    for (let row = cells.length - cellsPerPosition; row >= firstRow; row -= cellsPerPosition) {
      if (cells[row + indexAt] !== none) return Math.max(settled, cells[row] ?? 0)
    }
    return settled
  }
}

export function noPositions(group: GroupId, settled: Position): GroupPositions {
  return { group, cells: [], firstRow: 0, unkeptRow: 0, settled, lastFlush: 0, lastSlot: 0 }
}

/** Rows before `row` leave. The others are moved when less than half is left: each row about once. */
function leaveOut(found: GroupPositions, row: number): void {
  const isMoved = row * 2 > found.cells.length
  if (isMoved) found.cells = found.cells.slice(row)
  found.unkeptRow = Math.max(found.unkeptRow, row) - (isMoved ? row : 0)
  found.firstRow = isMoved ? 0 : row
}

function placeAt(cells: readonly number[], row: number): Place | 'faulty' | undefined {
  const index = cells[row + indexAt] ?? none
  if (index === faulty) return 'faulty'
  return index === none ? undefined : { flush: cells[row + flushAt] ?? 0, index }
}

function setPlace(cells: number[], row: number, place: Place | 'faulty'): void {
  cells[row + flushAt] = place === 'faulty' ? none : place.flush
  cells[row + indexAt] = place === 'faulty' ? faulty : place.index
}

/** The first row at or above `position`. */
function lowerBound({ cells, firstRow }: GroupPositions, position: Position): number {
  let low = firstRow / cellsPerPosition
  let high = cells.length / cellsPerPosition
  // Positions are mostly dense, so the row is mostly at its distance from the end.
  const guess = high - 1 - ((cells[cells.length - cellsPerPosition] ?? 0) - position)
  if (guess >= high) return cells.length
  if (guess >= low && cells[guess * cellsPerPosition] === position) return guess * cellsPerPosition
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((cells[middle * cellsPerPosition] ?? 0) < position) low = middle + 1
    else high = middle
  }
  return low * cellsPerPosition
}
