/**
 * How often a client may try again. Retries are load that no program asked for: where nodes are slow because
 * they have too much to do, clients that send everything twice keep them so for good. So answered calls pay
 * for retries, each for a part of one; and a few are free, for a client that makes few calls. Pure: time is
 * an argument.
 *
 * LOAD-6  No more retries than the budget.
 */
import { assert } from '../base/assert.ts'

export interface RetryLimits {
  /** The retries that an answered call adds. */
  readonly retriesPerAnswer: number
  /** Kept at most. */
  readonly retriesMax: number
  /** There from the beginning, and again by and by, however little is answered. */
  readonly retriesFree: number
  /** One of the free ones comes back in this number of milliseconds. */
  readonly freeEveryMs: number
}

export class RetryBudget {
  readonly #limits: RetryLimits
  #left: number
  #grownAtMs: number

  constructor(limits: RetryLimits, nowMs: number) {
    this.#limits = limits
    this.#left = limits.retriesFree
    this.#grownAtMs = nowMs
  }

  /** The retries that are left. */
  get left(): number {
    return this.#left
  }

  onAnswered(): void {
    const { retriesPerAnswer, retriesMax } = this.#limits
    this.#left = Math.min(retriesMax, this.#left + retriesPerAnswer)
  }

  /**
   * Whether one more may go; it is paid for then. `isRefused`: for want of room. Of what is free those have half,
   * which comes again slowly: from thousands of clients it would be as much again as what was refused.
   */
  take(nowMs: number, isRefused = false): boolean {
    this.#grow(nowMs)
    if (isRefused && this.#left < 1 + this.#limits.retriesFree / 2) return false
    if (this.#left < 1) return false
    this.#left -= 1
    assert(this.#left >= 0, 'LOAD-6: more retries than there is a budget for')
    return true
  }

  #grow(nowMs: number): void {
    const { retriesFree, freeEveryMs } = this.#limits
    const grown = (nowMs - this.#grownAtMs) / freeEveryMs
    this.#grownAtMs = nowMs
    if (this.#left < retriesFree) this.#left = Math.min(retriesFree, this.#left + grown)
  }
}
