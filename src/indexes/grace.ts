/**
 * The first wait of a build or a drop of an index: the end of all transactions of programs that had not heard
 * of the change. They have ended a grace after it was known (`../tables/SPEC.md` "The life of an index").
 */
import type { Timestamp } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import { checkSignal } from '../txn/signalled.ts'
import { pause } from '../time/moments.ts'
import { upkeepBounds } from './limits.ts'
import type { Progress } from './report.ts'

export interface GraceParts {
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
  /** In seconds; called after each step. */
  onProgress(progress: Progress): void
}

/**
 * The caller has read in the registry that the grace began at `since`. Perhaps another program noted that,
 * by its own wall clock.
 */
export async function waitForGrace(
  { clock, onProgress, signal }: GraceParts,
  since: Timestamp,
  graceMs: number,
): Promise<void> {
  // By a clock that is ahead the grace begins in time to come, but it has begun by now: the caller does
  // not wait for the minutes that clocks are apart. From here on no wall clock has a say.
  const passedMs = Math.max(0, clock.wallMicros() - since) / 1000
  const waitMs = graceMs - passedMs
  const total = Math.ceil(waitMs / 1000)
  const startedMs = clock.monotonicMs()
  for (let waitedMs = 0; waitedMs < waitMs; waitedMs = clock.monotonicMs() - startedMs) {
    checkSignal(signal)
    onProgress({ phase: 'waiting', done: Math.floor(waitedMs / 1000), total })
    await pause({ clock }, Math.min(upkeepBounds.waitStepMs, Math.ceil(waitMs - waitedMs)))
  }
}
