/**
 * A group's replicated state beside its rows: how far its log is applied and its past is readable, who
 * leads next, its counters, and what became of each session's intents. A function of the log alone: replicas that
 * applied the same position hold equal bytes (LOG-2).
 */
import { present } from '../base/assert.ts'
import { pack, unpack, type Packable } from '../base/pack.ts'
import { compareText } from '../base/bytes.ts'
import { isNodeId, type Position, type Timestamp } from '../base/ids.ts'
import type { Leader } from './entry.ts'
import { isCount } from './transaction.ts'

/** What an intent came to. Kept until its session's floor passes it, or the session expires. */
export type RecordedOutcome =
  | {
      readonly kind: 'committed'
      readonly position: Position
      readonly timestamp: Timestamp
      readonly attempt: number
      readonly sequences: readonly number[]
    }
  | { readonly kind: 'expired' }

export interface SessionState {
  /** Sequences below were settled at the client; a late copy of one is refused, never run again. */
  floor: number
  /** The latest expiry of any of its intents: the log time after which it may be forgotten. */
  expiresAt: Timestamp
  readonly outcomes: Map<number, RecordedOutcome>
}

/** Owned and changed by `apply` only. */
export interface GroupState {
  position: Position
  timestamp: Timestamp
  /** The highest that an applied entry carried: the group's past is readable from here on. */
  horizon: Timestamp
  /** Named by the entry at `position`; absent before position 1. */
  nextLeader: Leader | undefined
  /** The last number drawn from each counter. */
  readonly counters: Map<number, number>
  readonly sessions: Map<string, SessionState>
}

const stateFormat = 2

export function emptyState(): GroupState {
  return {
    position: 0,
    timestamp: 0,
    horizon: 0,
    nextLeader: undefined,
    counters: new Map(),
    sessions: new Map(),
  }
}

/** Canonical bytes: equal states have equal bytes, whatever order things happened in. */
export function encodeState(state: GroupState): Uint8Array {
  return pack([
    stateFormat,
    state.position,
    state.timestamp,
    state.horizon,
    state.nextLeader?.node,
    state.nextLeader?.incarnation,
    inOrder(
      state.counters,
      (a, b) => a - b,
      (counter, last) => [counter, last],
    ),
    inOrder(state.sessions, compareText, encodeSession),
  ])
}

/** Most groups have one session with one outcome, and this runs for each that a batch writes. */
function inOrder<Key, Value>(
  map: ReadonlyMap<Key, Value>,
  compare: (a: Key, b: Key) => number,
  encode: (key: Key, value: Value) => Packable,
): Packable[] {
  const keys = [...map.keys()]
  if (keys.length > 1) keys.sort(compare)
  return keys.map((key) => encode(key, present(map.get(key), 'LOG-2: a key of the state is in it')))
}

function encodeSession(id: string, { floor, expiresAt, outcomes }: SessionState): Packable {
  return [id, floor, expiresAt, inOrder(outcomes, (a, b) => a - b, encodeOutcome)]
}

function encodeOutcome(sequence: number, outcome: RecordedOutcome): Packable {
  if (outcome.kind === 'expired') return [sequence]
  const { position, timestamp, attempt, sequences } = outcome
  return [sequence, position, timestamp, attempt, sequences]
}

/** The state, or undefined when the bytes are not one of a known format. */
export function decodeState(bytes: Uint8Array): GroupState | undefined {
  const fields = unpack(bytes)
  if (!Array.isArray(fields) || fields.length !== 8 || fields[0] !== stateFormat) return undefined
  const [, position, timestamp, horizon, node, incarnation, counters, sessions]: unknown[] = fields
  if (!isCount(position) || !isCount(timestamp)) return undefined
  if (!isCount(horizon) || horizon > timestamp) return undefined
  if (!Array.isArray(counters) || !Array.isArray(sessions)) return undefined
  const nextLeader = decodeLeader(node, incarnation)
  // The entry at each position names a leader, so exactly the state before the first has none.
  if (nextLeader === 'malformed' || (nextLeader === undefined) !== (position === 0))
    return undefined
  const state: GroupState = { ...emptyState(), position, timestamp, horizon, nextLeader }
  const isWhole =
    counters.every((row) => decodeCounter(row, state)) &&
    sessions.every((row) => decodeSession(row, state))
  return isWhole ? state : undefined
}

function decodeLeader(node: unknown, incarnation: unknown): Leader | undefined | 'malformed' {
  if (node === null && incarnation === null) return undefined
  if (typeof node !== 'string' || !isNodeId(node)) return 'malformed'
  return isCount(incarnation) ? { node, incarnation } : 'malformed'
}

function decodeCounter(row: unknown, state: GroupState): boolean {
  if (!Array.isArray(row) || row.length !== 2) return false
  const [counter, last]: unknown[] = row
  if (!isCount(counter) || !isCount(last) || state.counters.has(counter)) return false
  state.counters.set(counter, last)
  return true
}

function decodeSession(row: unknown, state: GroupState): boolean {
  if (!Array.isArray(row) || row.length !== 4) return false
  const [id, floor, expiresAt, outcomes]: unknown[] = row
  if (typeof id !== 'string' || !isCount(floor) || !isCount(expiresAt)) return false
  if (!Array.isArray(outcomes) || state.sessions.has(id)) return false
  const session: SessionState = { floor, expiresAt, outcomes: new Map() }
  state.sessions.set(id, session)
  return outcomes.every((outcome) => decodeOutcome(outcome, session))
}

function decodeOutcome(row: unknown, session: SessionState): boolean {
  if (!Array.isArray(row) || (row.length !== 1 && row.length !== 5)) return false
  const [sequence, position, timestamp, attempt, sequences]: unknown[] = row
  if (!isCount(sequence) || session.outcomes.has(sequence)) return false
  if (row.length === 1) {
    session.outcomes.set(sequence, { kind: 'expired' })
    return true
  }
  if (!isCount(position) || !isCount(timestamp) || !isCount(attempt)) return false
  if (!Array.isArray(sequences) || !sequences.every(isCount)) return false
  session.outcomes.set(sequence, { kind: 'committed', position, timestamp, attempt, sequences })
  return true
}
