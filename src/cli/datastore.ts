/** `trilithon datastore create|list|show`: datastores with a number of shards, or a place, of their own. */
import type { Command } from 'commander'
import type { DatastorePlacement, DeclaredDatastore } from '../client/datastores.ts'
import { isPlaceName } from '../base/placed-group.ts'
import { formatIso } from '../base/datetime.ts'
import { shardCountMax } from '../cells/datastore-form.ts'
import { addClusterFlags, parseCount, withClient } from './client.ts'
import { CliError, exitFailure, exitUsage } from './exit.ts'
import { print, printJson, say } from './output.ts'
import type { Options } from './options.ts'

export function addDatastoreCommand(program: Command): void {
  const datastore = program
    .command('datastore')
    .description('declare datastores with fewer shards, or with a place')
  addClusterFlags(datastore.command('create <NAME>'))
    .description('declare a datastore, once and for good, and print the name for its cells')
    .option('--shards <N>', `a power of two from 1 to ${shardCountMax}`, String(shardCountMax))
    .option('--placement <PLACE>', "'region eu' or 'set west' (default: all sets)")
    .action(create)
  addClusterFlags(datastore.command('list')).description('all that were declared').action(list)
  addClusterFlags(datastore.command('show <NAME>'))
    .description('one of them, by the name that it was declared with')
    .action(show)
}

async function create(name: string, options: Options): Promise<void> {
  const shards = parseCount('--shards', options['shards'], 1, shardCountMax)
  const placement = parsePlacement(options['placement'])
  const given = { shards, ...(placement && { placement }) }
  const { kind, declared } = await withClient(options, (client) =>
    client.datastores.create(name, given),
  )
  if (options['json'] === true) return printJson({ ...plain(declared), isNew: kind === 'new' })
  const what = kind === 'new' ? 'declared' : 'declared already, the same'
  print(`${what}: ${describe(declared)}`)
  say(`its cells are put and read by the name ${declared.datastore}`)
}

function parsePlacement(text: unknown): DatastorePlacement | undefined {
  if (typeof text !== 'string') return undefined
  const [kind, name = '', ...others] = text.trim().split(/\s+/)
  if (others.length === 0 && isPlaceName(name)) {
    if (kind === 'region') return { region: name }
    if (kind === 'set') return { set: name }
  }
  const message = `--placement wants 'region NAME' or 'set NAME', such as 'region eu', not "${text}"`
  throw new CliError(message, exitUsage)
}

async function list(options: Options): Promise<void> {
  const found = await withClient(options, (client) => client.datastores.list())
  if (options['json'] === true) return printJson(found.map(plain))
  for (const one of found) print(describe(one))
  if (found.length === 0) say('no datastore was declared: each is there by being used')
}

async function show(name: string, options: Options): Promise<void> {
  const found = await withClient(options, (client) => client.datastores.find(name))
  if (found === undefined) {
    const message = `datastore ${name} was not declared: used by this name it has ${shardCountMax} shards on all sets`
    throw new CliError(message, exitFailure)
  }
  if (options['json'] === true) return printJson(plain(found))
  print(describe(found))
}

function describe({ name, datastore, shards, placement = 'all sets' }: DeclaredDatastore): string {
  return [name, datastore, `${shards} shard${shards === 1 ? '' : 's'}`, placement].join('\t')
}

function plain({ declaredAt, ...one }: DeclaredDatastore): object {
  return { ...one, declaredAt: formatIso(declaredAt) }
}
