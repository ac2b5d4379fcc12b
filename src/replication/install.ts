/**
 * Taking up a snapshot of the group: the data store has put the rows and the state of a position, which a peer has
 * durably applied, in the place of its own, and this replica goes on from there.
 *
 * SNAP-1  Only a higher position takes the place of a lower one. Promises, acceptances and decisions above it stay.
 * HEAL-5  One of the same position does so where the rows of this replica are wrong.
 *
 * It is what applying the entries up to there would have made of the replica. Not known are these entries
 * themselves: nothing that was read before can be validated (TXN-1), and no peer gets them from here.
 */
import { assert } from '../base/assert.ts'
import { findOutcome } from './compose.ts'
import { jitter, type Context } from './effect.ts'
import { highestKnown, noDeadline, type GroupLog } from './log.ts'
import { settle } from './settle.ts'
import { becomeState, type GroupState } from './state.ts'

/** `state`: of the snapshot's position; this replica keeps it. `isRepair`: the rows of this replica were wrong. */
export function install(
  log: GroupLog,
  context: Context,
  { state, isRepair = false }: { readonly state: GroupState; readonly isRepair?: boolean },
): void {
  const { position, timestamp, horizon } = state
  const isHigher = position > log.state.position
  const isSame = isRepair && position === log.state.position
  assert(isHigher || isSame, 'SNAP-1: a snapshot takes a replica back')
  assert(isHigher || isRepair, 'HEAL-5: a replica whose rows are right is put where it is')
  assert(isSame || timestamp > log.state.timestamp, 'MVCC-2: the timestamp did not rise')
  assert(horizon >= log.state.horizon, 'MVCC-1: the horizon went back')
  becomeState(log.state, state)
  for (const known of log.records.keys()) if (known <= position) log.records.delete(known)
  for (const known of log.decisions.keys()) if (known <= position) log.decisions.delete(known)
  log.window.restart(position)
  log.commits.length = 0
  log.commits.push(timestamp)
  log.writers.length = 0
  log.appliedBallot = undefined
  log.highestRound = 0
  if (log.proposal !== undefined && log.proposal.position <= position) log.proposal = undefined
  const isUndecided = highestKnown(log) > position
  const delay = jitter(context, context.limits.sweepMs, position, 0)
  log.sweepDeadline = isUndecided ? context.now + delay : noDeadline
  answer(log, context)
}

/** Transactions that wait here may have taken effect in the entries that this replica has not seen. */
function answer(log: GroupLog, context: Context): void {
  for (const pending of [...log.waiting.values(), ...log.forwarded.values()]) {
    const { session, sequence } = pending.transaction
    const outcome = findOutcome(log, session, sequence)
    if (outcome !== undefined) settle(log, context, pending, outcome)
  }
}
