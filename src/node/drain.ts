/** Waiting for what is in flight, before a process closes what it has open. */
import { systemClock } from '../adapters/system-clock.ts'

const pollMs = 10
const late = 'the drain timeout passed'

/**
 * Resolves when `work`, which begins at once, has ended and no request is in flight, or with the reason
 * why it waits no longer. Never rejects: a store that fails meanwhile is no reason not to close.
 */
export async function drain(
  work: () => Promise<void>,
  isInFlight: () => boolean,
  timeoutMs: number,
): Promise<string | undefined> {
  const deadlineMs = systemClock.monotonicMs() + timeoutMs
  const ended = work().then(
    () => undefined,
    (error: unknown) => `the drain failed (${error instanceof Error ? error.message : 'unknown'})`,
  )
  while (isInFlight()) {
    if (systemClock.monotonicMs() >= deadlineMs) return late
    await delay(pollMs)
  }
  const isLate = delay(deadlineMs - systemClock.monotonicMs()).then(() => late)
  return Promise.race([ended, isLate])
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => systemClock.setTimer(ms, resolve))
}
