/**
 * From chosen to committed: no reader sees a value that a majority has accepted before every lease holder
 * either has it or can serve no read without it. A proposer that finishes
 * another's position passes here as well (R8).
 *
 * LEASE-1  See `holders.ts`, which says who is waited for.
 */
import { assert } from '../base/assert.ts'
import type { NodeId } from '../base/ids.ts'
import { retriesPerLease } from '../lease/leases.ts'
import { isWon, type Accepting } from '../paxos/proposer.ts'
import { acceptMessage, reply } from './acceptance.ts'
import type { Context } from './effect.ts'
import { awaitedHolders, findListers, noteAcknowledged, noteRevoked } from './holders.ts'
import { decide } from './learn.ts'
import type { GroupLog, Proposal } from './log.ts'
import type { Invalidated, Revoked } from './message.ts'

/** Holders have this many times as long as the majority took before the proposer asks them again. */
const holderPatience = 4
/** The same for suspected holders: voters tell the holder and hear from it, and then tell the proposer. */
const voterPatience = 2
/** Every fourth look sends the value again to voters that have not accepted it. */
const retriesPerAccept = 4

/** A lease holder shows nothing below the position any more. */
export function onInvalidated(
  log: GroupLog,
  context: Context,
  from: NodeId,
  { position, incarnation }: Invalidated,
): void {
  const { proposal } = log
  if (proposal?.position !== position || proposal.phase.kind !== 'accepting') return
  noteAcknowledged(proposal.holders, from, incarnation)
  noteSlow(context, proposal, from)
  maybeCommit(log, context, proposal, proposal.phase)
}

/** A voter that listed a holder has ended its registration. */
export function onRevoked(
  log: GroupLog,
  context: Context,
  from: NodeId,
  { position, holder }: Revoked,
): void {
  const { proposal } = log
  if (proposal?.position !== position || proposal.phase.kind !== 'accepting') return
  noteRevoked(proposal.holders, from, holder)
  noteSlow(context, proposal, holder)
  maybeCommit(log, context, proposal, proposal.phase)
}

/** A majority has accepted: chosen. Committed, and shown, when no lease holder can miss it. */
export function maybeCommit(
  log: GroupLog,
  context: Context,
  proposal: Proposal,
  phase: Accepting,
): void {
  const { voters } = log.set
  if (!isWon(phase, voters)) return
  const awaited = awaitedHolders(proposal.holders, phase, voters, context.node)
  if (awaited.length > 0) return waitForHolders(log, context, proposal, awaited)
  assert(proposal.position === log.state.position + 1, 'LOG-1: a commit beside the open position')
  assert(log.unannounced === undefined, 'LOG-4: a commit is told before the next one')
  log.unannounced = { position: proposal.position, ballot: phase.ballot }
  log.proposal = undefined
  decide(log, context, proposal.position, phase.ballot, phase.value)
}

/** Most holders accept along with the others: they are left alone for as long as that may take. */
function waitForHolders(
  log: GroupLog,
  context: Context,
  proposal: Proposal,
  awaited: readonly NodeId[],
): void {
  if (proposal.awaiting !== undefined) return
  assert(!awaited.includes(context.node), 'LEASE-1: a proposer waits for itself')
  context.trace.mark('commit_waits_for_lease_holder')
  const { now, limits } = context
  proposal.awaiting = { retries: 0 }
  const gone = awaited.filter((holder) => context.isSuspected(holder))
  const patience = gone.length === awaited.length ? voterPatience : holderPatience
  const usualMs = Math.min(patience * (now - proposal.phaseStart), limits.leaseMs / 4)
  proposal.deadline = now + Math.max(limits.invalidateMs, usualMs)
  revokeAt(log, context, proposal, gone)
}

/** Tells late holders of the position first, and then has voters end their registrations. */
export function retryHolders(
  log: GroupLog,
  context: Context,
  proposal: Proposal,
  phase: Accepting,
  awaiting: NonNullable<Proposal['awaiting']>,
): void {
  assert(isWon(phase, log.set.voters), 'LEASE-1: holders are told of a value that is not chosen')
  const awaited = awaitedHolders(proposal.holders, phase, log.set.voters, context.node)
  const { group, set } = log
  const { position } = proposal
  for (const holder of awaited) {
    const message = { kind: 'invalidate', group, epoch: set.epoch, position } as const
    context.emit({ kind: 'send', to: holder, message })
  }
  // The voters of a suspected holder hear of it at once, and once more now.
  const isEnding = (holder: NodeId): boolean => awaiting.retries > 0 || context.isSuspected(holder)
  revokeAt(log, context, proposal, awaited.filter(isEnding))
  // One more voter without the holder may be what is missing, and may not have heard of the value.
  if (awaiting.retries % retriesPerAccept === 1) sendAgain(log, context, proposal, phase)
  awaiting.retries += 1
  const { leaseMs, invalidateMs } = context.limits
  proposal.deadline = context.now + Math.max(invalidateMs, leaseMs / retriesPerLease)
}

function sendAgain(
  log: GroupLog,
  context: Context,
  { position }: Proposal,
  { ballot, value, acceptances }: Accepting,
): void {
  const message = acceptMessage(log, position, ballot, value)
  for (const voter of log.set.voters) {
    if (!acceptances.has(voter)) context.emit(reply(context, voter, message))
  }
}

/** It is alive, and had to be asked again: too much of that, and all voters hear of it. */
function noteSlow(context: Context, { awaiting }: Proposal, holder: NodeId): void {
  if (awaiting === undefined || awaiting.retries === 0 || context.isSuspected(holder)) return
  if (!context.leases.noteSlow(holder, context.now)) return
  context.trace.mark('lease_holder_too_slow')
  context.emit({ kind: 'slow', holder })
}

/** Asks each voter that listed a holder, again and again: it answers once the registration is over. */
function revokeAt(
  log: GroupLog,
  context: Context,
  proposal: Proposal,
  holders: readonly NodeId[],
): void {
  const { group, set } = log
  for (const holder of holders) {
    const { position } = proposal
    const message = { kind: 'revoke', group, epoch: set.epoch, position, holder } as const
    for (const voter of findListers(proposal.holders, holder)) {
      context.emit(reply(context, voter, message))
    }
  }
}
