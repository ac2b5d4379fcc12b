/** The common parts of the commands that load files: the file, Ctrl-C, rejected lines, the report. */
import { once } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { basename } from 'node:path'
import { StoreError } from '../base/errors.ts'
import { fileFailure } from '../adapters/file-failure.ts'
import { CliError, complain, exitFailure, exitUsage, reportFailure } from './exit.ts'
import { sizeOfInput } from './input-file.ts'
import type { RowFormat } from './load-rows.ts'
import { UnusableFile } from './unusable-file.ts'
import type { LoadProgress, LoadReport, Rejection } from './load-run.ts'
import { counted, duration, grouped, print, printJson, say } from './output.ts'
import { refuseInput } from './output-file.ts'
import type { Options } from './options.ts'
import { progressBar } from './progress.ts'
import { onStopSignals } from './signals.ts'

/** Rejections that are printed; all of them go to `--rejects`. */
const rejectionsShownMax = 20

export interface InputFile {
  readonly path: string
  readonly format: RowFormat
  readonly isGzip: boolean
  readonly isOneColumn: boolean
  /** The file's name without its endings. */
  readonly baseName: string
}

/** The file as its name and the flags describe it, or a usage error. */
export function inputFile(path: string, options: Options = {}): InputFile {
  const match = /^(.+?)\.(csv|jsonl)(\.gz)?$/i.exec(basename(path))
  const [, baseName, ending, gzip] = match ?? []
  if (baseName === undefined || ending === undefined) {
    const text = `${path}: the name ends in none of .csv, .csv.gz, .jsonl, .jsonl.gz`
    throw new CliError(text, exitUsage)
  }
  const format = ending.toLowerCase() === 'csv' ? 'csv' : 'jsonl'
  const isOneColumn = options['oneColumn'] === true
  if (isOneColumn && format !== 'csv') {
    throw new CliError(`--one-column is for CSV files, and ${path} is none`, exitUsage)
  }
  return { path, format, isGzip: gzip !== undefined, baseName, isOneColumn }
}

/**
 * The hooks that a command gives to a load: ways to stop it, to tell how far it is, and to tell lines that
 * are no rows.
 */
export interface LoadHooks {
  readonly signal: AbortSignal
  readonly onProgress: (progress: LoadProgress) => void
  readonly onRejection: (rejection: Rejection) => void
  readonly monotonicMs: () => number
}

/** Runs the load of a file and tells what became of it, after what `tellMore` tells. */
export async function runLoad(
  file: InputFile,
  options: Options,
  load: (hooks: LoadHooks) => Promise<LoadReport>,
  tellMore: () => void = () => undefined,
): Promise<void> {
  const { path } = file
  let done = 0
  const signal = abortOnSignals(() => done)
  const bytesTotal = await sizeOfInput(path)
  const rejects = await rejectWriter(options['rejects'], path)
  const bar = progressBar(bytesTotal, performance.now())
  try {
    const report = await load({
      signal,
      onProgress: ({ bytesRead, rowsDone }) => {
        done = rowsDone
        bar.update(bytesRead, rowsDone)
      },
      onRejection: rejects.add,
      monotonicMs: () => performance.now(),
    })
    bar.stop()
    await rejects.close()
    tellMore()
    tell(report, rejects.shown(), options, path)
  } catch (error) {
    bar.stop()
    if (error instanceof UnusableFile) throw new CliError(`${path}: ${error.message}`, exitFailure)
    throw error
  }
}

/**
 * The first SIGINT (Ctrl-C), SIGTERM or SIGHUP ends the load in order: rows already sent get their answers. A
 * second one ends it at once, with the answers known by then.
 */
function abortOnSignals(rowsDone: () => number): AbortSignal {
  const abort = new AbortController()
  onStopSignals({
    stop: (signal) => {
      say(
        `${signal}: the load ends when the cluster has answered the rows that were sent; another signal ends it at once`,
      )
      abort.abort()
    },
    stopNow: () => {
      complain(`ended before all rows were answered; ${counted(rowsDone(), 'row')} had been`)
      process.exit(exitFailure)
    },
  })
  return abort.signal
}

export interface RejectWriter {
  readonly add: (rejection: Rejection) => void
  readonly shown: () => readonly Rejection[]
  /** Says it when lines could not be written. */
  close(): Promise<void>
}

/** Writes to the file at `path`, if one is named; throws a usage error when it is the `input`, or cannot be opened. */
export async function rejectWriter(path: unknown, input: string): Promise<RejectWriter> {
  const shown: Rejection[] = []
  await refuseInput('--rejects', path, input)
  const stream = typeof path === 'string' ? await opened(path) : undefined
  let failure: Error | undefined
  stream?.on('error', (error) => (failure = error))
  return {
    add: (rejection) => {
      if (failure === undefined) stream?.write(`${JSON.stringify(rejection)}\n`)
      if (shown.length < rejectionsShownMax) shown.push(rejection)
    },
    shown: () => shown.toSorted((a, b) => a.line - b.line),
    close: async () => {
      if (stream !== undefined && failure === undefined) {
        const closed = once(stream, 'close').catch(() => undefined)
        stream.end()
        await closed
      }
      if (failure === undefined) return
      complain(`--rejects ${String(path)} could not be written: ${fileFailure(failure)}`)
    },
  }
}

async function opened(path: string): Promise<WriteStream> {
  const stream = createWriteStream(path)
  try {
    await once(stream, 'open')
    return stream
  } catch (error) {
    throw new CliError(`--rejects ${path} cannot be written: ${fileFailure(error)}`, exitUsage)
  }
}

/** The report; ends the command with the code that fits it. */
function tell(
  report: LoadReport,
  shown: readonly Rejection[],
  options: Options,
  path: string,
): void {
  const { stopped, ...figures } = report
  if (options['json'] === true) printJson({ ...figures, rejections: shown, ...ending(report) })
  else print(describe(report))
  if (report.rows === 0 && stopped === undefined) say(`${path} has no rows`)
  for (const { line, reason } of shown) say(`line ${line}: ${reason}`)
  const hidden = report.rejected - shown.length
  if (hidden > 0) {
    const where =
      options['rejects'] === undefined
        ? '--rejects FILE writes all'
        : `all are in ${String(options['rejects'])}`
    say(`… and ${counted(hidden, 'rejected line')} more; ${where}`)
  }
  const advice = 'run the same command again to go on: what is there already is recognised'
  switch (stopped?.kind) {
    case 'interrupted':
      throw new CliError(`interrupted; ${dealtWith(stopped.lastLine)}; ${advice}`, exitFailure)
    case 'damaged': {
      const { reason, lastLine } = stopped
      const rest = lastLine === 0 ? '' : ', the rest is not in the file'
      const text = `${reason}; ${dealtWith(lastLine)}${rest}: get it again and ${advice}`
      throw new CliError(text, exitFailure)
    }
    case 'failed': {
      const exitCode = reportFailure(stopped.error)
      throw new CliError(`the load stopped; ${advice}`, exitCode)
    }
    case undefined:
      if (report.rejected > 0)
        throw new CliError(`${counted(report.rejected, 'line')} rejected`, exitFailure)
  }
}

function dealtWith(lastLine: number): string {
  if (lastLine === 0) return 'no row is whole before that'
  return `the rows up to line ${grouped(lastLine)} were dealt with`
}

function ending({ stopped }: LoadReport): { readonly stopped?: string } {
  if (stopped === undefined) return {}
  if (stopped.kind === 'failed') {
    const { error } = stopped
    return { stopped: error instanceof StoreError ? error.code : 'failed' }
  }
  return { stopped: stopped.kind }
}

function describe(report: LoadReport): string {
  const { rows, created, changed, alreadyThere, buffered, rejected, blankLines } = report
  const { seconds, rowsPerSecond } = report
  const parts = [
    `${grouped(created)} created`,
    ...(changed > 0 ? [`${grouped(changed)} changed`] : []),
    `${grouped(alreadyThere)} already there`,
    ...(buffered > 0 ? [`${grouped(buffered)} buffered`] : []),
    `${grouped(rejected)} rejected`,
  ]
  if (blankLines > 0) parts.push(counted(blankLines, 'blank line'))
  const pace = `${duration(seconds * 1000)}, ${grouped(rowsPerSecond)} rows/s`
  return `${counted(rows, 'row')}: ${parts.join(', ')}; ${pace}`
}
