/** `trilithon cells purge`: old cells of a datastore out for good, shard by shard. */
import { Option, type Command } from 'commander'
import type { Cells } from '../client/cells.ts'
import { listShardsWithCells } from '../client/listed-shards.ts'
import type { PurgedPage, PurgeOptions } from '../client/options.ts'
import { checkSignal } from '../txn/signalled.ts'
import {
  addCellFlags,
  parseShard,
  readDatastore,
  parseTime,
  readTimeoutMs,
  withClient,
} from './client.ts'
import { CliError, exitUsage } from './exit.ts'
import { interruptible } from './interruptible.ts'
import { counted, print, printJson, say } from './output.ts'
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
  const before = parseTime('--before', String(options['before']))
  const { shard, column } = options
  const keepLatest = options['allVersions'] !== true
  const shards = shard === undefined ? undefined : [parseShard(options)]
  const what = keepLatest ? 'superseded cells' : 'all cells'
  const of = typeof column === 'string' ? ` of column ${column}` : ''
  const where = `datastore ${readDatastore(options)}${shards === undefined ? '' : `, shard ${shards[0]}`}`
  if (options['yes'] !== true) {
    const text = `this removes ${what}${of} of ${where} that were added before ${String(options['before'])}, for good; add --yes to do it`
    throw new CliError(text, exitUsage)
  }
  const isJson = options['json'] === true
  const asked = { before, keepLatest, ...(typeof column === 'string' && { column }) }
  let total = 0
  const tell = (one: ShardPurged): void => {
    total += one.purged
    if (isJson) printJson(one)
    else say(`shard ${one.shard}: ${one.purged}`)
  }
  const work = {
    name: 'the purge',
    done: () => `${counted(total, 'cell')} had been purged`,
    advice: 'run the same command again for the rest',
  }
  await interruptible(work, (signal) =>
    withClient(options, async (client) => {
      const cells = client.cells(readDatastore(options))
      const timeoutMs = readTimeoutMs(options)
      const some =
        shards ?? (await listShardsWithCells(client.groups, cells, timeoutMs, { signal }))
      return purgeShards(cells, { shards: some, asked, signal, tell })
    }),
  )
  if (!isJson) print(`purged ${total} cells`)
}

export interface ShardPurged {
  readonly shard: number
  readonly purged: number
}

export interface Purge {
  readonly shards: readonly number[]
  readonly asked: PurgeOptions
  readonly signal: AbortSignal
  /** Called for each shard that lost cells, also for one that was not finished. */
  readonly tell: (one: ShardPurged) => void
}

/** Page by page: the node answers each request before this ends. Rejects with `closed` when the signal ended it. */
export async function purgeShards(
  cells: Pick<Cells, 'purgeShard'>,
  { shards, asked, signal, tell }: Purge,
): Promise<void> {
  for (const shard of shards) {
    let purged = 0
    try {
      for (let after: number | undefined = 0; after !== undefined;) {
        checkSignal(signal)
        const page: PurgedPage = await cells.purgeShard(shard, { ...asked, after })
        purged += page.purged
        after = page.cursor
      }
    } finally {
      if (purged > 0) tell({ shard, purged })
    }
  }
}
