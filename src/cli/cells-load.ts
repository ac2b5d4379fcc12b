/** `trilithon cells load`: a file's rows as cells, with progress and an account of every line. */
import type { Command } from 'commander'
import { cellSink } from './cell-sink.ts'
import { loadCells } from './cells-load-run.ts'
import { abortOnInterrupt, inputFile, rejectWriter, sizeOf, tell } from './load-command.ts'
import { refuseInput } from './output-file.ts'
import { UnusableFile } from './load-rows.ts'
import { addCellFlags, countOf, datastoreOf, withClient } from './client.ts'
import { CliError, exitFailure } from './exit.ts'
import { progressBar } from './progress.ts'
import type { Options } from './options.ts'

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

async function loadFile(path: string, options: Options): Promise<void> {
  const file = inputFile(path)
  const refKey = countOf('--ref-key', options['refKey'], 0, Number.MAX_SAFE_INTEGER)
  const bytesTotal = await sizeOf(path)
  await refuseInput('--rejects', options['rejects'], path)
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
            batchRows,
            batchesInFlight,
            signal: abort,
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
