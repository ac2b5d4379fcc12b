/**
 * What a replica says of itself to whoever watches: the simulator's checkers, metrics, the log.
 * Observers must not change what happens; a production node counts and drops most of it.
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
   * What this turn does from here on, and that it is done: for whoever measures turns. Work in work is
   * counted as what is inside. Absent: nobody does.
   */
  begin?(work: string): void
  end?(): void
}

export const silentTrace: Trace = { emit: () => undefined, mark: () => undefined }
