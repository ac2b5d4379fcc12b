/**
 * How a load waits for a cluster that refuses rows for now. A refusal that is safe to repeat (`overloaded`,
 * `unavailable`, `contention`) has written nothing, so the rows are put again, after longer and longer waits.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { StoreError } from '../base/errors.ts'
import { say } from './output.ts'

const firstWaitMs = 100
const longestWaitMs = 5_000

export interface PatienceOptions {
  /** How long rows are put again from their first refusal on; then the refusal is theirs. */
  readonly forMs: number
  /** Ends each wait: a load that is stopped gives its refusals as they are. */
  readonly signal?: AbortSignal
  /** Told of the first refusal only; says it on stderr by default. */
  readonly onWait?: (error: StoreError) => void
  readonly monotonicMs?: () => number
  readonly sleep?: (ms: number, signal: AbortSignal | undefined) => Promise<void>
}

/** The waits of one request of a load. */
export interface Waits {
  /** True when the same rows may be put again now; false when `error` ends them. */
  again(error: StoreError): Promise<boolean>
}

/** The patience of one load: each request has its own waits, and the user hears of the first one. */
export class Patience {
  readonly #options: Required<Omit<PatienceOptions, 'signal'>>
  readonly #signal: AbortSignal | undefined
  #hasTold = false

  constructor({ signal, ...options }: PatienceOptions) {
    const defaults = { onWait: sayThatItWaits, monotonicMs: () => performance.now(), sleep }
    this.#options = { ...defaults, ...options }
    this.#signal = signal
  }

  begin(): Waits {
    const { forMs, monotonicMs } = this.#options
    let nextMs = firstWaitMs
    let endsMs: number | undefined
    return {
      again: async (error) => {
        if (error.retry !== 'safe' || this.#isStopped()) return false
        endsMs ??= monotonicMs() + forMs
        const waitMs = Math.max(nextMs, error.detail.retryAfterMs ?? 0)
        if (monotonicMs() + waitMs > endsMs) return false
        this.#tell(error)
        await this.#options.sleep(waitMs, this.#signal)
        nextMs = Math.min(2 * nextMs, longestWaitMs)
        return !this.#isStopped()
      },
    }
  }

  #isStopped(): boolean {
    return this.#signal?.aborted === true
  }

  #tell(error: StoreError): void {
    if (this.#hasTold) return
    this.#hasTold = true
    this.#options.onWait(error)
  }
}

function sayThatItWaits({ code, message }: StoreError): void {
  say(`${code}: ${message}; the load waits and goes on`)
}

async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  // An abort ends the wait; the caller asks the signal.
  await delay(ms, undefined, signal && { signal }).catch(() => undefined)
}
