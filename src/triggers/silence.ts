/**
 * For how long each worker's heartbeat has not been seen to change, by the clock of who looks: a
 * count that stands still says it, and no two machines' clocks are compared. A look counts for a third
 * of a lease at most: who was away has not seen that the others were silent, yet who is slow at each
 * look, as everything is when the machines are busy, comes to a judgement all the same.
 */
import type { WorkerRow } from './service-rows.ts'

/** So many looks, at least, before a worker is taken for dead. */
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

  /** What the service's group says at this moment. */
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
