/**
 * Serving current reads without asking. A majority read registers the group
 * with the voters that answer it; as long as registrations of that one attempt hold at a majority, any
 * write is known here, or its proposer waits for this node, before any reader sees it.
 *
 * LEASE-1  What is served without asking holds every position that was acknowledged before.
 * LEASE-5  It is served only when everything that the answers of the attempt told of is applied.
 */
import { assert } from '../base/assert.ts'
import type { NodeId, Position } from '../base/ids.ts'
import type { ClockReading } from '../lease/clock-reading.ts'
import { sendEntries } from './acceptance.ts'
import { catchUpTo } from './catch-up.ts'
import type { Context } from './effect.ts'
import { highestKnown, type GroupLog } from './log.ts'
import { hasLeft } from './standing.ts'
import type { Highest, Invalidate, Release, Revoke } from './message.ts'

/** A majority read begins: its answers may register the group, where there is room for it. */
export function beginAttempt(log: GroupLog, context: Context, attempt: number): void {
  if (hasLeft(log)) return
  if (log.lease === undefined && !context.leases.enter(log.group)) return
  assert(attempt > (log.lease?.attempt ?? 0), 'LEASE-2: attempts of a group fall')
  log.lease = { attempt, grants: new Map(), ignored: new Set(), usedMs: context.now }
  log.idleDeadline = context.now + context.limits.leaseIdleMs
}

/** An answer to a read round, whether or not that round still waits for it. */
export function onAnswer(log: GroupLog, from: NodeId, { read, position, term }: Highest): void {
  const { lease } = log
  if (lease?.attempt !== read || term === undefined || lease.ignored.has(from)) return
  assert(log.set.voters.includes(from), 'LEASE-1: a registration by a node that has no vote')
  log.minReadPosition = Math.max(log.minReadPosition, position)
  lease.grants.set(from, term)
}

/**
 * How far a current read must see that begins now and asks no other node; undefined when it has to ask.
 * Accepted positions count, decided or not: writers do not wait for a holder that accepted (R6).
 */
export function leasedPosition(log: GroupLog, context: Context): Position | undefined {
  return isLeased(log, context) ? readBarrier(log) : undefined
}

/** The judge of whether a term is held: this node's leases, or an observer of all nodes. */
export interface LeaseJudge extends ClockReading {
  readonly node: NodeId
  readonly leases: Pick<Context['leases'], 'confirmHeld'>
}

/** The position that a node which serves the group alone has to see. */
export function readBarrier(log: GroupLog): Position {
  return Math.max(highestKnown(log), log.minReadPosition)
}

/** Whether registrations of the last attempt hold at a majority now, this node's own among them. */
export function isLeased({ lease, set }: GroupLog, by: LeaseJudge): boolean {
  if (lease === undefined) return false
  let count = 0
  for (const voter of set.voters) {
    if (voter === by.node) count += 1
    else {
      const term = lease.grants.get(voter)
      if (term !== undefined && by.leases.confirmHeld(voter, term, by)) count += 1
    }
  }
  return 2 * count > set.voters.length
}

/** The peer has ended this node's registration, whatever of it is on its way still. */
export function dropGrant(log: GroupLog, peer: NodeId): void {
  log.lease?.grants.delete(peer)
  log.lease?.ignored.add(peer)
}

/** A position exists that this node may not have: nothing below it is shown from now on. */
export function onInvalidate(
  log: GroupLog,
  context: Context,
  from: NodeId,
  { position }: Invalidate,
): void {
  context.trace.mark('read_barrier_raised')
  log.minReadPosition = Math.max(log.minReadPosition, position)
  catchUpTo(log, context, position, from)
  const { group, set } = log
  const { incarnation } = context
  const message = { kind: 'invalidated', group, epoch: set.epoch, position, incarnation } as const
  context.emit({ kind: 'send', to: from, message })
  if (log.lease !== undefined) return
  // It is waited for, and counts on nothing: a voter did not hear that the group was given up. The
  // number is above every attempt so far, and any registration to come is of a later one.
  context.trace.mark('lease_given_up_again')
  tellReleased(log, context, context.drawNumber())
}

/** A proposer waits for a holder that this node listed. */
export function onRevoke(
  log: GroupLog,
  context: Context,
  from: NodeId,
  { position, holder }: Revoke,
): void {
  const { group, set } = log
  // A proposer has finished it, and waited for every holder then: no holder has to be waited for any more.
  const isCommitted = position <= log.state.position
  const asked = { from: position, through: position, isAwaited: true }
  if (isCommitted) sendEntries(log, context, from, asked)
  if (!isCommitted && !context.leases.revoke(group, position, holder, context.now)) {
    return context.trace.mark('lease_registration_being_revoked')
  }
  const message = { kind: 'revoked', group, epoch: set.epoch, position, holder } as const
  context.emit(
    from === context.node ? { kind: 'deliver', message } : { kind: 'send', to: from, message },
  )
}

/** Not read for long: out of the lease, and its peers may forget it. */
export function onIdleDeadline(log: GroupLog, context: Context): void {
  const { lease } = log
  assert(lease !== undefined, 'LEASE-1: a group without a lease waits for its end')
  const { now, limits } = context
  const idleAt = lease.usedMs + limits.leaseIdleMs
  const isRead = now < idleAt || log.readRound !== undefined
  log.idleDeadline = Math.max(idleAt, now + limits.leaseIdleMs / 2)
  if (isRead) return
  endLease(log, context)
  tellReleased(log, context, lease.attempt)
}

/** MOVE-11: nothing is read in this set any more. No writer of the next set knows of a holder here. */
export function endWithLastEntry(log: GroupLog, context: Context): void {
  if (log.lease === undefined || !hasLeft(log)) return
  context.trace.mark('lease_ended_with_last_entry')
  stopReading(log, context)
}

/** The group is put aside: reads that wait ask anew afterwards, and no writer has to wait for this node. */
export function stopReading(log: GroupLog, context: Context): void {
  const { readRound, lease } = log
  if (readRound !== undefined) {
    log.readsWaiting.push(...readRound.reads)
    log.mustAskMajority ||= readRound.isOfClaims
    log.readRound = undefined
  }
  if (lease === undefined) return
  endLease(log, context)
  tellReleased(log, context, lease.attempt)
}

/**
 * This node counts on no attempt up to this one. A voter that has registered one lists this node until it
 * hears of it.
 */
function tellReleased({ group, set }: GroupLog, context: Context, attempt: number): void {
  const message: Release = { kind: 'release', group, epoch: set.epoch, attempt }
  // Also to those whose answers were lost on the way.
  for (const voter of set.voters) {
    if (voter !== context.node) context.emit({ kind: 'send', to: voter, message })
  }
}

function endLease(log: GroupLog, context: Context): void {
  assert(log.readRound === undefined, 'LEASE-1: a lease ends under a read')
  log.lease = undefined
  log.idleDeadline = Number.POSITIVE_INFINITY
  context.leases.leave(log.group)
}
