/** `trilithon cells purge-cell`: one cell out for good, whatever its age. */
import type { Command } from 'commander'
import { addCellFlags, parseCount, readDatastore, withClient } from './client.ts'
import { CliError, exitUsage } from './exit.ts'
import { print, printJson } from './output.ts'
import type { Options } from './options.ts'

export function addPurgeCellCommand(cells: Command): void {
  addCellFlags(cells.command('purge-cell <ROW> <COLUMN> <REFKEY>'))
    .description('remove one cell for good; it cannot be written again')
    .option('--yes', 'do it; without this, the command only says what it would do')
    .action(purgeCell)
}

async function purgeCell(
  row: string,
  column: string,
  refKeyText: string,
  options: Options,
): Promise<void> {
  const refKey = parseCount('REFKEY', refKeyText, 0, Number.MAX_SAFE_INTEGER)
  const datastore = readDatastore(options)
  const name = `cell ${row} ${column} ${refKey} of datastore ${datastore}`
  if (options['yes'] !== true) {
    throw new CliError(`this removes ${name}, for good; add --yes to do it`, exitUsage)
  }
  const purged = await withClient(options, (client) =>
    client.cells(datastore).purgeCell({ rowKey: row, column, refKey }),
  )
  if (options['json'] === true) return printJson({ purged })
  print(purged ? `purged ${name}` : `there is no ${name}`)
}
