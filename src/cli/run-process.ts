/** A process that runs until a signal stops it: the drain, the exit code. */
import type { Logger } from 'pino'
import { StoreError } from '../base/errors.ts'
import { SilentFolder } from '../node/silent-folder.ts'
import { CliError, exitFailure, noteStuck } from './exit.ts'
import { endBy, ignoreUserSignals, onStopSignals } from './signals.ts'

export interface Running {
  /** Called when it must stop by itself. */
  onFailure?: (reason: Error) => void
  stop(): Promise<void>
}

/** How long a start may go on after a signal, so that it ends in an orderly way. */
const startGraceMsDefault = 2_000

/**
 * Starts it, runs until SIGTERM, SIGINT, SIGHUP or a failure, and stops it in an orderly way; a second SIGTERM
 * or SIGINT ends it at once, by that signal: `process.exit` would wait for a thread that waits for a file. It listens to signals before it starts: a reader of its log that sees that it serves may
 * stop it at once. A signal that comes while it starts stops it when it has started; a start that takes longer than
 * `startGraceMs` from then on is given up, and the process ends by that signal.
 */
export async function runUntilTold(
  start: () => Promise<Running>,
  logger: Logger,
  startGraceMs: number = startGraceMsDefault,
): Promise<void> {
  const told = signalled(logger)
  const starting = startOrExplain(start)
  const signal = await Promise.race([told, starting.then(() => undefined)])
  if (signal !== undefined) await startedIn(starting, startGraceMs, signal, logger)
  const running = await starting
  const failed = new Promise<Error>((resolve) => (running.onFailure = resolve))
  const why = await Promise.race([told, failed])
  await running.stop()
  if (why instanceof Error) throw new CliError(why.message, exitFailure)
}

async function startedIn(
  starting: Promise<Running>,
  graceMs: number,
  signal: NodeJS.Signals,
  logger: Logger,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), graceMs)
  })
  const first = await Promise.race([starting, late])
  clearTimeout(timer)
  if (first !== 'late') return
  logger.warn({ signal }, 'the start takes too long: ending without it')
  endBy(signal)
}

/** Resolves at the first signal. */
function signalled(logger: Logger): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    onStopSignals({
      stop: (signal) => {
        logger.info({ signal }, 'a signal asks for an end')
        resolve(signal)
      },
      stopNow: (signal) => {
        logger.warn({ signal }, 'a second signal came: ending at once')
        endBy(signal)
      },
    })
    ignoreUserSignals((text, signal) => logger.warn({ signal }, text))
  })
}

/** A process that cannot start ends with 1 and one sentence, whatever the code of the error. */
async function startOrExplain(start: () => Promise<Running>): Promise<Running> {
  try {
    return await start()
  } catch (error) {
    if (error instanceof SilentFolder) noteStuck()
    if (!(error instanceof StoreError)) throw error
    throw new CliError(error.message, exitFailure)
  }
}
