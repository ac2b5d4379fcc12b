/** The work of `trilithon cells load`: its readers of files are not loaded by other commands for cells. */
import { datastoreProblem, nameProblem } from '../cells/cell.ts'
import { cellSink } from './cell-sink.ts'
import { loadCells } from './cells-load-run.ts'
import { Patience } from './load-patience.ts'
import { inputFile, runLoad } from './load-command.ts'
import { parseCount, readDatastore, readTimeoutMs, withClient } from './client.ts'
import { CliError, exitUsage } from './exit.ts'
import type { Options } from './options.ts'

const batchRows = 100
const batchesInFlight = 4
/**
 * A load is in no hurry and must not make a busy cluster busier: a batch is given long before it is
 * sent to another node as well.
 */
const loadLimits = { tryTimeoutMs: 15_000 }

export async function loadFile(path: string, options: Options): Promise<void> {
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
