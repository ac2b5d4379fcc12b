/**
 * A group's replicated state beside its rows: how far its log is applied, who leads next, its
 * counters, and what became of each session's intents. A function of the log alone: replicas that
 * applied the same position hold equal bytes (LOG-2).
 */
import { pack, unpack } from '../base/pack.ts'
import { compareText } from '../base/bytes.ts'
import { isNodeId, type Position, type Timestamp } from '../base/ids.ts'
import type { Leader } from './entry.ts'

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
  /** Named by the entry at `position`; absent before position 1. */
  nextLeader: Leader | undefined
  /** The last number drawn from each counter. */
  readonly counters: Map<number, number>
  readonly sessions: Map<string, SessionState>
}

const stateFormat = 1

export function emptyState(): GroupState {
  return {
    position: 0,
    timestamp: 0,
    nextLeader: undefined,
    counters: new Map(),
    sessions: new Map(),
  }
}

/** Canonical bytes: equal states have equal bytes, whatever order things happened in. */
export function encodeState(state: GroupState): Uint8Array {
  const counters = [...state.counters].sort(([a], [b]) => a - b)
  const sessions = [...state.sessions].sort(([a], [b]) => compareText(a, b))
  return pack([
    stateFormat,
    state.position,
    state.timestamp,
    state.nextLeader?.node,
    state.nextLeader?.incarnation,
    counters,
    sessions.map(([id, session]) => [
      id,
      session.floor,
      session.expiresAt,
      [...session.outcomes]
        .sort(([a], [b]) => a - b)
        .map(([sequence, outcome]) => encodeOutcome(sequence, outcome)),
    ]),
  ])
}

function encodeOutcome(sequence: number, outcome: RecordedOutcome): (number | number[])[] {
  if (outcome.kind === 'expired') return [sequence]
  const { position, timestamp, attempt, sequences } = outcome
  return [sequence, position, timestamp, attempt, [...sequences]]
}

/** The state, or undefined when the bytes are not one of a known format. */
export function decodeState(bytes: Uint8Array): GroupState | undefined {
  const fields = unpack(bytes)
  if (!Array.isArray(fields) || fields.length !== 7 || fields[0] !== stateFormat) return undefined
  const [, position, timestamp, node, incarnation, counters, sessions]: unknown[] = fields
  if (typeof position !== 'number' || typeof timestamp !== 'number') return undefined
  if (!Array.isArray(counters) || !Array.isArray(sessions)) return undefined
  const state = emptyState()
  state.position = position
  state.timestamp = timestamp
  if (typeof node === 'string' && isNodeId(node) && typeof incarnation === 'number') {
    state.nextLeader = { node, incarnation }
  }
  for (const [counter, last] of pairsOf(counters)) {
    if (typeof counter !== 'number' || typeof last !== 'number') return undefined
    state.counters.set(counter, last)
  }
  for (const row of sessions) {
    if (!Array.isArray(row) || !decodeSession(row, state)) return undefined
  }
  return state
}

function pairsOf(rows: readonly unknown[]): (readonly [unknown, unknown])[] {
  return rows.map((row) => (Array.isArray(row) ? [row[0], row[1]] : [undefined, undefined]))
}

function decodeSession(row: readonly unknown[], state: GroupState): boolean {
  const [id, floor, expiresAt, outcomes] = row
  if (typeof id !== 'string' || typeof floor !== 'number') return false
  if (typeof expiresAt !== 'number' || !Array.isArray(outcomes)) return false
  const session: SessionState = { floor, expiresAt, outcomes: new Map() }
  for (const outcome of outcomes) {
    if (!Array.isArray(outcome)) return false
    const [sequence, position, timestamp, attempt, sequences]: unknown[] = outcome
    if (typeof sequence !== 'number') return false
    if (position === undefined) {
      session.outcomes.set(sequence, { kind: 'expired' })
      continue
    }
    if (typeof position !== 'number' || typeof timestamp !== 'number') return false
    if (typeof attempt !== 'number' || !isNumbers(sequences)) return false
    session.outcomes.set(sequence, { kind: 'committed', position, timestamp, attempt, sequences })
  }
  state.sessions.set(id, session)
  return true
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'number')
}
