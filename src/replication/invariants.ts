/** What must hold of a group's log after every step, in one place. Cheap enough to run always. */
import { assert } from '../base/assert.ts'
import type { Context } from './effect.ts'
import { never, type GroupLog } from './log.ts'

export function checkLog(log: GroupLog, context: Context): void {
  const applied = log.state.position
  for (const position of log.records.keys()) {
    assert(position > applied, 'LOG-1: an acceptor record outlives its application in memory')
  }
  for (const [position, decision] of log.decisions) {
    assert(position > applied, 'LOG-1: a decision outlives its application')
    const mayWait = position > applied + 1 || log.applyDeadline !== never
    assert(mayWait || decision.value === undefined, 'LOG-1: a decision waits in vain')
  }
  const { entries } = log.stride
  assert(entries <= context.limits.catchUpEntriesMax, 'LIVE-7: a step applies beyond its bound')
  assert(log.chase === undefined || log.chase.through > applied, 'LOG-5: a chase has no end')
  assert(
    log.waitingBytes > 0 === log.queue.size + log.away.size > 0,
    'queue: the room that waiting transactions take is miscounted',
  )
  assert(log.replies.length === 0, 'queue: a verdict stays behind until the next step')
  checkProposal(log, context)
}

function checkProposal(log: GroupLog, context: Context): void {
  const { proposal, state } = log
  if (proposal === undefined) return
  assert(proposal.position === state.position + 1, 'PAX-5: a proposal beside the open position')
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
