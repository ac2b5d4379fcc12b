/**
 * Events that a replica reports to its observers: the simulator's checkers, metrics, the log. Observers must
 * not change what happens; a production node counts and drops most of it.
 */
export interface TraceEvent {
  /** A word for what happened, such as `promised`, `accepted`, `chosen`, `applied`. */
  readonly kind: string
  readonly [field: string]: unknown
}

export interface Trace {
  emit(event: TraceEvent): void
  /** Counts a reached branch worth knowing about; a campaign that never reaches it fails. */
  mark(name: string): void
  /**
   * `begin` names the work that this turn does from here on, and `end` ends it. For observers that measure
   * turns. Nested work is counted under its inner name. Absent: no observer measures.
   */
  begin?(work: string): void
  end?(): void
}

export const silentTrace: Trace = { emit: () => undefined, mark: () => undefined }
