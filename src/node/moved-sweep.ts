/** Clears, now and then, what this node has of groups that have left its replica set (`moved-groups.ts`). */
import type { Clock, Timer } from '../ports/clock.ts'

export interface MovedSweepParts {
  readonly clock: Clock
  /** Between two looks. */
  readonly sweepMs: number
  /** Of a set that does not answer each group takes seconds: where `isOver` says so the rest is left to the next run. */
  clear(isOver: () => boolean): Promise<void>
  onFailed(error: unknown): void
}

export class MovedSweep {
  readonly #parts: MovedSweepParts
  #timer: Timer | undefined
  #underWay: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(parts: MovedSweepParts) {
    this.#parts = parts
  }

  start(): void {
    if (this.#isStopped) return
    this.#timer = this.#parts.clock.setTimer(this.#parts.sweepMs, () => {
      this.#underWay = this.#look()
    })
  }

  async #look(): Promise<void> {
    try {
      await this.#parts.clear(() => this.#isStopped)
    } catch (error) {
      // The next look tries again.
      this.#parts.onFailed(error)
    }
    this.start()
  }

  /** Begins nothing more; resolves when the look under way has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    await this.#underWay
  }
}
