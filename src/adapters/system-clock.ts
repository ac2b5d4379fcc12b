/**
 * The machine's clocks and its event loop.
 *
 * The wall clock gives whole milliseconds; the digits below come from the monotonic one, held
 * within the millisecond the wall clock names. So it follows every correction and a machine's
 * sleep at once, which a start time plus the monotonic clock would not.
 */
import type { Clock } from '../ports/clock.ts'

/** From readings of both clocks to microseconds that never leave the wall clock's millisecond. */
export function wallRefiner(): (wallMs: number, monotonicMs: number) => number {
  let offsetMicros = 0
  return (wallMs, monotonicMs) => {
    const from = wallMs * 1000
    const estimate = Math.floor(monotonicMs * 1000) + offsetMicros
    const micros = Math.min(Math.max(estimate, from), from + 999)
    offsetMicros += micros - estimate
    return micros
  }
}

const refine = wallRefiner()

export const systemClock: Clock = {
  wallMicros: () => refine(Date.now(), performance.now()),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, run) => {
    const timer = setTimeout(run, Math.max(0, delayMs))
    return { cancel: () => clearTimeout(timer) }
  },
  defer: (run) => {
    setImmediate(run)
  },
}
