/** Long work of a command that the first signal ends in order: the command then reports how far it came, and how to go on. */
import { StoreError } from '../base/errors.ts'
import { CliError, complain, exitFailure } from './exit.ts'
import { say } from './output.ts'
import { onStopSignals } from './signals.ts'

export interface LongWork {
  /** `the purge` */
  readonly name: string
  /** The work done so far: `12 cells were purged`. */
  readonly done: () => string
  /** Advice for a user who ended it early: `run the same command again to go on`. */
  readonly advice: string
}

/**
 * The first SIGINT (Ctrl-C), SIGTERM or SIGHUP aborts the signal that `work` got. Once `work` has ended, this function
 * throws an error with the words of `done`. A second signal prints these words and ends the process at once.
 */
export async function interruptible<Value>(
  { name, done, advice }: LongWork,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const abort = new AbortController()
  onStopSignals({
    stop: (signal) => {
      say(`${signal}: ${name} ends after the step that it is at; another signal ends it at once`)
      abort.abort()
    },
    stopNow: () => {
      complain(`${name} was ended within a step; before it ${done()}; ${advice}`)
      process.exit(exitFailure)
    },
  })
  try {
    // Work that comes to its end all the same is whole.
    return await work(abort.signal)
  } catch (error) {
    if (!abort.signal.aborted || !isGivenUp(error)) throw error
  }
  throw new CliError(`interrupted; ${done()}; ${advice}`, exitFailure)
}

/** Whether a call says by this error that its signal has ended. */
function isGivenUp(error: unknown): boolean {
  if (!(error instanceof StoreError)) return false
  return error.code === 'closed' || error.code === 'unknown-outcome'
}
