/** `trilithon nodes add`, `remove`, `promote` and `demote`: a replica set gets one node or voter more, or one fewer. */
import { isNodeId } from '../base/ids.ts'
import { scalarText } from '../config/source.ts'
import { formatAddress, isWildcard, readCalledUrl } from '../config/values.ts'
import { isGoingOn, type ChangeView, type MembersView } from '../node/members-view.ts'
import { CliError, exitFailure, exitUnavailable, exitUsage } from './exit.ts'
import { MembersAsks } from './members-asks.ts'
import { majority, majorityOf, votersOf } from './members-words.ts'
import { finish, refuseOther, refuseUnknown, showPlan } from './nodes-change.ts'
import type { Options } from './options.ts'
import { print, printJson, say } from './output.ts'

export async function addNode(node: string, options: Options): Promise<void> {
  if (!isNodeId(node)) {
    throw new CliError(`"${node}" names no node: a name is 1 to 32 of a-z, 0-9 and -`, exitUsage)
  }
  const url = readAt(options)
  const asks = await MembersAsks.open(options)
  const told = await asks.look(node)
  const kind = options['readOnly'] === true ? 'add-reader' : 'add'
  const isJoining = isUnderWay(told.view, kind, node)
  if (!isJoining) refuseMember(node, url, told.view, asks)
  if (options['dryRun'] === true) {
    return showPlan({ kind, node, url }, told.view, isJoining, options)
  }
  const query = new URLSearchParams({ node, url })
  const begun = await asks.change(told.from, `/members/${kind}?${query.toString()}`)
  await finish(asks, begun, told.view.change?.number === begun.number, options)
}

/** As the configuration takes it. */
function readAt(options: Options): string {
  const read = readCalledUrl(scalarText(String(options['at']), { kind: 'flag', name: '--at' }))
  if (!read.ok) {
    throw new CliError(`--at: ${read.problems.map(({ reason }) => reason).join('; ')}`, exitUsage)
  }
  if (!isWildcard(read.value)) return read.value
  const text = `--at: ${read.value} is an address to listen on: the others would reach themselves by it`
  throw new CliError(text, exitUsage)
}

function refuseMember(
  node: string,
  url: string,
  { members }: MembersView,
  { nodes }: MembersAsks,
): void {
  const found = members.find((one) => one.node === node)
  if (found !== undefined) {
    const advice =
      found.isReader === true ? `: trilithon nodes promote ${node} gives it a vote` : ''
    throw new CliError(`${node} is a node of this replica set already${advice}`, exitFailure)
  }
  const twin = nodes.find((one) => one.url !== '' && formatAddress(one.url) === formatAddress(url))
  if (twin === undefined) return
  throw new CliError(`${url} is the address of ${twin.id}: give ${node} its own`, exitUsage)
}

export async function removeNode(node: string, options: Options): Promise<void> {
  const asks = await MembersAsks.open(options)
  refuseUnknown(node, asks)
  const told = await asks.look(node)
  const { view, from } = told
  const isJoining = isUnderWay(view, 'remove', node)
  if (!isJoining) {
    refuseOther(view.change)
    if (!isReader(node, view)) checkRest(node, view)
  }
  if (options['dryRun'] === true) {
    if (isReader(node, view)) return showReaderLeaves(node, options)
    return showPlan({ kind: 'remove', node }, view, isJoining, options)
  }
  const query = new URLSearchParams({ node })
  const begun = await asks.change(from, `/members/remove?${query.toString()}`)
  const tell = options['json'] === true ? say : print
  await finish(asks, begun, view.change?.number === begun.number, options)
  tell(
    `The process of ${node} ends by itself once it hears of this. Its data folder serves no node any more`,
  )
}

export async function promoteNode(node: string, options: Options): Promise<void> {
  return changeKind('promote', node, options, (view) => {
    if (isReader(node, view)) return
    throw new CliError(
      `${node} is no read-only member: it has a vote already, or joins`,
      exitFailure,
    )
  })
}

export async function demoteNode(node: string, options: Options): Promise<void> {
  return changeKind('demote', node, options, (view) => {
    if (isReader(node, view))
      throw new CliError(`${node} is a read-only member already`, exitFailure)
    checkRest(node, view)
  })
}

async function changeKind(
  kind: 'promote' | 'demote',
  node: string,
  options: Options,
  check: (view: MembersView) => void,
): Promise<void> {
  const asks = await MembersAsks.open(options)
  refuseUnknown(node, asks)
  const { view, from } = await asks.look(node)
  const isJoining = isUnderWay(view, kind, node)
  if (!isJoining) {
    refuseOther(view.change)
    check(view)
  }
  if (options['dryRun'] === true) return showPlan({ kind, node }, view, isJoining, options)
  const begun = await asks.change(
    from,
    `/members/${kind}?${new URLSearchParams({ node }).toString()}`,
  )
  await finish(asks, begun, view.change?.number === begun.number, options)
}

function isReader(node: string, { members }: MembersView): boolean {
  return members.some((one) => one.node === node && one.isReader === true)
}

function showReaderLeaves(node: string, options: Options): void {
  if (options['json'] === true) return printJson({ dryRun: true, kind: 'remove', node })
  print(
    `${node}, a read-only member, would leave at once: no epoch begins, and no majority changes`,
  )
}

function checkRest(node: string, view: MembersView): void {
  refuseTooFew(node, view)
  warnOfFew(votersOf(view).length - 1)
}

/** Those that stay have to be a majority of themselves: no epoch would open without one. */
function refuseTooFew(node: string, view: MembersView): void {
  const { voting } = majorityOf(view)
  const left = votersOf(view).filter((one) => one.node !== node)
  const alive = voting.filter((one) => one !== node)
  if (left.length === 0) throw new CliError(`${node} is the last node: it stays`, exitFailure)
  const needed = majority(left.length)
  if (alive.length >= needed) return
  const names = alive.length === 0 ? 'none' : alive.join(', ')
  const text = `without ${node}, ${needed} of ${left.length} voters are needed, and alive and voting are only: ${names}`
  throw new CliError(`${text}; start the others first`, exitUnavailable)
}

function warnOfFew(left: number): void {
  if (left === 2) {
    say('warning: of two voters none may fail: where one is down, writes and up-to-date reads wait')
  }
  if (left === 1) {
    say(
      'warning: one voter keeps the only copy of all data: where its disk is lost, so is the data',
    )
  }
}

function isUnderWay({ change }: MembersView, kind: ChangeView['kind'], node: string): boolean {
  return isGoingOn(change) && change.kind === kind && change.node === node
}
