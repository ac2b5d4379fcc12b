/**
 * The proposer's side of the open position (Megastore, 4.4.2 and 4.6.3): ballot zero where this node
 * is the position's leader, prepare and adoption everywhere else, back-off for losers.
 *
 * PAX-6  Ballot zero is used by the leader that the chosen entry before names, in the incarnation
 *        named, for one value, and only where this node has no record of the position, nor has lost one (LOG-19).
 */
import { assert } from '../base/assert.ts'
import type { NodeId, Position } from '../base/ids.ts'
import { equalBallots, type Ballot } from '../paxos/ballot.ts'
import * as proposer from '../paxos/proposer.ts'
import { acceptMessage, onAccept, reply } from './acceptance.ts'
import { maybeCommit, retryHolders } from './commit.ts'
import { composeEntry } from './compose.ts'
import { jitter, type Context, type Effect } from './effect.ts'
import type { Leader } from './entry.ts'
import { hasVote, isProposer } from './standing.ts'
import { noHolders, noteHolders } from './holders.ts'
import type { GroupLog, Proposal } from './log.ts'
import type { Accepted, Prepare, Promised, Refused } from './message.ts'

/** The longest patience with a phase, as doublings of `phaseTimeoutMs`. */
const phaseDoublingsMax = 3

/** The proposer that may use ballot zero at the open position. At position 1 any incarnation may. */
export function findLeader(log: GroupLog): Leader | { readonly node: NodeId } {
  return log.state.nextLeader ?? { node: log.set.firstFull }
}

function mayUseBallotZero(log: GroupLog, context: Context): boolean {
  const leader = findLeader(log)
  if (leader.node !== context.node || !context.isAdmitted || !hasVote(log, context)) return false
  if ('incarnation' in leader && leader.incarnation !== context.incarnation) return false
  return !log.records.has(log.state.position + 1)
}

/** Proposes what waits here, or nothing when it need not. The log has no proposal yet. */
export function proposePending(log: GroupLog, context: Context): void {
  assert(isProposer(log), 'MOVE-9: a proposal where this node may propose nothing')
  assert(log.proposal === undefined, 'PAX-5: a second proposal at the open position')
  if (!mayUseBallotZero(log, context)) return startPrepare(log, context, 0)
  const value = composeEntry(log, context)
  if (value === undefined) return
  const { node, incarnation } = context
  startAccept(log, context, { epoch: log.set.epoch, round: 0, node, incarnation }, value, 0)
}

/** Phase 1 at the open position, above every round seen there; nothing where this node may not propose. */
export function startPrepare(log: GroupLog, context: Context, attempt: number): void {
  if (!isProposer(log)) return
  const { node, incarnation } = context
  const position = log.state.position + 1
  const ballot: Ballot = { epoch: log.set.epoch, round: nextRound(log), node, incarnation }
  assert(ballot.round > log.highestRound, 'PAX-5: a prepare at a round that was seen')
  log.highestRound = ballot.round
  log.proposal = {
    position,
    attempt,
    phase: proposer.prepare(ballot),
    phaseStart: context.now,
    deadline: phaseDeadline(context, position, attempt),
    holders: noHolders(),
    awaiting: undefined,
  }
  context.trace.mark('prepare')
  sendPrepare(log, context, ballot, log.set.voters)
}

/** Own promises count as seen: they outlive the memory of what this node has proposed (PAX-5). */
function nextRound(log: GroupLog): number {
  const record = log.records.get(log.state.position + 1)
  const promised = record?.kind === 'present' ? record.acceptor.promised : undefined
  const own = promised?.epoch === log.set.epoch ? promised.round : 0
  return Math.max(log.highestRound, own) + 1
}

function sendPrepare(log: GroupLog, context: Context, ballot: Ballot, to: readonly NodeId[]): void {
  const { group, set, state } = log
  const position = state.position + 1
  const message: Prepare = { kind: 'prepare', group, epoch: set.epoch, position, ballot }
  for (const node of to) context.emit(reply(context, node, message))
}

function startAccept(
  log: GroupLog,
  context: Context,
  ballot: Ballot,
  value: Uint8Array,
  attempt: number,
): void {
  const position = log.state.position + 1
  assert(
    !log.decisions.has(position) || ballot.round > 0,
    'PAX-6: ballot zero where all is decided',
  )
  log.proposal = {
    position,
    attempt,
    phase: proposer.accept(ballot, value),
    phaseStart: context.now,
    deadline: phaseDeadline(context, position, attempt),
    holders: noHolders(),
    awaiting: undefined,
  }
  const { group, set } = log
  context.trace.emit({ kind: 'propose', group, position, ballot, value })
  const message = acceptMessage(log, position, ballot, value)
  const sends: Effect[] = set.voters
    .filter((voter) => voter !== context.node)
    .map((voter) => reply(context, voter, message))
  if (position === 1 && ballot.round === 0) {
    // No entry named this leader, so only its own durable record stops a second value after a crash.
    return onAccept(log, context, context.node, message, sends)
  }
  for (const send of sends) context.emit(send)
  onAccept(log, context, context.node, message)
}

/** The log's proposal, when this answer belongs to its present phase. */
function findPhase<K extends 'preparing' | 'accepting'>(
  log: GroupLog,
  kind: K,
  answer: { readonly position: number; readonly ballot: Ballot },
): { readonly proposal: Proposal; readonly phase: proposer.Phase & { kind: K } } | undefined {
  const { proposal } = log
  if (proposal === undefined || proposal.position !== answer.position) return undefined
  const { phase } = proposal
  if (!isPhase(phase, kind) || !equalBallots(phase.ballot, answer.ballot)) return undefined
  return { proposal, phase }
}

function isPhase<K extends 'preparing' | 'accepting'>(
  phase: Proposal['phase'],
  kind: K,
): phase is proposer.Phase & { kind: K } {
  return phase.kind === kind
}

export function onPromised(log: GroupLog, context: Context, from: NodeId, message: Promised): void {
  const current = findPhase(log, 'preparing', message)
  if (current === undefined || !log.set.voters.includes(from)) return
  const { proposal } = current
  const phase = proposer.countPromise(current.phase, from, message.accepted)
  proposal.phase = phase
  if (!proposer.isWon(phase, log.set.voters)) return
  const adopted = proposer.valueToAdopt(phase)
  if (adopted !== undefined) context.trace.mark("adopted another's value")
  // A position that was prepared is always closed: without a value of ours, by a no-op (LOG-5).
  const value = adopted?.value ?? composeEntry(log, context, { orNoOp: true })
  assert(value !== undefined, 'LOG-5: a prepared position is left open')
  startAccept(log, context, phase.ballot, value, proposal.attempt)
}

export function onAccepted(log: GroupLog, context: Context, from: NodeId, message: Accepted): void {
  const current = findPhase(log, 'accepting', message)
  if (current === undefined || !log.set.voters.includes(from)) return
  const { proposal, phase: before } = current
  noteHolders(proposal.holders, from, message.holders)
  const phase = proposer.countAcceptance(before, from)
  proposal.phase = phase
  maybeCommit(log, context, proposal, phase)
}

export function onRefused(log: GroupLog, context: Context, from: NodeId, message: Refused): void {
  const current = findPhase(log, 'preparing', message) ?? findPhase(log, 'accepting', message)
  if (current === undefined) return
  const { epoch, round } = message.promised
  assert(epoch === log.set.epoch, 'MOVE-1: a refusal by a promise of another epoch')
  log.highestRound = Math.max(log.highestRound, round)
  const { proposal } = current
  // Chosen is chosen: a proposer with a higher ballot will find this very value.
  if (proposal.awaiting !== undefined) return
  const phase = proposer.countRefusal(current.phase, from)
  proposal.phase = phase
  if (!proposer.isLost(phase, log.set.voters)) return
  backOff(log, context, proposal, context.now - proposal.phaseStart)
}

/** The peer has begun to vote in this epoch: a request that it dropped before is sent to it again. */
export function askVoter(log: GroupLog, context: Context, peer: NodeId): void {
  const { proposal, set } = log
  if (proposal === undefined || peer === context.node || !set.voters.includes(peer)) return
  const { phase, position } = proposal
  if (phase.kind === 'preparing') {
    if (!phase.promises.has(peer)) sendPrepare(log, context, phase.ballot, [peer])
  } else if (phase.kind === 'accepting' && !phase.acceptances.has(peer)) {
    // At position 1 no other node hears of the value before this node's own disk holds it.
    if (position === 1 && phase.ballot.round === 0) return
    const message = acceptMessage(log, position, phase.ballot, phase.value)
    context.emit(reply(context, peer, message))
  }
}

/**
 * Patience grows with the tries: where disks or the network are slower than `phaseTimeoutMs`, duelling
 * proposers would else give every phase up before it can end (LIVE-5).
 */
function phaseDeadline(context: Context, position: Position, attempt: number): number {
  const patienceMs = context.limits.phaseTimeoutMs * 2 ** Math.min(attempt, phaseDoublingsMax)
  return context.now + jitter(context, patienceMs, position, attempt)
}

/**
 * `answerMs` is what this ballot's refusal took to come: the winner needs about two such times, one
 * a phase, and is left alone for that time, whatever the limits say.
 */
function backOff(log: GroupLog, context: Context, proposal: Proposal, answerMs: number): void {
  context.trace.mark('proposer_backed_off')
  const { limits, now } = context
  proposal.attempt += 1
  proposal.phase = { kind: 'backing-off' }
  assert(proposal.awaiting === undefined, 'LEASE-1: a chosen value is given up')
  const growingMs = limits.backoffMs * 2 ** Math.min(proposal.attempt, 16)
  const delayMs = Math.max(Math.min(growingMs, limits.backoffMaxMs), 2 * answerMs)
  proposal.deadline = now + jitter(context, delayMs, log.state.position, proposal.attempt)
}

/** The phase took too long, or the back-off is over. */
export function onProposalDeadline(log: GroupLog, context: Context, proposal: Proposal): void {
  const { phase, attempt, awaiting } = proposal
  if (phase.kind === 'backing-off') return startPrepare(log, context, attempt)
  if (awaiting !== undefined && phase.kind === 'accepting') {
    return retryHolders(log, context, proposal, phase, awaiting)
  }
  if (phase.refusals.size > 0) return backOff(log, context, proposal, 0)
  // Lost on the way, or the others are gone: the same ballot and value may be sent any number of times.
  context.trace.mark('phase_resent')
  proposal.attempt += 1
  proposal.deadline = phaseDeadline(context, proposal.position, proposal.attempt)
  const answered = phase.kind === 'preparing' ? phase.promises : phase.acceptances
  const silent = log.set.voters.filter((voter) => !answered.has(voter))
  // At position 1 no other node hears of the value before this node's own disk holds it.
  const unsent =
    proposal.position === 1 && phase.ballot.round === 0 && silent.includes(context.node)
  if (unsent) return
  if (phase.kind === 'preparing') return sendPrepare(log, context, phase.ballot, silent)
  const message = acceptMessage(log, proposal.position, phase.ballot, phase.value)
  for (const voter of silent) context.emit(reply(context, voter, message))
}
