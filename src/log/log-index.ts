/**
 * The log's facts about each (group, position), folded over its records in order: the promise, the
 * acceptance, the decision, and where the value stands. It is the same at run time and after a restart,
 * because both go through `fold`.
 *
 * PAX-2  A promise never goes down; an acceptance is never below it.
 * LOG-7  Once a position is settled (the data store has applied it), no record of it is written any more.
 *
 * Held here are the positions that are not settled. Readers look for the values of the others in the flushes
 * (`flush-chain.ts`). One flat array of numbers a group, seven a position, ascending by position: no
 * object is kept for a record.
 */
import { assert } from '../base/assert.ts'
import { BoundedMap } from '../base/bounded-map.ts'
import type { GroupId, Position } from '../base/ids.ts'
import { compareBallots, type Ballot } from '../paxos/ballot.ts'
import { BallotTable } from './ballot-table.ts'
import type { FlushRecord } from './flush.ts'
import {
  nothingSettled,
  stretchPositions,
  type Applied,
  type Place,
  type PositionRow,
  type SettledPositions,
} from './settled.ts'

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
  readonly kind: FlushRecord['kind']
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
  /** The data store holds everything through here, durably or with the batch under way. */
  settled: Position
  /** The position of the last snapshot that was taken in; 0: there was none. */
  snapshot: Position
  /** The last flush with a record of a settled position, or one after it. */
  settledFlush: number
  /** The last flush with a record of this group, and the group's number in it. */
  lastFlush: number
  lastSlot: number
  /** The last flush with copies of all that was open then; 0: there is none. */
  copiedIn: number
}

const cellsPerPosition = 7
const promisedAt = 1
const acceptedAt = 2
const chosenAt = 3
const flushAt = 4
const indexAt = 5
/** The last flush with a record of the position. */
const lastFlushAt = 6
/** In place of a ballot's number, a flush, an index: there is none. */
const none = -1
/** In place of an index: the value is damaged. */
const faulty = -2
/** Groups of which is held how far they are settled, after all else of them has left. */
const leftGroupsMax = 20_000

export class LogIndex {
  readonly #groups = new Map<GroupId, GroupPositions>()
  /** Groups that left: they come back with the next entry, or a peer's digest. */
  readonly #left = new BoundedMap<GroupId, Applied>(leftGroupsMax)
  readonly #ballots = new BallotTable()
  readonly #rows: SettledPositions
  /** A start folds what was written before: some of it is settled, and which flush is the last is not known yet. */
  #isFolding = true

  constructor(rows: SettledPositions = nothingSettled) {
    this.#rows = rows
  }

  /** All flushes that are there are folded. `isWhole`: none with a position of these was given up (LOG-19). */
  onFolded(isWhole: boolean): void {
    this.#isFolding = false
    for (const found of this.#groups.values()) {
      settlePlaces(found, isWhole)
      // Taken up from its row: no flush that was folded names it.
      found.lastFlush ||= found.settledFlush
    }
  }

  /**
   * Takes the next record in, one of flush `flush`. `place` says where its value stands: `faulty`
   * when the bytes there are bad, undefined when the record brings none.
   */
  fold(record: Fold, place: Place | 'faulty' | undefined, flush: number): GroupPositions {
    const { position } = record
    const found = this.#ensureGroup(record.group)
    if (position <= found.settled) {
      assert(this.#isFolding, 'LOG-7: a record of a position that is settled')
      return found
    }
    const { cells } = found
    const row = this.#rowFor(found, position)
    cells[row + lastFlushAt] = flush
    const ballot = this.#ballots.findNumber(record.ballot)
    if (record.kind === 'chosen') {
      this.#choose(cells, row, ballot, place)
      return found
    }
    const isHigher = this.#promise(cells, row, record.ballot)
    assert(isHigher || record.kind === 'copied', 'PAX-2: a promise goes down in the log')
    if (record.kind === 'promise') return found
    cells[row + acceptedAt] = ballot
    const isDecided = cells[row + chosenAt] !== none
    const isUnplaced = isDecided && cells[row + indexAt] === none
    // A decided value stays, whatever is accepted beside it later.
    if (!isDecided || isUnplaced) setPlace(cells, row, place ?? 'faulty')
    return found
  }

  #choose(cells: number[], row: number, ballot: number, place: Place | 'faulty' | undefined): void {
    const isAccepted = cells[row + acceptedAt] === ballot
    // A start folds the decision, and not the acceptance, where a copy of that follows (LOG-7).
    assert(
      place !== undefined || isAccepted || this.#isFolding,
      'PAX-1: decided without a value at a ballot that was not accepted here',
    )
    cells[row + chosenAt] = ballot
    if (place !== undefined) setPlace(cells, row, place)
  }

  /** False: a higher ballot is promised. */
  #promise(cells: number[], row: number, ballot: Ballot): boolean {
    const promised = this.#ballotIn(cells, row + promisedAt)
    const isHigher = promised === undefined || compareBallots(ballot, promised) >= 0
    if (isHigher) cells[row + promisedAt] = this.#ballots.findNumber(ballot)
    return isHigher
  }

  /** Flush `flush` has the facts of an open position again; `place`: where the copy's value stands. */
  onCopied(found: GroupPositions, copy: Fold, place: Place | undefined, flush: number): void {
    const { cells } = found
    const row = lowerBound(found, copy.position)
    assert(cells[row] === copy.position, 'LOG-7: a position is copied that is not held')
    cells[row + lastFlushAt] = flush
    if (copy.kind === 'copied') {
      this.#promise(cells, row, copy.ballot)
      cells[row + acceptedAt] = this.#ballots.findNumber(copy.ballot)
    }
    if (place !== undefined) setPlace(cells, row, place)
  }

  #ensureGroup(group: GroupId): GroupPositions {
    let found = this.#groups.get(group)
    if (found === undefined) {
      const { position, lastFlush, snapshot } = this.#whenLeft(group)
      found = noPositions(group, position)
      found.snapshot = snapshot
      found.settledFlush = lastFlush
      // The flushes that a start folds say which of them comes before which.
      if (!this.#isFolding) found.lastFlush = lastFlush
      this.#groups.set(group, found)
    }
    return found
  }

  #held(group: GroupId): GroupPositions {
    return this.#groups.get(group) ?? noPositions(group, 0)
  }

  #whenLeft(group: GroupId): Applied {
    return this.#left.get(group) ?? this.#rows.applied(group)
  }

  /** The row of `position`, made when it is not here. Nearly always that is the last one, or after it. */
  #rowFor(found: GroupPositions, position: Position): number {
    const { cells } = found
    const last = cells.length - cellsPerPosition
    if (cells[last] === position) return last
    const row = lowerBound(found, position)
    if (cells[row] !== position) insert(cells, row, [position, none, none, none, none, none, none])
    return row
  }

  #findNumber(ballot: Ballot | undefined): number {
    return ballot === undefined ? none : this.#ballots.findNumber(ballot)
  }

  #ballotIn(cells: readonly number[], at: number): Ballot | undefined {
    const number = cells[at] ?? none
    return number === none ? undefined : this.#ballots.at(number)
  }

  /** Takes up an open position that only its row tells of, as earlier builds kept it. */
  carry(group: GroupId, position: Position, of: PositionRow): GroupPositions {
    const found = this.#ensureGroup(group)
    const row = lowerBound(found, position)
    assert(found.cells[row] !== position, 'replica: a position is carried over once')
    const { promised, accepted, chosen, place, lastFlush } = of
    const ballots = [promised, accepted, chosen].map((ballot) => this.#findNumber(ballot))
    const fresh = [position, ...ballots, none, none, lastFlush]
    if (place !== undefined) setPlace(fresh, 0, place)
    insert(found.cells, row, fresh)
    return found
  }

  /**
   * A batch of the data store takes the group to this position, by entries or by a snapshot. Gives the group's held
   * positions.
   */
  settle(group: GroupId, position: Position, isSnapshot = false): GroupPositions {
    const found = this.#ensureGroup(group)
    const before = found.settled
    assert(position >= before, 'LOG-7: a group is less settled than it was')
    // One of the same position takes the place of wrong rows (HEAL-5).
    assert(!isSnapshot || position >= before, 'SNAP-1: a snapshot takes a group back')
    found.settled = position
    if (isSnapshot) found.snapshot = position
    this.#keepStretchEnds(found, before)
    return found
  }

  /** Of the positions that are settled now and were not `before`: where searches for them may begin. */
  #keepStretchEnds(found: GroupPositions, before: Position): void {
    const { group, cells, settled } = found
    for (let row = lowerBound(found, before + 1); row < cells.length; row += cellsPerPosition) {
      const position = cells[row] ?? 0
      if (position > settled) return
      found.settledFlush = Math.max(found.settledFlush, cells[row + lastFlushAt] ?? 0)
      if (position % stretchPositions !== 0) continue
      this.#rows.keepStretchEnd(group, position, found.settledFlush)
    }
  }

  /**
   * The batch is durable: settled positions leave. The last flush of the group, as the data store has it now,
   * leads to all of its records.
   */
  release(found: GroupPositions): void {
    const { group, settled, lastFlush, snapshot } = found
    leaveOut(found, lowerBound(found, settled + 1))
    // A group that left before, and has come back since, is another one.
    if (found.firstRow < found.cells.length || this.#groups.get(group) !== found) return
    this.#groups.delete(group)
    this.#left.set(group, { position: settled, lastFlush, snapshot })
  }

  /** Headers of the positions that are held and not settled, ascending. */
  *open(found: GroupPositions): Generator<PositionHeader, void> {
    const { cells, settled } = found
    for (let row = lowerBound(found, settled + 1); row < cells.length; row += cellsPerPosition) {
      yield this.#headerAt(cells, row)
    }
  }

  hasOpen(found: GroupPositions): boolean {
    return this.open(found).next().done !== true
  }

  /** The last flush that names the group; 0: unknown, or there is none. */
  lastFlush(group: GroupId): number {
    return this.#groups.get(group)?.lastFlush ?? this.#whenLeft(group).lastFlush
  }

  /** The position of the last snapshot of the group that was taken in; 0: there was none. */
  snapshot(group: GroupId): Position {
    return this.#groups.get(group)?.snapshot ?? this.#whenLeft(group).snapshot
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

  /** Undefined: nothing is known of the position, or it is settled and has left. */
  header(group: GroupId, position: Position): PositionHeader | undefined {
    const found = this.#held(group)
    const { cells } = found
    const row = lowerBound(found, position)
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

  /** Whether the data store has once held the group through this position, as far as that is remembered. */
  wasSettled(group: GroupId, position: Position): boolean {
    const known = this.#groups.get(group)?.settled ?? this.#left.get(group)?.position ?? 0
    return position <= known
  }

  /** How far the data store holds the group, durably or with the batch under way. */
  settled(group: GroupId): Position {
    return this.#groups.get(group)?.settled ?? this.#whenLeft(group).position
  }

  /** The groups of which positions are held, or were until the batch under way. */
  groups(): Iterable<GroupId> {
    return this.#groups.keys()
  }

  /** Where the value of a position that is held stands. */
  place(group: GroupId, position: Position): Place | 'faulty' | undefined {
    const found = this.#held(group)
    const { cells } = found
    const row = lowerBound(found, position)
    return cells[row] === position ? placeAt(cells, row) : undefined
  }

  /** At which ballot the position was chosen, if that is known, and where its value stands; undefined: it is not held. */
  chosen(
    group: GroupId,
    position: Position,
  ):
    | { readonly ballot: Ballot | undefined; readonly place: Place | 'faulty' | undefined }
    | undefined {
    const found = this.#held(group)
    const { cells } = found
    const row = lowerBound(found, position)
    if (cells[row] !== position) return undefined
    return { ballot: this.#ballotIn(cells, row + chosenAt), place: placeAt(cells, row) }
  }

  /**
   * The flush from which a search for a settled position may begin; 0: no flush names the group, or the log has given
   * up those that name the position. `isCut`: the log has given up flushes, and rows with them.
   */
  searchFrom(group: GroupId, position: Position, isCut: boolean): number {
    if (position <= this.snapshot(group)) return 0
    const end = Math.ceil(position / stretchPositions) * stretchPositions
    const flush = this.#rows.stretchEnd(group, end)
    // Without its row the search would go through all that the log has of the group, in vain.
    if (flush === undefined && isCut && end <= this.settled(group)) return 0
    return flush ?? this.lastFlush(group)
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
    if (found === undefined) return this.#whenLeft(group).position
    const { cells, firstRow, settled } = found
    for (let row = cells.length - cellsPerPosition; row >= firstRow; row -= cellsPerPosition) {
      if (cells[row + indexAt] !== none) return Math.max(settled, cells[row] ?? 0)
    }
    return settled
  }
}

export function noPositions(group: GroupId, settled: Position): GroupPositions {
  const flushes = { snapshot: 0, settledFlush: 0, lastFlush: 0, lastSlot: 0, copiedIn: 0 }
  return { group, cells: [], firstRow: 0, settled, ...flushes }
}

/**
 * A start may fold a decision before its value: once all is folded, that is there (LOG-7). It may be gone where the log
 * has given it up and the data store is made anew: then peers have it, as they have a damaged one (LOG-19).
 */
function settlePlaces({ cells, firstRow }: GroupPositions, isWhole: boolean): void {
  for (let row = firstRow; row < cells.length; row += cellsPerPosition) {
    const isPlaced = cells[row + chosenAt] === none || cells[row + indexAt] !== none
    assert(isPlaced || !isWhole, 'PAX-1: decided without a value that was accepted or copied here')
    if (!isPlaced) cells[row + indexAt] = faulty
  }
}

function insert(cells: number[], row: number, fresh: readonly number[]): void {
  if (row === cells.length) cells.push(...fresh)
  else cells.splice(row, 0, ...fresh)
}

/** Rows before `row` leave. The others are moved when less than half is left: each row about once. */
function leaveOut(found: GroupPositions, row: number): void {
  const isMoved = row * 2 > found.cells.length
  if (isMoved) found.cells = found.cells.slice(row)
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
