/** `trilithon schema apply`, `diff` and `show`: the schemas of a cluster. */
import type { Command } from 'commander'
import { changeText, type SchemaChange } from '../../schema/change.ts'
import { printSchema } from '../../schema/ddl-print.ts'
import { diffSchemas } from '../../schema/diff.ts'
import type { Schema } from '../../schema/model.ts'
import type { SchemaVersion } from '../../schema/version.ts'
import type { AppliedSchema } from '../tables/registry.ts'
import { addClusterFlags, withClient } from './client.ts'
import { CliError, exitFailure } from './exit.ts'
import { print, printJson } from './output.ts'
import type { Options } from './options.ts'

export function addSchemaClusterCommands(
  schema: Command,
  schemaIn: (file: string) => Promise<Schema>,
): void {
  const file = 'a schema as text or as JSON; - reads it from stdin'
  addClusterFlags(schema.command('apply').argument('<FILE>', file))
    .description('give the cluster a schema, as its first or next version')
    .action(async (path: string, options: Options) => applyFile(await schemaIn(path), options))
  addClusterFlags(schema.command('diff').argument('<FILE>', file))
    .description('show what applying this schema would change, and what it cannot change')
    .action(async (path: string, options: Options) => diffFile(await schemaIn(path), options))
  addClusterFlags(schema.command('show').argument('<NAME>', 'the name of a schema'))
    .description('print the schema of this name that the cluster has')
    .action(showSchema)
}

async function applyFile(schema: Schema, options: Options): Promise<void> {
  const applied = await withClient(options, (client) => client.applySchema(schema))
  const { version } = applied
  if (options['json'] === true) {
    const { fingerprint } = version
    const changes = applied.kind === 'next' ? applied.changes.map(changeText) : []
    const { name } = schema
    return printJson({ name, version: version.version, fingerprint, kind: applied.kind, changes })
  }
  print(words(schema.name, applied))
}

function words(name: string, applied: AppliedSchema): string {
  const { version, fingerprint } = applied.version
  switch (applied.kind) {
    case 'first':
      return `schema ${name}: version 1, ${fingerprint}`
    case 'same':
      return `schema ${name}: version ${version} already says this, ${fingerprint}`
    case 'older':
      return `schema ${name}: version ${version} has all of this and more, and stays, ${fingerprint}`
    case 'next': {
      const changes = applied.changes.map((change) => `\n  ${changeText(change)}`)
      return `schema ${name}: version ${version}, ${fingerprint}${changes.join('')}`
    }
  }
}

async function diffFile(schema: Schema, options: Options): Promise<void> {
  const version = await readVersion(schema.name, options)
  const changes = diffSchemas(version.schema, schema)
  if (options['json'] === true) {
    printJson({ name: schema.name, version: version.version, changes })
  } else {
    print(
      `schema ${schema.name}: ${changes.length === 0 ? 'no difference' : 'compared'} with version ${version.version}`,
    )
    for (const change of changes) print(`  ${changeText(change)}`)
  }
  if (changes.some(isRefused)) throw new CliError('not all of this can be applied', exitFailure)
}

function isRefused({ refusal }: SchemaChange): boolean {
  return refusal !== undefined
}

async function showSchema(name: string, options: Options): Promise<void> {
  const version = await readVersion(name, options)
  if (options['json'] === true) return printJson(version)
  process.stdout.write(printSchema(version.schema))
}

async function readVersion(name: string, options: Options): Promise<SchemaVersion> {
  const { versionIn } = await import('./row-sink.ts')
  return withClient(options, (client) => versionIn(client, name))
}
