/** A request on its way through the turns of its node, as those see it that work for it (`slices.ts`). */
import { StoreError } from '../base/errors.ts'

/** One request, as it goes on, and whether its client still waits for the answer. */
export interface Pace {
  readonly isGone: boolean
  /**
   * The caller pays `work` before a step that costs it. Undefined: it may do the step at once; otherwise it
   * waits until the promise resolves. Throws, or rejects, with `closed` when the client has gone.
   */
  spend(work: number): Promise<void> | undefined
  /** Counts more bytes as held for its answer. The sender of the answer gives them back. */
  take(bytes: number): void
  /** A step has begun that may wait for others, or has ended. */
  enter(): void
  leave(): void
  /**
   * Calls `end` once, when the client stops waiting for the answer; returns a canceller. Throws if it has
   * stopped already.
   */
  onGone(end: () => void): () => void
}

/** Ends the work of a client that has gone; no client sees this error. */
export function gone(): StoreError {
  return new StoreError('closed', 'whoever asked has gone')
}
