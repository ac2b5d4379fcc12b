/**
 * The effect of an entry on a group: rows written, numbers drawn, outcomes recorded. Total and a function of
 * (state, entry) alone: every replica gets the same bytes or none (LOG-2).
 */
import { assert } from '../base/assert.ts'
import { latin1 } from '../base/bytes.ts'
import { decodeMove, movedText } from '../group/moved-row.ts'
import type { Entry } from './entry.ts'
import type { RecordedOutcome } from '../group/outcome.ts'
import type { GroupState, SessionState } from './state.ts'
import { fillSlots, type Transaction } from '../group/transaction.ts'

/** How often expired sessions are looked for, in positions. A constant: all replicas must agree. */
const sessionSweepPositions = 16

/** A row as an entry leaves it: all numbers are filled in. */
export interface RowWritten {
  readonly key: Uint8Array
  /** The key as latin1 text: overlay and watchers look it up so. */
  readonly text: string
  /** Absent: deleted. */
  readonly value: Uint8Array | undefined
  readonly isNew: boolean
}

export interface Applied {
  /** In order; a later write of a key wins. Keys are relative to the group. */
  readonly writes: readonly RowWritten[]
  /** One per transaction of the entry, in its order. */
  readonly outcomes: readonly RecordedOutcome[]
}

/** Moves `state` from position n - 1 to n, where `entry` is the entry at n. */
export function applyEntry(state: GroupState, entry: Entry): Applied {
  assert(entry.position === state.position + 1, 'LOG-1: applied out of order')
  assert(entry.timestamp > state.timestamp, 'MVCC-2: the timestamp did not rise')
  state.position = entry.position
  state.timestamp = entry.timestamp
  // Never back, whatever the next proposer's limits or clock say: what it permitted may be gone.
  state.horizon = Math.max(state.horizon, entry.horizon)
  assert(state.horizon <= state.timestamp, 'MVCC-1: the newest state is behind the horizon')
  state.nextLeader = entry.nextLeader
  state.movedTo = undefined
  // A no-op has time for it, and may have been proposed for it (`compose.ts`).
  const isNoOp = entry.transactions.length === 0
  if (isNoOp || state.position % sessionSweepPositions === 0) forgetExpired(state)
  const writes: RowWritten[] = []
  const outcomes = entry.transactions.map((one) => applyTransaction(state, one, writes))
  return { writes, outcomes }
}

function applyTransaction(
  state: GroupState,
  transaction: Transaction,
  writes: RowWritten[],
): RecordedOutcome {
  const session = ensureSession(state, transaction)
  assert(transaction.sequence >= session.floor, 'LOG-3: an intent below its session floor')
  assert(!session.outcomes.has(transaction.sequence), 'LOG-3: an intent takes effect twice')
  const outcome = decideEffect(state, transaction, writes)
  session.outcomes.set(transaction.sequence, outcome)
  session.expiresAt = Math.max(session.expiresAt, transaction.expiresAt)
  raiseFloor(session, transaction.floor)
  return outcome
}

function decideEffect(
  state: GroupState,
  transaction: Transaction,
  writes: RowWritten[],
): RecordedOutcome {
  if (state.timestamp > transaction.expiresAt) return { kind: 'expired' }
  const sequences = transaction.allocations.map((counter) => {
    const drawn = (state.counters.get(counter) ?? 0) + 1
    assert(Number.isSafeInteger(drawn), 'LOG-2: a counter of the group is used up')
    state.counters.set(counter, drawn)
    return drawn
  })
  for (const mutation of transaction.mutations) {
    const { key, value, isNew } = fillSlots(mutation, sequences)
    const text = latin1(key)
    if (text === movedText && value !== undefined) state.movedTo = decodeMove(value)
    writes.push({ key, text, value, isNew: isNew === true })
  }
  const { position, timestamp } = state
  return { kind: 'committed', position, timestamp, attempt: transaction.attempt, sequences }
}

function ensureSession(state: GroupState, transaction: Transaction): SessionState {
  const known = state.sessions.get(transaction.session)
  if (known !== undefined) return known
  const session: SessionState = { floor: 0, expiresAt: 0, outcomes: new Map() }
  state.sessions.set(transaction.session, session)
  return session
}

function raiseFloor(session: SessionState, floor: number): void {
  if (floor <= session.floor) return
  session.floor = floor
  for (const sequence of session.outcomes.keys()) {
    if (sequence < floor) session.outcomes.delete(sequence)
  }
}

function forgetExpired(state: GroupState): void {
  for (const [id, session] of state.sessions) {
    if (session.expiresAt < state.timestamp) state.sessions.delete(id)
  }
}
