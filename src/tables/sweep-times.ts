/**
 * When groups with rows, or cells, that expire are looked through: when the first falls due, and not more often
 * than every few seconds. And how late the oldest of them is that is due and still there.
 */
import type { GroupId, Timestamp } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'

export interface SweepBounds {
  /** Between two looks through a group. */
  readonly sweepMs: number
  /** No timer is set for longer. */
  readonly sleepMsMax: number
  /** Groups of which is remembered when they are to be looked through next. */
  readonly groupsKnownMax: number
}

/** How a group was at the last look through it. */
interface Swept {
  /** The write of something that expires which was the last one then. */
  readonly noteAt: Timestamp
  /** Of the monotonic clock, as is `dueMs`. */
  readonly sweptMs: number
  /** When the group is to be looked at next. */
  readonly dueMs: number
  /** The first moment at which something expires that is there. */
  readonly next: Timestamp
}

/**
 * Between two looks through a group whose log is ahead of the clock: it may move on at any time, or stand still until the clock
 * is there. Rows that have expired are removed within a minute (TTL-2).
 */
const stillMs = 30_000

/** A group that was due before this time, and was not looked through since, is another node's by now. */
const othersMs = 600_000

export class SweepTimes {
  readonly #clock: Clock
  readonly #bounds: SweepBounds
  readonly #swept = new Map<GroupId, Swept>()

  constructor(clock: Clock, bounds: SweepBounds) {
    this.#clock = clock
    this.#bounds = bounds
  }

  /** How long the group need not be looked through yet, in milliseconds; 0: now. */
  waitMs(group: GroupId, noteAt: Timestamp): number {
    const swept = this.#swept.get(group)
    if (swept === undefined) return 0
    const { sweepMs, sleepMsMax } = this.#bounds
    const again = swept.sweptMs + sweepMs
    const at = swept.noteAt === noteAt ? swept.dueMs : Math.min(swept.dueMs, again)
    return Math.min(Math.max(0, at - this.#clock.monotonicMs()), sleepMsMax)
  }

  /**
   * The group was looked through; gives how long until it is to be again. `now`: of the group's log, or of the clock, whichever is
   * later. `next`: the first moment after it.
   */
  note(group: GroupId, noteAt: Timestamp, next: Timestamp, now: Timestamp): number {
    return this.#put(group, { noteAt, sweptMs: this.#clock.monotonicMs(), next }, now)
  }

  /**
   * Where nothing has expired since the group was looked through, and nothing that expires was written: gives how long until it is
   * to be looked at again. Undefined: it is to be looked through. A log that stands still ahead of the clock costs no read then.
   */
  putOff(group: GroupId, noteAt: Timestamp, now: Timestamp): number | undefined {
    const swept = this.#swept.get(group)
    if (swept === undefined || swept.noteAt !== noteAt || swept.next <= now) return undefined
    const isOld = this.#clock.monotonicMs() >= swept.sweptMs + this.#bounds.sleepMsMax
    return isOld ? undefined : this.#put(group, swept, now)
  }

  #put(group: GroupId, looked: Omit<Swept, 'dueMs'>, now: Timestamp): number {
    const { sweepMs, sleepMsMax, groupsKnownMax } = this.#bounds
    const { noteAt, sweptMs, next } = looked
    const byLogMs = (next - now) / 1000
    const byClockMs = (next - this.#clock.wallMicros()) / 1000
    const waitMs = Math.min(byClockMs, Math.max(byLogMs, stillMs))
    const delayMs = Math.min(Math.max(waitMs, sweepMs), sleepMsMax)
    if (this.#swept.size < groupsKnownMax || this.#swept.has(group)) {
      const dueMs = this.#clock.monotonicMs() + delayMs
      this.#swept.set(group, { noteAt, sweptMs, dueMs, next })
    }
    return delayMs
  }

  forget(group: GroupId): void {
    this.#swept.delete(group)
  }

  /** How long ago the oldest expired that is due and still there, in milliseconds; 0: none is. */
  oldestDueMs(): number {
    const now = this.#clock.wallMicros()
    let oldest = now
    const nowMs = this.#clock.monotonicMs()
    for (const { next, dueMs } of this.#swept.values()) {
      if (next < oldest && nowMs <= dueMs + othersMs) oldest = next
    }
    return (now - oldest) / 1000
  }
}
