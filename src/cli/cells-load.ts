/** `trilithon cells load`: a file's rows as cells, with progress and an account of every line. */
import type { Command } from 'commander'
import { addCellFlags } from './client.ts'
import { oneColumnFlag } from './input-file.ts'
import type { Options } from './options.ts'

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
    .action(load)
}

const notes = `
Fields of a CSV stay text as they are, blank ones the empty text. Numbers of JSON that would lose
digits are rejected. Files are UTF-8, lines end with LF or CR LF, commas separate fields.`

async function load(path: string, options: Options): Promise<void> {
  const { loadFile } = await import('./cells-load-file.ts')
  await loadFile(path, options)
}
