/**
 * Taking a transaction: any node may; the leader of the open position gets it, unless it is gone,
 * in which case this node proposes itself (no election, no write that waits for one).
 */
import { assert } from '../base/assert.ts'
import { fromLatin1, latin1 } from '../base/bytes.ts'
import type { NodeId, Position } from '../base/ids.ts'
import { isOfOneCopy, findOutcome } from './compose.ts'
import { jitter, type Context } from './effect.ts'
import { orderRanges, rangeOfText } from './key-range.ts'
import { noDeadline, findPending, type GroupLog, type Pending, type Waiter } from './log.ts'
import type { KeyRange, Moved, Overloaded } from '../group/outcome.ts'
import type { Forward, ForwardReply } from './message.ts'
import { findLeader } from './propose.ts'
import { isOverAtReader, voterInTurn } from './reader.ts'
import { giveUp, settle, tell } from './settle.ts'
import { hasLeft, lacksBase } from './standing.ts'
import { formatIntent, type Transaction } from '../group/transaction.ts'

/** A forwarded transaction is passed on this many times at most; then it is proposed where it is. */
const hopsMax = 2
/** A leader that leaves a transaction unanswered this many times is taken for unreachable. */
const forwardsMax = 3
/** Attempts of one intent that wait beside the first. */
const rivalsMax = 3

export interface Submitted {
  readonly transaction: Transaction
  readonly bytes: Uint8Array
  readonly readPosition: Position
  readonly reads: readonly Uint8Array[]
  readonly ranges: readonly KeyRange[]
}

export function submit(
  log: GroupLog,
  context: Context,
  submitted: Submitted,
  waiter: Waiter,
): void {
  const { transaction } = submitted
  const answer = (verdict: Parameters<typeof tell>[4]): void =>
    tell(log, context, waiter.node, waiter.request, verdict)
  const known = findOutcome(log, transaction.session, transaction.sequence)
  if (known !== undefined) return answer(known)
  const intent = formatIntent(transaction)
  const before = findPending(log, intent)
  if (before !== undefined) return join(log, context, before, { submitted, waiter })
  const pending = pendingFrom(submitted, waiter, context.drawNumber())
  const moved = findMoved(log)
  if (moved !== undefined) return answer(moved)
  const overloaded = whyNoRoom(log, context, pending)
  if (overloaded !== undefined) {
    context.trace.mark('overloaded')
    return answer(overloaded)
  }
  assert(!log.waiting.has(intent) && !log.forwarded.has(intent), 'TXN-5: an intent waits twice')
  log.waiting.set(intent, pending)
  log.waitingBytes += pending.roomBytes
}

function findMoved(log: GroupLog): Moved | undefined {
  const { movedTo: set, position } = log.state
  const { begins } = log.home
  if (begins !== undefined && lacksBase(log)) return { kind: 'moved', set: begins, position: 0 }
  return set === undefined || !hasLeft(log) ? undefined : { kind: 'moved', set, position }
}

/** MOVE-9: a transaction that has not taken effect in this set by its last entry takes no effect in it. */
export function refuseMoved(log: GroupLog, context: Context): void {
  const moved = findMoved(log)
  if (moved === undefined) return
  for (const pending of [...log.waiting.values(), ...log.forwarded.values()]) {
    settle(log, context, pending, moved)
  }
}

/** A client that hears `isOfNode` asks another node, and this one less. */
function whyNoRoom(log: GroupLog, context: Context, pending: Pending): Overloaded | undefined {
  if (!context.mayPropose) return { kind: 'overloaded', isOfNode: true }
  return hasRoomFor(log, context, pending) ? undefined : { kind: 'overloaded' }
}

function pendingFrom(submitted: Submitted, waiter: Waiter, forwardId: number): Pending {
  const { transaction, bytes, readPosition } = submitted
  const reads = submitted.reads.map((key) => latin1(key))
  const ranges = orderRanges(submitted.ranges)
  let roomBytes = bytes.length
  for (const key of reads) roomBytes += key.length
  for (const { gte, lt } of ranges) roomBytes += gte.length + lt.length
  return {
    intent: formatIntent(transaction),
    transaction,
    bytes,
    readPosition,
    reads,
    ranges,
    roomBytes,
    waiters: [waiter],
    rivals: [],
    sentTo: undefined,
    forwards: 0,
    proposedAt: 0,
    forwardId,
    roomDeadline: noDeadline,
  }
}

function hasRoomFor(log: GroupLog, { limits }: Context, { roomBytes }: Pending): boolean {
  const count = log.waiting.size + log.forwarded.size
  if (count === 0) return true
  return count < limits.groupQueueMax && log.waitingBytes + roomBytes <= limits.groupQueueBytesMax
}

/**
 * The same intent again, by another way or a second time by the same: one verdict serves all of an
 * attempt. When it comes back from the node it was forwarded to, both took the other for the leader:
 * it stays.
 */
function join(
  log: GroupLog,
  context: Context,
  pending: Pending,
  { submitted, waiter }: { readonly submitted: Submitted; readonly waiter: Waiter },
): void {
  const isBack = waiter.node === pending.sentTo && log.forwarded.has(pending.intent)
  if (isBack) {
    context.trace.mark('forwarded_transaction_returned')
    pending.forwards = forwardsMax
    takeBack(log, pending)
  }
  const { attempt } = submitted.transaction
  const same = [pending, ...pending.rivals].find((one) => one.transaction.attempt === attempt)
  if (same === undefined) addRival(log, context, pending, { submitted, waiter })
  else if (!isBack || same !== pending) addWaiter(same, waiter)
}

function addWaiter({ waiters }: Pending, waiter: Waiter): void {
  const { node, request } = waiter
  if (!waiters.some((one) => one.node === node && one.request === request)) waiters.push(waiter)
}

/**
 * Another attempt: it may have read more than the first, and a refusal of that one is not its own.
 * Beyond the bound it is forgotten, as if it had not arrived; its sender sends it again.
 */
function addRival(
  log: GroupLog,
  context: Context,
  pending: Pending,
  { submitted, waiter }: { readonly submitted: Submitted; readonly waiter: Waiter },
): void {
  const rival = pendingFrom(submitted, waiter, context.drawNumber())
  const bytes = log.waitingBytes + rival.roomBytes
  if (pending.rivals.length >= rivalsMax || bytes > context.limits.groupQueueBytesMax) {
    return context.trace.mark('no_room_for_attempt')
  }
  context.trace.mark('attempt_waits_for_rival')
  assert(rival.intent === pending.intent, 'TXN-5: an attempt waits beside another intent')
  pending.rivals.push(rival)
  log.waitingBytes += rival.roomBytes
}

/**
 * The edge has told its caller that the end is unknown. A transaction without a caller is given up, unless a
 * copy may take effect: an intent that is sent again hears of that copy, not that there is no room.
 */
export function cancelSubmission(
  log: GroupLog,
  { node, trace }: Context,
  intent: string,
  request: number,
): void {
  const first = findPending(log, intent)
  if (first === undefined) return
  for (const pending of [...first.rivals, first]) {
    const { waiters } = pending
    const at = waiters.findIndex((one) => one.node === node && one.request === request)
    if (at < 0) continue
    waiters.splice(at, 1)
    if (waiters.length > 0 || !isOnlyHere(log, pending)) continue
    trace.mark('abandoned_transaction_dropped')
    if (pending === first) giveUp(log, first)
    else removeRival(log, first, pending)
  }
}

function isOnlyHere(log: GroupLog, { forwards, proposedAt }: Pending): boolean {
  return forwards === 0 && proposedAt <= log.state.position
}

function removeRival(log: GroupLog, { rivals }: Pending, rival: Pending): void {
  assert(rivals.includes(rival), 'TXN-5: an attempt that does not wait is given up')
  rivals.splice(rivals.indexOf(rival), 1)
  log.waitingBytes -= rival.roomBytes
}

/**
 * The node that should propose what waits here: this one, when the leader is gone, or has no vote any more. A reader names
 * a voter.
 */
function proposerFor(log: GroupLog, context: Context, { forwards }: Pending): NodeId {
  const { node } = findLeader(log)
  const isFit = log.set.voters.includes(node) && !context.isSuspected(node)
  if (log.standing !== 'reading') return isFit ? node : context.node
  return isFit && forwards < forwardsMax ? node : voterInTurn(log, context, forwards)
}

/** Passes what waits here on to the leader, where that is another node. */
export function forwardPending(log: GroupLog, context: Context): void {
  for (const pending of log.waiting.values()) {
    const leader = proposerFor(log, context, pending)
    if (leader !== context.node && mayForward(log, pending)) {
      sendForward(log, context, pending, leader)
    }
  }
}

function mayForward({ standing }: GroupLog, pending: Pending): boolean {
  if (standing === 'reading') return true
  return pending.forwards < forwardsMax && countHops(pending) < hopsMax
}

function countHops(pending: Pending): number {
  return pending.waiters.reduce((most, waiter) => Math.max(most, waiter.hops), 0)
}

function sendForward(log: GroupLog, context: Context, pending: Pending, to: NodeId): void {
  assert(to !== context.node, 'TXN-5: a transaction is forwarded to its own node')
  pending.forwards += 1
  pending.sentTo = to
  log.waiting.delete(pending.intent)
  log.forwarded.set(pending.intent, pending)
  const { group, set } = log
  const { bytes: transaction, readPosition, forwardId } = pending
  const reads = pending.reads.map(fromLatin1)
  const ranges = pending.ranges.map(rangeOfText)
  const message: Forward = {
    kind: 'forward',
    group,
    epoch: set.epoch,
    readPosition,
    reads,
    ranges,
    transaction,
    request: forwardId,
    incarnation: context.incarnation,
    hops: countHops(pending) + 1,
  }
  log.forwardIds.set(forwardId, pending.intent)
  context.trace.mark('forwarded')
  context.emit({ kind: 'send', to, message })
  if (log.retryDeadline === noDeadline) {
    log.retryDeadline =
      context.now + jitter(context, context.limits.forwardMs, log.state.position, pending.forwards)
  }
}

/** No answer came for long: forwards it to the leader of now, or proposes it here. */
export function onRetryDeadline(log: GroupLog, context: Context): void {
  log.retryDeadline = noDeadline
  for (const pending of [...log.forwarded.values()]) {
    const leader = proposerFor(log, context, pending)
    if (isOverAtReader(log, context, pending)) giveUp(log, pending)
    else if (leader === context.node || !mayForward(log, pending)) takeBack(log, pending)
    else sendForward(log, context, pending, leader)
  }
}

/** A peer is suspected: another node proposes what it was to propose, at once. */
export function takeBackFrom(log: GroupLog, peer: NodeId): void {
  for (const pending of log.forwarded.values()) {
    if (pending.sentTo === peer) takeBack(log, pending)
  }
}

function takeBack(log: GroupLog, pending: Pending): void {
  log.forwarded.delete(pending.intent)
  log.waiting.set(pending.intent, pending)
}

/**
 * The proposer's verdict. `committed` is not passed on from here: the caller hears of it when this
 * node has applied the entry, so that its next read here sees its own write. Returns the position
 * to go after in that case.
 */
export function onForwardReply(
  log: GroupLog,
  context: Context,
  from: NodeId,
  message: ForwardReply,
): Position | undefined {
  const pending = log.forwarded.get(log.forwardIds.get(message.request) ?? '')
  if (pending === undefined) return undefined
  const { verdict } = message
  if (verdict.kind === 'committed') return verdict.position
  // There was no room for this copy. Another one may be on its way still, and find room.
  if (verdict.kind === 'overloaded') {
    context.trace.mark('no_room_at_leader')
    return undefined
  }
  // The word of any other node is old: the transaction has been given to another proposer since.
  if (pending.sentTo !== from) return undefined
  if (pending.forwards > 1 && isOfOneCopy(verdict)) {
    context.trace.mark('read_position_below_window')
    // A voter would take it back now, and find that it remembers too little itself.
    if (log.standing === 'reading' && pending.forwards >= forwardsMax) giveUp(log, pending)
  } else settle(log, context, pending, verdict)
  return undefined
}
