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
import { supply } from './acceptance.ts'
import { spread, type Context } from './effect.ts'
import { decide, decideAll } from './learn.ts'
import { giveUp, settle } from './settle.ts'
import { highestKnown, isAwaited, never, type Chase, type GroupLog } from './log.ts'
import type { Committed, Entries, Fetch } from './message.ts'
import { startPrepare } from './propose.ts'

/** Makes sure that everything `through` gets here. `informer` said so and gets the first request. */
export function chase(log: GroupLog, context: Context, through: Position, informer?: NodeId): void {
  const current = chaseClaimed(log, context, through)
  if (current === undefined) return
  current.known = Math.max(current.known, through)
  if (informer !== undefined && informer !== context.node && current.asking === undefined) {
    ask(log, context, current, informer)
  }
}

/** The same of a position that a session says it has seen. */
export function chaseClaimed(
  log: GroupLog,
  context: Context,
  through: Position,
): Chase | undefined {
  if (through <= log.state.position) return undefined
  const { settleMs } = context.limits
  const deadline = context.now + spread(context, settleMs, log.state.position, 0, log.group)
  log.chase ??= { through, known: 0, asking: undefined, stage: 0, deadline }
  log.chase.through = Math.max(log.chase.through, through)
  return log.chase
}

function ask(log: GroupLog, context: Context, current: Chase, peer: NodeId): void {
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
  supply(log, context, from, { ...message, through })
}

export function onEntries(log: GroupLog, context: Context, from: NodeId, message: Entries): void {
  const before = log.state.position
  decideAll(log, context, message.entries)
  if (log.chase?.asking === from) log.chase.asking = undefined
  const last = message.entries.at(-1)
  if (last === undefined || last.position <= before) return
  context.trace.mark('caught up from a peer')
  // Entries that no client waits for: the next digest tells of them, and the peer reads them along with their neighbours.
  if (last.position < message.committed && isAwaited(log)) chase(log, context, message.committed)
}

/** Asks the peer that just sent entries for the next ones, as long as that gets us on. */
export function goOn(log: GroupLog, context: Context, from: NodeId, message: Entries): void {
  const { chase: current } = log
  if (current === undefined || current.asking !== undefined) return
  if (message.entries.at(-1)?.position !== log.state.position) return
  // What is behind is here, and not applied yet.
  if (log.applyDeadline !== never) return
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
  if (waits) chase(log, context, message.position, from)
}

/** Ends a chase that has arrived. */
export function endChase(log: GroupLog): void {
  if (log.chase !== undefined && log.chase.through <= log.state.position) log.chase = undefined
}

/** Time to look elsewhere: every peer in turn, then the proposer. */
export function onChaseDeadline(log: GroupLog, context: Context, current: Chase): void {
  const { limits, now } = context
  if (log.applyDeadline !== never) {
    // Neither peers nor a prepare have more of it: it is here.
    current.deadline = now + spread(context, limits.settleMs, log.state.position, 0, log.group)
    return
  }
  const patienceMs = context.fetchPatienceMs(log.group)
  if (patienceMs > 0) {
    // A second request, here or elsewhere, would double the work of a peer that has much to answer.
    current.deadline = now + spread(context, patienceMs, 0, 0, log.group)
    return context.trace.mark('entries on their way are waited for')
  }
  const peers = log.set.voters.filter((voter) => voter !== context.node)
  current.stage += 1
  current.asking = undefined
  const peer = peers[(current.stage - 1 + log.state.position) % Math.max(peers.length, 1)]
  const isPeersTurn = current.stage <= peers.length && peer !== undefined
  const delay = isPeersTurn ? limits.settleMs : limits.phaseTimeoutMs
  const attempt = Math.min(current.stage, 6)
  const waitMs = delay * Math.max(1, attempt - peers.length)
  // Apart from other groups' deadlines: a peer that gets all requests at once answers a few.
  current.deadline = now + spread(context, waitMs, 0, attempt, log.group)
  if (isPeersTurn) return ask(log, context, current, peer)
  if (current.stage % (peers.length + 1) === 0 && peer !== undefined) {
    ask(log, context, current, peer)
  }
  if (current.through > current.known) log.isHighestAsked = true
  if (log.proposal !== undefined || current.known <= log.state.position) return
  context.trace.mark('undecided position settled by a prepare')
  startPrepare(log, context, 0)
}

/**
 * A majority, asked in `round`, has accepted no more than `highest`. A position that a session has
 * seen was chosen before, so a session that came before the round and says more has not seen it.
 */
export function endClaims(log: GroupLog, context: Context, round: number, highest: Position): void {
  const verdict = { kind: 'conflict', position: log.state.position } as const
  for (const pending of log.queue.values()) {
    if (pending.forwardId > round || pending.readPosition <= highest) continue
    context.trace.mark('read at a position that does not exist')
    if (pending.forwards > 0) giveUp(log, pending)
    else settle(log, context, pending, verdict)
  }
  if (log.chase === undefined) return
  log.chase.through = Math.max(log.chase.known, highest)
  assert(log.chase.known <= log.chase.through, 'LOG-5: a chase knows of more than it goes after')
  endChase(log)
}

/** An accepted position stayed undecided for long: its proposer is gone, or its notice was lost. */
export function onSweepDeadline(log: GroupLog, context: Context): void {
  log.sweepDeadline = never
  const highest = highestKnown(log)
  if (highest <= log.state.position) return
  context.trace.mark('swept')
  chase(log, context, highest)
}
