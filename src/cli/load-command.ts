/** What the commands that load files have in common: the file, Ctrl-C, rejected lines, the report. */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { StoreError } from '../base/errors.ts'
import { fileFailure } from '../node/file-failure.ts'
import { CliError, complain, exitFailure, exitUsage, reportFailure } from './exit.ts'
import type { RowFormat } from './load-rows.ts'
import type { LoadReport, Rejection } from './load-run.ts'
import { counted, duration, grouped, print, printJson, say } from './output.ts'
import type { Options } from './options.ts'

/** Rejections that are printed; all of them go to `--rejects`. */
const rejectionsShownMax = 20

export interface InputFile {
  readonly path: string
  readonly format: RowFormat
  readonly isGzip: boolean
  /** The file's name without its endings. */
  readonly baseName: string
}

/** What a file's name says of it, or a usage error. */
export function inputFile(path: string): InputFile {
  const match = /^(.+?)\.(csv|jsonl)(\.gz)?$/i.exec(basename(path))
  const [, baseName, ending, gzip] = match ?? []
  if (baseName === undefined || ending === undefined) {
    const text = `${path}: the name ends in none of .csv, .csv.gz, .jsonl, .jsonl.gz`
    throw new CliError(text, exitUsage)
  }
  const format = ending.toLowerCase() === 'csv' ? 'csv' : 'jsonl'
  return { path, format, isGzip: gzip !== undefined, baseName }
}

export async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch (error) {
    throw new CliError(`${path} cannot be read: ${fileFailure(error)}`, exitFailure)
  }
}

/** The first Ctrl-C ends the load in order, a second one at once. */
export function abortOnInterrupt(): AbortSignal {
  const abort = new AbortController()
  process.once('SIGINT', () => abort.abort())
  return abort.signal
}

export interface RejectWriter {
  readonly add: (rejection: Rejection) => void
  readonly shown: () => readonly Rejection[]
  close(): Promise<void>
}

export function rejectWriter(path: unknown): RejectWriter {
  const shown: Rejection[] = []
  const stream = typeof path === 'string' ? createWriteStream(path) : undefined
  let failure: Error | undefined
  stream?.on('error', (error) => (failure = error))
  return {
    add: (rejection) => {
      stream?.write(`${JSON.stringify(rejection)}\n`)
      if (shown.length < rejectionsShownMax) shown.push(rejection)
    },
    shown: () => shown.toSorted((a, b) => a.line - b.line),
    close: async () => {
      if (stream !== undefined && failure === undefined) {
        stream.end()
        await once(stream, 'close')
      }
      if (failure !== undefined) {
        complain(`the rejected lines could not be written to ${String(path)}: ${failure.message}`)
      }
    },
  }
}

/** The report; ends the command with the code that fits it. */
export function tell(report: LoadReport, shown: readonly Rejection[], options: Options): void {
  const { stopped, ...figures } = report
  if (options['json'] === true) printJson({ ...figures, rejections: shown, ...ending(report) })
  else print(describe(report))
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
      throw new CliError(`interrupted; ${advice}`, exitFailure)
    case 'damaged': {
      const text = `${stopped.reason}; the rows up to line ${grouped(stopped.lastLine)} were dealt with, the rest is not in the file: get it again and ${advice}`
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
