/**
 * Majority reads (Megastore, 4.6.2 step 2b): ask the voters for their highest accepted position,
 * catch up to the maximum, serve. An accepted position that is undecided is never skipped: it is
 * waited for, or finished, before anything is shown.
 *
 * LOG-19  A replica that is not restored answers no round, and counts itself in none: it may have voted for what it
 *         knows nothing of. It registers no holder, and no attempt of its own begins. The same holds of a node outside
 *         its gate, and of one that has sealed the epoch (MOVE-2, MOVE-3).
 *
 * One round per group is on its way at a time; reads that begin meanwhile share the next one,
 * since a round's answers count only for reads that began before it was sent.
 */
import { assert } from '../base/assert.ts'
import type { NodeId, Position } from '../base/ids.ts'
import { computeMajority } from '../placement/placement.ts'
import { sendEntries } from './acceptance.ts'
import { catchUpTo, refuseFalseClaims } from './catch-up.ts'
import { jitter, type Context } from './effect.ts'
import { hasJustCome, hasLeft, hasVote } from './standing.ts'
import { highestKnown, type GroupLog, type ReadRound } from './log.ts'
import type { Highest, Query } from './message.ts'
import { beginAttempt, leasedPosition, onAnswer } from './read-lease.ts'
import { lowerTargets } from './reader.ts'

export function beginRead(log: GroupLog, context: Context, read: number): void {
  const position = leasedPosition(log, context)
  if (log.lease === undefined || position === undefined) {
    log.readsWaiting.push(read)
    return
  }
  context.trace.mark('leased_read_waits_for_position')
  log.lease.usedMs = context.now
  log.readsTargeted.push({ read, position })
  catchUpTo(log, context, position)
}

/**
 * The edge no longer waits for it. A round without readers is not sent again: as long as no majority
 * answers, each group that was ever read would stay here. Its registrations end as they would have.
 */
export function cancelRead(log: GroupLog, read: number): void {
  log.readsWaiting = log.readsWaiting.filter((one) => one !== read)
  log.readsTargeted = log.readsTargeted.filter((one) => one.read !== read)
  const { readRound } = log
  if (readRound === undefined) return
  readRound.reads = readRound.reads.filter((one) => one !== read)
  if (readRound.reads.length === 0 && !readRound.isOfClaims) log.readRound = undefined
}

export function startReadRound(log: GroupLog, context: Context): void {
  if (log.readRound !== undefined) return
  if (log.readsWaiting.length === 0 && !log.mustAskMajority) return
  if (log.standing === 'sealed') return
  const round = context.drawNumber()
  assert(round > (log.lease?.attempt ?? 0), 'LEASE-2: attempts of a group fall')
  const deadline = context.now + jitter(context, context.limits.phaseTimeoutMs, round % 1024, 0)
  const { readsWaiting: reads, mustAskMajority: isOfClaims } = log
  const countsOwn = hasVote(log, context)
  log.readRound = { round, reads, isOfClaims, countsOwn, answers: new Map(), deadline }
  log.readsWaiting = []
  log.mustAskMajority = false
  if (reads.length > 0 && countsOwn) beginAttempt(log, context, round)
  sendQueries(log, context, log.readRound)
  if (countsOwn) countAnswer(log, context, log.readRound, context.node, highestKnown(log))
}

function sendQueries(log: GroupLog, context: Context, current: ReadRound): void {
  const { group, set } = log
  const { round: read } = current
  const mayRegister = log.lease?.attempt === read
  const message: Query = { kind: 'query', group, epoch: set.epoch, read, mayRegister }
  for (const voter of set.voters) {
    if (voter === context.node || current.answers.has(voter)) continue
    if (mayRegister && !context.leases.confirmLive(voter, context)) {
      context.emit({ kind: 'renew', to: voter })
    }
    context.emit({ kind: 'send', to: voter, message })
    if (hasJustCome(log)) offerBase(log, context, voter)
  }
}

/** Without all that the other set had the peer has no vote, and no answer (MOVE-10): it may take that up from this node. */
function offerBase(log: GroupLog, context: Context, voter: NodeId): void {
  const { position } = log.state
  sendEntries(log, context, voter, { from: position, through: position, isAwaited: true })
}

/** The peer has begun to vote in this epoch: a question that it dropped before is sent to it again. */
export function askVoter(log: GroupLog, context: Context): void {
  if (log.readRound !== undefined) sendQueries(log, context, log.readRound)
}

/**
 * A node without a vote does not count its own log in its read round. When the node gets its vote it begins that round anew, and
 * counts its log. Without this, the old round would never reach a majority while another voter is down, and each later read
 * would join that round.
 */
export function countOwn(log: GroupLog, context: Context): void {
  const current = log.readRound
  if (current === undefined || current.countsOwn || !hasVote(log, context)) return
  context.trace.mark('read_round_begun_anew')
  log.readsWaiting = [...current.reads, ...log.readsWaiting]
  log.mustAskMajority ||= current.isOfClaims
  log.readRound = undefined
  startReadRound(log, context)
}

export function onReadDeadline(log: GroupLog, context: Context, current: ReadRound): void {
  if (!current.countsOwn && hasVote(log, context)) return countOwn(log, context)
  context.trace.mark('read_round_resent')
  current.deadline =
    context.now + jitter(context, context.limits.phaseTimeoutMs, current.round % 1024, 1)
  sendQueries(log, context, current)
}

export function onQuery(log: GroupLog, context: Context, from: NodeId, message: Query): void {
  if (!hasVote(log, context)) return context.trace.mark('round_asked_of_node_without_vote')
  const { group, set } = log
  const { read, mayRegister } = message
  const position = highestKnown(log)
  // In one step with the position: a later acceptance here lists the asker.
  const registering = { group, from, attempt: read, position, now: context.now }
  // RDR-1: a reader gets no lease. It asks for none, and none is given to it.
  const isHolder = mayRegister && set.voters.includes(from) && !hasLeft(log)
  const term = isHolder ? context.leases.register(registering) : undefined
  assert(position >= log.state.position, 'LEASE-3: an answer tells of less than is applied')
  assert(log.standing !== 'reading', 'RDR-1: a reader answers a read round')
  const { epoch } = set
  const known = term === undefined ? {} : { term }
  const answer: Highest = { kind: 'highest', group, epoch, read, position, ...known }
  context.emit({ kind: 'send', to: from, message: answer })
}

export function onHighest(log: GroupLog, context: Context, from: NodeId, message: Highest): void {
  if (!log.set.voters.includes(from)) return
  onAnswer(log, from, message)
  const current = log.readRound
  if (current === undefined || current.round !== message.read) return
  countAnswer(log, context, current, from, message.position)
}

function countAnswer(
  log: GroupLog,
  context: Context,
  current: ReadRound,
  from: NodeId,
  position: Position,
): void {
  current.answers.set(from, position)
  if (current.answers.size < computeMajority(log.set.voters)) return
  const target = Math.max(...current.answers.values())
  const isOwnCounted = current.answers.has(context.node)
  if (log.standing === 'reading') lowerTargets(log, target)
  assert(isOwnCounted === current.countsOwn, 'LEASE-3: a round does not count what is known here')
  log.readRound = undefined
  for (const read of current.reads) log.readsTargeted.push({ read, position: target })
  const informer = [...current.answers].find(([, highest]) => highest === target)?.[0]
  catchUpTo(log, context, target, informer)
  if (current.isOfClaims) refuseFalseClaims(log, context, current.round, target)
}

/** Serves every read whose target is applied. */
export function serveReads(log: GroupLog, context: Context): void {
  if (log.readsTargeted.length === 0) return
  const { position, timestamp } = log.state
  const left = log.readsTargeted.filter((one) => one.position > position)
  for (const one of log.readsTargeted) {
    if (one.position > position) continue
    context.emit({ kind: 'serve', read: one.read, position, timestamp })
  }
  log.readsTargeted = left
}
