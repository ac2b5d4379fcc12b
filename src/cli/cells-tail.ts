/** `trilithon cells tail`: the cells of a datastore in the order of their shards' logs, one a line. */
import { Option, type Command } from 'commander'
import { StoreError } from '../base/errors.ts'
import type { Cell } from '../cells/cell.ts'
import { allShardsOf } from '../cells/shard.ts'
import type { Cells } from '../client/cells.ts'
import type { Client } from '../client/client.ts'
import { listShards } from '../client/listed-shards.ts'
import {
  addCellFlags,
  parseCount,
  parseShard,
  readDatastore,
  parseTime,
  readTimeoutMs,
  withClient,
} from './client.ts'
import { CliError, exitUsage } from './exit.ts'
import { printJson, timed } from './output.ts'
import type { Options } from './options.ts'

export function addTailCommand(cells: Command): void {
  addCellFlags(cells.command('tail'))
    .description('print cells as they were added, and go on with new ones (JSON lines)')
    .option('--shard <N>', 'of this shard only (default: all of them)')
    .option('--after <ID>', 'those after this added id; wants --shard')
    .option('--since <TIME>', 'those of this time or later, such as 2026-01-31T12:00:00Z')
    .option('--no-follow', 'print what is there now, and end')
    .addOption(
      new Option(
        '--read <LEVEL>',
        'with --no-follow; current: all that was acknowledged; any: one replica',
      )
        .choices(['current', 'snapshot'])
        .default('current'),
    )
    .action(tailCells)
}

interface Wanted {
  readonly shards: readonly number[]
  readonly after: number | undefined
  /** Microseconds since 1970. */
  readonly since: number | undefined
}

async function tailCells(options: Options, command: Command): Promise<void> {
  const wanted = parseWanted(options)
  if (options['follow'] !== false && command.getOptionValueSource('read') === 'cli') {
    throw new CliError('--read goes with --no-follow', exitUsage)
  }
  await withClient(options, async (client) => {
    const cells = client.cells(readDatastore(options))
    if (options['follow'] === false) {
      const read = parseLevel(options)
      const shards = await shardsToRead(client, options, read)
      return printPresent(cells, { ...wanted, ...(shards && { shards }) }, read)
    }
    const { shards, after, since } = wanted
    const [shard = 0] = shards
    const places = after === undefined ? {} : { after: new Map([[shard, after]]) }
    const from = since === undefined ? {} : { since }
    for await (const cell of cells.tail({ shards, ...places, ...from })) printJson(timed(cell))
  })
}

function parseWanted(options: Options): Wanted {
  const { shard, after, since } = options
  const shards = shard === undefined ? allShardsOf(readDatastore(options)) : [parseShard(options)]
  if (after !== undefined && shard === undefined) {
    throw new CliError('--after wants --shard: added ids count within a shard', exitUsage)
  }
  if (after !== undefined && since !== undefined) {
    throw new CliError('--after and --since exclude each other', exitUsage)
  }
  const max = Number.MAX_SAFE_INTEGER
  return {
    shards,
    after: after === undefined ? undefined : parseCount('--after', after, 0, max),
    since: since === undefined ? undefined : parseTime('--since', String(since)),
  }
}

/** Undefined: those that are wanted. What one replica has, it has whether or not a majority can list it. */
async function shardsToRead(
  client: Client,
  options: Options,
  read: ReadLevel,
): Promise<readonly number[] | undefined> {
  if (options['shard'] !== undefined || read === 'snapshot') return undefined
  return listShards(client.groups, readDatastore(options), readTimeoutMs(options))
}

type ReadLevel = 'current' | 'snapshot'

function parseLevel(options: Options): ReadLevel {
  return options['read'] === 'snapshot' ? 'snapshot' : 'current'
}

/** Shards asked for at once: few enough for a slow replica to answer in a call's time. */
const shardsPerRequest = 64

async function printPresent(cells: Cells, wanted: Wanted, read: ReadLevel): Promise<void> {
  for await (const { shard, cell } of presentCells(cells, wanted, read)) {
    printJson(timed({ ...cell, shard }))
  }
}

/** The cells that the logs of these shards hold now, shard by shard. */
export async function* presentCells(
  cells: Cells,
  wanted: Wanted,
  read: ReadLevel = 'current',
): AsyncGenerator<{ readonly shard: number; readonly cell: Cell }> {
  for (let at = 0; at < wanted.shards.length; at += shardsPerRequest) {
    yield* presentIn(
      cells,
      { ...wanted, shards: wanted.shards.slice(at, at + shardsPerRequest) },
      read,
    )
  }
}

/** The same with one request for the first pages of all. */
async function* presentIn(
  cells: Cells,
  { shards, after = 0, since }: Wanted,
  read: ReadLevel,
): AsyncGenerator<{ readonly shard: number; readonly cell: Cell }> {
  const places = shards.map((shard) =>
    since === undefined
      ? ({ kind: 'after', shard, addedId: after } as const)
      : ({ kind: 'since', shard, timestamp: since } as const),
  )
  const outcomes = await cells.shardLogs(places, { read })
  for (const outcome of outcomes) {
    if (outcome.kind === 'problem')
      throw new StoreError(outcome.problem.code, outcome.problem.message)
    const { shard } = outcome.value
    let page = outcome.value
    while (page.items.length > 0) {
      for (const cell of page.items) yield { shard, cell }
      page = await cells.shardLog(shard, { after: page.cursor, read })
    }
  }
}
