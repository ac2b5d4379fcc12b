/**
 * What the log says of each (group, position), folded over its records in order: the promise, the
 * acceptance, the decision, and where the value stands. It is the same at run time and after a
 * restart, because both go through `fold`.
 *
 * PAX-2  A promise never goes down; an acceptance is never below it.
 *
 * One flat array of numbers a group, six a position, ascending by position: no object and no value
 * is kept for a record.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, Position } from '../base/ids.ts'
import { compareBallots, type Ballot } from '../paxos/ballot.ts'
import type { LogRecord } from '../replication/effect.ts'
import { BallotTable } from './ballot-table.ts'

/** What is known of one position. */
export interface PositionHeader {
  readonly position: Position
  readonly promised: Ballot | undefined
  readonly accepted: Ballot | undefined
  readonly chosen: Ballot | undefined
  /** There should be a value, and the disk has damaged it. */
  readonly faulty: boolean
}

/** Where a value stands: in record `index` (from 0) of a flush. */
export interface Place {
  readonly flush: number
  readonly index: number
}

/** A record without its bytes. */
export interface Fold {
  readonly kind: LogRecord['kind']
  readonly group: GroupId
  readonly position: Position
  readonly ballot: Ballot
}

/** All that is known of a group. `cells` belongs to this file; the rest to the flush ledger. */
export interface GroupPositions {
  readonly group: GroupId
  readonly cells: number[]
  /** The data store durably holds everything through here. */
  settled: Position
  /** The last flush with a record of this group, and the group's number in it. */
  lastFlush: number
  lastSlot: number
}

const cellsPerPosition = 6
const promisedAt = 1
const acceptedAt = 2
const chosenAt = 3
const flushAt = 4
const indexAt = 5
/** In place of a ballot's number, a flush, an index: there is none. */
const none = -1
/** In place of an index: the value is damaged. */
const faulty = -2

export class LogIndex {
  readonly #groups = new Map<GroupId, GroupPositions>()
  readonly #ballots = new BallotTable()

  /**
   * Takes the next record in. `place` says where its value stands: `faulty` when the bytes there
   * are bad, undefined when the record brings none.
   */
  fold(record: Fold, place: Place | 'faulty' | undefined): GroupPositions {
    const found = this.#groupOf(record.group, record.position)
    const { cells } = found
    const row = rowFor(cells, record.position)
    const ballot = this.#ballots.numberOf(record.ballot)
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

  #groupOf(group: GroupId, position: Position): GroupPositions {
    let found = this.#groups.get(group)
    if (found === undefined) {
      // Written out: an empty list that is pushed to takes room for four positions at once.
      const cells = [position, none, none, none, none, none]
      found = { group, cells, settled: 0, lastFlush: 0, lastSlot: 0 }
      this.#groups.set(group, found)
    }
    return found
  }

  #ballotIn(cells: readonly number[], at: number): Ballot | undefined {
    const number = cells[at] ?? none
    return number === none ? undefined : this.#ballots.at(number)
  }

  find(group: GroupId): GroupPositions | undefined {
    return this.#groups.get(group)
  }

  /** The positions above `above`, ascending. */
  above(group: GroupId, above: Position): readonly PositionHeader[] {
    const cells = this.#groups.get(group)?.cells ?? []
    const headers: PositionHeader[] = []
    for (let row = lowerBound(cells, above + 1); row < cells.length; row += cellsPerPosition) {
      headers.push(this.#headerAt(cells, row))
    }
    return headers
  }

  header(group: GroupId, position: Position): PositionHeader | undefined {
    const cells = this.#groups.get(group)?.cells ?? []
    const row = lowerBound(cells, position)
    return cells[row] === position ? this.#headerAt(cells, row) : undefined
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

  /** Where the position's value stands. */
  place(group: GroupId, position: Position): Place | 'faulty' | undefined {
    const cells = this.#groups.get(group)?.cells ?? []
    const row = lowerBound(cells, position)
    if (cells[row] !== position) return undefined
    const index = cells[row + indexAt] ?? none
    if (index === faulty) return 'faulty'
    return index === none ? undefined : { flush: cells[row + flushAt] ?? 0, index }
  }

  /** The position's value turned out to be damaged. */
  damage(group: GroupId, position: Position): void {
    const { cells } = this.#groupOf(group, position)
    setPlace(cells, rowFor(cells, position), 'faulty')
  }
}

/** The highest position with a value, accepted or decided; 0 when there is none. */
export function highestOf({ cells }: GroupPositions): Position {
  for (let row = cells.length - cellsPerPosition; row >= 0; row -= cellsPerPosition) {
    if (cells[row + indexAt] !== none) return cells[row] ?? 0
  }
  return 0
}

function setPlace(cells: number[], row: number, place: Place | 'faulty'): void {
  cells[row + flushAt] = place === 'faulty' ? none : place.flush
  cells[row + indexAt] = place === 'faulty' ? faulty : place.index
}

/** The row of `position`, made when it is new. Nearly always that is the last one, or after it. */
function rowFor(cells: number[], position: Position): number {
  const last = cells.length - cellsPerPosition
  if (cells[last] === position) return last
  const row = lowerBound(cells, position)
  if (cells[row] === position) return row
  if (row === cells.length) cells.push(position, none, none, none, none, none)
  else cells.splice(row, 0, position, none, none, none, none, none)
  return row
}

/** The first row at or above `position`. */
function lowerBound(cells: readonly number[], position: Position): number {
  let low = 0
  let high = cells.length / cellsPerPosition
  // Positions are mostly dense, so the row is mostly at its distance from the end.
  const guess = high - 1 - ((cells[cells.length - cellsPerPosition] ?? 0) - position)
  if (guess >= high) return cells.length
  if (guess >= 0 && cells[guess * cellsPerPosition] === position) return guess * cellsPerPosition
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((cells[middle * cellsPerPosition] ?? 0) < position) low = middle + 1
    else high = middle
  }
  return low * cellsPerPosition
}
