/** `trilithon rows`: looks at rows of a table in one group, one a line, as JSON. */
import { Option, type Command } from 'commander'
import type { Property, Table } from '../../schema/model.ts'
import type { Json } from '../cells/body.ts'
import { parseJsonText } from '../base/json-text.ts'
import type { ReadLevel, RootKey } from '../tables/tables.ts'
import type { Page } from '../base/page.ts'
import type { ScanOptions } from '../tables/read-rows.ts'
import { addClusterFlags, parseCount, parseStaleness, parseTime, withClient } from './client.ts'
import { CliError, exitUsage } from './exit.ts'
import { namedTable } from './load.ts'
import { printJson } from './output.ts'
import type { Options } from './options.ts'
import { rowOfFields } from './row-fields.ts'
import { clusterSchema } from './row-sink.ts'

const pageRows = 500

/** A reader for types that are known only now. */
interface PlainReader {
  scan(
    table: { readonly name: string },
    query: unknown,
    options: ScanOptions,
  ): Promise<Page<object>>
  scanTree(
    table: { readonly name: string },
    key: unknown,
    options: ScanOptions,
  ): Promise<Page<object>>
  index(
    table: { readonly name: string },
    name: string,
    query: unknown,
    options: ScanOptions,
  ): Promise<Page<object>>
}

export function addRowsCommand(program: Command): void {
  addClusterFlags(program.command('rows').argument('<TABLE>', 'the table'))
    .description('print rows of one group as JSON lines')
    .requiredOption('--schema <NAME>', 'the schema, as the cluster has it')
    .requiredOption(
      '--key <JSON>',
      'the first parts of the key, those of the group at least: \'{"artist_id":558}\'',
    )
    .option('--index <NAME>', 'entries of this index instead; the key is its first parts')
    .addOption(new Option('--tree', 'the row of this key and all rows below it').conflicts('index'))
    .option('--reverse', 'in reverse order')
    .option('--limit <N>', 'print at most this many', '100')
    .addOption(
      new Option(
        '--at <TIME>',
        'as of this time, such as 2026-01-31T12:00:00Z, or microseconds since 1970',
      ).conflicts('level'),
    )
    .option('--level <LEVEL>', 'current, snapshot or inconsistent', 'current')
    .addOption(
      new Option(
        '--max-staleness <MS>',
        'all that was acknowledged longer ago than this; from what the node asked has, where it can show that',
      ).conflicts(['level', 'at']),
    )
    .action(printRows)
}

async function printRows(tableName: string, options: Options): Promise<void> {
  const limit = parseCount('--limit', options['limit'], 1, Number.MAX_SAFE_INTEGER)
  const level = parseLevel(options)
  const query = parseKey(options['key'])
  await withClient(options, async (client) => {
    const { db, version } = await clusterSchema(client, String(options['schema']))
    const table = namedTable(version.schema, tableName)
    const values = parseQuery(table, query)
    const root = buildRoot(version.schema.tables, table, values)
    await db.read(root, level, async (rows) => {
      const page = pager(rows, table, values, options)
      for (let left = limit, cursor: string | undefined; left > 0;) {
        const found = await page({
          limit: Math.min(left, pageRows),
          reverse: options['reverse'] === true,
          ...(cursor !== undefined && { cursor }),
        })
        for (const item of found.items) printJson(plain(item))
        left -= found.items.length
        cursor = found.cursor
        if (cursor === undefined) return
      }
    })
  })
}

function pager(
  rows: PlainReader,
  table: Table,
  values: unknown,
  options: Options,
): (scan: ScanOptions) => Promise<Page<object>> {
  const { index } = options
  if (typeof index === 'string') return (scan) => rows.index(table, index, values, scan)
  if (options['tree'] === true) return (scan) => rows.scanTree(table, values, scan)
  return (scan) => rows.scan(table, values, scan)
}

/** April of 1970: a smaller number is a year, a day or seconds, and no moment of a row. */
const microsLeast = 10_000_000_000_000

function parseLevel(options: Options): ReadLevel {
  const { at, level, maxStaleness } = options
  if (maxStaleness !== undefined) return { maxStalenessMs: parseStaleness(maxStaleness) }
  if (typeof at === 'string') {
    const micros = /^\d+$/.test(at) ? Number(at) : undefined
    const isMoment = Number.isSafeInteger(micros) && Number(micros) >= microsLeast
    return { at: isMoment ? Number(micros) : parseTime('--at', at) }
  }
  if (level === 'current' || level === 'snapshot' || level === 'inconsistent') return level
  const text = `--level is current, snapshot or inconsistent, not "${String(level)}"`
  throw new CliError(text, exitUsage)
}

export function parseKey(text: unknown): { readonly [name: string]: Json } {
  const parsed = parseJsonText(String(text))
  const value = parsed.ok ? parsed.value : undefined
  if (typeof value === 'object' && value !== null && !isList(value)) return value
  const wish = `--key wants JSON such as {"artist_id":558}, not ${String(text)}`
  throw new CliError(parsed.ok ? wish : `${wish}: ${parsed.reason}`, exitUsage)
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value)
}

/**
 * Values and ranges of values, in the forms that the properties have; other names are left as they are. Null
 * asks an index for rows without a value; where that is not possible, the client's call refuses it.
 */
export function parseQuery(
  table: Table,
  query: { readonly [name: string]: Json },
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      const property = propertyAt(table.properties, name.split('.'))
      return [name, property === undefined ? value : formed(table, property, value)]
    }),
  )
}

/** The property at a path, through messages. */
function propertyAt(
  properties: readonly Property[],
  [first, ...rest]: readonly string[],
): Property | undefined {
  const property = properties.find(({ name }) => name === first)
  if (rest.length === 0 || property === undefined) return property
  return property.type.kind === 'message' ? propertyAt(property.type.properties, rest) : undefined
}

function formed(table: Table, property: Property, value: Json): unknown {
  // In a field of a file it is no value, and left out.
  if (value === null) return null
  if (typeof value === 'object' && !isList(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([bound, one]) => [bound, formed(table, property, one)]),
    )
  }
  const one: Property = { ...property, presence: 'required' }
  const row = rowOfFields(
    { ...table, properties: [one] },
    { [one.name]: value },
    new Map(),
    new Map(),
    'query',
  )
  return row[one.name]
}

/** The group that a key names. Throws a usage error that names the key's columns where some are missing. */
export function buildRoot(
  tables: readonly Table[],
  table: Table,
  values: Readonly<Record<string, unknown>>,
): RootKey {
  const names =
    table.kind === 'root' ? table.key.parts.map(({ property }) => property) : table.groupKey
  const rootName = table.kind === 'root' ? table.name : table.root
  const root = tables.find(({ name }) => name === rootName)
  const rootParts = (root?.key.parts ?? []).map(({ property }, i) => ({
    property,
    name: names[i] ?? property,
  }))
  const missing = rootParts.filter(({ name }) => values[name] === undefined)
  if (missing.length > 0) {
    const wanted = rootParts.map(({ name }) => name).join(', ')
    const absent = missing.map(({ name }) => name).join(', ')
    const message = `--key names the group of a ${table.name} by ${wanted}, and lacks ${absent}`
    throw new CliError(message, exitUsage)
  }
  const parts = rootParts.map(({ property, name }) => [property, values[name]] as const)
  return { table: rootName, key: Object.fromEntries(parts) }
}

/** A row as JSON has it: 64-bit numbers as digits, bytes in hexadecimal. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one)]))
}
