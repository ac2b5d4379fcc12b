/**
 * A process's log on stderr. It must not end the process: a full volume, or a closed pipe, takes lines away, and
 * they are counted. What could not be written is tried again with the next line, up to a bound.
 */
import { pino, type Logger } from 'pino'
import type { LogLevel } from '../config/values.ts'
import type { LostLines } from '../node/log-figures.ts'

export interface ProcessLog {
  readonly logger: Logger
  /** Lines that were not written so far, and how often writing failed. */
  readonly lost: () => LostLines
}

/** Bytes of lines that wait for a log that cannot be written. */
const waitingBytesMax: number = 1024 * 1024

export function openLog(
  level: LogLevel,
  fields: Readonly<Record<string, unknown>>,
  fd = 2,
): ProcessLog {
  const lost = { lines: 0, failures: 0 }
  // Synchronous: the last lines of a process that ends are the ones that matter.
  const to = pino.destination({ fd, sync: true, maxLength: waitingBytesMax })
  to.on('error', () => (lost.failures += 1))
  to.on('drop', () => (lost.lines += 1))
  const options = { level, base: fields, timestamp: pino.stdTimeFunctions.isoTime }
  return { logger: pino(options, to), lost: () => ({ ...lost }) }
}
