/**
 * Functions of the application inside a call: they may wait for something that never comes, and the call ends in its
 * time all the same. Calls of the function's handle end by themselves, and say better why.
 */
import { StoreError } from '../base/errors.ts'
import type { Clock } from '../ports/clock.ts'
import { remainingMs } from './time.ts'

/** So long after its time is over a function may still tell why its last call on the handle failed. */
export const lastWordsMs = 100

export interface InTime {
  readonly clock: Clock
  readonly deadlineMs: number
  /** What the call is, for messages: 'transaction', 'read'. */
  readonly what: string
}

/** Resolves and rejects as `run` does; rejects with `unavailable` when that has not ended a moment after the deadline. */
export function inTime<Value>(
  { clock, deadlineMs, what }: InTime,
  run: () => Promise<Value>,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(remainingMs(clock, deadlineMs) + lastWordsMs, () => {
      const message = `the function of this ${what} did not end in the time that the call has, and nothing was written; give it a larger timeoutMs, or find what it waits for`
      reject(new StoreError('unavailable', message))
    })
    run().then(resolve, reject).finally(() => timer.cancel())
  })
}
