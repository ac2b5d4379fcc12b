/**
 * How far a peer's flushes are known at this node for good: after a start it asks for digests from there
 * on, and not for all that was ever written. A second one goes by the data store instead of the log, and by its
 * batches instead of flushes (`peer-marks.ts`).
 *
 * LOG-9  What a peer is not asked for again is in this node's own log, durably, or applied here.
 *
 * What a digest names is known once this node's log has a record with a value of it, and known for good
 * once that record's flush is durable. Some of what is named is always on its way here; so digests are
 * taken in two lots, and a lot is done with when the last of what it lacked has come. A node that was
 * away lacks much: while a lot of it is on its way, no more of it is to be named (`isFull`).
 */
import { assert } from '../base/assert.ts'
import type { GroupId, Position } from '../base/ids.ts'

/** The own log, as far as it is looked at here. */
export interface OwnLog {
  /** The last flush that records have gone into, written or not. */
  readonly lastFlush: number
  readonly durableFlush: number
  /** The group's highest position with a value; 0 when there is none. */
  highest(group: GroupId): Position
}

interface Lot {
  /** The peer's flushes through this one are named in it, or before it. */
  through: number
  /** Named, and not known when it was. */
  readonly lacking: Map<GroupId, Position>
  /** All of it is known: in the own log through this flush. */
  coveredByFlush: number | undefined
}

/** How many groups of a lot that have not come one look goes over: the next look goes over others. */
const looksMax = 256

export class PeerDigestCursor {
  readonly #log: OwnLog
  #through: number
  #coveredByFlush: number
  /** Something will not come, or was not named: nothing behind it counts as known. */
  #isHalted = false
  #older: Lot
  #newer: Lot
  /** Lots that are done with. */
  #ended = 0

  constructor(log: OwnLog, through: number) {
    this.#log = log
    this.#through = through
    this.#coveredByFlush = log.durableFlush
    this.#older = lotAfter(through)
    this.#newer = lotAfter(through)
  }

  /** The peer's flushes through here need not be asked for again. */
  get through(): number {
    return this.#through
  }

  /** A log that has become shorter than this is not the one that knows of them. */
  get coveredByFlush(): number {
    return this.#coveredByFlush
  }

  /**
   * The next digest was taken up. `groups`: those that it names with a position that the log lacks, and
   * that are on their way here; `isAll`: no others are lacking, as far as the digest can tell.
   */
  take(through: number, groups: Iterable<readonly [GroupId, Position]>, isAll: boolean): void {
    const { lacking } = this.#newer
    this.#isHalted ||= !isAll
    // A digest of before where this one began names some of it again.
    if (!this.#isHalted) this.#newer.through = Math.max(this.#newer.through, through)
    for (const [group, position] of groups) {
      lacking.set(group, Math.max(position, lacking.get(group) ?? 0))
    }
  }

  /** Whether all that was named so far is `isKnown`; false where something was not named, or will not come. */
  isTaken(isKnown: (group: GroupId, position: Position) => boolean): boolean {
    if (this.#isHalted) return false
    for (const { lacking } of [this.#older, this.#newer]) {
      for (const [group, position] of lacking) {
        if (this.#log.highest(group) < position && !isKnown(group, position)) return false
      }
    }
    return true
  }

  /** The number of the lot that the last digest went into: with it ends all that was named so far. */
  get lastLot(): number {
    return this.#ended + 2
  }

  /**
   * Whether all is known for good that was named in this lot and before. Digests that come later hold it up by one lot at
   * most, however busy their groups are.
   */
  hasEnded(lot: number): boolean {
    if (this.#ended < lot) this.advance()
    return this.#ended >= lot
  }

  /** Whether `max` or more of what was named are still on their way. */
  isFull(max: number): boolean {
    if (this.#named < max) return false
    this.#letGo(this.#older)
    this.#letGo(this.#newer)
    return this.#named >= max
  }

  get #named(): number {
    return this.#older.lacking.size + this.#newer.lacking.size
  }

  /** Of what the log has by now. What it still lacks is put behind the rest. */
  #letGo({ lacking }: Lot): void {
    let looks = Math.min(looksMax, lacking.size)
    for (const [group, position] of lacking) {
      if (looks === 0) return
      lacking.delete(group)
      if (this.#log.highest(group) >= position) continue
      lacking.set(group, position)
      looks -= 1
    }
  }

  /** Moves on as far as the own log allows. Returns whether it did. */
  advance(): boolean {
    const before = this.#older
    const isFurther = this.#endLot()
    // All of the next lot may be here as well: it waits for no other look.
    const isNextDue = this.#older !== before && this.#older.through > this.#through
    return (isNextDue && this.#endLot()) || isFurther
  }

  /** Is done with the older lot, where all of it is known for good. Returns whether more of the peer's flushes count by that. */
  #endLot(): boolean {
    const { lacking, through } = this.#older
    for (const [group, position] of lacking) {
      // One that is still lacking holds up the lot: those behind it are not looked at until it has come.
      if (this.#log.highest(group) < position) return false
      lacking.delete(group)
    }
    this.#older.coveredByFlush ??= this.#log.lastFlush
    if (this.#log.durableFlush < this.#older.coveredByFlush) return false
    assert(through >= this.#through, 'LOG-9: digests are taken up in order')
    const isFurther = through > this.#through
    this.#through = through
    this.#coveredByFlush = this.#older.coveredByFlush
    this.#ended += 1
    this.#older = this.#newer
    this.#newer = lotAfter(this.#older.through)
    return isFurther
  }
}

function lotAfter(through: number): Lot {
  return { through, lacking: new Map(), coveredByFlush: undefined }
}
