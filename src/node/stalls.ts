/**
 * Turns of the event loop that take too long: while one runs, this node answers no client. A late timer shows
 * a stall; the trace says what ran meanwhile (`Trace.begin`).
 *
 * One a process: three nodes in one process each see the turns of all of them.
 */
import type { Logger } from 'pino'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'

/** A turn that is longer is a stall. */
export const stallMs = 50
/** How often the loop is looked at. */
const lookMs = 20
/** The least time between two lines of the log. */
const tellMs = 10_000

export interface Stall {
  /** How long nothing else had its turn, in milliseconds. */
  readonly ms: number
  /** The trace's account of it, the longest work first: milliseconds by the name of the work. */
  readonly work: Readonly<Record<string, number>>
  /**
   * Processor time that this process had. Much less than `ms` means that other processes had the processor,
   * or that the machine slept.
   */
  readonly cpuMs: number
  /** Stalls since the last one that was logged. */
  readonly untold: number
}

export interface StallsParts {
  readonly clock: Clock
  /** Microseconds of processor time that the process has taken. */
  cpuMicros(): number
  /** Called for each. */
  onStall(ms: number): void
  /** Called now and then. */
  tell(stall: Stall): void
}

/** The trace, and the time that work takes by its name. */
export interface Stalls {
  readonly trace: Trace
  stop(): void
}

export function watchStalls(parts: StallsParts, trace: Trace): Stalls {
  const watch = new StallWatch(parts)
  return {
    trace: {
      emit: (event) => trace.emit(event),
      mark: (name) => trace.mark(name),
      begin: (work) => watch.begin(work),
      end: () => watch.end(),
    },
    stop: () => watch.stop(),
  }
}

class StallWatch {
  readonly #parts: StallsParts
  /** By work, since the last look. */
  #spent = new Map<string, number>()
  readonly #under: string[] = []
  #sinceMs = 0
  #lookedMs: number
  #cpuMicros: number
  #toldMs = Number.NEGATIVE_INFINITY
  #untold = 0
  #timer: Timer

  constructor(parts: StallsParts) {
    this.#parts = parts
    this.#lookedMs = parts.clock.monotonicMs()
    this.#cpuMicros = parts.cpuMicros()
    this.#timer = parts.clock.setTimer(lookMs, () => this.#look())
  }

  begin(work: string): void {
    this.#note()
    this.#under.push(work)
  }

  end(): void {
    this.#note()
    this.#under.pop()
  }

  /** The time since the last word belongs to what is under way. */
  #note(): void {
    const nowMs = this.#parts.clock.monotonicMs()
    const work = this.#under.at(-1)
    if (work !== undefined) {
      this.#spent.set(work, (this.#spent.get(work) ?? 0) + nowMs - this.#sinceMs)
    }
    this.#sinceMs = nowMs
  }

  stop(): void {
    this.#timer.cancel()
  }

  #look(): void {
    const { clock, cpuMicros } = this.#parts
    const nowMs = clock.monotonicMs()
    const micros = cpuMicros()
    const ms = nowMs - this.#lookedMs - lookMs
    if (ms > stallMs) this.#stalled(ms, nowMs, (micros - this.#cpuMicros) / 1_000)
    this.#lookedMs = nowMs
    this.#cpuMicros = micros
    if (this.#spent.size > 0) this.#spent = new Map()
    this.#timer = clock.setTimer(lookMs, () => this.#look())
  }

  #stalled(ms: number, nowMs: number, cpuMs: number): void {
    const { onStall, tell } = this.#parts
    onStall(ms)
    this.#untold += 1
    if (nowMs - this.#toldMs < tellMs) return
    const longest = [...this.#spent].sort(([, one], [, other]) => other - one)
    const work = Object.fromEntries(longest.map(([name, spent]) => [name, Math.round(spent)]))
    tell({ ms: Math.round(ms), work, cpuMs: Math.round(cpuMs), untold: this.#untold - 1 })
    this.#toldMs = nowMs
    this.#untold = 0
  }
}

/** Those of this process, said in its log. */
export function watchProcess(
  { logger, clock, onStall }: Pick<StallsParts, 'clock' | 'onStall'> & WarningLog,
  trace: Trace,
): Stalls {
  const cpuMicros = (): number => {
    const { user, system } = process.cpuUsage()
    return user + system
  }
  const text = 'the event loop stood still: no request was answered meanwhile'
  return watchStalls(
    { clock, cpuMicros, onStall, tell: (stall) => logger.warn(stall, text) },
    trace,
  )
}

interface WarningLog {
  readonly logger: Pick<Logger, 'warn'>
}
