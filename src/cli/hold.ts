/** `trilithon hold set|clear|list`: legal holds of groups, of tables there, of cells. */
import { Option, type Command } from 'commander'
import { formatIso } from '../base/datetime.ts'
import type { Client } from '../client/client.ts'
import type { HoldTarget } from '../client/holds.ts'
import type { HoldScope } from '../tables/holds.ts'
import { addClusterFlags, withClient } from './client.ts'
import { CliError, exitFailure, exitUsage } from './exit.ts'
import { namedTable } from './load.ts'
import { print, printJson } from './output.ts'
import type { Options } from './options.ts'
import { clusterSchema } from './row-sink.ts'
import { buildRoot, parseKey, parseQuery } from './rows.ts'

export function addHoldCommand(program: Command): void {
  const hold = program
    .command('hold')
    .description('legal holds: nothing that is held is deleted, purged or removed for its age')
  addTargetFlags(hold.command('set'))
    .description('hold a group, a table there, a datastore or a row of cells')
    .requiredOption('--reason <TEXT>', 'why, such as the name of a case; refusals say it')
    .action(setHold)
  addTargetFlags(hold.command('clear')).description('lift a hold').action(clearHold)
  addTargetFlags(hold.command('list'))
    .description('the holds of a group, or of a datastore')
    .action(listHolds)
}

function addTargetFlags(command: Command): Command {
  return addClusterFlags(command, 60)
    .addOption(new Option('--schema <NAME>', 'the schema of the group').conflicts('datastore'))
    .addOption(ofGroup('--key <JSON>', 'the key of the group: \'{"artist_id":558}\''))
    .addOption(ofGroup('--table <NAME>', 'this table of the group only'))
    .option('-d, --datastore <NAME>', 'all cells of the datastore')
    .addOption(
      new Option('--row <ROW>', 'with --datastore: the cells of this row key only').conflicts([
        'schema',
        'key',
      ]),
    )
}

function ofGroup(flags: string, what: string): Option {
  return new Option(flags, `with --schema: ${what}`).conflicts('datastore')
}

async function setHold(options: Options): Promise<void> {
  const reason = String(options['reason'])
  const words = describeTarget(options)
  await withClient(options, async (client) =>
    client.holds.set(await readTarget(client, options), reason),
  )
  if (options['json'] === true) return printJson({ held: words, reason })
  print(`${words} is held: ${reason}`)
}

async function clearHold(options: Options): Promise<void> {
  const words = describeTarget(options)
  await withClient(options, async (client) => {
    const target = await readTarget(client, options)
    if (await client.holds.clear(target)) return
    const others = (await client.holds.list(target)).map(({ scope }) => describeScope(scope))
    const held = others.length === 0 ? 'nothing is' : `these are: ${others.join(', ')}`
    throw new CliError(`${words} is not held; ${held}`, exitFailure)
  })
  if (options['json'] === true) return printJson({ cleared: words })
  print(`${words} is not held any more`)
}

async function listHolds(options: Options): Promise<void> {
  const holds = await withClient(options, async (client) =>
    client.holds.list(await readTarget(client, options)),
  )
  for (const { scope, reason, since } of holds) {
    const at = formatIso(since)
    if (options['json'] === true) printJson({ scope: describeScope(scope), reason, since: at })
    else print(`${describeScope(scope)}\t${at}\t${reason}`)
  }
  if (holds.length === 0 && options['json'] !== true) print('nothing is held')
}

function describeScope(scope: HoldScope): string {
  const [kind, name] = scope
  if (kind === 'group') return 'the group'
  if (kind === 'table') return `table ${name}`
  return name === undefined ? 'all cells' : `row ${name}`
}

function describeTarget({ schema, key, table, datastore, row }: Options): string {
  if (typeof datastore === 'string') {
    return typeof row === 'string'
      ? `row ${row} of datastore ${datastore}`
      : `datastore ${datastore}`
  }
  if (typeof schema !== 'string' || typeof key !== 'string') {
    const text = 'name the --schema and the --key of a group, or a --datastore'
    throw new CliError(text, exitUsage)
  }
  const group = `group ${key} of schema ${schema}`
  return typeof table === 'string' ? `table ${table} of ${group}` : group
}

async function readTarget(client: Client, options: Options): Promise<HoldTarget> {
  describeTarget(options)
  const { schema, key, table: named, datastore, row } = options
  if (typeof datastore === 'string') {
    return typeof row === 'string' ? { datastore, rowKey: row } : { datastore }
  }
  const { db, version } = await clusterSchema(client, String(schema))
  const { tables } = version.schema
  const table = typeof named === 'string' ? namedTable(version.schema, named) : undefined
  const values = parseKey(key)
  const root = tables.find((one) => one.kind === 'root' && hasKey(one, values))
  if (root === undefined) {
    const roots = tables.filter(({ kind }) => kind === 'root')
    const keys = roots.map(({ name, key: { parts } }) => {
      return `${name} by ${parts.map(({ property }) => property).join(', ')}`
    })
    const text = `--key names no group of schema ${String(schema)}; its groups are of ${keys.join('; ')}`
    throw new CliError(text, exitUsage)
  }
  const target = { db, key: buildRoot(tables, root, parseQuery(root, values)) }
  return table === undefined ? target : { ...target, table: { name: table.name } }
}

function hasKey(
  { key }: { readonly key: { readonly parts: readonly { readonly property: string }[] } },
  values: object,
): boolean {
  const names = key.parts.map(({ property }) => property)
  const given = Object.keys(values)
  return names.length === given.length && names.every((name) => given.includes(name))
}
