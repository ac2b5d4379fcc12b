/** A node's part in the present epoch of a group, and the messages that are of one epoch alone (`epoch.ts`). */
import type { Context } from './effect.ts'
import type { GroupLog } from './log.ts'
import type { GroupMessage, Message } from './message.ts'

/** By these nodes ask for, give or end a vote, a part in a read round or a registration. */
const kinds: ReadonlySet<Message['kind']> = new Set([
  ...(['prepare', 'promised', 'accept', 'accepted', 'refused', 'faulty'] as const),
  ...(['query', 'highest', 'invalidated', 'revoke', 'revoked'] as const),
])

/** Whether the message asks for, gives or ends a vote, a part in a read round or a registration. */
export function isOfOneEpoch({ kind }: { readonly kind: Message['kind'] }): boolean {
  return kinds.has(kind)
}

/** MOVE-1: whether the group may take the message in its present epoch. Its ballots are of that epoch, too. */
export function isOfEpoch({ set, standing }: GroupLog, message: GroupMessage): boolean {
  const { kind, epoch } = message
  if (!kinds.has(kind)) return true
  if ('ballot' in message && message.ballot.epoch !== epoch) return false
  if (message.kind === 'refused' && message.promised.epoch !== epoch) return false
  // RDR-1: no voter asks a reader for a vote. A reader takes the answers to its own read rounds.
  if (standing === 'reading' && kind !== 'highest') return false
  // A store that is to get its vote has the epoch of the others, and no part in it.
  return epoch === set.epoch && standing !== 'sealed'
}

/**
 * Whether this node may propose at the open position: one that has sealed the epoch may not, nor may a reader (RDR-2). Behind the
 * last entry of its set a group has no open position there (MOVE-9), and below the first one it has none (MOVE-10).
 */
export function isProposer(log: Pick<GroupLog, 'standing' | 'state' | 'home'>): boolean {
  if (hasLeft(log) || lacksBase(log)) return false
  return log.standing === 'voting' || log.standing === 'before-gate'
}

/**
 * MOVE-10: whether the group began in another set, and this node has nothing of it yet. It takes up what peers have of it, and has no
 * part in its log before that: at the positions that the other set chose, this one may choose nothing.
 */
export function lacksBase({ home, state }: Pick<GroupLog, 'state' | 'home'>): boolean {
  return home.isGuest && state.position === 0
}

/**
 * MOVE-10: whether this node gives no vote at the position yet. Of a group that may move it has to have applied all below: the group may
 * have left the set and come back behind the position that this node knows of. A vote says that its node has what the other set chose,
 * so a majority has that once an entry is chosen here. Behind the last entry of its set a proposer that asks is wrong. A proposer of
 * the set has all below the position that it asks for. This node takes that up first, and hears of the rest again.
 */
export function isBeyondBase(log: Pick<GroupLog, 'state' | 'home'>, position: number): boolean {
  const { home, state } = log
  if (lacksBase(log) || (hasLeft(log) && position > state.position)) return true
  return home.mayMove && position > state.position + 1
}

/** MOVE-10: whether the last entry that is applied here was chosen in another set: peers of this one may have nothing of the group. */
export function hasJustCome({ home, state }: Pick<GroupLog, 'state' | 'home'>): boolean {
  return state.movedTo !== undefined && state.movedTo === home.set
}

/** MOVE-9: whether the last entry of this set is applied, so that the log goes on in another one. */
export function hasLeft({ home, state }: Pick<GroupLog, 'state' | 'home'>): boolean {
  return state.movedTo !== undefined && state.movedTo !== home.set
}

/** Whether this node votes in the epoch, answers read rounds of it, and counts itself in its own. */
export function hasVote(log: GroupLog, { isRestored }: Context): boolean {
  return log.standing === 'voting' && isRestored && !lacksBase(log)
}
