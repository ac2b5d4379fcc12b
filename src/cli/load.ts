/** `trilithon load`: a file's rows as rows of a table, with progress and an account of every line. */
import type { Command } from 'commander'
import { findTable, type Schema, type Table } from '../../schema/model.ts'
import { StoreError } from '../base/errors.ts'
import { nearest, unknownWord } from '../base/suggest.ts'
import type { Values } from '../tables/row-check.ts'
import { addClusterFlags, readTimeoutMs, withClient } from './client.ts'
import { CliError, exitUsage } from './exit.ts'
import { oneColumnFlag } from './input-file.ts'
import { inputFile, runLoad, type LoadHooks } from './load-command.ts'
import { unfoundSources } from './load-look.ts'
import { Patience } from './load-patience.ts'
import { loadRows, type ItemResult, type LoadReport, type RowFile } from './load-run.ts'
import { counted, say } from './output.ts'
import type { Options } from './options.ts'
import { rowOfFields, type Ignored } from './row-fields.ts'
import { fieldSource, type FieldSource, type Sources } from './row-sources.ts'
import { clusterSchema, rowSink } from './row-sink.ts'
import { gather } from './strict.ts'

const batchRows = 200
const batchesInFlight = 4
/** A batch is given long before it is sent to another node as well: a load is in no hurry. */
const loadLimits = { tryTimeoutMs: 15_000 }
/** How long a load tries by default: outages of nodes are shorter. */
const loadTimeoutSeconds = 60
/** How many of the fields that no property takes the report names. */
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
      gather,
    )
    .option(...oneColumnFlag)
    .option('--rejects <FILE>', 'write rejected lines there, as JSON lines')
    .addHelpText('after', notes)
    .action(loadFile)
}

const notes = `
FIELD is the name of a field (geo.lat, 007) or, in lines that have none of that name, a path.
A blank field of a CSV is no value, and "" with quotes is the empty string; null is no value in JSON.
Numbers that their type cannot hold exactly are rejected. Times are RFC 3339, or microseconds.
Bytes are hexadecimal. Lists, messages and json are JSON text in a CSV.`

async function loadFile(path: string, options: Options): Promise<void> {
  const file = inputFile(path, options)
  const rows: RowFile = { ...file, blank: null }
  const ignored: Ignored = new Map()
  const load = (hooks: LoadHooks): Promise<LoadReport> =>
    withClient(
      options,
      async (client) => {
        const schema = await clusterSchema(client, String(options['schema']))
        const table = namedTable(schema.version.schema, String(options['table']))
        const sources = parseSources(table, options['from'])
        const patience = new Patience({ forMs: readTimeoutMs(options), signal: hooks.signal })
        const sink = rowSink(schema, table.name, patience)
        await refuseUnfound(rows, sources, hooks.signal)
        return loadRows(
          { ...rows, ...hooks, batchRows, batchesInFlight },
          (body) => readRow(table, body, sources, ignored, file.format),
          sink,
        )
      },
      loadLimits,
    )
  await runLoad(file, options, load, () => tellIgnored(ignored))
}

/** An error that lies in a row rejects it. */
function readRow(...given: Parameters<typeof rowOfFields>): ItemResult<Values> {
  try {
    return { ok: true, item: rowOfFields(...given) }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return { ok: false, reason: `${error.code}: ${error.message}` }
  }
}

/** A name that is in no line is a slip, and the rows would be stored without their values. */
async function refuseUnfound(file: RowFile, sources: Sources, signal: AbortSignal): Promise<void> {
  const [unfound] = await unfoundSources(file, sources, signal)
  if (unfound === undefined) return
  const { property, text, names } = unfound
  const where = file.format === 'csv' ? 'no column of' : 'nothing in any line of'
  const told = `--from ${property}=${text} names ${where} ${file.path}`
  throw new CliError(`${told}; ${hintFor(text, names)}`, exitUsage)
}

export function namedTable(schema: Schema, name: string): Table {
  const table = findTable(schema, name)
  if (table !== undefined) return table
  const known = schema.tables.map((one) => one.name)
  throw new CliError(`schema ${schema.name}: ${unknownWord('table', name, known)}`, exitUsage)
}

function hintFor(text: string, names: readonly string[]): string {
  const [first = ''] = text.split('.')
  if (names.includes(first)) return `${first} is there, and nothing at the rest of the path`
  const guess = nearest(text, names)
  return guess === undefined ? `it has ${names.join(', ')}` : `did you mean "${guess}"?`
}

function parseSources(table: Table, given: unknown): Sources {
  const sources = new Map<string, FieldSource>()
  for (const text of Array.isArray(given) ? given.map(String) : []) {
    const [, name = '', path = ''] = /^([^=]*)=([^]*)$/.exec(text) ?? []
    const source = fieldSource(path)
    if (name === '' || source === undefined) {
      throw new CliError(`--from wants PROPERTY=FIELD, not "${text}"`, exitUsage)
    }
    const known = table.properties.map((property) => property.name)
    if (!known.includes(name)) {
      throw new CliError(`table ${table.name}: ${unknownWord('property', name, known)}`, exitUsage)
    }
    if (sources.has(name)) throw new CliError(`--from names ${name} twice`, exitUsage)
    sources.set(name, source)
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
