/** `trilithon cells load`: a file's rows as cells, with progress and an account of every line. */
import type { Command } from 'commander'
import { datastoreProblem, nameProblem } from '../cells/cell.ts'
import { cellSink } from './cell-sink.ts'
import { loadCells } from './cells-load-run.ts'
import { Patience } from './load-patience.ts'
import { inputFile, oneColumnFlag, runLoad } from './load-command.ts'
import { addCellFlags, parseCount, readDatastore, readTimeoutMs, withClient } from './client.ts'
import { CliError, exitUsage } from './exit.ts'
import type { Options } from './options.ts'

const batchRows = 100
const batchesInFlight = 4
/**
 * A load is in no hurry and must not make a busy cluster busier: a batch is given long before it is
 * sent to another node as well.
 */
const loadLimits = { tryTimeoutMs: 15_000 }
/** How long a load tries by default: outages of nodes are shorter. */
const loadTimeoutSeconds = 60

export function addLoadCommand(cells: Command): void {
  addCellFlags(cells.command('load <FILE>'), loadTimeoutSeconds)
    .description(
      'load a .csv or .jsonl file (or its .gz) as cells; loading again adds nothing twice',
    )
    .requiredOption('--column <NAME>', 'column of the cells, such as BASE')
    .option('--key <FIELD>', 'field with the key of a row (default: its line number)')
    .option('--dataset <NAME>', 'name that row keys are made from (default: from the file name)')
    .option('--ref-key <N>', 'ref key of the cells', '0')
    .option(...oneColumnFlag)
    .option('--rejects <FILE>', 'write rejected lines there, as JSON lines')
    .addHelpText('after', notes)
    .action(loadFile)
}

const notes = `
Fields of a CSV stay text as they are, blank ones the empty text. Numbers of JSON that would lose
digits are rejected. Files are UTF-8, lines end with LF or CR LF, commas separate fields.`

async function loadFile(path: string, options: Options): Promise<void> {
  const file = inputFile(path, options)
  const refKey = parseCount('--ref-key', options['refKey'], 0, Number.MAX_SAFE_INTEGER)
  const { dataset, key } = options
  const target = { column: String(options['column']), refKey }
  // Else each line would be rejected for it.
  const wrong = nameProblem(target) ?? datastoreProblem(readDatastore(options))
  if (wrong !== undefined) throw new CliError(wrong.message, exitUsage)
  await runLoad(file, options, (hooks) =>
    withClient(
      options,
      (client) => {
        const patience = new Patience({ forMs: readTimeoutMs(options), signal: hooks.signal })
        const sink = cellSink(client.cells(readDatastore(options)), target, patience)
        return loadCells(
          {
            ...file,
            ...hooks,
            dataset: typeof dataset === 'string' ? dataset : file.baseName,
            keyField: typeof key === 'string' ? key : undefined,
            batchRows,
            batchesInFlight,
          },
          sink,
        )
      },
      loadLimits,
    ),
  )
}
