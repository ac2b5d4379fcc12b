/** The result of a run of one seed, as plain data: printed, sent between processes, compared. */
import type { Violation } from './checkers/referee.ts'
import type { LongestTurn } from './checkers/turn-checker.ts'

/**
 * - `safety`: a rule was broken, or data were lost
 * - `liveness`: after everything healed, something did not get done
 * - `crash`: an assertion or an unexpected error
 * - `nondeterminism`: the same seed took another course the second time
 */
export type RunOutcome = 'clean' | 'safety' | 'liveness' | 'crash' | 'nondeterminism'

export interface RunResult {
  readonly seed: number
  readonly outcome: RunOutcome
  readonly violations: readonly Violation[]
  /** Of everything that happened. */
  readonly hash: string
  readonly events: number
  readonly commits: number
  readonly simulatedSeconds: number
  readonly wallSeconds: number
  /** Absent: turns took no time. */
  readonly longestTurn?: LongestTurn | undefined
  readonly coverage: Readonly<Record<string, number>>
  /**
   * How often each rule was held to something that happened; rules that assertions guard are not
   * counted.
   */
  readonly judgements: Readonly<Record<string, number>>
  /** Everything that was drawn from the seed. */
  readonly swarm: string
}

export const exitCodes: Readonly<Record<RunOutcome, number>> = {
  clean: 0,
  safety: 10,
  liveness: 11,
  nondeterminism: 12,
  crash: 13,
}

/** The line that shows a failure again. */
export function replayLine(seed: number, flags = ''): string {
  return `npm run sim -- run --seed ${seed} ${flags}`.trimEnd()
}

/** The first run's result, or that the second one went another way. */
export function compareRuns(first: RunResult, second: RunResult): RunResult {
  if (first.hash === second.hash) return first
  const detail = { first: first.hash, second: second.hash, events: [first.events, second.events] }
  const sentence = 'The same seed took another course the second time.'
  const violation = { rule: 'META-1', sentence, timeMicros: 0, detail }
  return { ...first, outcome: 'nondeterminism', violations: [violation, ...first.violations] }
}
