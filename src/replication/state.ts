/**
 * A group's replicated state beside its rows: how far its log is applied and its past is readable, who
 * leads next, its counters, and what became of each session's intents. A function of the log alone: replicas that
 * applied the same position hold equal bytes (LOG-2).
 */
import type { RecordedOutcome } from '../group/outcome.ts'
import { present } from '../base/assert.ts'
import { readAll, type ByteReader } from '../base/byte-reader.ts'
import { ByteWriter } from '../base/byte-writer.ts'
import { compareText } from '../base/bytes.ts'
import { isNodeId, type Position, type Timestamp } from '../base/ids.ts'
import { isPlaceName } from '../base/placed-group.ts'
import type { Leader } from './entry.ts'

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
  /** The name of the set in which the log goes on behind `position`; undefined: in the same one. */
  movedTo: string | undefined
  /** The last number drawn from each counter. */
  readonly counters: Map<number, number>
  readonly sessions: Map<string, SessionState>
}

const stateFormat = 3
/** The same of a group that has left its set. */
const movedFormat = 4
const outcomeKinds = { expired: 0, committed: 1 } as const
const counterBytes = 2
const sessionBytesMin = 11
const outcomeBytesMin = 2

export function emptyState(): GroupState {
  return {
    position: 0,
    timestamp: 0,
    horizon: 0,
    nextLeader: undefined,
    movedTo: undefined,
    counters: new Map(),
    sessions: new Map(),
  }
}

/** `state` becomes what `other` is, which its owner gives away. */
export function becomeState(state: GroupState, other: GroupState): void {
  const { position, timestamp, horizon, nextLeader, movedTo, counters, sessions } = other
  Object.assign(state, { position, timestamp, horizon, nextLeader, movedTo })
  replaceAll(state.counters, counters)
  replaceAll(state.sessions, sessions)
}

function replaceAll<Key, Value>(map: Map<Key, Value>, other: ReadonlyMap<Key, Value>): void {
  map.clear()
  for (const [key, value] of other) map.set(key, value)
}

const writer = new ByteWriter()

/**
 * Canonical bytes: equal states have equal bytes, whatever order things happened in.
 *
 * format 3 · position · timestamp, horizon 8 each · the next leader's incarnation, its node; zero and
 * empty for none · counters: how many, each: number, last · sessions: how many, each: name, floor,
 * expiry 8, outcomes: how many, each: sequence, kind 1 · if committed: position, timestamp 8, attempt,
 * numbers: how many, each. Numbers without a length are counts (`ByteWriter`). Format 4: behind the next leader, the set that the
 * log goes on in.
 */
export function encodeState(state: GroupState): Uint8Array {
  const { nextLeader, movedTo, counters, sessions } = state
  writer.begin(movedTo === undefined ? stateFormat : movedFormat)
  writer.count(state.position)
  writer.wide(state.timestamp)
  writer.wide(state.horizon)
  writer.count(nextLeader?.incarnation ?? 0)
  writer.text(nextLeader?.node ?? '')
  if (movedTo !== undefined) writer.text(movedTo)
  writer.count(counters.size)
  inOrder(counters, byNumber, writeCounter)
  writer.count(sessions.size)
  inOrder(sessions, compareText, writeSession)
  return writer.take()
}

/** Most groups have one session with one outcome, and this runs for each that a batch writes. */
function inOrder<Key, Value>(
  map: ReadonlyMap<Key, Value>,
  compare: (a: Key, b: Key) => number,
  write: (key: Key, value: Value) => void,
): void {
  if (map.size <= 1) {
    for (const [key, value] of map) write(key, value)
    return
  }
  for (const key of [...map.keys()].sort(compare)) {
    write(key, present(map.get(key), 'LOG-2: a key of the state is in it'))
  }
}

function byNumber(a: number, b: number): number {
  return a - b
}

function writeCounter(counter: number, last: number): void {
  writer.count(counter)
  writer.count(last)
}

function writeSession(id: string, { floor, expiresAt, outcomes }: SessionState): void {
  writer.text(id)
  writer.count(floor)
  writer.wide(expiresAt)
  writer.count(outcomes.size)
  inOrder(outcomes, byNumber, writeOutcome)
}

function writeOutcome(sequence: number, outcome: RecordedOutcome): void {
  writer.count(sequence)
  writer.uint8(outcomeKinds[outcome.kind])
  if (outcome.kind === 'expired') return
  writer.count(outcome.position)
  writer.wide(outcome.timestamp)
  writer.count(outcome.attempt)
  writer.count(outcome.sequences.length)
  for (const number of outcome.sequences) writer.count(number)
}

/** The state, or undefined when the bytes are not one of a known format. */
export function decodeState(bytes: Uint8Array): GroupState | undefined {
  return readAll(bytes, readState)
}

function readState(reader: ByteReader): GroupState {
  const format = reader.uint8()
  if (format !== stateFormat && format !== movedFormat) reader.refuse()
  const position = reader.count()
  const timestamp = reader.wide()
  const horizon = reader.wide()
  const nextLeader = readLeader(reader)
  // The entry at each position names a leader, so exactly the state before the first has none.
  const isWhole = horizon <= timestamp && (nextLeader === undefined) === (position === 0)
  if (!isWhole) reader.refuse()
  const movedTo = format === movedFormat ? readSetName(reader) : undefined
  const counters = new Map<number, number>()
  for (let left = reader.length(counterBytes); left > 0; left--) {
    setOnce(reader, counters, reader.count(), reader.count())
  }
  const sessions = new Map<string, SessionState>()
  for (let left = reader.length(sessionBytesMin); left > 0; left--) {
    setOnce(reader, sessions, reader.text(), readSession(reader))
  }
  return { position, timestamp, horizon, nextLeader, movedTo, counters, sessions }
}

function setOnce<Key, Value>(
  reader: ByteReader,
  map: Map<Key, Value>,
  key: Key,
  value: Value,
): void {
  if (map.has(key)) reader.refuse()
  map.set(key, value)
}

function readSetName(reader: ByteReader): string {
  const name = reader.text()
  return isPlaceName(name) ? name : reader.refuse()
}

function readLeader(reader: ByteReader): Leader | undefined {
  const incarnation = reader.count()
  const node = reader.text()
  if (node === '' && incarnation === 0) return undefined
  return isNodeId(node) ? { node, incarnation } : reader.refuse()
}

function readSession(reader: ByteReader): SessionState {
  const floor = reader.count()
  const expiresAt = reader.wide()
  const outcomes = new Map<number, RecordedOutcome>()
  for (let left = reader.length(outcomeBytesMin); left > 0; left--) {
    setOnce(reader, outcomes, reader.count(), readOutcome(reader))
  }
  return { floor, expiresAt, outcomes }
}

function readOutcome(reader: ByteReader): RecordedOutcome {
  const kind = reader.uint8()
  if (kind === outcomeKinds.expired) return { kind: 'expired' }
  if (kind !== outcomeKinds.committed) reader.refuse()
  const position = reader.count()
  const timestamp = reader.wide()
  const attempt = reader.count()
  const sequences: number[] = []
  for (let left = reader.length(1); left > 0; left--) sequences.push(reader.count())
  return { kind: 'committed', position, timestamp, attempt, sequences }
}
