/** `trilithon load`: a file's rows as rows of a table, with progress and an account of every line. */
import type { Command } from 'commander'
import { findTable, type Schema, type Table } from '../../schema/model.ts'
import { unknownWord } from '../base/suggest.ts'
import { addClusterFlags, withClient } from './client.ts'
import { CliError, exitFailure, exitUsage } from './exit.ts'
import { abortOnInterrupt, inputFile, rejectWriter, sizeOf, tell } from './load-command.ts'
import { refuseInput } from './output-file.ts'
import { UnusableFile } from './load-rows.ts'
import { loadRows } from './load-run.ts'
import { counted, say } from './output.ts'
import type { Options } from './options.ts'
import { progressBar } from './progress.ts'
import { fieldPath, rowOfFields, type FieldPath, type Ignored, type Sources } from './row-fields.ts'
import { clusterSchema, rowSink } from './row-sink.ts'

const batchRows = 200
const batchesInFlight = 4
/** A batch is given long before it is sent to another node as well: a load is in no hurry. */
const loadLimits = { tryTimeoutMs: 15_000 }
/** Tried for so long by default: outages of nodes are shorter. */
const loadTimeoutSeconds = 60
/** Fields that no property takes: so many are named. */
const ignoredNamedMax = 10

export function addTableLoadCommand(program: Command): void {
  addClusterFlags(program.command('load').argument('<FILE>'), loadTimeoutSeconds)
    .description(
      'load a .csv or .jsonl file (or its .gz) into a table; loading again changes nothing twice',
    )
    .requiredOption('--schema <NAME>', 'the schema, as the cluster has it')
    .requiredOption('--table <NAME>', 'the table')
    .option(
      '--from <PROPERTY=FIELD>',
      'where a property is found in the file, such as artist_id=contributors.0.id (may be repeated)',
      collect,
      [],
    )
    .option('--rejects <FILE>', 'write rejected lines there, as JSON lines')
    .action(loadFile)
}

function collect(text: string, before: readonly string[]): readonly string[] {
  return [...before, text]
}

async function loadFile(path: string, options: Options): Promise<void> {
  const file = inputFile(path)
  const bytesTotal = await sizeOf(path)
  await refuseInput('--rejects', options['rejects'], path)
  const rejects = rejectWriter(options['rejects'])
  const signal = abortOnInterrupt()
  const bar = progressBar(bytesTotal, performance.now())
  const ignored: Ignored = new Map()
  try {
    const report = await withClient(
      options,
      async (client) => {
        const schema = await clusterSchema(client, String(options['schema']))
        const table = namedTable(schema.version.schema, String(options['table']))
        const sources = sourcesOf(table, options['from'])
        return loadRows(
          {
            ...file,
            batchRows,
            batchesInFlight,
            signal,
            onRejection: rejects.add,
            onProgress: ({ bytesRead, rowsDone }) => bar.update(bytesRead, rowsDone),
            monotonicMs: () => performance.now(),
          },
          (body) => ({ ok: true, item: rowOfFields(table, body, sources, ignored) }),
          rowSink(schema, table.name),
        )
      },
      loadLimits,
    )
    bar.stop()
    await rejects.close()
    tellIgnored(ignored)
    tell(report, rejects.shown(), options)
  } catch (error) {
    bar.stop()
    if (error instanceof UnusableFile) throw new CliError(`${path}: ${error.message}`, exitFailure)
    throw error
  }
}

export function namedTable(schema: Schema, name: string): Table {
  const table = findTable(schema, name)
  if (table !== undefined) return table
  const known = schema.tables.map((one) => one.name)
  throw new CliError(`schema ${schema.name}: ${unknownWord('table', name, known)}`, exitUsage)
}

function sourcesOf(table: Table, given: unknown): Sources {
  const sources = new Map<string, FieldPath>()
  for (const text of Array.isArray(given) ? given.map(String) : []) {
    const [, name = '', path = ''] = /^([^=]*)=(.*)$/.exec(text) ?? []
    const fields = fieldPath(path)
    if (name === '' || fields === undefined) {
      throw new CliError(`--from wants PROPERTY=FIELD, not "${text}"`, exitUsage)
    }
    const known = table.properties.map((property) => property.name)
    if (!known.includes(name)) {
      throw new CliError(`table ${table.name}: ${unknownWord('property', name, known)}`, exitUsage)
    }
    sources.set(name, fields)
  }
  return sources
}

function tellIgnored(ignored: Ignored): void {
  const names = [...ignored].map(([name, rows]) => `${name} (${counted(rows, 'row')})`)
  if (names.length === 0) return
  const rest = names.length - ignoredNamedMax
  const more = rest > 0 ? ` and ${rest} more` : ''
  say(`fields that no property takes: ${names.slice(0, ignoredNamedMax).join(', ')}${more}`)
}
