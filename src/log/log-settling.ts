/**
 * Moves the log's mark on, along with the applier's batches, over the flushes that a start need not fold any
 * more: their positions are applied, or stand in a later flush again.
 *
 * LOG-7  The mark never passes a record of an open position that no later flush has.
 *
 * A position that stays open (promised or accepted, and not decided) would hold the mark up for as long
 * as no client writes to its group. After `carryAfterFlushes` it is carried: copied into a new flush. Where
 * too many are, the node closes those that find no room.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, Position } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import { inTurns } from '../ports/turns.ts'
import { corruptData } from '../store/damage.ts'
import type { FlushLedger } from './flush-ledger.ts'
import type { GroupPositions, LogIndex } from './log-index.ts'
import type { SettledPositions } from './settled.ts'

/** A group of a batch, and the position that the batch takes it to. */
export interface Settled {
  readonly group: GroupId
  readonly position: Position
  /** A snapshot of a peer takes the group there: the log need not hold the chosen values up to there. */
  readonly isSnapshot?: boolean
}

export interface SettlingParts {
  readonly index: LogIndex
  readonly ledger: FlushLedger
  readonly rows: SettledPositions
  readonly carryAfterFlushes: number
}

/** Groups of flushes that one batch passes: it bounds the work beside that of the batch's own groups. */
const passedGroupsMax = 1_024
/** The work of copying a group's open positions, in groups that are passed. */
const copyWeight = 16
/** Groups that are carried; the next one holds the mark up. */
const carriedGroupsMax = 1_000

export class LogSettling {
  /** A start takes the log up: entries not applied yet are about to be, and nothing is carried. */
  isReplaying = false
  /** Positions of a group through here stay open, and hold the mark up. Called with each batch. */
  onHeldUp: (group: GroupId, through: Position) => void = () => undefined
  /** Copies the group's open positions into a flush to come. False: it cannot. */
  copy: (found: GroupPositions) => boolean = () => false
  readonly #parts: SettlingParts
  /** Groups with open positions that were copied. */
  readonly #carried = new Set<GroupPositions>()
  /** Groups with open positions that stand in rows of an earlier build, and in no flush that a start folds. */
  readonly #fromRows = new Map<GroupId, GroupPositions>()
  /** Groups that the batch under way settles or passes. */
  readonly #touched = new Set<GroupPositions>()
  #settledFlush: number
  #isBehind = false
  /** Positions that stay open in the flushes through here are carried without a wait. */
  #hastenedFlush = 0

  constructor(parts: SettlingParts) {
    this.#parts = parts
    this.#settledFlush = parts.ledger.settledFlush
  }

  /** Loads the open positions that an earlier build kept in rows; before all else. */
  async loadCarried(clock: Pick<Clock, 'defer'>): Promise<void> {
    const { index, rows } = this.#parts
    for await (const some of inTurns(rows.carried(), clock)) {
      for (const [group, position] of some) {
        // Applied since, and the list not written anew.
        if (position <= rows.applied(group).position) continue
        const row = rows.row(group, position)
        if (row === undefined) {
          throw corruptData('what it says of an open position in the log is missing')
        }
        this.#fromRows.set(group, index.carry(group, position, row))
      }
    }
  }

  /** A start need not fold the flushes up to here: that is durable. */
  get settledFlush(): number {
    return this.#settledFlush
  }

  /** Whether rows of an earlier build alone tell of open positions: their values may stand in any flush. */
  get hasOldRows(): boolean {
    return this.#fromRows.size > 0
  }

  /** There was more to pass than one batch takes. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  /** The flushes through this one may be damaged on the disk: the next batches settle them. */
  hasten(flush: number): void {
    this.#hastenedFlush = Math.max(flush, this.#hastenedFlush)
  }

  /** Groups with records that are not settled: recovery has to look at these. */
  unsettled(): Iterable<GroupId> {
    return new Set([...this.#fromRows.keys(), ...this.#parts.ledger.unsettled()])
  }

  /** A batch is put together that takes these groups to these positions; the log is synced before it is written. */
  onBatch(groups: readonly Settled[], durableFlush: number): void {
    const { index, ledger, rows } = this.#parts
    for (const { group, position, isSnapshot } of groups) {
      const found = index.settle(group, position, isSnapshot)
      this.#touched.add(found)
      if (!index.hasOpen(found)) this.#carried.delete(found)
    }
    if (!this.isReplaying) this.#copyFromRows()
    let left = passedGroupsMax
    const mark = ledger.advance(durableFlush, (found, flush, through) => {
      if (left <= 0) return 'wait'
      const isNeeded = through > found.settled && flush >= found.copiedIn
      if (isNeeded && !this.#carry(found, flush, durableFlush, through)) return 'wait'
      this.#touched.add(found)
      left -= isNeeded ? copyWeight : 1
      return 'pass'
    })
    this.#isBehind = left <= 0
    if (mark !== undefined) rows.keepMark(mark)
  }

  /** Open positions that only rows tell of: a data store that is made anew would not have them. */
  #copyFromRows(): void {
    if (this.#fromRows.size === 0) return
    const { index, rows } = this.#parts
    for (const [group, found] of this.#fromRows) {
      if (index.hasOpen(found) && !this.copy(found)) continue
      this.#fromRows.delete(group)
    }
    if (this.#fromRows.size === 0) rows.dropCarried()
  }

  /** Whether the group's open positions stand in a flush to come. */
  #carry(found: GroupPositions, flush: number, durableFlush: number, through: Position): boolean {
    const isOld =
      flush <= this.#hastenedFlush || durableFlush - flush >= this.#parts.carryAfterFlushes
    if (this.isReplaying || !isOld) return false
    // A checkpoint settles these positions soon: the log need not have them twice.
    if (this.#parts.rows.isWaiting(found.group)) return false
    const hasRoom = this.#carried.has(found) || this.#carried.size < carriedGroupsMax
    if (hasRoom && this.copy(found)) {
      this.#carried.add(found)
      return true
    }
    this.onHeldUp(found.group, through)
    return false
  }

  /** The batch is durable. */
  onWritten(): void {
    const { index, ledger } = this.#parts
    for (const found of this.#touched) index.release(found)
    this.#touched.clear()
    assert(ledger.settledFlush >= this.#settledFlush, 'LOG-7: the mark goes back')
    this.#settledFlush = ledger.settledFlush
    ledger.trim()
  }
}
