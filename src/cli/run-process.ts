/** A process that runs until it is told to stop: signals, the drain, the exit code. */
import type { Logger } from 'pino'
import { StoreError } from '../base/errors.ts'
import { CliError, exitFailure } from './exit.ts'
import { ignoreUserSignals, onStopSignals } from './signals.ts'

export interface Running {
  /** Called when it must stop by itself. */
  onFailure?: (reason: Error) => void
  stop(): Promise<void>
}

/**
 * Starts it, runs until SIGTERM, SIGINT, SIGHUP or a failure, and stops it in an orderly way; a second SIGTERM
 * or SIGINT ends at once. It listens to signals before it starts: whoever reads that it serves may tell it to stop at once.
 * A signal that comes while it starts is obeyed when it has started.
 */
export async function runUntilTold(start: () => Promise<Running>, logger: Logger): Promise<void> {
  const told = signalled(logger)
  const running = await startOrExplain(start)
  const failed = new Promise<Error>((resolve) => (running.onFailure = resolve))
  const why = await Promise.race([told, failed])
  await running.stop()
  if (why !== undefined) throw new CliError(why.message, exitFailure)
}

/** Resolves at the first signal. */
function signalled(logger: Logger): Promise<undefined> {
  return new Promise((resolve) => {
    onStopSignals({
      stop: (signal) => {
        logger.info({ signal }, 'told to stop')
        resolve(undefined)
      },
      stopNow: (signal) => {
        logger.warn({ signal }, 'told again: ending at once')
        process.exit(exitFailure)
      },
    })
    ignoreUserSignals((text, signal) => logger.warn({ signal }, text))
  })
}

/** What cannot start ends with 1 and one sentence, whatever the code of the error. */
async function startOrExplain(start: () => Promise<Running>): Promise<Running> {
  try {
    return await start()
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    throw new CliError(error.message, exitFailure)
  }
}
