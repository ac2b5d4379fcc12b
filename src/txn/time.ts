/** Waiting, in the terms of the clock port. */
import type { Clock } from '../ports/clock.ts'

/** What is left until the deadline; at least 1, for those who wait in milliseconds. */
export function remainingMs(clock: Clock, deadlineMs: number): number {
  return Math.max(1, Math.ceil(deadlineMs - clock.monotonicMs()))
}

export function pause(ports: { readonly clock: Clock }, delayMs: number): Promise<void> {
  return new Promise((resolve) => void ports.clock.setTimer(delayMs, resolve))
}
