/** A process that runs until it is told to stop: signals, the drain, the exit code. */
import { pino, type Logger } from 'pino'
import { StoreError } from '../base/errors.ts'
import type { LogLevel } from '../node/config-values.ts'
import { CliError, exitFailure } from './exit.ts'

export interface Running {
  /** Called when it must stop by itself. */
  onFailure?: (reason: Error) => void
  stop(): Promise<void>
}

/** Runs until SIGTERM, SIGINT or a failure, and stops it in an orderly way; a second signal ends at once. */
export async function runUntilTold(running: Running, logger: Logger): Promise<void> {
  const stopped = new Promise<'signal' | Error>((resolve) => {
    running.onFailure = resolve
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        logger.info({ signal }, 'told to stop')
        resolve('signal')
      })
    }
  })
  const why = await stopped
  // Whoever asks twice does not want to wait.
  const force = (signal: NodeJS.Signals): void => {
    logger.warn({ signal }, 'told again: ending at once')
    process.exit(exitFailure)
  }
  process.on('SIGTERM', force)
  process.on('SIGINT', force)
  await running.stop()
  if (why !== 'signal') throw new CliError(why.message, exitFailure)
}

/** What cannot start ends with 1 and one sentence, whatever the code of the error. */
export async function startOrExplain<Started>(start: () => Promise<Started>): Promise<Started> {
  try {
    return await start()
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    throw new CliError(error.message, exitFailure)
  }
}

export function createLogger(level: LogLevel, fields: Readonly<Record<string, unknown>>): Logger {
  const options = { level, base: fields, timestamp: pino.stdTimeFunctions.isoTime }
  // Synchronous: the last lines of a process that ends are the ones that matter.
  return pino(options, pino.destination({ fd: 2, sync: true }))
}
