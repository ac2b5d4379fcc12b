/** The parts that the commands about a change of the voters have in common: its plan, its beginning, and its end. */
import { isGoingOn, type ChangeView, type MembersView } from '../node/members-view.ts'
import { CliError, exitFailure, exitUnavailable, exitUsage } from './exit.ts'
import type { MembersAsks } from './members-asks.ts'
import { followChange } from './members-follow.ts'
import { describeAim, majorityOf, spareOf, startCommand } from './members-words.ts'
import type { Options } from './options.ts'
import { counted, print, printJson, say } from './output.ts'

/** A change that is to begin. */
export interface Aim extends Pick<ChangeView, 'kind' | 'node'> {
  /** Of `add` and `add-reader`: where the others reach the node. */
  readonly url?: string
}

export function spareText({ canLose }: MembersView): string {
  return canLose < 0 ? 'there is no majority' : `can lose ${counted(canLose, 'more voter')}`
}

export function noMajority(view: MembersView): CliError {
  const { voters, needed, voting } = majorityOf(view)
  const text = `${voting.length} of ${voters} voters are alive and vote; ${needed} are needed`
  return new CliError(text, exitUnavailable)
}

/** Says how to start the node that a change waits for; nothing where it waits for none. */
export function tellStart(change: ChangeView, tell: (text: string) => void): void {
  const { node = '', seat } = change
  const command = startCommand(change)
  if (command === undefined) return
  tell(`Start ${node} with an empty data folder and --seat ${seat}: ${command}`)
  if (change.kind === 'add' || change.kind === 'add-reader') {
    tell(
      `The configuration of ${node}: the nodes of another node's configuration, in their order, and ${node} with its url and joins: true`,
    )
  }
}

/** Follows the change where the flags say so, and tells the operator how to go on where they do not. */
export async function finish(
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

export function refuseUnknown(node: string, { nodes }: MembersAsks): void {
  const ids = nodes.map(({ id }) => id)
  if (ids.includes(node)) return
  throw new CliError(`there is no node "${node}", only ${ids.toSorted().join(', ')}`, exitUsage)
}

/** Of `--dry-run`. Throws where the change could not begin. */
export function showPlan(aim: Aim, view: MembersView, isJoining: boolean, options: Options): void {
  const { change, epoch } = view
  if (!isJoining) refuseOther(change)
  const majority = majorityOf(view)
  const { voters, needed, voting } = majority
  const after = voters + (isJoining ? 0 : growthOf(aim))
  const loss = { canLose: view.canLose, votersAfter: after, canLoseAfter: spareOf(after) }
  const number = isJoining ? change?.number : (change?.number ?? 0) + 1
  if (options['json'] === true)
    printJson({
      ...{ dryRun: true, ...aim, change: number, isJoining, ...majority },
      ...(after !== voters && loss),
    })
  else {
    print(
      isJoining
        ? `change ${number} is under way, and would go on`
        : `would begin change ${number}: ${describePlan(aim, epoch + 1)}`,
    )
    const names = voting.length === 0 ? 'none' : voting.join(', ')
    print(
      `needs ${needed} of ${voters} voters from its beginning to its end; alive and voting: ${names}`,
    )
    if (after !== voters) print(describeLoss(voters, after))
  }
  if (voting.length < needed) throw noMajority(view)
}

function describePlan({ kind, node = '', url = '' }: Aim, epoch: number): string {
  switch (kind) {
    case 'replace':
      return `${node} gets an empty store, which votes from epoch ${epoch} on`
    case 'add':
      return `${node} joins at ${url} with an empty store, which votes from epoch ${epoch} on`
    case 'add-reader':
      return `${node} joins at ${url} with an empty store, and has no vote; the epoch stays ${epoch - 1}`
    case 'promote':
      return `${node} gets a vote from epoch ${epoch} on, with the store that it has`
    case 'demote':
      return `${node} has no vote from epoch ${epoch} on, and keeps its store as a read-only member`
    case 'remove':
      return `${node} leaves, and its store votes no more from epoch ${epoch} on`
    case 'renew':
      return `the same stores go on in epoch ${epoch}`
    case 'recover':
      return `the nodes that are left go on in epoch ${epoch}`
  }
}

function growthOf({ kind }: Aim): number {
  if (kind === 'add' || kind === 'promote') return 1
  return kind === 'remove' || kind === 'demote' ? -1 : 0
}

function describeLoss(before: number, after: number): string {
  const part = (voters: number): string => `${spareOf(voters)} of ${counted(voters, 'voter')}`
  return `while all are well, ${part(before)} may fail now, and ${part(after)} afterwards`
}

export function refuseOther(change: ChangeView | undefined): void {
  if (!isGoingOn(change)) return
  const { number, phase, since } = change
  const cancel = phase === 'copying' ? ', or give it up: trilithon nodes cancel' : ''
  const text = `change ${number} is under way (${phase} since ${since}): wait until it is done${cancel}`
  throw new CliError(text, exitFailure)
}
