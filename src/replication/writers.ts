/**
 * Leadership follows the writers: where most of a group's transactions come in
 * at another node, the proposer names that node the leader of the next position, and a write there
 * needs to be forwarded no more.
 *
 * Every leader counts anew. So leadership moves at most once in `writersRemembered / 2`
 * transactions, also where two nodes write about as much.
 */
import { assert } from '../base/assert.ts'
import type { NodeId } from '../base/ids.ts'
import type { Context } from './effect.ts'
import type { Leader } from './entry.ts'
import type { GroupLog, Waiter } from './log.ts'

/** Transactions looked at; more than half of them have to come from one node. */
export const writersRemembered = 32

/** A transaction has come to its end: `waiter` is where it came in. */
export function noteWriter(log: GroupLog, { node, incarnation }: Waiter): void {
  log.writers.push({ node, incarnation })
  if (log.writers.length > writersRemembered) log.writers.shift()
}

/** The leader of the position after the entry that is composed now. */
export function nextLeaderFor(log: GroupLog, context: Context): Leader {
  const { node, incarnation } = context
  const writer = mostOfOthers(log.writers, node)
  if (
    writer === undefined ||
    context.isSuspected(writer.node) ||
    !log.set.voters.includes(writer.node)
  ) {
    return { node, incarnation }
  }
  assert(writer.node !== node, 'PAX-6: a leader hands the lead to itself')
  context.trace.mark('leader_follows_writers')
  return writer
}

/** The last one of those that are more than half, if that is another node than this one. */
function mostOfOthers(writers: readonly Leader[], own: NodeId): Leader | undefined {
  // Asked at every proposal: where this node has enough of them, that is all there is to know.
  let others = 0
  for (const { node } of writers) if (node !== own) others += 1
  if (others <= writersRemembered / 2) return undefined
  const counts = new Map<string, number>()
  for (const { node } of writers) counts.set(node, (counts.get(node) ?? 0) + 1)
  return writers.findLast(
    ({ node }) => node !== own && (counts.get(node) ?? 0) > writersRemembered / 2,
  )
}
