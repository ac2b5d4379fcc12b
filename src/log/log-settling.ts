/**
 * Moves the log's mark on, along with the applier's batches: the rows of what a batch settles go into
 * that batch, and so does the mark, over the flushes whose records are all in rows (`settled.ts`).
 *
 * LOG-7  The mark never passes a record that is in no row.
 *
 * A position that stays open (promised or accepted, and not decided) would hold the mark up for as long
 * as no client writes to its group. After `carryAfterFlushes` it is given a row and carried over: a start
 * takes it up from there. Where too many are, the node closes those that find no room.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, Position } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import { inTurns } from '../ports/turns.ts'
import { corruptData } from '../store/damage.ts'
import type { FlushLedger } from './flush-ledger.ts'
import type { GroupPositions, LogIndex } from './log-index.ts'
import type { Carried, SettledPositions } from './settled.ts'

/** A group of a batch, and the position that the batch takes it to. */
export interface Settled {
  readonly group: GroupId
  readonly position: Position
}

export interface SettlingParts {
  readonly index: LogIndex
  readonly ledger: FlushLedger
  readonly rows: SettledPositions
  readonly carryAfterFlushes: number
}

/** Groups of flushes that one batch passes: it bounds the rows beside those of the batch's own groups. */
const passedGroupsMax = 1_024
/** Groups carried over; the next one holds the mark up. */
const carriedGroupsMax = 1_000

export class LogSettling {
  /** A start takes the log up: entries not applied yet are about to be, and nothing is carried over. */
  isReplaying = false
  /** Positions of a group through here stay open, and hold the mark up. Called with each batch. */
  onHeldUp: (group: GroupId, through: Position) => void = () => undefined
  readonly #parts: SettlingParts
  readonly #carried = new Map<GroupId, GroupPositions>()
  /** Whether the next mark lists the carried-over positions anew. */
  #isListStale = false
  /** Groups that have settled positions or rows in the batch under way. */
  readonly #touched = new Set<GroupPositions>()
  #settledFlush: number
  #isBehind = false
  /** Positions that stay open in the flushes through here are carried over without a wait. */
  #hastenedFlush = 0

  constructor(parts: SettlingParts) {
    this.#parts = parts
    this.#settledFlush = parts.ledger.settledFlush
  }

  /** Loads the carried-over positions, which may be thousands; before all else. */
  async loadCarried(clock: Pick<Clock, 'defer'>): Promise<void> {
    const { index, rows } = this.#parts
    const applied = new Map<GroupId, Position>()
    for await (const some of inTurns(rows.carried(), clock)) {
      for (const [group, position] of some) {
        const through = applied.get(group) ?? rows.applied(group)
        applied.set(group, through)
        // Applied since, and the list not written anew.
        if (position <= through) continue
        const row = rows.row(group, position)
        if (row === undefined) {
          throw corruptData('what it says of an open position in the log is missing')
        }
        this.#carried.set(group, index.carry(group, position, row))
      }
    }
  }

  /** Every record in the flushes up to here is in a row, durably. */
  get settledFlush(): number {
    return this.#settledFlush
  }

  /** There was more to pass than one batch takes. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  /** The flushes through this one may be damaged on the disk: the next batches settle them. */
  hasten(flush: number): void {
    this.#hastenedFlush = flush
  }

  /** Groups with records that are not settled: recovery has to look at these. */
  unsettled(): Iterable<GroupId> {
    return new Set([...this.#carried.keys(), ...this.#parts.ledger.unsettled()])
  }

  /** A batch is put together that takes these groups to these positions. */
  onBatch(groups: readonly Settled[], durableFlush: number): void {
    const { index, ledger, rows } = this.#parts
    for (const { group, position } of groups) {
      const found = index.settle(group, position)
      if (found === undefined) continue
      this.#touched.add(found)
      this.#takeOff(found)
    }
    let left = passedGroupsMax
    let isOnItsWay = false
    const mark = ledger.advance(durableFlush, (group, flush, through) => {
      const isSettled = through <= group.settled
      const mayPass =
        left > 0 && (isSettled || this.#mayCarry(group, this.#isOld(flush, durableFlush), through))
      if (!mayPass) return 'wait'
      left -= 1
      if (this.#pass(group, durableFlush, through)) return 'pass'
      isOnItsWay = true
      return 'wait'
    })
    // The mark can pass flushes now on their way to the disk in a while, though no client writes to the
    // group again.
    this.#isBehind = left === 0 || (isOnItsWay && ledger.settledFlush < this.#hastenedFlush)
    if (mark === undefined) return
    rows.keepMark(mark, this.#isListStale ? this.#list() : undefined)
    this.#isListStale = false
  }

  /** Once all of it is applied. Not only with the next mark, which a group that finds no room holds up. */
  #takeOff(found: GroupPositions): void {
    if (!this.#carried.has(found.group)) return
    this.#isListStale = true
    if (!this.#parts.index.hasOpen(found)) this.#carried.delete(found.group)
  }

  #isOld(flush: number, durableFlush: number): boolean {
    return flush <= this.#hastenedFlush || durableFlush - flush >= this.#parts.carryAfterFlushes
  }

  #mayCarry({ group }: GroupPositions, isOld: boolean, through: Position): boolean {
    if (this.isReplaying || !isOld) return false
    if (this.#carried.has(group) || this.#carried.size < carriedGroupsMax) return true
    this.onHeldUp(group, through)
    return false
  }

  /** False: a record of one of those positions is on its way to the disk. */
  #pass(found: GroupPositions, durableFlush: number, through: Position): boolean {
    this.#touched.add(found)
    if (!this.#parts.index.keepRows(found, durableFlush, through)) return false
    if (through <= found.settled) return true
    this.#carried.set(found.group, found)
    this.#isListStale = true
    return true
  }

  #list(): readonly Carried[] {
    const list: Carried[] = []
    for (const [group, found] of this.#carried) {
      for (const position of this.#parts.index.open(found)) list.push([group, position])
    }
    return list
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
