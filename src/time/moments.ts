/** Deadlines and pauses, in the terms of the clock port. */
import { StoreError } from '../base/errors.ts'
import type { Clock } from '../ports/clock.ts'

/** A moment by both clocks: the monotonic one may stand still while its machine is suspended. */
export interface Moment {
  readonly monotonicMs: number
  readonly wallMicros: number
}

export function readMoment(clock: Clock): Moment {
  return { monotonicMs: clock.monotonicMs(), wallMicros: clock.wallMicros() }
}

/** How long ago it was, by the clock that says more: a wall clock that goes back makes nothing younger. */
export function msSince(clock: Clock, { monotonicMs, wallMicros }: Moment): number {
  return Math.max(clock.monotonicMs() - monotonicMs, (clock.wallMicros() - wallMicros) / 1000)
}

/** The time that is left until the deadline; at least 1, for callers that wait in milliseconds. */
export function remainingMs(clock: Clock, deadlineMs: number): number {
  return Math.max(1, Math.ceil(deadlineMs - clock.monotonicMs()))
}

/** The same for who must not begin anything any more: throws `timeout` when nothing is left. */
export function remainingOrTimeout(clock: Clock, deadlineMs: number): number {
  if (deadlineMs > clock.monotonicMs()) return remainingMs(clock, deadlineMs)
  throw timeIsOver()
}

/** Waits for what others wait for as well, and goes on, but no longer than until the deadline. */
export function untilDeadline<Value>(
  clock: Clock,
  work: Promise<Value>,
  deadlineMs: number,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(remainingMs(clock, deadlineMs), () => reject(timeIsOver()))
    void work.then(resolve, reject).finally(() => timer.cancel())
  })
}

function timeIsOver(): StoreError {
  return new StoreError(
    'unavailable',
    'the time for this call is over and nothing was written; try again, or give it more time',
  )
}

export function pause(ports: { readonly clock: Clock }, delayMs: number): Promise<void> {
  return new Promise((resolve) => void ports.clock.setTimer(delayMs, resolve))
}
