/**
 * Removes the rows that say where searches for old values may begin (LOG-15), once the log has given up the flushes that
 * they name: they would grow for ever otherwise.
 *
 * A look goes over all of these rows, some at a time with a pause between, and their deletions go along with the next
 * batches. One look is under way at a time, and one more follows where the log gave up flushes meanwhile.
 */
import type { Clock, Timer } from '../ports/clock.ts'
import { toError } from '../store/damage.ts'
import type { SettledPositions } from './settled.ts'

export interface StretchSweepParts {
  readonly rows: Pick<SettledPositions, 'stretchEnds' | 'dropStretchEnd'>
  readonly clock: Pick<Clock, 'setTimer'>
  onFailed(error: Error): void
}

/** Rows of one scan. */
export const sweptRows = 256
const pauseMs = 20

export class StretchSweep {
  readonly #parts: StretchSweepParts
  /** Rows of flushes before it go; 0: none. */
  #first = 0
  #isUnderWay = false
  #isStopped = false
  #timer: Timer | undefined

  constructor(parts: StretchSweepParts) {
    this.#parts = parts
  }

  /** The log begins with this flush now. */
  sweep(first: number): void {
    this.#first = first
    if (this.#isUnderWay || this.#isStopped) return
    this.#isUnderWay = true
    void this.#look(first, undefined)
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  async #look(first: number, after: Uint8Array | undefined): Promise<void> {
    const { rows, clock, onFailed } = this.#parts
    try {
      const found = await rows.stretchEnds(after, sweptRows)
      if (this.#isStopped) return
      for (const { key, flush } of found) if (flush < first) rows.dropStretchEnd(key)
      const last = found.at(-1)?.key
      if (last === undefined || found.length < sweptRows) return this.#onEnd(first)
      this.#timer = clock.setTimer(pauseMs, () => void this.#look(first, last))
    } catch (error) {
      if (!this.#isStopped) onFailed(toError(error))
    }
  }

  #onEnd(first: number): void {
    this.#isUnderWay = false
    if (this.#first > first) this.sweep(this.#first)
  }
}
