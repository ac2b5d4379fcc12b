/**
 * The latest changes under one topic at one node, the calls that wait for more, and the members that asked
 * lately.
 */
import type { Clock, Timer } from '../ports/clock.ts'
import type { Pace } from '../ports/pace.ts'
import type { ListedGroup } from '../group/replica-port.ts'

/** Changes remembered. */
const changesMax = 2_000
/**
 * A member that has not asked for this long no longer shares the work. It is somewhat longer than one wait.
 */
export const memberMs = 5_000

interface Waiter {
  readonly resolve: () => void
  readonly timer: Timer
}

export class Feed {
  readonly #clock: Clock
  readonly #membersMax: number
  readonly #cancel: () => void
  /** The newest changes; the last one has the number `last`. */
  readonly #changes: ListedGroup[] = []
  readonly #waiters = new Set<Waiter>()
  readonly #seenAt = new Map<string, number>()
  #askedAt: number
  #last = 0

  constructor(
    clock: Clock,
    most: number,
    watch: (wake: (listed: ListedGroup) => void) => () => void,
  ) {
    this.#clock = clock
    this.#membersMax = most
    this.#askedAt = clock.monotonicMs()
    this.#cancel = watch((listed) => this.#add(listed))
  }

  get last(): number {
    return this.#last
  }

  get idleMs(): number {
    return this.#clock.monotonicMs() - this.#askedAt
  }

  /** A member asks. */
  see(member: string): void {
    this.#askedAt = this.#clock.monotonicMs()
    this.#seenAt.delete(member)
    this.#forgetSilent()
    if (this.#seenAt.size < this.#membersMax) this.#seenAt.set(member, this.#askedAt)
  }

  /** The member that asked has the answer, unless it left meanwhile. */
  seeAgain(member: string): void {
    if (this.#seenAt.has(member)) this.see(member)
  }

  leave(member: string): void {
    this.#seenAt.delete(member)
  }

  members(): readonly string[] {
    this.#forgetSilent()
    return [...this.#seenAt.keys()].toSorted()
  }

  #forgetSilent(): void {
    const since = this.#clock.monotonicMs() - memberMs
    for (const [member, at] of this.#seenAt) {
      // In the order in which they asked: the others did later.
      if (at >= since) return
      this.#seenAt.delete(member)
    }
  }

  /** Not all changes since then are remembered, or it is of no time that was. */
  isLost(since: number): boolean {
    return since > this.#last || since < this.#last - this.#changes.length
  }

  /** Each group once. */
  since(since: number): readonly ListedGroup[] {
    const changes = this.#changes.slice(this.#changes.length - (this.#last - since))
    return [...new Map(changes.map((listed) => [listed.group, listed])).values()]
  }

  /** Resolves when there is a change after that one, after `waitMs`, or when the caller has gone. */
  wait(since: number, waitMs: number, pace?: Pace): Promise<void> {
    if (since < this.#last) return Promise.resolve()
    return new Promise((resolve) => {
      const end = (): void => {
        this.#waiters.delete(waiter)
        waiter.timer.cancel()
        waiter.resolve()
      }
      const forget = pace?.onGone(end)
      const waiter: Waiter = {
        resolve: () => {
          forget?.()
          resolve()
        },
        timer: this.#clock.setTimer(waitMs, end),
      }
      this.#waiters.add(waiter)
    })
  }

  stop(): void {
    this.#cancel()
    this.#wakeAll()
  }

  #add(listed: ListedGroup): void {
    this.#last += 1
    this.#changes.push(listed)
    if (this.#changes.length > changesMax) this.#changes.splice(0, changesMax / 2)
    // Once this turn is over: one entry may have put much.
    if (this.#waiters.size > 0) this.#clock.defer(() => this.#wakeAll())
  }

  #wakeAll(): void {
    for (const { resolve, timer } of this.#waiters) {
      timer.cancel()
      resolve()
    }
    this.#waiters.clear()
  }
}
