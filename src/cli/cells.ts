/** `trilithon cells get|latest|put`: cells from the command line; the longer verbs are beside this. */
import { Option, type Command } from 'commander'
import type { Cell } from '../cells/cell.ts'
import { parseJsonText } from '../base/json-text.ts'
import type { Cells } from '../client/cells.ts'
import type { ReadOptions } from '../client/options.ts'
import { formatIso } from '../base/datetime.ts'
import { addLoadCommand } from './cells-load.ts'
import { addPurgeCellCommand } from './cells-purge-cell.ts'
import { addPurgeCommand } from './cells-purge.ts'
import { addRejectedCommand } from './cells-rejected.ts'
import { addTailCommand } from './cells-tail.ts'
import { addTtlCommand } from './cells-ttl.ts'
import { addCellFlags, parseCount, parseStaleness, readDatastore, withClient } from './client.ts'
import { CliError, exitFailure, exitUsage } from './exit.ts'
import { readInput } from './input-file.ts'
import { print, printJson, say, styled, timed } from './output.ts'
import type { Options } from './options.ts'

export function addCellsCommand(program: Command): void {
  const cells = program.command('cells').description('read, write and load cells')
  addReadFlags(cells.command('get <ROW> <COLUMN> [REFKEY]'))
    .description('print a cell; without a ref key, all versions of the column')
    .action(getCell)
  addReadFlags(cells.command('latest <ROW> [COLUMN]'))
    .description('print the latest cell of a column, or of every column of the row')
    .action(getLatest)
  addCellFlags(cells.command('put <ROW> <COLUMN> <REFKEY> <BODY>'))
    .description('write a cell if it is absent; BODY is JSON, or - to read it from stdin')
    .action(putCell)
  addTailCommand(cells)
  addLoadCommand(cells)
  addPurgeCommand(cells)
  addPurgeCellCommand(cells)
  addTtlCommand(cells)
  addRejectedCommand(cells)
}

function addReadFlags(command: Command): Command {
  const read = new Option(
    '--read <LEVEL>',
    'current: all that was acknowledged; snapshot: one replica',
  )
  return addCellFlags(command)
    .addOption(read.choices(['current', 'snapshot']).default('current'))
    .addOption(
      new Option(
        '--max-staleness <MS>',
        'all that was acknowledged longer ago than this; from one replica, where it can show that',
      ).conflicts('read'),
    )
}

const refKeyMax = Number.MAX_SAFE_INTEGER

async function getCell(
  row: string,
  column: string,
  refKeyText: string | undefined,
  options: Options,
): Promise<void> {
  const refKey =
    refKeyText === undefined ? undefined : parseCount('REFKEY', refKeyText, 0, refKeyMax)
  await withClient(options, async (client) => {
    const cells = client.cells(readDatastore(options))
    if (refKey === undefined) return printAll(readVersions(cells, row, column, options), options)
    const cell = await cells.get({ rowKey: row, column, refKey }, parseRead(options))
    if (cell === undefined) throw absent(`no cell ${row} ${column} ${refKey}`)
    return printCell(cell, options)
  })
}

async function getLatest(row: string, column: string | undefined, options: Options): Promise<void> {
  await withClient(options, async (client) => {
    const cells = client.cells(readDatastore(options))
    if (column === undefined) return printAll(readColumns(cells, row, options), options)
    const cell = await cells.get({ rowKey: row, column }, parseRead(options))
    if (cell === undefined) throw absent(`no cell ${row} ${column}`)
    return printCell(cell, options)
  })
}

async function putCell(
  row: string,
  column: string,
  refKeyText: string,
  bodyText: string,
  options: Options,
): Promise<void> {
  const refKey = parseCount('REFKEY', refKeyText, 0, refKeyMax)
  const text = bodyText === '-' ? await readInput('-') : bodyText
  const parsed = parseJsonText(text)
  if (!parsed.ok) throw new CliError(`the body is refused: ${parsed.reason}`, exitUsage)
  const cell = { rowKey: row, column, refKey, body: parsed.value }
  const written = await withClient(options, (client) =>
    client.cells(readDatastore(options)).put(cell),
  )
  const isJson = options['json'] === true
  if (written.buffered) {
    if (isJson) return printJson(written)
    return print(`buffered: shard ${written.shard} cannot be reached; it gets the cell when it can`)
  }
  if (isJson) return printJson(timed(written))
  const { created, shard, addedId } = written
  print(`${created ? 'created' : 'already there'}: shard ${shard}, added id ${addedId}`)
}

function parseRead(options: Options): ReadOptions {
  const { maxStaleness } = options
  if (maxStaleness !== undefined) return { maxStalenessMs: parseStaleness(maxStaleness) }
  return { read: options['read'] === 'snapshot' ? 'snapshot' : 'current' }
}

function absent(message: string): CliError {
  return new CliError(message, exitFailure)
}

async function* readVersions(
  cells: Cells,
  row: string,
  column: string,
  options: Options,
): AsyncGenerator<Cell> {
  let from = 0
  for (;;) {
    const page = await cells.versions(row, column, { ...parseRead(options), cursor: from })
    yield* page.items
    if (page.cursor === undefined) return
    from = page.cursor
  }
}

async function* readColumns(cells: Cells, row: string, options: Options): AsyncGenerator<Cell> {
  let from: string | undefined
  do {
    const page = await cells.latestAll(row, {
      ...parseRead(options),
      ...(from && { cursor: from }),
    })
    yield* page.items
    from = page.cursor
  } while (from !== undefined)
}

async function printAll(cells: AsyncIterable<Cell>, options: Options): Promise<void> {
  let count = 0
  for await (const cell of cells) {
    count += 1
    if (options['json'] === true) printJson(timed(cell))
    else print(`${cell.column}\t${cell.refKey}\t${JSON.stringify(cell.body)}`)
  }
  if (count === 0) throw absent('no such cells')
}

/** The body is the data and goes to stdout. The cell's place goes to stderr, unless the user wants JSON. */
function printCell(cell: Cell, options: Options): void {
  if (options['json'] === true) return printJson(timed(cell))
  const { column, refKey, addedId, createdAt } = cell
  say(styled('dim', `${column} ${refKey}, added id ${addedId}, ${formatIso(createdAt)}`))
  print(JSON.stringify(cell.body))
}
