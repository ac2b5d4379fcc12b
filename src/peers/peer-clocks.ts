/**
 * The wall clocks of the other nodes of a replica set, as far as they tell.
 *
 * CLOCK-1  A node whose wall clock is further ahead of those of a majority than `clockLeadMsMax` stamps
 *          entries by these clocks and that much more, and says so; by one more than the entry before
 *          where that is later still.
 * CLOCK-2  A node whose wall clock is further behind those of a majority stamps entries by these clocks
 *          and that much less, and says so; never beyond them.
 * CLOCK-3  A node is not ready before a majority has told its clocks, or it has waited `clockWaitMs`
 *          for them: until then it goes by its own, however far that is ahead.
 *
 * A node asks each peer what its clock shows. The peer looked between the question and its answer, so
 * its clock is known within the time that both took together: within nothing, or within seconds where
 * one of them waited in a loop that stood still, in a buffer or on the way. An answer that waited proves
 * little by itself, and never too much: only what holds for the whole of that time counts.
 *
 * Clocks are kept as distances from this node's monotonic clock, so that leaps of its own wall clock are
 * seen at once. A link that is lost changes nothing: that clock has gone on.
 */
import { assert } from '../base/assert.ts'
import type { NodeId, Timestamp } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { ClockReading } from '../lease/clock-reading.ts'
import { computeMajority } from '../placement/placement.ts'
import type { Clock } from '../ports/clock.ts'

/** A node asks each peer for its clock at this interval, beside each new link. */
export const clockTellMs = 1_000
/** An answer that took longer is of no use. */
export const clockAnswerMsMax = 10_000
/**
 * For this time after its start a node that lacks others' clocks is not ready; no longer, since some of
 * them may be down.
 */
export const clockWaitMs = 2_500
/** An answer from longer ago counts no more once a newer one comes: clocks drift. */
const windowMs = 10_000

/** Bounds on a peer's clock less this node's monotonic one, microseconds; the truth lies between them. */
interface Heard {
  readonly lowest: number
  readonly highest: number
  readonly atMs: number
}

/** How a wall clock is off. */
export type ClockFault = 'ahead' | 'behind'

export class PeerClocks {
  /** Of the replica set, as they are now. */
  readonly #voters: readonly NodeId[]
  readonly #leadMicrosMax: number
  /** Before this a node waits for clocks of others; there may be too few others to make up a majority. */
  readonly #waitUntilMs: number
  readonly #heard = new Map<NodeId, readonly Heard[]>()
  #heardMs = 0
  /**
   * The clocks of a majority are no further ahead of this node's monotonic one; infinite: that is not
   * known.
   */
  #highest: number = Number.POSITIVE_INFINITY
  /** And at least so far ahead. */
  #lowest: number = Number.NEGATIVE_INFINITY
  #fault: ClockFault | undefined
  /** It is too far off as far as is known; without what has been heard since, that may be a mistake. */
  #beyond: { readonly fault: ClockFault; readonly sinceMs: number } | undefined

  /** `voters`: of the replica set, a list that changes; `startMs`: of the monotonic clock. */
  constructor(
    voters: readonly NodeId[],
    { clockLeadMsMax }: Pick<Limits, 'clockLeadMsMax'>,
    startMs: number,
  ) {
    this.#voters = voters
    this.#leadMicrosMax = clockLeadMsMax * 1_000
    const hasOthers = voters.length - 1 >= computeMajority(voters)
    this.#waitUntilMs = hasOthers ? startMs + clockWaitMs : Number.NEGATIVE_INFINITY
  }

  /** `wall`: what the peer's clock showed, after the question left and before the answer came. */
  hear(peer: NodeId, wall: Timestamp, askedMs: number, cameMs: number): void {
    const one = { lowest: wall - cameMs * 1_000, highest: wall - askedMs * 1_000, atMs: cameMs }
    const before = this.#heard.get(peer) ?? []
    // A sample that does not fit is of a clock that has been set since.
    const left = before.filter(
      ({ atMs, lowest, highest }) =>
        atMs > cameMs - windowMs && lowest <= one.highest && highest >= one.lowest,
    )
    this.#heard.set(peer, [...left, one])
    this.#heardMs = cameMs
    const majority = computeMajority(this.#voters)
    // A node that has no vote any more, or none yet, says nothing.
    const all = this.#voters.flatMap((voter) => [this.#heard.get(voter) ?? []].filter(isSome))
    const highest = all.map(computeHighest).sort((a, b) => a - b)
    const lowest = all.map(computeLowest).sort((a, b) => b - a)
    this.#highest = highest[majority - 1] ?? Number.POSITIVE_INFINITY
    this.#lowest = lowest[majority - 1] ?? Number.NEGATIVE_INFINITY
    assert(
      all.length < majority || Number.isFinite(this.#highest),
      'CLOCK-3: a majority has told its clocks, and they are waited for',
    )
  }

  /**
   * The wall clock, held to those of a majority where it is too far from them: it gives entries their
   * timestamps.
   */
  held({ wall, now }: ClockReading): Timestamp {
    const latest = Math.floor(now * 1_000 + this.#highest + this.#leadMicrosMax)
    const earliest = Math.ceil(now * 1_000 + this.#lowest - this.#leadMicrosMax)
    const held = Math.max(Math.min(wall, latest), earliest)
    assert(
      held <= wall || held <= now * 1_000 + this.#lowest,
      "CLOCK-2: a clock is put forward beyond a majority's",
    )
    return held
  }

  /** By how much a majority's clocks are behind at least; 0: they are not, or that is not known. */
  leadMs({ wall, now }: ClockReading): number {
    return Math.max(0, Math.round((wall - now * 1_000 - this.#highest) / 1_000))
  }

  /** By how much they are ahead at least. */
  lagMs({ wall, now }: ClockReading): number {
    return Math.max(0, Math.round((now * 1_000 + this.#lowest - wall) / 1_000))
  }

  /** CLOCK-3: too few have told their clocks yet, and may still do so in time. */
  isAwaited(nowMs: number): boolean {
    return this.#highest === Number.POSITIVE_INFINITY && nowMs < this.#waitUntilMs
  }

  /** For status: whether that is too much is as `look` found it last. */
  status(reading: ClockReading): ClockStatus {
    return {
      clockLeadMs: this.leadMs(reading),
      clockLagMs: this.lagMs(reading),
      isClockAhead: this.#fault === 'ahead',
      isClockBehind: this.#fault === 'behind',
      areClocksAwaited: this.isAwaited(reading.now),
    }
  }

  /**
   * Whether the clock has come to be too far off, or to be right again; undefined: neither. The peers must
   * have said so for a while: after a suspension, or a pause, what this node heard before says nothing.
   */
  look(reading: ClockReading): ClockFault | 'right' | undefined {
    const beyond = this.#beyondNow(reading)
    const isSame = beyond !== undefined && beyond === this.#beyond?.fault
    if (!isSame) this.#beyond = beyond && { fault: beyond, sinceMs: reading.now }
    if (beyond === this.#fault) return undefined
    const isKnown = this.#heardMs > (this.#beyond?.sinceMs ?? 0) + clockTellMs
    if (beyond !== undefined && !isKnown) return undefined
    this.#fault = beyond
    return beyond ?? 'right'
  }

  /** A clock that was too far off is right once it is within half of what it may be. */
  #beyondNow(reading: ClockReading): ClockFault | undefined {
    const pickMost = (fault: ClockFault): number =>
      this.#fault === fault ? this.#leadMicrosMax / 2 : this.#leadMicrosMax
    if (this.leadMs(reading) * 1_000 > pickMost('ahead')) return 'ahead'
    if (this.lagMs(reading) * 1_000 > pickMost('behind')) return 'behind'
    return undefined
  }
}

export interface ClockStatus {
  readonly clockLeadMs: number
  readonly clockLagMs: number
  readonly isClockAhead: boolean
  readonly isClockBehind: boolean
  /** Too few others have told what their clocks show, and the node has not waited for it long enough. */
  readonly areClocksAwaited: boolean
}

function isSome(heard: readonly Heard[]): boolean {
  return heard.length > 0
}

function computeHighest(heard: readonly Heard[]): number {
  return Math.min(...heard.map(({ highest }) => highest))
}

function computeLowest(heard: readonly Heard[]): number {
  return Math.max(...heard.map(({ lowest }) => lowest))
}

/** The clock, with its wall clock held to the others': a node dates requests by what it would stamp their entries by. */
export function heldClock(clock: Clock, clocks: PeerClocks): Clock {
  return {
    wallMicros: () => clocks.held({ wall: clock.wallMicros(), now: clock.monotonicMs() }),
    monotonicMs: () => clock.monotonicMs(),
    setTimer: (delayMs, run) => clock.setTimer(delayMs, run),
    defer: (run) => clock.defer(run),
  }
}
