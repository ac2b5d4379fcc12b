/** `trilithon cells purge`: old cells of a datastore out for good, shard by shard. */
import { Option, type Command } from 'commander'
import { shardCount } from '../cells/shard.ts'
import { addCellFlags, countOf, datastoreOf, timeOf, withClient } from './client.ts'
import { CliError, exitUsage } from './exit.ts'
import { print, printJson, say } from './output.ts'
import type { Options } from './options.ts'

export function addPurgeCommand(cells: Command): void {
  const all = '--all-versions'
  addCellFlags(cells.command('purge'), 60)
    .description('remove old cells for good; what is removed cannot be written again')
    .requiredOption('--before <TIME>', 'cells added before this, such as 2026-01-31T12:00:00Z')
    .option('--column <NAME>', 'of this column only (default: of all)')
    .option('--shard <N>', 'of this shard only (default: of all)')
    .addOption(new Option(all, 'the latest cells of columns too, which are kept otherwise'))
    .option('--yes', 'do it; without this, the command only says what it would do')
    .action(purgeCells)
}

async function purgeCells(options: Options): Promise<void> {
  const before = timeOf('--before', String(options['before']))
  const { shard, column } = options
  const keepLatest = options['allVersions'] !== true
  const shards = shard === undefined ? undefined : [countOf('--shard', shard, 0, shardCount - 1)]
  const what = keepLatest ? 'superseded cells' : 'all cells'
  const of = typeof column === 'string' ? ` of column ${column}` : ''
  const where = `datastore ${datastoreOf(options)}${shards === undefined ? '' : `, shard ${shards[0]}`}`
  if (options['yes'] !== true) {
    const text = `this removes ${what}${of} of ${where} that were added before ${String(options['before'])}, for good; add --yes to do it`
    throw new CliError(text, exitUsage)
  }
  const total = await withClient(options, async (client) => {
    let sum = 0
    const asked = { before, keepLatest, ...(typeof column === 'string' && { column }) }
    const cells = client.cells(datastoreOf(options))
    for await (const one of cells.purge({ ...asked, ...(shards && { shards }) })) {
      sum += one.purged
      if (options['json'] === true) printJson(one)
      else say(`shard ${one.shard}: ${one.purged}`)
    }
    return sum
  })
  if (options['json'] !== true) print(`purged ${total} cells`)
}
