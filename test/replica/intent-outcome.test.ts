import { expect, test } from 'vitest'
import { findRecorded } from '../../src/replica/intent-outcome.ts'
import { emptyState, type GroupState, type SessionState } from '../../src/replication/state.ts'

/** At position 9, at 500. */
function stateWith(session?: SessionState): GroupState {
  const state = emptyState()
  state.position = 9
  state.timestamp = 500
  if (session !== undefined) state.sessions.set('s', session)
  return state
}

const committed = {
  kind: 'committed',
  position: 8,
  timestamp: 400,
  attempt: 1,
  sequences: [],
} as const

function askedFor(sequence: number, expiresAt: number | undefined, session?: SessionState) {
  const name = { session: 's', sequence, ...(expiresAt === undefined ? {} : { expiresAt }) }
  return findRecorded(stateWith(session), name).kind
}

test('LOG-3: an intent counts as not in effect only before its time has passed', () => {
  const session = { floor: 2, expiresAt: 900, outcomes: new Map([[3, committed]]) }
  expect(askedFor(3, 400, session)).toBe('committed')
  expect(askedFor(3, undefined, session)).toBe('committed')
  expect(askedFor(2, 500, session)).toBe('none')
  // Its session may have been forgotten since, and begun anew with sequence 3.
  expect(askedFor(2, 499, session)).toBe('forgotten')
  expect(askedFor(2, undefined, session)).toBe('forgotten')
  expect(askedFor(1, 900, session)).toBe('forgotten')
  expect(askedFor(1, 900)).toBe('none')
  expect(askedFor(1, 499)).toBe('forgotten')
  expect(askedFor(1, undefined)).toBe('forgotten')
})
