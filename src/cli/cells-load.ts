/** `trilithon cells load`: a file's rows as cells, with progress and an account of every line. */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Command } from 'commander'
import { StoreError } from '../base/errors.ts'
import { fileFailure } from '../node/config-load.ts'
import { cellSink } from './cell-sink.ts'
import { loadCells, type LoadReport, type Rejection } from './cells-load-run.ts'
import { UnusableFile, type RowFormat } from './cells-load-rows.ts'
import { addCellFlags, countOf, datastoreOf, withClient } from './client.ts'
import { CliError, complain, exitFailure, exitUsage, reportFailure } from './exit.ts'
import { counted, duration, grouped, print, printJson, say } from './output.ts'
import { progressBar } from './progress.ts'
import type { Options } from './options.ts'

/** Rejections that are printed; all of them go to `--rejects`. */
const rejectionsShownMax = 20
const batchRows = 100
const batchesInFlight = 4
/**
 * A load is in no hurry and must not make a busy cluster busier: a batch is given long before it is
 * sent to another node as well.
 */
const loadLimits = { tryTimeoutMs: 15_000 }
/** Tried for so long by default: outages of nodes are shorter. */
const loadTimeoutSeconds = 60

export function addLoadCommand(cells: Command): void {
  addCellFlags(cells.command('load <FILE>'), loadTimeoutSeconds)
    .description(
      'load a .csv or .jsonl file (or its .gz) as cells; loading again adds nothing twice',
    )
    .requiredOption('--column <NAME>', 'column of the cells, such as BASE')
    .option('--key <FIELD>', 'field that names a row (default: its line number does)')
    .option('--dataset <NAME>', 'name that row keys are made from (default: from the file name)')
    .option('--ref-key <N>', 'ref key of the cells', '0')
    .option('--rejects <FILE>', 'write rejected lines there, as JSON lines')
    .action(loadFile)
}

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

async function loadFile(path: string, options: Options): Promise<void> {
  const file = inputFile(path)
  const refKey = countOf('--ref-key', options['refKey'], 0, Number.MAX_SAFE_INTEGER)
  const bytesTotal = await sizeOf(path)
  const rejects = rejectWriter(options['rejects'])
  const abort = abortOnInterrupt()
  const startedMs = performance.now()
  const bar = progressBar(bytesTotal, startedMs)
  try {
    const report = await withClient(
      options,
      (client) => {
        const target = { column: String(options['column']), refKey }
        const sink = cellSink(client.cells(datastoreOf(options)), target)
        const { dataset, key } = options
        return loadCells(
          {
            ...file,
            dataset: typeof dataset === 'string' ? dataset : file.baseName,
            keyField: typeof key === 'string' ? key : undefined,
            ...{ batchRows, batchesInFlight, signal: abort },
            onProgress: ({ bytesRead, rowsDone }) => bar.update(bytesRead, rowsDone),
            onRejection: rejects.add,
            monotonicMs: () => performance.now(),
          },
          sink,
        )
      },
      loadLimits,
    )
    bar.stop()
    await rejects.close()
    tell(report, rejects.shown(), options)
  } catch (error) {
    bar.stop()
    if (error instanceof UnusableFile) throw new CliError(`${path}: ${error.message}`, exitFailure)
    throw error
  }
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch (error) {
    throw new CliError(`${path} cannot be read: ${fileFailure(error)}`, exitFailure)
  }
}

/** The first Ctrl-C ends the load in order, a second one at once. */
function abortOnInterrupt(): AbortSignal {
  const abort = new AbortController()
  process.once('SIGINT', () => abort.abort())
  return abort.signal
}

interface RejectWriter {
  readonly add: (rejection: Rejection) => void
  readonly shown: () => readonly Rejection[]
  close(): Promise<void>
}

function rejectWriter(path: unknown): RejectWriter {
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
function tell(report: LoadReport, shown: readonly Rejection[], options: Options): void {
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
  const { rows, created, alreadyThere, rejected, blankLines, seconds, rowsPerSecond } = report
  const parts = [
    `${grouped(created)} created`,
    `${grouped(alreadyThere)} already there`,
    `${grouped(rejected)} rejected`,
  ]
  if (blankLines > 0) parts.push(counted(blankLines, 'blank line'))
  const pace = `${duration(seconds * 1000)}, ${grouped(rowsPerSecond)} rows/s`
  return `${counted(rows, 'row')}: ${parts.join(', ')}; ${pace}`
}
