/** A node's part in the present epoch of a group, and the messages that are of one epoch alone (`epoch.ts`). */
import type { Context } from './effect.ts'
import type { GroupLog } from './log.ts'
import type { GroupMessage } from './message.ts'

/** By these nodes ask for, give or end a vote, a part in a read round or a registration. */
const ofOneEpoch: ReadonlySet<GroupMessage['kind']> = new Set([
  ...(['prepare', 'promised', 'accept', 'accepted', 'refused', 'faulty'] as const),
  ...(['query', 'highest', 'invalidated', 'revoke', 'revoked'] as const),
])

/** MOVE-1: whether the group may take the message in its present epoch. */
export function isOfEpoch({ set }: GroupLog, { kind, epoch }: GroupMessage): boolean {
  return epoch === set.epoch || !ofOneEpoch.has(kind)
}

/** Whether this node votes in the epoch, answers read rounds of it, and counts itself in its own. */
export function hasVote({ standing }: GroupLog, { isRestored }: Context): boolean {
  return standing === 'voting' && isRestored
}
