/**
 * For how long each worker's heartbeat has not been seen to change, by the clock of who looks: a
 * count that stands still says it, and no two machines' clocks are compared. Whoever looks for the
 * first time, or after a long pause of its own, has to look that long again.
 */
import type { WorkerRow } from '../cells/service-table.ts'

interface Seen {
  readonly beat: number
  readonly sinceMs: number
}

export class Silence {
  readonly #leaseMs: number
  readonly #seen = new Map<string, Seen>()
  #lookedMs: number | undefined

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  /** What the service's group says at this moment. */
  look(workers: readonly WorkerRow[], nowMs: number): void {
    // Who was away for as long has not seen that they were silent.
    const wasAway = this.#lookedMs !== undefined && nowMs - this.#lookedMs >= this.#leaseMs
    this.#lookedMs = nowMs
    if (wasAway) this.#seen.clear()
    const names = new Set(workers.map(({ worker }) => worker))
    for (const name of [...this.#seen.keys()]) if (!names.has(name)) this.#seen.delete(name)
    for (const { worker, beat } of workers) {
      if (this.#seen.get(worker)?.beat !== beat) this.#seen.set(worker, { beat, sinceMs: nowMs })
    }
  }

  /** Whether it is there, and was heard within the lease. */
  isAlive(worker: string, nowMs: number): boolean {
    const seen = this.#seen.get(worker)
    return seen !== undefined && nowMs - seen.sinceMs < this.#leaseMs
  }
}
