/**
 * The acceptor's side of a group's log (Megastore, 4.6.3): prepare and accept requests, answered
 * only when what they changed is durable (PAX-4).
 *
 * PAX-8  At a position that it has applied a replica gives no vote, refuses nothing, and never says that nothing
 *        was accepted: it tells what was chosen, and how far it has applied.
 * LOG-19 A replica that is not restored gives no vote at all; nor does one outside its gate, or that has sealed the
 *        epoch (MOVE-2, MOVE-3).
 */
import { assert } from '../base/assert.ts'
import type { NodeId, Position } from '../base/ids.ts'
import { decideAccept, decidePrepare, freshAcceptor, type Acceptor } from '../paxos/acceptor.ts'
import type { Ballot } from '../paxos/ballot.ts'
import type { Leases } from '../lease/leases.ts'
import type { Context, Effect, LogRecord, ReadyMessage } from './effect.ts'
import { jitter } from './effect.ts'
import { hasVote } from './standing.ts'
import { noDeadline, type GroupLog } from './log.ts'
import type { Accept, Accepted, Fetch, Prepare } from './message.ts'

/** To `node`, this one included. */
export function reply(context: Context, to: NodeId, message: ReadyMessage): Effect {
  return to === context.node ? { kind: 'deliver', message } : { kind: 'send', to, message }
}

export function acceptMessage(
  log: GroupLog,
  position: number,
  ballot: Ballot,
  value: Uint8Array,
): Accept {
  const { group, set, appliedBallot: previous } = log
  const { epoch } = set
  if (previous === undefined) return { kind: 'accept', group, epoch, position, ballot, value }
  return { kind: 'accept', group, epoch, position, ballot, value, previous }
}

export function onPrepare(log: GroupLog, context: Context, from: NodeId, message: Prepare): void {
  const acceptor = votingRecord(log, context, from, message)
  if (acceptor === undefined) return
  const { position, ballot } = message
  const decision = decidePrepare(acceptor, ballot)
  noteRound(log, position, ballot)
  if (decision.kind === 'refused') {
    return refuse(log, context, from, message, decision.promised)
  }
  const { group, set } = log
  const { accepted } = decision
  const { epoch } = set
  const answer: ReadyMessage =
    accepted === undefined
      ? { kind: 'promised', group, epoch, position, ballot }
      : { kind: 'promised', group, epoch, position, ballot, accepted }
  const changed = decision.next !== acceptor
  if (changed) {
    context.trace.emit({ kind: 'promise', group, position, ballot })
    keep(log, position, decision.next)
  }
  const record: LogRecord = { kind: 'promise', group, position, ballot }
  context.emit({
    kind: 'persist',
    records: changed ? [record] : [],
    after: [reply(context, from, answer)],
  })
}

/**
 * `first` is what may leave only together with the answer: at position 1 the leader's own
 * acceptance is durable before another node hears of the value.
 */
export function onAccept(
  log: GroupLog,
  context: Context,
  from: NodeId,
  message: Accept,
  first: readonly Effect[] = [],
): void {
  const acceptor = votingRecord(log, context, from, message)
  if (acceptor === undefined) return
  const { position, ballot, value } = message
  if (ballot.round === 0) checkLeader(log, position, ballot)
  noteRound(log, position, ballot)
  const decision = decideAccept(acceptor, ballot, value)
  if (decision.kind === 'refused') {
    return refuse(log, context, from, message, decision.promised)
  }
  const { group, set } = log
  const changed = decision.next !== acceptor
  if (changed) {
    context.trace.emit({ kind: 'accept', group, position, ballot })
    assert(
      decision.next.accepted?.value === value,
      'PAX-3: another value is kept than was accepted',
    )
    keep(log, position, decision.next)
    if (log.sweepDeadline === noDeadline) {
      log.sweepDeadline = context.now + jitter(context, context.limits.sweepMs, position, 0)
    }
  }
  const record: LogRecord = { kind: 'accept', group, position, ballot, value }
  const { epoch } = set
  const answer: Effect = { kind: 'send-accepted', to: from, group, epoch, position, ballot }
  context.emit({ kind: 'persist', records: changed ? [record] : [], after: [...first, answer] })
}

/**
 * The acceptance as it leaves: it names who holds a lease now, after its flush, not when the accept came.
 * A holder that registered in between knows of the position (LEASE-1).
 */
export function acceptedAsItLeaves(
  { group, epoch, position, ballot }: Effect & { readonly kind: 'send-accepted' },
  leases: Pick<Leases, 'holders'>,
  now: number,
): Accepted {
  const holders = leases.holders(group, position, now)
  return { kind: 'accepted', group, epoch, position, ballot, holders }
}

function checkLeader(log: GroupLog, position: Position, ballot: Ballot): void {
  if (position !== log.state.position + 1) return
  const { nextLeader } = log.state
  const node = nextLeader?.node ?? log.set.firstFull
  const incarnation = nextLeader?.incarnation ?? ballot.incarnation
  assert(node === ballot.node, 'PAX-6: ballot zero from another than the leader')
  assert(incarnation === ballot.incarnation, 'PAX-6: ballot zero from another incarnation')
}

/** No vote of its own before others have vouched for this log; the proposer sends its request again. */
function mayVoteFor(context: Context, proposer: NodeId): boolean {
  if (proposer !== context.node || context.isAdmitted) return true
  context.trace.mark('own_vote_not_admitted')
  return false
}

/** The record to vote with, or undefined when the request was answered in another way. */
function votingRecord(
  log: GroupLog,
  context: Context,
  from: NodeId,
  message: Prepare | Accept,
): Acceptor | undefined {
  if (!mayVoteFor(context, from)) return undefined
  const { position, ballot } = message
  const applied = log.state.position
  if (position <= applied) {
    // The proposer is behind. A replica that has applied a position needs no ballots of it any more (PAX-8).
    context.trace.mark('vote_asked_at_applied_position')
    sendEntries(log, context, from, { from: position, through: applied, isAwaited: true })
    return undefined
  }
  const record = log.records.get(position)
  if (record?.kind === 'faulty' || !hasVote(log, context)) {
    // A record that is damaged, or that may be lost, counts neither as a vote nor as "nothing accepted".
    context.trace.mark(
      hasVote(log, context) ? 'vote_asked_of_faulty_record' : 'vote_asked_of_node_without_vote',
    )
    const { group, set } = log
    context.emit(
      reply(context, from, { kind: 'faulty', group, epoch: set.epoch, position, ballot }),
    )
    return undefined
  }
  if (log.records.size >= context.limits.openPositionsMax) {
    const known = log.records.has(position)
    context.trace.mark('too_many_open_positions')
    if (!known) return undefined
  }
  return record?.kind === 'present' ? record.acceptor : freshAcceptor
}

function refuse(
  log: GroupLog,
  context: Context,
  from: NodeId,
  message: Prepare | Accept,
  promised: Ballot,
): void {
  const { group, set } = log
  const { position, ballot } = message
  // It tells of a promise, so the promise must be durable like in any other answer (PAX-4).
  const { epoch } = set
  const answer: ReadyMessage = { kind: 'refused', group, epoch, position, ballot, promised }
  context.emit({ kind: 'persist', records: [], after: [reply(context, from, answer)] })
}

/** Sends committed entries from the log. */
export function sendEntries(
  log: GroupLog,
  context: Context,
  to: NodeId,
  asked: Pick<Fetch, 'from' | 'through' | 'isAwaited'>,
): void {
  if (to === context.node) return
  const { group, set, state } = log
  const { epoch } = set
  const { from, through, isAwaited } = asked
  const committed = state.position
  context.emit({ kind: 'send-entries', to, group, epoch, from, through, committed, isAwaited })
}

function keep(log: GroupLog, position: Position, acceptor: Acceptor): void {
  assert(log.standing !== 'reading', 'RDR-1: a reader promises or accepts')
  assert(position > log.state.position, 'PAX-8: a vote at an applied position')
  log.records.set(position, { kind: 'present', acceptor })
}

/** A later proposal of this node at this position starts above every round it has seen. */
function noteRound(log: GroupLog, position: Position, ballot: Ballot): void {
  if (position === log.state.position + 1 && ballot.round > log.highestRound) {
    log.highestRound = ballot.round
  }
}
