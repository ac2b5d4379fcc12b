/**
 * Going after positions this replica lacks (Megastore, 4.6.2 step 3; sweeping, 4.5): wait a moment
 * for the notice, ask peers for the committed entries, and where no peer knows one, run the proposer,
 * which finds and finishes an earlier value or closes the position with a no-op.
 *
 * LOG-1  Applied in order, never past a hole.
 * LOG-5  A no-op only through Paxos, so only where nothing was or can be chosen.
 *
 * For what only a session speaks of, nothing is closed before a majority knows of it.
 */
import { assert } from '../base/assert.ts'
import type { NodeId, Position } from '../base/ids.ts'
import { sendEntries } from './acceptance.ts'
import { jitter, type Context } from './effect.ts'
import { decide, decideAll } from './learn.ts'
import { giveUp, settle } from './settle.ts'
import { highestKnown, isAwaited, noDeadline, type CatchUp, type GroupLog } from './log.ts'
import type { Committed, Entries, Fetch } from './message.ts'
import { startPrepare } from './propose.ts'
import { isProposer } from './standing.ts'

/** Makes sure that everything `through` gets here. `informer` said so and gets the first request. */
export function catchUpTo(
  log: GroupLog,
  context: Context,
  through: Position,
  informer?: NodeId,
): void {
  const current = catchUpToClaim(log, context, through)
  if (current === undefined) return
  current.known = Math.max(current.known, through)
  if (informer === undefined || informer === context.node) return
  current.informer = informer
  if (current.asking === undefined) ask(log, context, current, informer)
}

/** The same of a position that a session says it has seen. */
export function catchUpToClaim(
  log: GroupLog,
  context: Context,
  through: Position,
): CatchUp | undefined {
  if (through <= log.state.position) return undefined
  const { settleMs } = context.limits
  const deadline = context.now + jitter(context, settleMs, log.state.position, 0, log.group)
  log.catchUp ??= { through, known: 0, asking: undefined, informer: undefined, stage: 0, deadline }
  log.catchUp.through = Math.max(log.catchUp.through, through)
  return log.catchUp
}

function ask(log: GroupLog, context: Context, current: CatchUp, peer: NodeId): void {
  const { group, set, state } = log
  assert(peer !== context.node, 'LOG-1: a node asks itself for what it lacks')
  assert(current.through > state.position, 'LOG-1: what is applied is asked for')
  current.asking = peer
  const from = state.position + 1
  const { through } = current
  const { epoch } = set
  const message: Fetch = { kind: 'fetch', group, epoch, from, through, isAwaited: isAwaited(log) }
  context.emit({ kind: 'send', to: peer, message })
}

export function onFetch(log: GroupLog, context: Context, from: NodeId, message: Fetch): void {
  const through = Math.min(message.through, log.state.position)
  sendEntries(log, context, from, { ...message, through })
}

export function onEntries(log: GroupLog, context: Context, from: NodeId, message: Entries): void {
  const before = log.state.position
  decideAll(log, context, message.entries)
  if (log.catchUp?.asking === from) log.catchUp.asking = undefined
  const last = message.entries.at(-1)
  if (last === undefined || last.position <= before) return
  context.trace.mark('caught_up_from_peer')
  // Entries that no client waits for: the next digest tells of them, and the peer reads them along with their neighbours.
  if (last.position < message.committed && isAwaited(log))
    catchUpTo(log, context, message.committed)
}

/** Asks the peer that just sent entries for the next ones, as long as that gets us on. */
export function goOn(log: GroupLog, context: Context, from: NodeId, message: Entries): void {
  const { catchUp: current } = log
  if (current === undefined || current.asking !== undefined) return
  if (message.entries.at(-1)?.position !== log.state.position) return
  // The next entries are here, and not applied yet.
  if (log.applyDeadline !== noDeadline) return
  if (current.through > log.state.position) ask(log, context, current, from)
}

export function onCommitted(
  log: GroupLog,
  context: Context,
  from: NodeId,
  message: Pick<Committed, 'position' | 'ballot'>,
): void {
  decide(log, context, message.position, message.ballot)
  const open = log.state.position + 1
  const waits = log.decisions.size > 0 && log.decisions.get(open)?.value === undefined
  if (waits) catchUpTo(log, context, message.position, from)
}

/** Ends a catch-up that has arrived. */
export function endCatchUp(log: GroupLog): void {
  if (log.catchUp !== undefined && log.catchUp.through <= log.state.position)
    log.catchUp = undefined
}

/**
 * The other voters, and the peer that said that there is more. The voters of this epoch may lack what a voter that leaves has: of a set
 * with two nodes that one alone, as it tells its seal. A voter without others asks the read-only members.
 */
function peersOf({ set }: GroupLog, { node }: Context, { informer }: CatchUp): readonly NodeId[] {
  const { voters, readers = [] } = set
  const isAlone = voters.every((voter) => voter === node)
  const peers = (isAlone ? readers : voters).filter((peer) => peer !== node)
  if (informer === undefined || [...voters, ...peers].includes(informer)) return peers
  return [...peers, informer]
}

/** Time to look elsewhere: every peer in turn, then the proposer. */
export function onCatchUpDeadline(log: GroupLog, context: Context, current: CatchUp): void {
  const { limits, now } = context
  if (log.applyDeadline !== noDeadline) {
    // Neither peers nor a prepare have more of it: it is here.
    current.deadline = now + jitter(context, limits.settleMs, log.state.position, 0, log.group)
    return
  }
  const patienceMs = context.fetchPatienceMs(log.group)
  if (patienceMs > 0) {
    // A second request, here or elsewhere, would double the work of a peer that has much to answer.
    current.deadline = now + jitter(context, patienceMs, 0, 0, log.group)
    return context.trace.mark('catch_up_waits_for_entries')
  }
  const peers = peersOf(log, context, current)
  current.stage += 1
  current.asking = undefined
  const peer = peers[(current.stage - 1 + log.state.position) % Math.max(peers.length, 1)]
  const isPeersTurn = current.stage <= peers.length && peer !== undefined
  const delay = isPeersTurn ? limits.settleMs : limits.phaseTimeoutMs
  const attempt = Math.min(current.stage, 6)
  const waitMs = delay * Math.max(1, attempt - peers.length)
  // Apart from other groups' deadlines: a peer that gets all requests at once answers a few.
  current.deadline = now + jitter(context, waitMs, 0, attempt, log.group)
  if (isPeersTurn) return ask(log, context, current, peer)
  if (current.stage % (peers.length + 1) === 0 && peer !== undefined) {
    ask(log, context, current, peer)
  }
  if (current.through > current.known) log.mustAskMajority = true
  // RDR-2: a reader closes no position. A voter does, or a majority knows that nothing was chosen there.
  if (log.standing === 'reading') log.mustAskMajority = true
  if (log.proposal !== undefined || current.known <= log.state.position) return
  if (!isProposer(log)) return
  context.trace.mark('undecided_position_prepared')
  startPrepare(log, context, 0)
}

/**
 * A majority, asked in `round`, has accepted no more than `highest`. A position that a session has
 * seen was chosen before, so a session that came before the round and says more has not seen it.
 */
export function refuseFalseClaims(
  log: GroupLog,
  context: Context,
  round: number,
  highest: Position,
): void {
  const verdict = { kind: 'conflict', position: log.state.position } as const
  for (const pending of log.waiting.values()) {
    if (pending.forwardId > round || pending.readPosition <= highest) continue
    context.trace.mark('read_beyond_log')
    if (pending.forwards > 0) giveUp(log, pending)
    else settle(log, context, pending, verdict)
  }
  if (log.catchUp === undefined) return
  log.catchUp.through = Math.max(log.catchUp.known, highest)
  assert(
    log.catchUp.known <= log.catchUp.through,
    'LOG-5: a catch-up knows of more than it goes after',
  )
  endCatchUp(log)
}

/** An accepted position stayed undecided for long: its proposer is gone, or its notice was lost. */
export function onSweepDeadline(log: GroupLog, context: Context): void {
  log.sweepDeadline = noDeadline
  const highest = highestKnown(log)
  if (highest <= log.state.position) return
  context.trace.mark('swept')
  catchUpTo(log, context, highest)
}
