/** `trilithon purge`: a row of a table out for good, with the versions of it that reads of the past show. */
import type { Command } from 'commander'
import type { Tables } from '../tables/tables.ts'
import { addClusterFlags, withClient } from './client.ts'
import { CliError, exitUsage } from './exit.ts'
import { namedTable } from './load.ts'
import { print, printJson } from './output.ts'
import type { Options } from './options.ts'
import { clusterSchema } from './row-sink.ts'
import { buildRoot, parseKey, parseQuery } from './rows.ts'

/** A purge for types that are known only now. */
interface PlainPurge {
  purge(table: { readonly name: string }, key: unknown): Promise<void>
}

export function addPurgeRowCommand(program: Command): void {
  addClusterFlags(program.command('purge').argument('<TABLE>', 'the table'))
    .description('delete a row for good, with all that goes with it; its past is not read any more')
    .requiredOption('--schema <NAME>', 'the schema, as the cluster has it')
    .requiredOption('--key <JSON>', 'the whole key of the row: \'{"artist_id":558,"work":1}\'')
    .option('--yes', 'do it; without this, the command only says what it would do')
    .action(purgeRow)
}

async function purgeRow(tableName: string, options: Options): Promise<void> {
  const key = parseKey(options['key'])
  const name = `${tableName} ${JSON.stringify(key)}`
  if (options['yes'] !== true) {
    const text = `this removes ${name} for good, and no read of a moment before is answered in its group; add --yes to do it`
    throw new CliError(text, exitUsage)
  }
  const position = await withClient(options, async (client) => {
    const { db, version } = await clusterSchema(client, String(options['schema']))
    const table = namedTable(version.schema, tableName)
    const values = parseQuery(table, key)
    const root = buildRoot(version.schema.tables, table, values)
    return purge(db, root, table, values)
  })
  if (options['json'] === true) return printJson({ purged: true, position })
  print(`purged ${name}`)
}

async function purge(
  db: Tables,
  root: Parameters<Tables['transaction']>[0],
  table: { readonly name: string },
  key: unknown,
): Promise<number> {
  const done = await db.transaction(root, (tx: PlainPurge) => tx.purge(table, key))
  return done.position
}
