/**
 * A node's clock: the world's time with an offset and a drift of its own, and jumps. Timers belong
 * to the process and die with it; they may be late, never early. The machine's clock outlives them.
 */
import type { Clock, Timer } from '../../src/ports/clock.ts'
import type { SimProcess } from './sim-process.ts'
import type { SeededRandom } from './random.ts'

/** The wall clock of a node without offset at the world's beginning: 2026-01-01T00:00:00Z. */
export const epochMicros = 1_767_225_600_000_000

/** Jumps take a clock no further than this: the store asks that clocks be minutes apart at most. */
const jumpedMicrosMax = 150_000_000

/** How a node's clock is off. */
export interface ClockSkew {
  readonly offsetMicros: number
  /** Parts per million it runs fast (or, below zero, slow). */
  readonly driftPpm: number
  /** Timers are late by this much on average. */
  readonly timerLatenessMicros: number
}

interface Strobe {
  readonly fromMicros: number
  readonly untilMicros: number
  readonly wallMicros: number
  readonly everyMicros: number
}

/** The shifts of a machine's clock over the lives of its processes. */
export class MachineClock {
  #wallMicros = 0
  #monotonicMicros = 0
  #strobe: Strobe | undefined
  /** Of suspensions that are over. */
  #suspendedMicros = 0
  #suspension: { readonly fromMicros: number; untilMicros: number } | undefined

  /** Both clocks jump by these amounts, the monotonic one only forward. */
  jump(wallMicros: number, monotonicMicros: number): void {
    const sum = this.#wallMicros + wallMicros
    this.#wallMicros = Math.max(-jumpedMicrosMax, Math.min(jumpedMicrosMax, sum))
    this.#monotonicMicros += Math.max(0, monotonicMicros)
  }

  /** The wall clock alternates between its time and a time ahead of it, at a fixed period. */
  strobe(strobe: Strobe): void {
    this.#strobe = strobe
  }

  wallShiftMicros(nowMicros: number): number {
    const strobe = this.#strobe
    if (strobe === undefined || nowMicros >= strobe.untilMicros) return this.#wallMicros
    const isAhead = Math.floor((nowMicros - strobe.fromMicros) / strobe.everyMicros) % 2 === 0
    return this.#wallMicros + (isAhead ? strobe.wallMicros : 0)
  }

  get monotonicShiftMicros(): number {
    return this.#monotonicMicros
  }

  /**
   * The monotonic clock stands still for this length; the wall clock goes on. `nowMicros` is the time of
   * the process, which may have worked ahead of the world: it may have read its clock there.
   */
  suspend(nowMicros: number, lengthMicros: number): void {
    const untilMicros = nowMicros + lengthMicros
    if (this.#suspension !== undefined && nowMicros < this.#suspension.untilMicros) {
      this.#suspension.untilMicros = Math.max(this.#suspension.untilMicros, untilMicros)
      return
    }
    this.wake(nowMicros)
    this.#suspension = { fromMicros: nowMicros, untilMicros }
  }

  /** A suspension is over, also before its time. */
  wake(nowMicros: number): void {
    this.#suspendedMicros = this.suspendedMicros(nowMicros)
    this.#suspension = undefined
  }

  /** For how long the monotonic clock has stood still so far. */
  suspendedMicros(nowMicros: number): number {
    if (this.#suspension === undefined) return this.#suspendedMicros
    const { fromMicros, untilMicros } = this.#suspension
    return this.#suspendedMicros + Math.max(0, Math.min(nowMicros, untilMicros) - fromMicros)
  }
}

/** A node's clocks at a moment, as an observer outside sees them. */
export function readingAt(
  nowMicros: number,
  { driftPpm, offsetMicros }: ClockSkew,
  machine: MachineClock,
): { readonly now: number; readonly wall: number } {
  return {
    now: computeMonotonic(nowMicros, driftPpm, machine),
    wall: computeWall(nowMicros, { driftPpm, offsetMicros }, machine),
  }
}

/** Work to be run after a time, and its purpose. */
interface Waiting {
  readonly delayMicros: number
  readonly label: string
  readonly run: () => void
}

function computeMonotonic(nowMicros: number, driftPpm: number, machine: MachineClock): number {
  const awakeMicros = nowMicros - machine.suspendedMicros(nowMicros)
  return (awakeMicros * (1 + driftPpm / 1_000_000) + machine.monotonicShiftMicros) / 1000
}

function computeWall(
  nowMicros: number,
  { driftPpm, offsetMicros }: Pick<ClockSkew, 'driftPpm' | 'offsetMicros'>,
  machine: MachineClock,
): number {
  const passed = Math.floor(nowMicros * (1 + driftPpm / 1_000_000))
  return epochMicros + offsetMicros + passed + machine.wallShiftMicros(nowMicros)
}

export function createClock(
  owner: SimProcess,
  skew: ClockSkew,
  random: SeededRandom,
  machine: MachineClock = new MachineClock(),
): Clock {
  const { name } = owner
  const timerLabel = `timer ${name}`
  const deferLabel = `defer ${name}`
  const pace = 1 + skew.driftPpm / 1_000_000
  return {
    wallMicros() {
      const wall = computeWall(owner.nowMicros, skew, machine)
      owner.onWallRead()
      return wall
    },
    monotonicMs() {
      const now = computeMonotonic(owner.nowMicros, skew.driftPpm, machine)
      owner.onClockRead()
      return now
    },
    setTimer(delayMs, run): Timer {
      const late = skew.timerLatenessMicros > 0 ? random.exponential(skew.timerLatenessMicros) : 0
      // One microsecond more covers the rounding of the clock that the caller may compare with.
      const delayMicros = Math.ceil((Math.max(delayMs, 0) * 1000) / pace) + 1 + late
      return scheduleAwake(owner, machine, { delayMicros, label: timerLabel, run })
    },
    defer(run) {
      owner.schedule(0, deferLabel, run)
    },
  }
}

/** Runs `run` after this much time awake: a suspension postpones it. */
function scheduleAwake(
  owner: SimProcess,
  machine: MachineClock,
  { delayMicros, label, run }: Waiting,
): Timer {
  const awakeMicros = (): number => owner.nowMicros - machine.suspendedMicros(owner.nowMicros)
  const dueMicros = awakeMicros() + delayMicros
  const attempt = (): void => {
    const leftMicros = dueMicros - awakeMicros()
    if (leftMicros > 0) scheduled = owner.schedule(leftMicros, label, attempt)
    else run()
  }
  let scheduled = owner.schedule(delayMicros, label, attempt)
  return { cancel: () => scheduled.cancel() }
}
