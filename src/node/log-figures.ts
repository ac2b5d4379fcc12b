/** The losses of a process's log, in figures: a log on a full volume reports them nowhere else. */
import type { Figure } from './metrics.ts'

export interface LostLines {
  /** Not written, and given up. */
  readonly lines: number
  /** How often writing failed. */
  readonly failures: number
}

export function logFigures(lost: LostLines = { lines: 0, failures: 0 }): readonly Figure[] {
  return [
    {
      name: 'trilithon_log_lines_lost_total',
      help: 'Lines of the log that could not be written and were given up.',
      value: lost.lines,
    },
    {
      name: 'trilithon_log_write_failures_total',
      help: 'How often the log could not be written: its volume is full, or its reader is gone.',
      value: lost.failures,
    },
  ]
}
