/**
 * A node's clock: the world's time with an offset and a drift of its own. Timers belong to the
 * process and die with it; they may be late, never early.
 */
import type { Clock, Timer } from '../src/ports/clock.ts'
import type { SimProcess } from './sim-process.ts'
import type { SeededRandom } from './random.ts'

/** The wall clock of a node without offset at the world's beginning: 2026-01-01T00:00:00Z. */
export const epochMicros = 1_767_225_600_000_000

/** How a node's clock is off. */
export interface ClockSkew {
  readonly offsetMicros: number
  /** Parts per million it runs fast (or, below zero, slow). */
  readonly driftPpm: number
  /** Timers are late by this much on average. */
  readonly timerLatenessMicros: number
}

export function createClock(owner: SimProcess, skew: ClockSkew, random: SeededRandom): Clock {
  const { name } = owner
  const timerLabel = `timer ${name}`
  const deferLabel = `defer ${name}`
  const pace = 1 + skew.driftPpm / 1_000_000
  const start = epochMicros + skew.offsetMicros
  return {
    wallMicros: () => start + Math.floor(owner.nowMicros * pace),
    monotonicMs: () => (owner.nowMicros * pace) / 1000,
    setTimer(delayMs, run): Timer {
      const late = skew.timerLatenessMicros > 0 ? random.exponential(skew.timerLatenessMicros) : 0
      // One microsecond more covers the rounding of the clock that the caller may compare with.
      const delayMicros = Math.ceil((Math.max(delayMs, 0) * 1000) / pace) + 1 + late
      return owner.schedule(delayMicros, timerLabel, run)
    },
    defer(run) {
      owner.schedule(0, deferLabel, run)
    },
  }
}
