/**
 * One timer for everything that is waited for with a bound: it goes off when the first of them may be
 * due, and its owner looks through all. Nothing is cancelled when an answer comes. Where the loop is
 * behind, what has come meanwhile is read first: an answer at hand is not given up.
 */
import type { Clock, Timer } from '../ports/clock.ts'

/** A timer that goes off so late tells of a loop that is behind. */
const lateMsMin = 20

export class TimeOut {
  readonly #clock: Clock
  /** Ends what is due at a time; tells when the next one will be, `Infinity` when nothing waits. */
  readonly #onDue: (nowMs: number) => number
  #timer: Timer | undefined
  #isStopped = false
  #atMs = Number.POSITIVE_INFINITY

  constructor(clock: Clock, onDue: (nowMs: number) => number) {
    this.#clock = clock
    this.#onDue = onDue
  }

  /** Something is due at this time of the monotonic clock. */
  by(atMs: number): void {
    if (atMs >= this.#atMs) return
    this.#timer?.cancel()
    this.#atMs = atMs
    const delayMs = Math.max(0, atMs - this.#clock.monotonicMs())
    this.#timer = this.#clock.setTimer(delayMs, () => this.#goOff())
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
    this.#atMs = Number.POSITIVE_INFINITY
  }

  #goOff(): void {
    const lateMs = this.#clock.monotonicMs() - this.#atMs
    // Where this process was busy, or stood still, answers may have come that it has not read yet.
    if (lateMs >= lateMsMin) this.#clock.defer(() => this.#look())
    else this.#look()
  }

  #look(): void {
    if (this.#isStopped) return
    this.#atMs = Number.POSITIVE_INFINITY
    this.by(this.#onDue(this.#clock.monotonicMs()))
  }
}
