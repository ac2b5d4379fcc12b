/** `trilithon index build|rebuild|check|drop`: long work on an index of tables or of cells, with its progress. */
import { Option, type Command } from 'commander'
import { SingleBar } from 'cli-progress'
import type { Client } from '../client/client.ts'
import type { BuildOptions } from '../client/options.ts'
import type { Misfits } from '../indexes/misfits.ts'
import type { ComparedRows, Progress } from '../indexes/report.ts'
import { addClusterFlags, parseNumber, withClient } from './client.ts'
import { CliError, exitFailure, exitUsage } from './exit.ts'
import { interruptible } from './interruptible.ts'
import { counted, grouped, print, printJson, say } from './output.ts'
import type { Options } from './options.ts'

/** The options given to each of the calls: where to tell how far it is, and the signal that ends it. */
type MaintenanceOptions = Required<Pick<BuildOptions, 'onProgress' | 'signal'>>

interface Filled {
  readonly rows: number
  /** Of an index of tables. */
  readonly misfits?: Misfits
}

/** An index of a schema, or over the cells of a datastore. */
export function addPlaceFlags(command: Command): Command {
  return addClusterFlags(command, 60)
    .addOption(
      new Option('--schema <NAME>', 'the schema whose tables it is on').conflicts('datastore'),
    )
    .option('-d, --datastore <NAME>', 'the datastore whose cells it is over')
}

export function parsePlace(
  options: Options,
): { readonly schema: string } | { readonly datastore: string } {
  const { schema, datastore } = options
  if (typeof schema === 'string' && datastore === undefined) return { schema }
  if (typeof datastore === 'string' && schema === undefined) return { datastore }
  throw new CliError('name either the --schema or the --datastore of the index', exitUsage)
}

export function addMaintenanceCommands(index: Command): void {
  addPlaceFlags(index.command('build').argument('<NAME>', 'the index'))
    .description('fill an index with the rows that were there before it, and open it to queries')
    .option(
      '--grace <SECONDS>',
      'how long programs that do not know the index may write after its declaration; 0 when none runs',
    )
    .action(build)
  addPlaceFlags(index.command('rebuild').argument('<NAME>', 'the index'))
    .description('make all entries again and remove those of no row; queries go on meanwhile')
    .action(rebuild)
  addPlaceFlags(index.command('check').argument('<NAME>', 'the index'))
    .description('compare an index with the rows; ends with 1 when something is wrong')
    .action(check)
  addPlaceFlags(index.command('drop').argument('<NAME>', 'the index'))
    .description(
      'drop an index and its entries; queries are refused at once; run it again to go on',
    )
    .option(
      '--grace <SECONDS>',
      'how long programs may still ask the index, and then add to it; 0 when none runs',
    )
    .option('--yes', 'do it; without this, the command only says what it would do')
    .action(drop)
}

async function drop(name: string, options: Options): Promise<void> {
  const place = parsePlace(options)
  const where = 'schema' in place ? `schema ${place.schema}` : `datastore ${place.datastore}`
  if (options['yes'] !== true) {
    throw new CliError(
      `this drops index ${name} of ${where} and all its entries; add --yes to do it`,
      exitUsage,
    )
  }
  const grace = parseGrace(options)
  await withProgress<unknown>('drop', options, (client, upkeep) => {
    const given = { ...upkeep, ...grace }
    if ('schema' in place) return client.indexes(place.schema).drop(name, given)
    return client.cells(place.datastore).indexes.drop(name, given)
  })
  if (options['json'] === true) return printJson({ index: name, dropped: true })
  print(`${name}: dropped`)
}

function parseGrace({ grace }: Options): { readonly graceMs?: number } {
  if (grace === undefined) return {}
  return { graceMs: 1000 * parseNumber('--grace', grace, 0, 86_400) }
}

async function build(name: string, options: Options): Promise<void> {
  const grace = parseGrace(options)
  const work = async (client: Client, upkeep: MaintenanceOptions): Promise<Filled> => {
    const given = { ...upkeep, ...grace }
    const place = parsePlace(options)
    if ('schema' in place) return client.indexes(place.schema).build(name, given)
    return client.cells(place.datastore).indexes.build(name, given)
  }
  const report = await withProgress('build', options, work)
  if (options['json'] === true) return printJson({ index: name, ...report })
  print(`${name}: ready, ${report.rows} rows filled in${describeExcept(report)}`)
  tellMisfits(report)
}

async function rebuild(name: string, options: Options): Promise<void> {
  const work = async (client: Client, upkeep: MaintenanceOptions): Promise<Filled> => {
    const place = parsePlace(options)
    if ('schema' in place) return client.indexes(place.schema).rebuild(name, upkeep)
    return client.cells(place.datastore).indexes.rebuild(name, upkeep)
  }
  const report = await withProgress('rebuild', options, work)
  if (options['json'] === true) return printJson({ index: name, ...report })
  print(`${name}: made anew from ${report.rows} rows${describeExcept(report)}`)
  tellMisfits(report)
}

function describeExcept({ misfits }: Filled): string {
  const count = misfits?.count ?? 0
  return count === 0 ? '' : `, except ${counted(count, 'row')} with values too long for it`
}

/** They are rows like any other, and are not found by these values. */
function tellMisfits({ misfits }: Filled): void {
  if (misfits === undefined) return
  for (const row of misfits.rows) say(`not in the index: ${row}`)
  const others = misfits.count - misfits.rows.length
  if (others > 0) say(`… and ${counted(others, 'row')} more`)
}

async function check(name: string, options: Options): Promise<void> {
  const work = async (
    client: Client,
    upkeep: MaintenanceOptions,
  ): Promise<ComparedRows & Filled> => {
    const place = parsePlace(options)
    if ('schema' in place) return client.indexes(place.schema).check(name, upkeep)
    return client.cells(place.datastore).indexes.check(name, upkeep)
  }
  const report = await withProgress('check', options, work)
  if (options['json'] === true) printJson({ index: name, ...report })
  else {
    for (const { kind, entry } of report.faults) print(`${kind}\t${entry}`)
    print(`${name}: ${report.rows} rows compared, ${report.faults.length} faults`)
    if (report.rows === 0) say(`${name}: there are no rows: nothing was compared`)
    tellMisfits(report)
  }
  if (report.faults.length > 0) {
    throw new CliError(
      `index ${name} is not what the rows say; trilithon index rebuild mends it`,
      exitFailure,
    )
  }
}

/** A bar on stderr where that is a terminal. A signal ends the work; the command then reports how far it came. */
async function withProgress<Value>(
  verb: string,
  options: Options,
  work: (client: Client, upkeep: MaintenanceOptions) => Promise<Value>,
): Promise<Value> {
  const bar = process.stderr.isTTY
    ? new SingleBar({
        stream: process.stderr,
        hideCursor: true,
        clearOnComplete: true,
        format: '{phase} {bar} {value}/{total}',
      })
    : undefined
  let last: Progress | undefined
  const onProgress = (progress: Progress): void => {
    const total = Math.max(1, progress.total ?? progress.done)
    if (last?.phase !== progress.phase) bar?.start(total, progress.done, { phase: progress.phase })
    else bar?.update(progress.done, { phase: progress.phase })
    last = progress
  }
  const long = {
    name: `the ${verb}`,
    done: () => progressWords(last),
    advice: `run the same command again${verb === 'check' ? '' : ' to go on'}`,
  }
  try {
    return await interruptible(long, (signal) =>
      withClient(options, (client) => work(client, { onProgress, signal })),
    )
  } finally {
    bar?.stop()
  }
}

/** How far long work on an index had come: `filling had come to 12 of 4,096`. */
export function progressWords(last: Progress | undefined): string {
  if (last === undefined) return 'nothing had been done'
  const { phase, done, total } = last
  const of = total === undefined ? '' : ` of ${grouped(total)}`
  return `${phase} had come to ${grouped(done)}${of}`
}
