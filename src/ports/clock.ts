/** Time, as everything above the ports sees it. */

export interface Timer {
  cancel(): void
}

export interface Clock {
  /** The wall clock: microseconds since 1970. May jump either way. */
  wallMicros(): number
  /** Milliseconds that only grow, from an arbitrary start; fractions allowed. */
  monotonicMs(): number
  /** Calls `run` once, not before `delayMs`; late when the process is busy or paused. */
  setTimer(delayMs: number, run: () => void): Timer
  /**
   * Calls `run` at the end of this turn of the loop, after the events that are already at hand:
   * this is where flushes and frames gather what one turn made.
   */
  defer(run: () => void): void
}
