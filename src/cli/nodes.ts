/** `trilithon nodes`: the voters and read-only members of a replica set, and changes of them. */
import type { Command } from 'commander'
import { isGoingOn, type MembersView } from '../node/members-view.ts'
import { CliError, exitFailure } from './exit.ts'
import { MembersAsks } from './members-asks.ts'
import { describeAim } from './members-words.ts'
import { addAskFlags } from './node-asks.ts'
import {
  finish,
  noMajority,
  refuseUnknown,
  showPlan,
  spareText,
  tellStart,
} from './nodes-change.ts'
import { addNode, demoteNode, promoteNode, removeNode } from './nodes-grow.ts'
import type { Options } from './options.ts'
import { print, printJson, styledData, table } from './output.ts'

export function addNodesCommand(program: Command): void {
  const nodes = program
    .command('nodes')
    .description('the voters of a replica set, and changes of them')
  addAskFlags(nodes.command('list'))
    .description('show the voters, their epoch, and the last change of them')
    .action(listNodes)
  addChangeFlags(nodes.command('add <NODE>'))
    .requiredOption('--at <URL>', 'where the others reach it, such as http://10.0.0.4:4700')
    .option('--read-only', 'as a read-only member: it has a replica of each group, and no vote')
    .description('make a node with an empty data folder a member')
    .action(addNode)
  addChangeFlags(nodes.command('remove <NODE>'))
    .description('take a node away for good: its store never votes again')
    .action(removeNode)
  addChangeFlags(nodes.command('promote <NODE>'))
    .description('give a read-only member a vote, with the store that it has')
    .action(promoteNode)
  addChangeFlags(nodes.command('demote <NODE>'))
    .description('make a voter a read-only member, with the store that it has')
    .action(demoteNode)
  addChangeFlags(nodes.command('replace <NODE>'))
    .description(
      "replace the store of a stopped node by an empty one, where the node's disk is lost",
    )
    .action(replaceStore)
  addChangeFlags(nodes.command('renew'))
    .description('begin a new epoch with the same stores')
    .action(renewEpoch)
  addAskFlags(nodes.command('cancel'))
    .description('give up the change under way, as long as its epoch has not begun')
    .action(cancelChange)
}

function addChangeFlags(command: Command): Command {
  return addAskFlags(command)
    .option('--dry-run', 'only say what would be done, and what majority it needs')
    .option('--wait', 'follow the change to its end')
}

async function listNodes(options: Options): Promise<void> {
  const { view } = await (await MembersAsks.open(options)).look()
  if (options['json'] === true) printJson(view)
  else showMembers(view)
  if (view.canLose < 0) throw noMajority(view)
}

function showMembers(view: MembersView): void {
  const { epoch, members, change } = view
  const hasPlaces = members.some(({ region, zone }) => (region ?? zone) !== undefined)
  const rows = members.map((member) => {
    const { node, standing, epoch: own = '-', isAlive, storeId = '-' } = member
    const { region = '-', zone = '-' } = member
    const place = hasPlaces ? [region, zone] : []
    return [node, standing, String(own), isAlive ? 'yes' : 'no', ...place, storeId]
  })
  const places = hasPlaces ? ['region', 'zone'] : []
  print(styledData('bold', `epoch ${epoch}: ${spareText(view)}`))
  print(table([['node', 'standing', 'epoch', 'alive', ...places, 'store'], ...rows]))
  if (change === undefined) return
  const { number, phase, since } = change
  print(`change ${number}: ${describeAim(change)}; ${phase} since ${since}`)
  tellStart(change, print)
}

async function replaceStore(node: string, options: Options): Promise<void> {
  const asks = await MembersAsks.open(options)
  refuseUnknown(node, asks)
  const told = await asks.look(node)
  const { change } = told.view
  const isJoining = isGoingOn(change) && change.kind === 'replace' && change.node === node
  if (!isJoining) refuseLiving(node, told.view)
  const aim = { kind: 'replace', node } as const
  if (options['dryRun'] === true) return showPlan(aim, told.view, isJoining, options)
  const query = new URLSearchParams({ node })
  const begun = await asks.change(told.from, `/members/replace?${query.toString()}`)
  await finish(asks, begun, change?.number === begun.number, options)
}

async function renewEpoch(options: Options): Promise<void> {
  const asks = await MembersAsks.open(options)
  const { from, view } = await asks.look()
  const { change } = view
  const isJoining = isGoingOn(change) && change.kind === 'renew'
  if (options['dryRun'] === true) return showPlan({ kind: 'renew' }, view, isJoining, options)
  const begun = isJoining ? change : await asks.change(from, '/members/renew')
  await finish(asks, begun, isJoining, options)
}

async function cancelChange(options: Options): Promise<void> {
  const asks = await MembersAsks.open(options)
  const { from } = await asks.look()
  const change = await asks.change(from, '/members/cancel')
  if (options['json'] === true) printJson({ change })
  else print(`change ${change.number} is given up: the voters are as before`)
}

/** The store of a node that runs is there: it must not come back beside the new one. */
function refuseLiving(node: string, { members, change }: MembersView): void {
  const found = members.find((one) => one.node === node)
  if (found?.isAlive !== true) return
  const does = found.standing === 'voting' ? 'is alive and votes' : 'is alive'
  const isReplaced = change?.phase === 'done' && change.node === node
  const last = isReplaced ? `; change ${change.number}, which replaced its store, is done` : ''
  const advice = 'stop it first, and wait until trilithon nodes list shows that it is not alive'
  throw new CliError(`${node} ${does}: ${advice}${last}`, exitFailure)
}
