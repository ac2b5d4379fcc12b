/** `trilithon hold set|clear|list`: legal holds of groups, of tables there, of cells. */
import type { Command } from 'commander'
import { formatIso } from '../base/datetime.ts'
import type { HoldScope } from '../tables/holds.ts'
import { withClient } from './client.ts'
import { CliError, exitFailure } from './exit.ts'
import { addTargetFlags, describeTarget, ofGroup, readTarget } from './group-target.ts'
import { print, printJson } from './output.ts'
import type { Options } from './options.ts'

export function addHoldCommand(program: Command): void {
  const hold = program
    .command('hold')
    .description('legal holds: nothing that is held is deleted, purged or removed for its age')
  addHeldFlags(hold.command('set'))
    .description('hold a group, a table there, a datastore or a row of cells')
    .requiredOption('--reason <TEXT>', 'why, such as the name of a case; refusals say it')
    .action(setHold)
  addHeldFlags(hold.command('clear')).description('lift a hold').action(clearHold)
  addHeldFlags(hold.command('list'))
    .description('the holds of a group, or of a datastore')
    .action(listHolds)
}

function addHeldFlags(command: Command): Command {
  return addTargetFlags(command).addOption(
    ofGroup('--table <NAME>', 'this table of the group only'),
  )
}

async function setHold(options: Options): Promise<void> {
  const reason = String(options['reason'])
  const words = describeTarget(options)
  await withClient(options, async (client) =>
    client.holds.set(await readTarget(client, options), reason),
  )
  if (options['json'] === true) return printJson({ held: words, reason })
  print(`${words} is held: ${reason}`)
}

async function clearHold(options: Options): Promise<void> {
  const words = describeTarget(options)
  await withClient(options, async (client) => {
    const target = await readTarget(client, options)
    if (await client.holds.clear(target)) return
    const others = (await client.holds.list(target)).map(({ scope }) => describeScope(scope))
    const held = others.length === 0 ? 'nothing is' : `these are: ${others.join(', ')}`
    throw new CliError(`${words} is not held; ${held}`, exitFailure)
  })
  if (options['json'] === true) return printJson({ cleared: words })
  print(`${words} is not held any more`)
}

async function listHolds(options: Options): Promise<void> {
  const holds = await withClient(options, async (client) =>
    client.holds.list(await readTarget(client, options)),
  )
  for (const { scope, reason, since } of holds) {
    const at = formatIso(since)
    if (options['json'] === true) printJson({ scope: describeScope(scope), reason, since: at })
    else print(`${describeScope(scope)}\t${at}\t${reason}`)
  }
  if (holds.length === 0 && options['json'] !== true) print('nothing is held')
}

function describeScope(scope: HoldScope): string {
  const [kind, name] = scope
  if (kind === 'group') return 'the group'
  if (kind === 'table') return `table ${name}`
  return name === undefined ? 'all cells' : `row ${name}`
}
