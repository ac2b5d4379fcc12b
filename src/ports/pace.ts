/** A request on its way through the turns of its node, as those see it that work for it (`slices.ts`). */
import { StoreError } from '../base/errors.ts'

/** One request, as it goes on, and whether anybody waits for its answer. */
export interface Pace {
  readonly isGone: boolean
  /**
   * Before a step that costs so much. Undefined: it may be done at once; else when the promise resolves.
   * Throws, or rejects, with `closed` when whoever asked has gone.
   */
  spend(work: number): Promise<void> | undefined
  /** So many bytes more are held for its answer; given back by whoever sends that. */
  take(bytes: number): void
  /** A step has begun that may wait for others, or has ended. */
  enter(): void
  leave(): void
  /** Calls `end` once, when nobody waits for the answer any more; returns a canceller. Throws if that is so. */
  onGone(end: () => void): () => void
}

/** What ends that was asked by somebody who is not there any more; nobody hears of it. */
export function gone(): StoreError {
  return new StoreError('closed', 'whoever asked has gone')
}
