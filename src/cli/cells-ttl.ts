/** `trilithon cells ttl set|clear|list`: how long the cells of a column live. */
import type { Command } from 'commander'
import type { Ttl } from '../../schema/ttl.ts'
import { parseTtl } from '../../schema/ttl.ts'
import { addCellFlags, readDatastore, withClient } from './client.ts'
import { CliError, exitUsage } from './exit.ts'
import { print, printJson } from './output.ts'
import type { Options } from './options.ts'

export function addTtlCommand(cells: Command): void {
  const ttl = cells.command('ttl').description('how long the cells of a column live')
  addCellFlags(ttl.command('set <COLUMN> <TTL>'))
    .description("cells put from now on expire after TTL, such as '30 days'; older ones stay")
    .action(setTtl)
  addCellFlags(ttl.command('clear <COLUMN>'))
    .description('cells put from now on stay; those that have a TTL keep it')
    .action(clearTtl)
  addCellFlags(ttl.command('list')).description('the columns that have a TTL').action(listTtls)
}

async function setTtl(column: string, given: string, options: Options): Promise<void> {
  const ttl = readTtl(given)
  await withClient(options, (client) => client.cells(readDatastore(options)).ttls.set(column, ttl))
  if (options['json'] === true) return printJson({ column, ttl })
  print(`${column}: cells put from now on expire after ${ttl}`)
}

function readTtl(given: string): Ttl {
  const text = given.toLowerCase()
  if (isTtl(text)) return text
  const message = `TTL is ${JSON.stringify(given)}; expected a whole number of seconds, minutes, hours or days in quotes, such as '30 days'`
  throw new CliError(message, exitUsage)
}

function isTtl(text: string): text is Ttl {
  return parseTtl(text) !== undefined
}

async function clearTtl(column: string, options: Options): Promise<void> {
  await withClient(options, (client) => client.cells(readDatastore(options)).ttls.clear(column))
  if (options['json'] === true) return printJson({ column })
  print(`${column}: cells put from now on stay`)
}

async function listTtls(options: Options): Promise<void> {
  const ttls = await withClient(options, (client) =>
    client.cells(readDatastore(options)).ttls.list(),
  )
  if (options['json'] === true) return printJson(ttls)
  for (const { column, ttl } of ttls) print(`${column}\t${ttl}`)
  if (ttls.length === 0) print('no column has a TTL')
}
