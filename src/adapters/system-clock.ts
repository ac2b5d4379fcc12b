/** The machine's clocks and its event loop. */
import type { Clock } from '../ports/clock.ts'

export const systemClock: Clock = {
  // Milliseconds are all the system gives that follows its corrections and a machine's sleep.
  wallMicros: () => Date.now() * 1000,
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, run) => {
    const timer = setTimeout(run, Math.max(0, delayMs))
    return { cancel: () => clearTimeout(timer) }
  },
  defer: (run) => {
    setImmediate(run)
  },
}
