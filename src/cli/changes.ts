/** `trilithon changes list|show|cancel`: changes of the voters and read-only members of a replica set. */
import type { Command } from 'commander'
import { allowsFeature, firstVersion } from '../base/cluster-version.ts'
import { isGoingOn, type ChangeView, type MembersView } from '../node/members-view.ts'
import { CliError, exitFailure } from './exit.ts'
import { MembersAsks } from './members-asks.ts'
import { describeAim } from './members-words.ts'
import { parseCount } from './client.ts'
import { addAskFlags } from './node-asks.ts'
import { tellStart } from './nodes-change.ts'
import type { Options } from './options.ts'
import { print, printJson, say } from './output.ts'

export function addChangesCommand(program: Command): void {
  const changes = program
    .command('changes')
    .description('changes of the members of a replica set: the one under way, or the last one')
  addAskFlags(changes.command('list'))
    .description('the change under way, or the last one: a replica set keeps no other')
    .action(list)
  addAskFlags(changes.command('show <NUMBER>'))
    .description('one change, and how to go on with it')
    .action(show)
  addAskFlags(changes.command('cancel <NUMBER>'))
    .description('give the change up, as long as its epoch has not begun')
    .action(cancel)
}

async function list(options: Options): Promise<void> {
  const { view } = await (await MembersAsks.open(options)).look()
  const { change } = view
  if (options['json'] === true) return printJson(change === undefined ? [] : [change])
  if (change === undefined) return say('the members of this replica set have not changed yet')
  print(describe(change))
}

async function show(text: string, options: Options): Promise<void> {
  const number = parseNumber(text)
  const { view } = await (await MembersAsks.open(options)).look()
  const change = numbered(view, number)
  if (options['json'] === true) return printJson(change)
  print(describe(change))
  if (isGoingOn(change)) tellStart(change, print)
}

/** By its number: the operator means this change, and not one that began since. */
async function cancel(text: string, options: Options): Promise<void> {
  const number = parseNumber(text)
  const asks = await MembersAsks.open(options)
  const { from, view } = await asks.look()
  const wanted = numbered(view, number)
  if (!isGoingOn(wanted)) {
    throw new CliError(`change ${number} is not under way: ${describe(wanted)}`, exitFailure)
  }
  // A build of before refuses the number.
  const isNumbered = allowsFeature(view.version ?? firstVersion, 'numbered-cancel')
  const change = await asks.change(from, `/members/cancel${isNumbered ? `?number=${number}` : ''}`)
  // Without the number one change may have ended, and the next one begun, in between.
  if (change.number !== number) {
    const message = `change ${number} ended meanwhile, and change ${change.number}, which had begun, is given up`
    throw new CliError(message, exitFailure)
  }
  if (options['json'] === true) return printJson({ change })
  print(`change ${change.number} is given up: the members are as before`)
}

function parseNumber(text: string): number {
  return parseCount('NUMBER', text, 1, Number.MAX_SAFE_INTEGER)
}

function numbered({ change }: MembersView, number: number): ChangeView {
  if (change?.number === number) return change
  const last = change === undefined ? 'it has had none' : `it knows its last one, ${change.number}`
  throw new CliError(`this replica set knows no change ${number}: ${last}`, exitFailure)
}

function describe(change: ChangeView): string {
  const { number, phase, since } = change
  return `change ${number}: ${describeAim(change)}; ${phase} since ${since}`
}
