/**
 * A circuit breaker: whether a node should be asked now, by how its last tries ended. Pure: time is
 * an argument.
 *
 *   closed      asked. `failuresMax` failures in a row open it; any answer starts the count anew.
 *   open        passed over for a while, as long as another node may be asked.
 *   half-open   the while is over: one try is let through. It closes the breaker, or opens it again
 *               for twice as long, up to a maximum.
 *
 * BRK-2  A breaker that is half-open lets one try through at a time; what becomes of it decides.
 */
import { assert } from '../base/assert.ts'

export interface BreakerLimits {
  /** Failures in a row that open it. */
  readonly failuresMax: number
  /** How long it stays open at first, doubled after each failed probe up to the maximum. */
  readonly openMs: number
  readonly openMaxMs: number
}

export type BreakerState = 'closed' | 'open' | 'half-open'

export class Breaker {
  readonly #limits: BreakerLimits
  #failures = 0
  #openMs: number
  /** 0: closed. */
  #openUntilMs = 0
  #isProbing = false
  #opened = 0

  constructor(limits: BreakerLimits) {
    this.#limits = limits
    this.#openMs = limits.openMs
  }

  /** How often it opened. */
  get opened(): number {
    return this.#opened
  }

  /** Until when it is open; 0 when it is closed. */
  get openUntilMs(): number {
    return this.#openUntilMs
  }

  stateAt(nowMs: number): BreakerState {
    if (this.#openUntilMs === 0) return 'closed'
    return nowMs < this.#openUntilMs ? 'open' : 'half-open'
  }

  /** Whether a try may begin, others being possible elsewhere. */
  mayTry(nowMs: number): boolean {
    const state = this.stateAt(nowMs)
    return state === 'closed' || (state === 'half-open' && !this.#isProbing)
  }

  /** A try begins; it may whatever the state is, when there is no other node to ask. */
  begin(nowMs: number): void {
    if (this.stateAt(nowMs) === 'half-open') this.#isProbing = true
  }

  succeed(): void {
    this.reset()
  }

  fail(nowMs: number): void {
    this.#failures += 1
    const state = this.stateAt(nowMs)
    if (state === 'closed' && this.#failures < this.#limits.failuresMax) return
    if (state === 'half-open') {
      this.#openMs = Math.min(this.#openMs * 2, this.#limits.openMaxMs)
    }
    if (state !== 'open') this.#opened += 1
    this.#isProbing = false
    this.#openUntilMs = nowMs + this.#openMs
    assert(!this.mayTry(nowMs), 'BRK-2: a node that failed is asked on')
  }

  /** A try told nothing of the node: its probe, if it was one, is to be made again. */
  forget(): void {
    this.#isProbing = false
  }

  /** The node is known to work. */
  reset(): void {
    this.#failures = 0
    this.#openMs = this.#limits.openMs
    this.#openUntilMs = 0
    this.#isProbing = false
  }
}
