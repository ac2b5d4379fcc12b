/**
 * The wall clocks of the other nodes of a replica set, as far as they tell.
 *
 * CLOCK-1  A node whose wall clock is further ahead of those of a majority than `clockLeadMsMax` stamps
 *          entries by these clocks and that much more, and says so; by one more than the entry before
 *          where that is later still.
 *
 * A message names what its sender's clock showed as it left. That clock shows more as it comes, by the
 * time that it took: each message tells too low a time, and the highest of the last ones is the nearest.
 * It is kept as a distance from this node's monotonic clock, so that leaps of its own wall clock are seen
 * at once. What is held back needlessly does no harm: a slower clock is as good as any.
 */
import type { NodeId, Timestamp } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Reading } from '../lease/reading.ts'
import { majorityOf } from '../placement/placement.ts'
import type { Clock } from '../ports/clock.ts'

/** A node tells each peer its clock so often, beside each new link. */
export const clockTellMs = 1_000
/** What was heard longer ago than twice this counts no more once more is heard: a clock may have been set back. */
const windowMs = 10_000

/** Distances in microseconds. */
interface Heard {
  highest: number
  /** Of the window before. */
  highestBefore: number
  sinceMs: number
}

export class PeerClocks {
  readonly #majority: number
  readonly #leadMicrosMax: number
  readonly #heard = new Map<NodeId, Heard>()
  #heardMs = 0
  /** The clocks of a majority are no further ahead of this node's monotonic one; infinite: nobody knows. */
  #distance: number = Number.POSITIVE_INFINITY
  #isAhead = false
  /** It is too far ahead as far as is known; without what has been heard since, that may be a mistake. */
  #beyondSinceMs: number | undefined

  /** `nodes`: all of the replica set, this one among them. */
  constructor(nodes: readonly NodeId[], { clockLeadMsMax }: Pick<Limits, 'clockLeadMsMax'>) {
    this.#majority = majorityOf(nodes)
    this.#leadMicrosMax = clockLeadMsMax * 1_000
  }

  /** A link that is lost changes nothing: that clock has gone on. */
  hear(peer: NodeId, wall: Timestamp, nowMs: number): void {
    const distance = wall - nowMs * 1_000
    const heard = this.#heard.get(peer)
    if (heard === undefined) this.#heard.set(peer, newHeard(distance, nowMs))
    else takeIn(heard, distance, nowMs)
    this.#heardMs = nowMs
    const distances = [...this.#heard.values()].map(distanceOf).sort((a, b) => a - b)
    this.#distance = distances[this.#majority - 1] ?? Number.POSITIVE_INFINITY
  }

  /** The wall clock, held back where it is too far ahead: what entries are stamped by. */
  held({ wall, now }: Reading): Timestamp {
    return Math.min(wall, Math.floor(now * 1_000 + this.#distance + this.#leadMicrosMax))
  }

  /** By how much a majority's clocks are behind, and about the time that their messages take; 0: they are not. */
  leadMs({ wall, now }: Reading): number {
    return Math.max(0, Math.round((wall - now * 1_000 - this.#distance) / 1_000))
  }

  /** For status: whether that is too much is as `look` found it last. */
  status(reading: Reading): { readonly clockLeadMs: number; readonly isClockAhead: boolean } {
    return { clockLeadMs: this.leadMs(reading), isClockAhead: this.#isAhead }
  }

  /**
   * Whether the clock has come to be too far ahead, or to be right again; undefined: neither. Somebody must have
   * said so for a while: after a suspension, or a pause, what was heard before says nothing.
   */
  look(reading: Reading): 'ahead' | 'right' | undefined {
    const leadMicros = this.leadMs(reading) * 1_000
    const isBeyond = leadMicros > (this.#isAhead ? this.#leadMicrosMax / 2 : this.#leadMicrosMax)
    this.#beyondSinceMs = isBeyond ? (this.#beyondSinceMs ?? reading.now) : undefined
    const isAhead = isBeyond && this.#heardMs > (this.#beyondSinceMs ?? 0) + clockTellMs
    if (this.#isAhead ? isBeyond : !isAhead) return undefined
    this.#isAhead = isAhead
    return isAhead ? 'ahead' : 'right'
  }
}

function newHeard(distance: number, nowMs: number): Heard {
  return { highest: distance, highestBefore: Number.NEGATIVE_INFINITY, sinceMs: nowMs }
}

function takeIn(heard: Heard, distance: number, nowMs: number): void {
  const ageMs = nowMs - heard.sinceMs
  if (ageMs < windowMs) {
    heard.highest = Math.max(heard.highest, distance)
    return
  }
  heard.highestBefore = ageMs < 2 * windowMs ? heard.highest : Number.NEGATIVE_INFINITY
  heard.highest = distance
  heard.sinceMs = nowMs
}

function distanceOf({ highest, highestBefore }: Heard): number {
  return Math.max(highest, highestBefore)
}

/** The clock, with its wall clock held back: a node dates requests by what it would stamp their entries by. */
export function heldClock(clock: Clock, clocks: PeerClocks): Clock {
  return {
    wallMicros: () => clocks.held({ wall: clock.wallMicros(), now: clock.monotonicMs() }),
    monotonicMs: () => clock.monotonicMs(),
    setTimer: (delayMs, run) => clock.setTimer(delayMs, run),
    defer: (run) => clock.defer(run),
  }
}
