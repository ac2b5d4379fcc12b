/**
 * One group's step: dispatches a message, a submission, a read or a wake-up to the handlers of this
 * folder, then does whatever has become possible. Order matters in `pump`: a decided entry is
 * applied before reads are served from it and before the next entry is validated against it.
 */
import { assert, unreachable } from '../base/assert.ts'
import type { NodeId, Position } from '../base/ids.ts'
import type { ReplicaSet } from '../placement/placement.ts'
import { onAccept, onPrepare } from './acceptance.ts'
import * as catchUp from './catch-up.ts'
import * as commit from './commit.ts'
import { readAhead } from './compose.ts'
import { jitter, type Context } from './effect.ts'
import * as epoch from './epoch.ts'
import { install } from './install.ts'
import { checkLog } from './invariants.ts'
import { advance } from './learn.ts'
import { noDeadline, noStride, type GroupLog } from './log.ts'
import type {
  Accept,
  Committed,
  Forward,
  GroupLeaseMessage,
  GroupMessage,
  OpenAcceptance,
} from './message.ts'
import * as propose from './propose.ts'
import * as readLease from './read-lease.ts'
import * as read from './read.ts'
import { hasLeft, isBeyondBase, isOfEpoch, isProposer, lacksBase } from './standing.ts'
import type { GroupState } from './state.ts'
import * as submission from './submit.ts'
import { decodeTransaction } from '../group/transaction.ts'

/** A transaction of this node's own edge. */
export interface Arrived {
  readonly request: number
  readonly submitted: submission.Submitted
}

export type GroupEvent =
  | { readonly kind: 'message'; readonly from: NodeId; readonly message: GroupMessage }
  /** In one turn: they share an entry, where they may. */
  | { readonly kind: 'submit'; readonly arrived: readonly Arrived[] }
  | { readonly kind: 'cancel-submit'; readonly intent: string; readonly request: number }
  | { readonly kind: 'read'; readonly read: number }
  | { readonly kind: 'cancel-read'; readonly read: number }
  /** The peer has revoked this node's registration for the group. */
  | { readonly kind: 'revoked'; readonly peer: NodeId }
  /** A position exists, as `informer` says. */
  | { readonly kind: 'exists'; readonly position: Position; readonly informer: NodeId }
  | { readonly kind: 'suspect'; readonly peer: NodeId }
  /**
   * The data store has put a snapshot in the place of the group's rows; `state`: that of its position. `isRepair`: the rows
   * were wrong.
   */
  | { readonly kind: 'install'; readonly state: GroupState; readonly isRepair?: true }
  /** The group's rows are wrong at this node: it takes no further step until a snapshot has taken their place. */
  | { readonly kind: 'aside' }
  /** The seal of the present epoch is on its way to the disk: this node votes in it no more. */
  | { readonly kind: 'seal' }
  /** This node has no part in the next epoch, and had no vote in this one. */
  | { readonly kind: 'leave' }
  /** The voters have changed. */
  | { readonly kind: 'epoch'; readonly set: ReplicaSet }
  /** This node is a read-only member of this epoch: the present one, or a later one. */
  | { readonly kind: 'follow'; readonly set: ReplicaSet }
  /** A node in doubt of its epoch has been told which nodes vote in it. */
  | { readonly kind: 'voters'; readonly set: ReplicaSet }
  /** The acceptances that a seal of the epoch before tells of this group. */
  | { readonly kind: 'carry'; readonly acceptances: readonly OpenAcceptance[] }
  /** This node has passed the gate of the present epoch. */
  | { readonly kind: 'gate' }
  /** The peer has. */
  | { readonly kind: 'voter'; readonly peer: NodeId }
  /** Time has passed, or something the group waits for may have come. */
  | { readonly kind: 'wake' }

export function stepGroup(log: GroupLog, context: Context, event: GroupEvent): void {
  if (event.kind === 'message' && isLate(log, event.message)) return
  if (event.kind === 'aside') return readLease.stopReading(log, context)
  handle(log, context, event)
  pump(log, context)
  if (takePutOff(log, context)) pump(log, context)
  if (event.kind === 'message' && event.message.kind === 'entries') {
    catchUp.goOn(log, context, event.from, event.message)
  }
  checkLog(log, context)
  log.stride = noStride
}

/** A vote for what is decided and applied: with three voters, one answer of each entry. */
function isLate(log: GroupLog, message: GroupMessage): boolean {
  return message.kind === 'accepted' && message.position <= log.state.position
}

type Handled = Exclude<GroupEvent, { readonly kind: 'aside' }>

function handle(log: GroupLog, context: Context, event: Handled): void {
  switch (event.kind) {
    case 'message':
      return takeMessage(log, context, event.from, event.message)
    case 'submit':
      return onSubmit(log, context, event.arrived)
    case 'cancel-submit':
      return submission.cancelSubmission(log, context, event.intent, event.request)
    case 'read':
      return read.beginRead(log, context, event.read)
    case 'cancel-read':
      return read.cancelRead(log, event.read)
    case 'exists':
      return catchUp.catchUpTo(log, context, event.position, event.informer)
    case 'revoked':
      return readLease.dropGrant(log, event.peer)
    case 'suspect':
      return submission.takeBackFrom(log, event.peer)
    case 'install':
      return install(log, context, event)
    case 'wake':
      return onWake(log, context)
    default:
      return handleEpoch(log, context, event)
  }
}

type OfEpochs = GroupEvent & {
  readonly kind: 'seal' | 'leave' | 'epoch' | 'follow' | 'voters' | 'carry' | 'gate' | 'voter'
}

function handleEpoch(log: GroupLog, context: Context, event: OfEpochs): void {
  switch (event.kind) {
    case 'seal':
      return epoch.onSeal(log, context)
    case 'leave':
      return epoch.onLeave(log, context)
    case 'epoch':
      return epoch.onEpoch(log, context, event.set)
    case 'follow':
      return epoch.onFollow(log, context, event.set)
    case 'voters':
      return epoch.onVoters(log, context, event.set)
    case 'carry':
      return epoch.onCarry(log, context, event.acceptances)
    case 'gate':
      epoch.onGate(log)
      return read.countOwn(log, context)
    case 'voter':
      propose.askVoter(log, context, event.peer)
      return read.askVoter(log, context)
    default:
      return unreachable(event)
  }
}

/** MOVE-1: a group takes votes, answers to rounds and registrations of its own epoch alone, and any other message. */
function takeMessage(log: GroupLog, context: Context, from: NodeId, message: GroupMessage): void {
  if (isOfEpoch(log, message)) {
    if (!isPutOff(log, context, from, message)) onMessage(log, context, from, message)
    return
  }
  const isReading = log.standing === 'reading'
  context.trace.mark(isReading ? 'message_of_voters_at_reader' : 'message_of_other_epoch')
  // An accept tells of the value chosen before it as well.
  if (message.kind === 'accept') learnPrevious(log, context, from, message)
}

/** MOVE-10: this node takes up what came before the position first. Without the group it has no part in a read, either. */
function isPutOff(log: GroupLog, context: Context, from: NodeId, message: GroupMessage): boolean {
  if (message.kind === 'query' && lacksBase(log)) {
    log.putOff = { from, message }
    return false
  }
  if (message.kind !== 'prepare' && message.kind !== 'accept') return false
  // The accept may tell of the one position that is missing.
  const mayLearn = log.home.mayMove && !lacksBase(log) && !hasLeft(log)
  if (message.kind === 'accept' && mayLearn) learnPrevious(log, context, from, message)
  if (!isBeyondBase(log, message.position)) return false
  context.trace.mark('vote_asked_before_base_of_group')
  log.putOff = { from, message }
  catchUp.catchUpTo(log, context, message.position - 1, from)
  return true
}

/** The peer would ask again only after a while. Returns whether this node answers now. */
function takePutOff(log: GroupLog, context: Context): boolean {
  if (log.putOff === undefined) return false
  const { from, message } = log.putOff
  const isBehind = message.kind === 'query' ? lacksBase(log) : isBeyondBase(log, message.position)
  if (isBehind) return false
  log.putOff = undefined
  if (isOfEpoch(log, message)) onMessage(log, context, from, message)
  return true
}

function onMessage(log: GroupLog, context: Context, from: NodeId, message: GroupMessage): void {
  switch (message.kind) {
    case 'prepare':
      return onPrepare(log, context, from, message)
    case 'promised':
      return propose.onPromised(log, context, from, message)
    case 'accept':
      return onAcceptRequest(log, context, from, message)
    case 'accepted':
      return propose.onAccepted(log, context, from, message)
    case 'refused':
      return propose.onRefused(log, context, from, message)
    case 'faulty':
      // Neither a vote nor a refusal: the phase goes on with the others' answers.
      return context.trace.mark('peer_answered_faulty')
    case 'committed':
      return catchUp.onCommitted(log, context, from, message)
    case 'fetch':
      return catchUp.onFetch(log, context, from, message)
    case 'entries':
      return catchUp.onEntries(log, context, from, message)
    case 'query':
      return read.onQuery(log, context, from, message)
    case 'highest':
      return read.onHighest(log, context, from, message)
    case 'forward':
      return onForward(log, context, from, message)
    case 'forward-reply': {
      const position = submission.onForwardReply(log, context, from, message)
      return position === undefined ? undefined : catchUp.catchUpTo(log, context, position, from)
    }
    default:
      return onLeaseMessage(log, context, from, message)
  }
}

function onLeaseMessage(
  log: GroupLog,
  context: Context,
  from: NodeId,
  message: GroupLeaseMessage,
): void {
  switch (message.kind) {
    case 'invalidate':
      return readLease.onInvalidate(log, context, from, message)
    case 'invalidated':
      return commit.onInvalidated(log, context, from, message)
    case 'revoke':
      return readLease.onRevoke(log, context, from, message)
    case 'revoked':
      return commit.onRevoked(log, context, from, message)
    case 'release':
      return context.leases.release(log.group, from, message.attempt)
    default:
      return unreachable(message)
  }
}

/** An accept request tells of the position before it as well: that is the cheapest notice there is. */
function onAcceptRequest(log: GroupLog, context: Context, from: NodeId, message: Accept): void {
  learnPrevious(log, context, from, message)
  onAccept(log, context, from, message)
}

function learnPrevious(
  log: GroupLog,
  context: Context,
  from: NodeId,
  { position, previous }: Accept,
): void {
  if (previous === undefined) return
  catchUp.onCommitted(log, context, from, { position: position - 1, ballot: previous })
  advance(log, context)
}

function onSubmit(log: GroupLog, context: Context, arrived: readonly Arrived[]): void {
  const { node, incarnation } = context
  for (const { request, submitted } of arrived) {
    submission.submit(log, context, submitted, { node, incarnation, request, hops: 0 })
  }
}

function onForward(log: GroupLog, context: Context, from: NodeId, message: Forward): void {
  // The node that passed it on takes this one for a voter still. It hears nothing, and tries another one.
  if (log.standing === 'reading') return context.trace.mark('forward_at_reader')
  if (lacksBase(log)) return context.trace.mark('forward_of_group_that_is_not_here')
  const transaction = decodeTransaction(message.transaction)
  if (transaction === undefined) return context.trace.mark('malformed_transaction_forwarded')
  const { readPosition, reads, ranges, request, incarnation, hops } = message
  const submitted = { transaction, bytes: message.transaction, readPosition, reads, ranges }
  submission.submit(log, context, submitted, { node: from, incarnation, request, hops })
}

function onWake(log: GroupLog, context: Context): void {
  const { now } = context
  if (log.proposal !== undefined && log.proposal.deadline <= now) {
    propose.onProposalDeadline(log, context, log.proposal)
  }
  if (log.readRound !== undefined && log.readRound.deadline <= now) {
    read.onReadDeadline(log, context, log.readRound)
  }
  if (log.catchUp !== undefined && log.catchUp.deadline <= now) {
    catchUp.onCatchUpDeadline(log, context, log.catchUp)
  }
  if (log.retryDeadline <= now) submission.onRetryDeadline(log, context)
  if (log.sweepDeadline <= now) catchUp.onSweepDeadline(log, context)
  if (log.idleDeadline <= now) readLease.onIdleDeadline(log, context)
}

/** Does what has become possible. */
function pump(log: GroupLog, context: Context): void {
  advance(log, context)
  readLease.endWithLastEntry(log, context)
  catchUp.endCatchUp(log)
  read.serveReads(log, context)
  proposeNext(log, context)
  announce(log, context)
  read.startReadRound(log, context)
  read.serveReads(log, context)
  tellForwarders(log, context)
}

function proposeNext(log: GroupLog, context: Context): void {
  submission.refuseMoved(log, context)
  // Transactions wait until it is known where the group begins.
  if (lacksBase(log)) return
  if (log.proposal !== undefined || log.waiting.size === 0 || log.standing === 'sealed') return
  submission.forwardPending(log, context)
  if (log.waiting.size === 0) return
  assert(isProposer(log), 'RDR-2: a transaction waits at a reader to be proposed there')
  if (log.decisions.has(log.state.position + 1)) return
  propose.proposePending(log, context)
  if (log.proposal !== undefined || log.waiting.size === 0) return
  // Nothing here fits the open position: it was read ahead of this replica, or there is no room.
  catchUp.catchUpToClaim(log, context, readAhead(log))
  if (log.retryDeadline !== noDeadline) return
  log.retryDeadline = context.now + jitter(context, context.limits.settleMs, log.state.position, 0)
}

/** Tells the others what this node has just committed, unless the next entry on its way says so. */
function announce(log: GroupLog, context: Context): void {
  if (log.unannounced === undefined) return
  const { position, ballot } = log.unannounced
  log.unannounced = undefined
  assert(log.state.position >= position, 'LOG-1: a decision of this node waits to be applied')
  const isTold = log.proposal?.phase.kind === 'accepting' && log.state.position === position
  const { group, set } = log
  const { voters, readers = [] } = set
  const message: Committed = { kind: 'committed', group, epoch: set.epoch, position, ballot }
  // The next entry goes to voters alone.
  for (const to of isTold ? readers : [...voters, ...readers]) {
    if (to !== context.node) context.emit({ kind: 'send', to, message })
  }
}

/**
 * After the notices, so that a node which forwarded a transaction, and has accepted its entry, has applied
 * that when the reply comes: else it would ask for what is on its way.
 */
function tellForwarders({ replies }: GroupLog, context: Context): void {
  if (replies.length === 0) return
  for (const one of replies) context.emit(one)
  replies.length = 0
}
