/**
 * The outcome of an intent as a group's state tells it (LOG-3). Outcomes at or above a session's floor are
 * kept as long as any of its intents may take effect. After that the session may be forgotten, and begin anew
 * with a later intent: then it is remembered, and knows nothing of the earlier one. So only before the
 * intent's time has passed does no outcome mean that it is not in effect.
 */
import { assert } from '../base/assert.ts'
import type { GroupState } from '../replication/state.ts'
import type { IntentName, IntentOutcome } from '../group/replica-port.ts'

export function findRecorded(state: GroupState, intent: IntentName): IntentOutcome {
  const { position, timestamp } = state
  assert(timestamp > 0 === position > 0, 'MVCC-2: a state without a timestamp')
  const { sequence, expiresAt } = intent
  const session = state.sessions.get(intent.session)
  if (session !== undefined) {
    if (sequence < session.floor) return { kind: 'forgotten', position, timestamp }
    const outcome = session.outcomes.get(sequence)
    if (outcome !== undefined) return outcome
  }
  const isUndecided = expiresAt !== undefined && timestamp <= expiresAt
  return { kind: isUndecided ? 'none' : 'forgotten', position, timestamp }
}
