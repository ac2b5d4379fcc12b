/** Work that a node does again and again, for as long as it runs: each time a while after the last one. */
import type { Clock, Timer } from '../ports/clock.ts'

export class Rounds {
  readonly #clock: Clock
  readonly #timers = new Map<() => void, Timer>()
  #isStopped = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  every(periodMs: number, run: () => void): void {
    if (this.#isStopped) return
    const timer = this.#clock.setTimer(periodMs, () => {
      run()
      this.every(periodMs, run)
    })
    this.#timers.set(run, timer)
  }

  stop(): void {
    this.#isStopped = true
    for (const timer of this.#timers.values()) timer.cancel()
  }
}
