/**
 * The ends of transactions that wait here: with a verdict for all who wait for one, or without. `submit.ts`
 * takes them in; of other attempts of the same intent one takes the place of an attempt that has ended.
 */
import { assert } from '../base/assert.ts'
import type { NodeId } from '../base/ids.ts'
import type { Verdict } from '../group/outcome.ts'
import type { Context } from './effect.ts'
import type { GroupLog, Pending } from './log.ts'

/**
 * Gives everybody who waits for this transaction its verdict. A conflict is of what this attempt has
 * read, and of no other: the next attempt takes its place.
 */
export function settle(log: GroupLog, context: Context, pending: Pending, verdict: Verdict): void {
  forget(log, pending)
  const { waiters, rivals } = pending
  for (const { node, request } of waiters) tell(log, context, node, request, verdict)
  if (verdict.kind === 'conflict') return promote(log, rivals)
  for (const rival of rivals) settle(log, context, rival, verdict)
}

/** It waits here no longer, and its caller hears nothing: other copies may yet take effect. */
export function giveUp(log: GroupLog, pending: Pending): void {
  forget(log, pending)
  promote(log, pending.rivals)
}

function promote(log: GroupLog, [next, ...others]: readonly Pending[]): void {
  if (next === undefined) return
  assert(!log.waiting.has(next.intent), 'TXN-5: an attempt takes the place of one that waits')
  next.rivals.push(...others)
  log.waiting.set(next.intent, next)
}

function forget(log: GroupLog, pending: Pending): void {
  log.waiting.delete(pending.intent)
  log.forwarded.delete(pending.intent)
  log.forwardIds.delete(pending.forwardId)
  log.waitingBytes -= pending.roomBytes
  assert(log.waitingBytes >= 0, 'queue: more room is given back than was taken')
}

export function tell(
  log: GroupLog,
  context: Context,
  node: NodeId,
  request: number,
  verdict: Verdict,
): void {
  if (node === context.node) {
    context.emit({ kind: 'verdict', request, verdict })
    return
  }
  const { group, set } = log
  const message = { kind: 'forward-reply', group, epoch: set.epoch, request, verdict } as const
  log.replies.push({ kind: 'send', to: node, message })
}
