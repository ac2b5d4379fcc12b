/** A clock that a test turns by hand: no time passes, and no turn ends, unless the test says so. */
import type { Clock, Timer } from '../../src/ports/clock.ts'

export class HandClock implements Clock {
  /** A test may set it forward itself; timers that are due by then run at the next `pass`. */
  nowMs = 0
  readonly #turns: (() => void)[] = []
  #timers: { readonly atMs: number; readonly run: () => void }[] = []

  wallMicros(): number {
    return Math.floor(this.nowMs * 1_000)
  }

  monotonicMs(): number {
    return this.nowMs
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const timer = { atMs: this.nowMs + delayMs, run }
    this.#timers.push(timer)
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((one) => one !== timer)
      },
    }
  }

  defer(run: () => void): void {
    this.#turns.push(run)
  }

  /** Runs what was deferred first; false: there is nothing. */
  turn(): boolean {
    const next = this.#turns.shift()
    next?.()
    return next !== undefined
  }

  /** Lets time pass, and runs the timers that are due then. */
  pass(ms: number): void {
    this.nowMs += ms
    const due = this.#timers.filter(({ atMs }) => atMs <= this.nowMs)
    this.#timers = this.#timers.filter(({ atMs }) => atMs > this.nowMs)
    for (const { run } of due) run()
  }
}
