/**
 * What a group's state tells of an intent (LOG-3). Outcomes at or above a session's floor are kept as
 * long as any of its intents may take effect; so in a session that is remembered, no outcome means
 * not in effect.
 */
import type { GroupState } from '../replication/state.ts'
import type { IntentName, IntentOutcome } from './local-replica.ts'

export function recordedOf(state: GroupState, intent: IntentName): IntentOutcome {
  const { position, timestamp } = state
  const { sequence, expiresAt } = intent
  const session = state.sessions.get(intent.session)
  if (session === undefined) {
    // Had it taken effect, its session would be remembered until then.
    const isUndecided = expiresAt !== undefined && timestamp <= expiresAt
    return { kind: isUndecided ? 'none' : 'forgotten', position, timestamp }
  }
  if (sequence < session.floor) return { kind: 'forgotten', position, timestamp }
  return session.outcomes.get(sequence) ?? { kind: 'none', position, timestamp }
}
