/** The invariants of a group's log after every step, in one place. Cheap enough to run always. */
import { assert } from '../base/assert.ts'
import type { Context } from './effect.ts'
import { noDeadline, type GroupLog } from './log.ts'
import { hasLeft, lacksBase } from './standing.ts'

export function checkLog(log: GroupLog, context: Context): void {
  const applied = log.state.position
  for (const position of log.records.keys()) {
    assert(position > applied, 'LOG-1: an acceptor record outlives its application in memory')
  }
  for (const [position, decision] of log.decisions) {
    assert(position > applied, 'LOG-1: a decision outlives its application')
    const mayWait = position > applied + 1 || log.applyDeadline !== noDeadline
    assert(mayWait || decision.value === undefined, 'LOG-1: a decision waits in vain')
  }
  const { entries } = log.stride
  assert(entries <= context.limits.catchUpEntriesMax, 'LIVE-7: a step applies beyond its bound')
  assert(log.catchUp === undefined || log.catchUp.through > applied, 'LOG-5: a catch-up has no end')
  assert(
    log.waitingBytes > 0 === log.waiting.size + log.forwarded.size > 0,
    'queue: the room that waiting transactions take is miscounted',
  )
  assert(log.replies.length === 0, 'queue: a verdict stays behind until the next step')
  checkWaits(log)
  checkEpoch(log)
  checkLease(log)
  checkProposal(log, context)
}

/** All that is under way has an end: a deadline, or room to be counted in. */
function checkWaits(log: GroupLog): void {
  const { state, readRound, catchUp, window } = log
  assert(state.horizon <= state.timestamp, 'MVCC-1: the newest state is behind the horizon')
  assert(window.from <= state.position, 'TXN-1: the window begins beyond what is applied')
  assert(window.through === state.position, 'TXN-1: the window lacks writes that are applied')
  assert(log.waitingBytes >= 0, 'queue: more room is given back than was taken')
  assert(log.forwarded.size <= log.forwardIds.size, 'TXN-5: a forwarded transaction has no number')
  assert(log.unannounced === undefined, 'LOG-4: a commit of this node is told to nobody')
  assert(
    readRound === undefined || readRound.deadline < noDeadline,
    'LIVE-1: a round without an end',
  )
  assert(
    catchUp === undefined || catchUp.deadline < noDeadline,
    'LIVE-1: a catch-up without a deadline',
  )
  const isAsked = log.readsWaiting.length === 0 || readRound !== undefined
  assert(isAsked || log.standing === 'sealed', 'LIVE-1: a read waits in vain')
  const [earliest, later] = [log.wakes.at(-1) ?? 0, log.wakes.at(-2) ?? noDeadline]
  assert(earliest <= later, 'LIVE-1: wake-ups are out of order')
}

/** A node that has sealed has nothing under way; proposals are of the present epoch. */
function checkEpoch(log: GroupLog): void {
  const { standing, set, proposal, readRound, lease } = log
  assert(standing !== 'sealed' || proposal === undefined, 'MOVE-2: a proposal in a sealed epoch')
  const mayPropose = !hasLeft(log) && !lacksBase(log)
  assert(
    mayPropose || proposal === undefined,
    "MOVE-9: a proposal outside of the set's part of a log",
  )
  assert(standing !== 'sealed' || readRound === undefined, 'MOVE-2: a round in a sealed epoch')
  assert(standing !== 'reading' || proposal === undefined, 'RDR-2: a reader proposes')
  assert(readRound?.countsOwn !== true || standing !== 'reading', 'RDR-1: a reader counts itself')
  assert(standing !== 'reading' || lease === undefined, 'RDR-1: a reader counts on a lease')
  assert(standing === 'voting' || lease === undefined, 'MOVE-2: a lease of a node without a vote')
  if (proposal === undefined || proposal.phase.kind === 'backing-off') return
  assert(proposal.phase.ballot.epoch === set.epoch, 'MOVE-1: a proposal of another epoch')
}

function checkLease(log: GroupLog): void {
  const { lease, set, idleDeadline } = log
  assert(lease === undefined || !hasLeft(log), 'MOVE-11: a lease of a group that has left')
  assert((lease === undefined) === (idleDeadline === noDeadline), 'LEASE-1: a lease without an end')
  if (lease === undefined) return
  assert(lease.grants.size <= set.voters.length, 'LEASE-1: more registrations than voters')
  for (const peer of lease.ignored) {
    assert(!lease.grants.has(peer), 'LEASE-2: a registration that was revoked counts')
  }
}

function checkProposal(log: GroupLog, context: Context): void {
  const { proposal, state } = log
  if (proposal === undefined) return
  assert(proposal.position === state.position + 1, 'PAX-5: a proposal beside the open position')
  assert(proposal.deadline < noDeadline, 'LIVE-5: a proposal without a deadline')
  const mayWait = proposal.awaiting === undefined || proposal.phase.kind === 'accepting'
  assert(mayWait, 'LEASE-1: holders are waited for without a chosen value')
  if (proposal.phase.kind === 'backing-off') return
  const { ballot } = proposal.phase
  assert(ballot.node === context.node, "PAX-5: a proposal at another node's ballot")
  assert(ballot.incarnation === context.incarnation, 'PAX-5: a proposal of an older incarnation')
  if (ballot.round > 0) return
  const node = state.nextLeader?.node ?? log.set.firstFull
  const incarnation = state.nextLeader?.incarnation ?? ballot.incarnation
  assert(node === ballot.node, 'PAX-6: ballot zero by another than the leader')
  assert(incarnation === ballot.incarnation, 'PAX-6: ballot zero in another incarnation')
}
