/** Exit codes, and the one place where an error becomes a line on stderr and a code. */
import { CommanderError } from 'commander'
import { StoreError, type StoreErrorCode } from '../base/errors.ts'
import { fileFailure, isFileFailure } from '../adapters/file-failure.ts'
import { openFilesMax } from '../adapters/open-files.ts'
import { say, styled } from './output.ts'

export const exitOk = 0
export const exitFailure = 1
export const exitUsage = 2
export const exitConflict = 3
export const exitUnavailable = 4
export const exitUnknownOutcome = 5
/** A check of a stopped node's stores found damage. */
export const exitDamaged = 6
/** A bug of this program (EX_SOFTWARE). */
export const exitBug = 70

export const exitByCode: Readonly<Record<StoreErrorCode, number>> = {
  contention: exitUnavailable,
  immutable: exitConflict,
  unavailable: exitUnavailable,
  'unknown-outcome': exitUnknownOutcome,
  timeout: exitUnknownOutcome,
  'not-found': exitFailure,
  'already-exists': exitConflict,
  invalid: exitUsage,
  'schema-mismatch': exitFailure,
  'too-large': exitUsage,
  overloaded: exitUnavailable,
  'snapshot-too-old': exitFailure,
  expired: exitFailure,
  closed: exitUnavailable,
  corrupt: exitFailure,
  forbidden: exitFailure,
  internal: exitBug,
}

/** Ends a verb with a message for people and a code for scripts. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly exitCode: number

  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Says what went wrong and gives the process's exit code. Only a bug shows its stack. */
export function reportFailure(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitOk : exitUsage
  if (error instanceof CliError) {
    complain(error.message)
    return error.exitCode
  }
  if (error instanceof StoreError) {
    complain(`${error.message} (${error.code})`)
    return exitByCode[error.code]
  }
  const shortage = shortageOfFiles(error)
  if (shortage !== undefined) {
    complain(shortage)
    return exitFailure
  }
  if (isFileFailure(error)) {
    complain(`${error.path ?? 'a file'}: ${fileFailure(error)}`)
    return exitFailure
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  complain(`this is a bug of trilithon; please report it with this text:\n${text}`)
  return exitBug
}

/** With fewer, the files of a command may not all be loaded. */
const filesToLoad = 200
const codesOfShortage: readonly unknown[] = ['EMFILE', 'ENFILE']
const codesOfLoading: readonly unknown[] = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND']

/** That no file may be opened any more, in words. Node.js then also says that it cannot find a package. */
export function shortageOfFiles(
  error: unknown,
  filesMax: () => number | undefined = openFilesMax,
): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const isShort = codesOfShortage.includes(code)
  if (!isShort && !codesOfLoading.includes(code)) return undefined
  const most = filesMax()
  const isFew = most !== undefined && most < filesToLoad
  if (!isShort && !isFew) return undefined
  const bound = most === undefined ? 'too few files' : `${most} files`
  return `this process may have ${bound} open, and needs more: raise the limit (ulimit -n 4096, or LimitNOFILE=4096 for systemd) and start it again`
}

let hasStuckThread = false

/** Of a failure because the system does not answer: a thread waits for it, and the usual end would wait for the thread. */
export function noteStuck(): void {
  hasStuckThread = true
}

export function isStuck(): boolean {
  return hasStuckThread
}

/** The one way to end then. */
export function endStuck(): void {
  process.kill(process.pid, 'SIGKILL')
}

/**
 * Reports output that could not be written to stdout, unless its reader (such as head) has had enough. Gives
 * the exit code.
 */
export function reportLostOutput(error: NodeJS.ErrnoException): number {
  if (error.code === 'EPIPE') return exitOk
  complain(`the output could not be written: ${fileFailure(error)}`)
  return exitFailure
}

export function complain(message: string): void {
  say(`${styled('red', 'error:')} ${message}`)
}
