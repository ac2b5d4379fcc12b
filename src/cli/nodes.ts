/** `trilithon nodes list|replace|renew|cancel`: the voters of a replica set, and changes of their stores. */
import type { Command } from 'commander'
import { isGoingOn, type ChangeView, type MembersView } from '../node/members-view.ts'
import { CliError, exitFailure, exitUnavailable, exitUsage } from './exit.ts'
import { MembersAsks } from './members-asks.ts'
import { followChange } from './members-follow.ts'
import { describeAim, majorityOf, startCommand } from './members-words.ts'
import { addAskFlags } from './node-asks.ts'
import type { Options } from './options.ts'
import { counted, print, printJson, say, styledData, table } from './output.ts'

export function addNodesCommand(program: Command): void {
  const nodes = program
    .command('nodes')
    .description('the voters of a replica set, and changes of their stores')
  addAskFlags(nodes.command('list'))
    .description('show the voters, their epoch, and the last change of them')
    .action(listNodes)
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
  const rows = members.map(({ node, standing, epoch: own = '-', isAlive, storeId = '-' }) => {
    return [node, standing, String(own), isAlive ? 'yes' : 'no', storeId]
  })
  print(styledData('bold', `epoch ${epoch}: ${spareText(view)}`))
  print(table([['node', 'standing', 'epoch', 'alive', 'store'], ...rows]))
  if (change === undefined) return
  const { number, phase, since } = change
  print(`change ${number}: ${describeAim(change)}; ${phase} since ${since}`)
  tellStart(change, print)
}

function spareText({ canLose }: MembersView): string {
  return canLose < 0 ? 'there is no majority' : `can lose ${counted(canLose, 'more voter')}`
}

function noMajority(view: MembersView): CliError {
  const { voters, needed, voting } = majorityOf(view)
  const text = `${voting.length} of ${voters} voters are alive and vote; ${needed} are needed`
  return new CliError(text, exitUnavailable)
}

function tellStart(change: ChangeView, tell: (text: string) => void): void {
  const { node = '', seat } = change
  const command = startCommand(change)
  if (command === undefined) return
  tell(`Start ${node} with an empty data folder and --seat ${seat}: ${command}`)
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

/** Follows the change where the flags say so, and tells the operator how to go on where they do not. */
async function finish(
  asks: MembersAsks,
  begun: ChangeView,
  isJoined: boolean,
  options: Options,
): Promise<void> {
  const isJson = options['json'] === true
  const state = isJoined ? 'is under way' : 'has begun'
  if (!isJson) print(`change ${begun.number} ${state}: ${describeAim(begun)}`)
  tellStart(begun, isJson ? say : print)
  if (options['wait'] === true) {
    const view = await followChange(asks, begun)
    if (isJson) printJson({ change: view.change })
    else print(`change ${begun.number} is done: ${spareText(view)}`)
    return
  }
  if (isJson) printJson({ change: begun })
  say('see trilithon nodes list')
}

function refuseUnknown(node: string, { nodes }: MembersAsks): void {
  const ids = nodes.map(({ id }) => id)
  if (ids.includes(node)) return
  throw new CliError(`there is no node "${node}", only ${ids.toSorted().join(', ')}`, exitUsage)
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

/** Of `--dry-run`. Throws where the change could not begin. */
function showPlan(
  aim: Pick<ChangeView, 'kind' | 'node'>,
  view: MembersView,
  isJoining: boolean,
  options: Options,
): void {
  const { change, epoch } = view
  if (!isJoining) refuseOther(change)
  const majority = majorityOf(view)
  const { voters, needed, voting } = majority
  const number = isJoining ? change?.number : (change?.number ?? 0) + 1
  if (options['json'] === true)
    printJson({ dryRun: true, ...aim, change: number, isJoining, ...majority })
  else {
    const what =
      aim.kind === 'replace'
        ? `${aim.node} gets an empty store, which votes from epoch ${epoch + 1} on`
        : `the same stores go on in epoch ${epoch + 1}`
    print(
      isJoining
        ? `change ${number} is under way, and would go on`
        : `would begin change ${number}: ${what}`,
    )
    const names = voting.length === 0 ? 'none' : voting.join(', ')
    print(
      `needs ${needed} of ${voters} voters from its beginning to its end; alive and voting: ${names}`,
    )
  }
  if (voting.length < needed) throw noMajority(view)
}

function refuseOther(change: ChangeView | undefined): void {
  if (!isGoingOn(change)) return
  const { number, phase, since } = change
  const cancel = phase === 'copying' ? ', or give it up: trilithon nodes cancel' : ''
  const text = `change ${number} is under way (${phase} since ${since}): wait until it is done${cancel}`
  throw new CliError(text, exitFailure)
}
