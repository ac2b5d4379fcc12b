/** The group, datastore or row of cells that a command's flags name. */
import { Option, type Command } from 'commander'
import type { GroupId } from '../base/ids.ts'
import { nameProblem } from '../cells/cell.ts'
import { shardGroup, shardOf } from '../cells/shard.ts'
import type { Client } from '../client/client.ts'
import type { HoldTarget } from '../client/holds.ts'
import { addClusterFlags } from './client.ts'
import { CliError, exitUsage } from './exit.ts'
import { namedTable } from './load.ts'
import type { Options } from './options.ts'
import { clusterSchema } from './row-sink.ts'
import { buildRoot, parseKey, parseQuery } from './rows.ts'

/** `--schema` with `--key`, or `--datastore`, maybe with `--row`. */
export function addTargetFlags(command: Command): Command {
  return addClusterFlags(command, 60)
    .addOption(new Option('--schema <NAME>', 'the schema of the group').conflicts('datastore'))
    .addOption(ofGroup('--key <JSON>', 'the key of the group: \'{"artist_id":558}\''))
    .option('-d, --datastore <NAME>', 'all cells of the datastore')
    .addOption(
      new Option('--row <ROW>', 'with --datastore: the cells of this row key').conflicts([
        'schema',
        'key',
      ]),
    )
}

/** An option that makes sense with `--schema` alone. */
export function ofGroup(flags: string, what: string): Option {
  return new Option(flags, `with --schema: ${what}`).conflicts('datastore')
}

/** In words, for messages. Throws where the flags name no target. */
export function describeTarget({ schema, key, table, datastore, row }: Options): string {
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

/** Throws where the flags name no target, or one that the cluster's schema does not have. */
export async function readTarget(client: Client, options: Options): Promise<HoldTarget> {
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

/** The name of the one group that the flags name: that of a schema's key, or of the shard of a row of cells. */
export async function readGroup(client: Client, options: Options): Promise<GroupId> {
  const target = await readTarget(client, options)
  if (!('datastore' in target)) return target.db.group(target.key)
  const { datastore, rowKey } = target
  if (rowKey === undefined) {
    const text = 'a datastore has many groups, one for each shard: name the --row of a cell, too'
    throw new CliError(text, exitUsage)
  }
  const wrong = nameProblem({ rowKey })
  if (wrong !== undefined) throw new CliError(wrong.message, exitUsage)
  return shardGroup(datastore, shardOf(datastore, rowKey))
}
