/** `trilithon index`: the indexes, their lag, and their entries. */
import type { Command } from 'commander'
import type { Json } from '../cells/body.ts'
import { definitionJson } from '../cells/index-definition.ts'
import type { KnownIndex } from '../cells/index-registry.ts'
import type { IndexValue } from '../cells/index-values.ts'
import { StoreError } from '../base/errors.ts'
import type { IndexState } from '../indexes/state.ts'
import { filtersOfGiven, type IndexWhere } from '../client/filters.ts'
import { columnListProblem, nameListProblem } from '../gateway/name-lists.ts'
import { parseJsonText } from '../base/json-text.ts'
import { addClusterFlags, parseCount, withClient } from './client.ts'
import { CliError, exitUsage } from './exit.ts'
import { addPlaceFlags, addMaintenanceCommands, parsePlace } from './index-maintenance.ts'
import { print, printJson } from './output.ts'
import type { Options } from './options.ts'

export function addIndexCommand(program: Command): void {
  const index = program
    .command('index')
    .description('list, build, check, drop and query indexes of tables and over cells')
  addPlaceFlags(index.command('list')).description('print the indexes').action(list)
  addPlaceFlags(index.command('status').argument('[NAME]', 'the index; all without it'))
    .description('print the state of indexes, and how far behind the relay of a node is')
    .action(status)
  addMaintenanceCommands(index)
  addClusterFlags(index.command('apply').argument('<FILE>', 'YAML that defines it; - reads stdin'))
    .description('give a datastore an index over its cells; build fills it')
    .action(apply)
  addClusterFlags(index.command('query').argument('<NAME>', 'the index'))
    .description('print entries of an index over cells, one a line, as JSON')
    .requiredOption('-d, --datastore <NAME>', 'the datastore')
    .requiredOption('--where <JSON>', '\'{"driver_uuid":"…","created_at":{"gte":"2016-01-01"}}\'')
    .option('--select <FIELDS>', 'these fields only, with commas between them')
    .option(
      '--columns <COLUMNS>',
      'add the latest cells of these columns to each row found; all: of every column',
    )
    .option('--order <FIELD>', 'sort by this field, instead of by the second one of the index')
    .option('--reverse', 'in reverse order')
    .option('--verify', 'leave out entries that no longer match their rows')
    .option('--limit <N>', 'print at most this many', '100')
    .action(query)
}

/** Of a damaged index no other state matters, but that it is being dropped. */
type State = IndexState | 'damaged'

function pickState({ state, isDamaged }: KnownIndex): State {
  return isDamaged && state !== 'dropping' ? 'damaged' : state
}

interface Shown {
  readonly name: string
  readonly state: State
  readonly over: string
}

async function list(options: Options): Promise<void> {
  const place = parsePlace(options)
  await withClient(options, async (client) => {
    const shown = 'schema' in place ? await client.indexes(place.schema).list() : undefined
    const cells = 'datastore' in place ? await client.cells(place.datastore).indexes.list() : []
    const all: readonly Shown[] = [
      ...(shown ?? []).map(({ name, table, parts, state }) => {
        return { name, state, over: `${table}(${parts.join(', ')})` }
      }),
      ...cells.map((known) => {
        const { name, fields } = known.definition
        const over = fields.map(({ column, field }) => `${column}.${field}`).join(', ')
        return { name, state: pickState(known), over }
      }),
    ]
    if (options['json'] === true) return printJson(all)
    for (const { name, state, over } of all) print(`${name}\t${state}\t${over}`)
  })
}

async function status(name: string | undefined, options: Options): Promise<void> {
  const place = parsePlace(options)
  await withClient(options, async (client) => {
    const states =
      'schema' in place
        ? (await client.indexes(place.schema).list()).map((one) => [one.name, one.state] as const)
        : (await client.cells(place.datastore).indexes.list()).map(
            (known) => [known.definition.name, pickState(known)] as const,
          )
    const asked = states.filter(([one]) => name === undefined || one === name)
    if (name !== undefined && asked.length === 0) {
      const where = 'schema' in place ? `schema ${place.schema}` : `datastore ${place.datastore}`
      throw new StoreError('not-found', `${where}: there is no index ${name}`)
    }
    const node = await client.status()
    const relay = readMember(node, 'indexes')
    if (options['json'] === true) {
      const indexes = Object.fromEntries(asked)
      return printJson({ indexes, node: readMember(node, 'node'), relay })
    }
    for (const [one, state] of asked) print(`${one}\t${state}`)
    print(`relay of node ${JSON.stringify(readMember(node, 'node'))}: ${JSON.stringify(relay)}`)
  })
}

function readMember(value: Json, name: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  return Object.entries(value).find(([one]) => one === name)?.[1] ?? null
}

async function apply(path: string, options: Options): Promise<void> {
  // Only this verb reads YAML: the others start without loading its reader.
  const { readIndexFile } = await import('./index-file.ts')
  const definition = await readIndexFile(path)
  const { name, datastore } = definition
  const given: unknown = JSON.parse(definitionJson(definition))
  const kind = await withClient(options, (client) => client.cells(datastore).indexes.apply(given))
  if (options['json'] === true) return printJson({ index: name, datastore, kind })
  if (kind === 'same') return print(`index ${name} of ${datastore}: already there`)
  print(
    `index ${name} of ${datastore}: declared; trilithon index build -d ${datastore} ${name} fills it`,
  )
}

async function query(name: string, options: Options): Promise<void> {
  const left = { count: parseCount('--limit', options['limit'], 1, Number.MAX_SAFE_INTEGER) }
  const where = parseWhere(String(options['where']))
  const { order } = options
  const select = parseList(options, 'select', nameListProblem)
  const columns = parseList(options, 'columns', columnListProblem)
  await withClient(options, async (client) => {
    const index = client.cells(String(options['datastore'])).index(name)
    for (let cursor: string | undefined; left.count > 0;) {
      const page = await index.query(where, {
        ...(select !== undefined && { select }),
        ...(columns !== undefined && { columns: columns.join() === 'all' ? 'all' : columns }),
        ...(typeof order === 'string' && { order }),
        reverse: options['reverse'] === true,
        verify: options['verify'] === true,
        ...(cursor !== undefined && { cursor }),
        limit: Math.min(left.count, 1000),
      })
      for (const entry of page.items) printJson(entry)
      left.count -= page.items.length
      cursor = page.cursor
      if (cursor === undefined) return
    }
  })
}

/** Names with commas between them; refused when they are not understood. */
function parseList(
  options: Options,
  name: 'select' | 'columns',
  findProblem: (what: string, names: readonly string[]) => string | undefined,
): readonly string[] | undefined {
  const given = options[name]
  if (typeof given !== 'string') return undefined
  const names = given.split(',')
  const wrong = findProblem(`--${name}`, names)
  if (wrong !== undefined) throw new CliError(wrong, exitUsage)
  return names
}

/** Refuses a value that is no filter, before it asks a node. */
function parseWhere(text: string): IndexWhere {
  const parsed = parseJsonText(text)
  const value = parsed.ok ? parsed.value : undefined
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isObject) throw notAWhere(text, parsed.ok ? undefined : parsed.reason)
  const { filters } = filtersOfGiven(value, '--where')
  if (filters.length === 0) throw notAWhere(text, 'it names no field')
  const where = new Map<string, Record<string, IndexValue>>()
  for (const { field, comparison, value } of filters) {
    where.set(field, { ...where.get(field), [comparison]: value })
  }
  return Object.fromEntries(where)
}

function notAWhere(text: string, reason?: string): CliError {
  const wish = `--where wants JSON such as {"city":"Oslo","at":{"gte":5}}, not ${text}`
  return new CliError(reason === undefined ? wish : `${wish}: ${reason}`, exitUsage)
}
