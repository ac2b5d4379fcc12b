/** `trilithon trigger`: runs workers of a service, and shows and manages its triggers for operators. */
import type { Command } from 'commander'
import { shardCountMax } from '../cells/datastore-form.ts'
import type { ReplayFrom, ServiceStatus, TriggerAdmin } from '../triggers/admin.ts'
import { markedPageMax } from '../triggers/limits.ts'
import { triggerAdmin } from '../triggers/run.ts'
import { addClusterFlags, parseCount, parseTime, withClient } from './client.ts'
import { CliError, exitFailure, exitUsage } from './exit.ts'
import type { Options } from './options.ts'
import { counted, print, printJson, say, styledData, table } from './output.ts'
import { addTriggerRunCommand } from './trigger-run.ts'
import { addTriggerWorkerCommand } from './trigger-worker.ts'

export function addTriggerCommand(program: Command): void {
  const trigger = program
    .command('trigger')
    .description('run functions for the cells of a column, and look after them')
  addTriggerRunCommand(trigger)
  addTriggerWorkerCommand(trigger)
  addClusterFlags(trigger.command('status').argument('<SERVICE>'))
    .description('show workers, leader, and the state of each trigger')
    .option('--shards', 'show also how far each trigger has come in each shard that has cells')
    .action(showStatus)
  addChange(trigger, 'pause', 'call no handler until it is resumed')
  addChange(trigger, 'resume', 'go on, also after too many cells were marked')
  addClusterFlags(addNames(trigger.command('replay')))
    .description('go back, so that cells are handled again')
    .option('--shard <N>', 'in this shard only')
    .option('--after <ID>', 'go back to the cell after this added id; wants --shard')
    .option(
      '--since <TIME>',
      'go back to the cells of this time or later, such as 2026-01-31T12:00:00Z',
    )
    .action(replay)
  addClusterFlags(addNames(trigger.command('skip')))
    .description('mark the next cell of a shard without handling it, and go on behind it')
    .requiredOption('--shard <N>', 'the shard')
    .action(skip)
  addMarkedCommands(trigger)
}

function addNames(command: Command): Command {
  return command.argument('<SERVICE>').argument('<TRIGGER>')
}

function addMarkedCommands(trigger: Command): void {
  const marked = trigger.command('marked').description('cells that were put aside')
  addClusterFlags(addNames(marked.command('list')))
    .description('list marked cells, and why they failed')
    .option('--limit <N>', 'print at most this many', String(markedPageMax))
    .action(listMarked)
  addClusterFlags(addNames(marked.command('retry')))
    .description('have marked cells handled again')
    .option('--shard <N>', 'those of this shard only')
    .option('--id <ID>', 'the one with this added id only; wants --shard')
    .action(retryMarked)
}

function addChange(trigger: Command, verb: 'pause' | 'resume', description: string): void {
  addClusterFlags(addNames(trigger.command(verb)))
    .description(description)
    .action((service: string, name: string, options: Options) =>
      withAdmin(service, options, async (admin) => {
        const row = await admin[verb](name)
        if (options['json'] === true) return printJson(row)
        print(`${name}: ${row.state}${row.reason === '' ? '' : `, ${row.reason}`}`)
      }),
    )
}

function withAdmin<T>(
  service: string,
  options: Options,
  use: (admin: TriggerAdmin) => Promise<T>,
): Promise<T> {
  return withClient(options, (client) => use(triggerAdmin(client, service)))
}

async function showStatus(service: string, options: Options): Promise<void> {
  await withAdmin(service, options, async (admin) => {
    const status = await admin.status()
    const withShards = options['shards'] === true
    const shards = withShards
      ? await Promise.all(
          status.triggers.map(async ({ trigger }) => ({
            trigger,
            shards: await admin.shards(trigger),
          })),
        )
      : []
    if (options['json'] === true) {
      return printJson(withShards ? { ...status, offsets: shards } : status)
    }
    printStatus(status)
    for (const { trigger, shards: found } of shards) {
      const rows = found.map(({ shard, after, last, marked, owner }) =>
        [shard, after, last, last - after, marked, owner].map(String),
      )
      print(styledData('bold', `\n${trigger}`))
      print(table([['shard', 'after', 'last', 'behind', 'marked', 'owner'], ...rows]))
    }
  })
}

function printStatus({
  service,
  term,
  generation,
  workers,
  moving,
  triggers,
}: ServiceStatus): void {
  const motion = moving === 0 ? '' : `, ${counted(moving, 'shard')} on the move`
  const names = counted(workers.length, 'worker')
  print(styledData('bold', `${service}: ${names}, term ${term}, generation ${generation}${motion}`))
  const members = workers.map(({ worker, isLeader, shards, beat }) => [
    ...[worker, isLeader ? 'leads' : '', String(shards), String(beat)],
  ])
  print(table([['worker', '', 'shards', 'heartbeat'], ...members]))
  const rows = triggers.map(({ trigger, datastore, column, state, marked, marksMax, reason }) => [
    ...[trigger, `${datastore}/${column}`, state, `${marked} (stops above ${marksMax})`, reason],
  ])
  print('')
  print(table([['trigger', 'cells of', 'state', 'marked', ''], ...rows]))
}

async function replay(service: string, name: string, options: Options): Promise<void> {
  const from = replayFrom(options)
  await withAdmin(service, options, async (admin) => {
    const shards = await admin.replay(name, from)
    if (options['json'] === true) return printJson({ shards })
    print(`${name} goes back in ${counted(shards.length, 'shard')}`)
    if (shards.length === 0) say(`trigger ${name} stays: it has not come beyond that place`)
  })
}

function replayFrom(options: Options): ReplayFrom {
  const { shard: shardText, after, since } = options
  const shard = shardOption(shardText)
  if ((after === undefined) === (since === undefined)) {
    throw new CliError(
      'replay wants a place to go back to: --since TIME, or --shard N --after ID',
      exitUsage,
    )
  }
  if (after !== undefined) {
    if (shard === undefined) {
      throw new CliError('--after wants --shard: added ids count within a shard', exitUsage)
    }
    return { shard, after: parseCount('--after', after, 0, Number.MAX_SAFE_INTEGER) }
  }
  const time = parseTime('--since', String(since))
  return shard === undefined ? { since: time } : { shard, since: time }
}

function shardOption(text: unknown): number | undefined {
  return text === undefined ? undefined : parseCount('--shard', text, 0, shardCountMax - 1)
}

async function skip(service: string, name: string, options: Options): Promise<void> {
  const shard = parseCount('--shard', options['shard'], 0, shardCountMax - 1)
  await withAdmin(service, options, async (admin) => {
    const cell = await admin.skip(name, shard)
    if (cell === undefined) {
      throw new CliError(`trigger ${name} has no next cell in shard ${shard}`, exitFailure)
    }
    const { rowKey, column, refKey, addedId } = cell
    if (options['json'] === true) return printJson({ shard, rowKey, column, refKey, addedId })
    print(`skipped ${rowKey} ${column} ${refKey}: it is among the marked cells now`)
  })
}

async function listMarked(service: string, name: string, options: Options): Promise<void> {
  const limit = parseCount('--limit', options['limit'], 1, markedPageMax)
  await withAdmin(service, options, async (admin) => {
    const found = await admin.marked(name, limit)
    if (options['json'] === true) return printJson(found)
    if (found.length === 0) return say('no cell is marked')
    const rows = found.map(
      ({ shard, addedId, rowKey, column, refKey, attempts, error, isRetried }) => [
        ...[String(shard), String(addedId), `${rowKey} ${column} ${refKey}`, String(attempts)],
        isRetried ? `to be handled again; ${error}` : error,
      ],
    )
    print(table([['shard', 'id', 'cell', 'tries', 'why'], ...rows]))
  })
}

async function retryMarked(service: string, name: string, options: Options): Promise<void> {
  const shard = shardOption(options['shard'])
  const id = options['id']
  if (id !== undefined && shard === undefined) {
    throw new CliError('--id wants --shard: added ids count within a shard', exitUsage)
  }
  const addedId = id === undefined ? undefined : parseCount('--id', id, 1, Number.MAX_SAFE_INTEGER)
  await withAdmin(service, options, async (admin) => {
    const which = {
      ...(shard !== undefined && { shard }),
      ...(addedId !== undefined && { addedId }),
    }
    const count = await admin.retry(name, which)
    if (options['json'] === true) return printJson({ count })
    print(`${counted(count, 'cell')} to be handled again`)
  })
}
