/**
 * The cost of a process's turn: the time that its work would take a processor. The ports count all
 * of it, so the code under test reports nothing: rows that it reads, frames that it takes and
 * sends, records that it writes, steps that it traces.
 *
 * LIVE-6 No turn of a node costs more than a bound: long work goes in slices.
 */
import type { TraceEvent } from '../../src/ports/trace.ts'

export interface TimeOptions {
  /** How many times as slow as usual this world's processors are; 0: turns take no time. */
  readonly costFactor: number
  /** The cost of one row that is looked up by its key and is not in memory, on top; 0: it is. */
  readonly getMicros: number
  /**
   * Parts per million of chunks of scans that have to wait for their disk; others are in memory.
   */
  readonly waits: number
  /** How long those wait, on average. */
  readonly readMeanMicros: number
}

/** Turns take no time, and reads do not wait. */
export const noTimes: TimeOptions = { costFactor: 0, getMicros: 0, waits: 0, readMeanMicros: 0 }

/** More than any drawn plan has. */
export const costFactorMax = 1_000

/** Nanoseconds of a processor of today, about, for one of each. */
const nanosByWork = {
  turn: 2_000,
  frame: 10_000,
  message: 4_000,
  get: 6_000,
  chunk: 8_000,
  row: 700,
  put: 1_500,
  step: 8_000,
} as const
/** To decode, check or copy it. */
const nanosByByte = 2

export type Work = keyof typeof nanosByWork

/** The work of one turn. */
export type WorkDone = Partial<Record<Work | 'bytes', number>>

/** Adds up the work of a process's turns. */
export class CostMeter {
  readonly #factor: number
  readonly #getNanos: number
  #work: WorkDone = {}

  constructor({ costFactor, getMicros }: TimeOptions) {
    this.#factor = costFactor
    this.#getNanos = 1_000 * getMicros
  }

  /** Notes an amount of work in this turn. Returns the nanoseconds it costs. */
  note(work: Work, count: number, bytes: number): number {
    const done = this.#work
    done[work] = (done[work] ?? 0) + count
    if (bytes > 0) done.bytes = (done.bytes ?? 0) + bytes
    const nanos = nanosByWork[work] * count + nanosByByte * bytes
    return this.#factor * nanos + (work === 'get' ? this.#getNanos * count : 0)
  }

  /** Returns the work since the last call. */
  take(): WorkDone {
    const done = this.#work
    this.#work = {}
    return done
  }
}

/** Events that stand for a step of the core; others are said beside one. */
export function isStep({ kind }: TraceEvent): boolean {
  return kind === 'apply' || kind === 'chosen' || kind === 'propose'
}
