/**
 * For how long a worker has not seen another worker's heartbeat change, by its own clock: it watches whether
 * the count rises, and no two machines' clocks are compared. A look counts for a third of a lease at most: a
 * worker that was away has not seen that the others were silent. Yet a worker that is slow at each look, as
 * all are when the machines are busy, comes to a judgement all the same.
 */
import type { WorkerRow } from './service-rows.ts'

/** The least number of looks before a worker is taken for dead. */
const looksMin = 3

interface Seen {
  readonly beat: number
  readonly silentMs: number
}

export class Silence {
  readonly #leaseMs: number
  #seen: ReadonlyMap<string, Seen> = new Map()
  #lookedMs: number | undefined

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  /** Takes the workers' rows as the service's group has them at this moment. */
  look(workers: readonly WorkerRow[], nowMs: number): void {
    const sinceMs = Math.min(nowMs - (this.#lookedMs ?? nowMs), this.#leaseMs / looksMin)
    this.#lookedMs = nowMs
    this.#seen = new Map(
      workers.map(({ worker, beat }) => {
        const before = this.#seen.get(worker)
        const silentMs = before?.beat === beat ? before.silentMs + sinceMs : 0
        return [worker, { beat, silentMs }]
      }),
    )
  }

  /** Whether it is there, and was heard within the lease. */
  isAlive(worker: string): boolean {
    const seen = this.#seen.get(worker)
    return seen !== undefined && seen.silentMs < this.#leaseMs
  }
}
