/**
 * Advisory locks at one node (Megastore, 3.3): a client that wants to change a hot row takes its lock
 * first. Clients that would only conflict then wait in line instead of running again. A lock means
 * nothing else: it is in memory, it ends by itself, and transactions are validated as ever (TXN-1).
 * Clients take a group's locks at the node that leads it.
 *
 * Bounded: locks, and those who wait for one; above that `overloaded`.
 */
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Pace } from '../ports/pace.ts'

/** Locks held at one node. */
export const locksMax = 10_000
/** The most callers that wait for one lock. */
export const lockWaitersMax = 1_000
/** The longest that a node gives a lock for. */
export const lockHoldMsMax = 60_000

/** Advisory locks: they spare reruns, and mean nothing else. */
export interface LockSource {
  /** The same for calls that the signal gives up. */
  until?(signal: AbortSignal): LockSource
  withLock<Value>(group: GroupId, lock: LockOptions, work: () => Promise<Value>): Promise<Value>
}

/** An advisory lock of a group: how long it is held at most, and waited for. */
export interface LockOptions {
  readonly name: string
  readonly holdMs: number
  readonly waitMs: number
}

interface Waiter {
  readonly holdMs: number
  readonly resolve: (token: number | undefined) => void
  readonly timer: Timer
}

interface Lock {
  token: number
  expiry: Timer
  readonly waiters: Set<Waiter>
}

export class AdvisoryLocks {
  readonly #clock: Clock
  readonly #locks = new Map<string, Lock>()
  #drawn = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Locks held. */
  get count(): number {
    return this.#locks.size
  }

  /**
   * Resolves with a token when the lock is the caller's, for `holdMs`; with undefined when it was not
   * to be had within `waitMs`, or the caller no longer waits for it. First come, first served.
   */
  async acquire(
    group: GroupId,
    name: string,
    holdMs: number,
    waitMs: number,
    pace?: Pace,
  ): Promise<number | undefined> {
    const key = formatKey(group, name)
    const lock = this.#locks.get(key)
    if (lock !== undefined) return this.#wait(lock, holdMs, waitMs, pace)
    if (this.#locks.size >= locksMax) throw full('locks are held', 'locksMax', locksMax)
    const token = (this.#drawn += 1)
    const made = { token, expiry: this.#expiry(key, token, holdMs), waiters: new Set<Waiter>() }
    this.#locks.set(key, made)
    return token
  }

  #wait(
    lock: Lock,
    holdMs: number,
    waitMs: number,
    pace: Pace | undefined,
  ): Promise<number | undefined> {
    if (lock.waiters.size >= lockWaitersMax) {
      throw full('calls wait for this lock', 'lockWaitersMax', lockWaitersMax)
    }
    return new Promise((resolve) => {
      const end = (): void => {
        lock.waiters.delete(waiter)
        waiter.timer.cancel()
        waiter.resolve(undefined)
      }
      const forget = pace?.onGone(end)
      const waiter: Waiter = {
        holdMs,
        resolve: (token) => {
          forget?.()
          resolve(token)
        },
        timer: this.#clock.setTimer(waitMs, end),
      }
      lock.waiters.add(waiter)
    })
  }

  /** Gives the lock to the next in line. False: it had ended already. */
  release(group: GroupId, name: string, token: number): boolean {
    const key = formatKey(group, name)
    if (this.#locks.get(key)?.token !== token) return false
    this.#pass(key)
    return true
  }

  /** Gives no more locks. Every waiting caller gets its refusal now, so that the node can drain. */
  stop(): void {
    for (const { expiry, waiters } of this.#locks.values()) {
      expiry.cancel()
      for (const { timer, resolve } of waiters) {
        timer.cancel()
        resolve(undefined)
      }
    }
    this.#locks.clear()
  }

  #pass(key: string): void {
    const lock = this.#locks.get(key)
    if (lock === undefined) return
    lock.expiry.cancel()
    const [next] = lock.waiters
    if (next === undefined) return void this.#locks.delete(key)
    lock.waiters.delete(next)
    next.timer.cancel()
    lock.token = this.#drawn += 1
    lock.expiry = this.#expiry(key, lock.token, next.holdMs)
    next.resolve(lock.token)
  }

  #expiry(key: string, token: number, holdMs: number): Timer {
    return this.#clock.setTimer(holdMs, () => {
      if (this.#locks.get(key)?.token === token) this.#pass(key)
    })
  }
}

function formatKey(group: GroupId, name: string): string {
  return `${group.length}/${group}${name}`
}

function full(what: string, limit: string, limitValue: number): StoreError {
  const message = `too many ${what} at this node; try again later`
  return new StoreError('overloaded', message, { limit, limitValue })
}
