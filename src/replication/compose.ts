/**
 * Making an entry: which of the waiting transactions share the open position (combination), which
 * wait for the next one (promotion), and which get a verdict without being logged
 * (combination and promotion: Paxos-CP).
 *
 * TXN-1, TXN-2  A transaction is in an entry only where every key and every range it has read, absent
 *               rows included, is as it was at its read position, after those before it in the entry.
 */
import { assert } from '../base/assert.ts'
import type { Position, Timestamp } from '../base/ids.ts'
import type { Context } from './effect.ts'
import { encodeEntry, entryHeadBytesMax, transactionHeadBytesMax } from './entry.ts'
import { horizonFor } from './horizon.ts'
import { EntryWrites } from './entry-writes.ts'
import { giveUp, settle } from './settle.ts'
import { noDeadline, type GroupLog, type Pending } from './log.ts'
import type { Verdict } from '../group/outcome.ts'
import { nextLeaderFor } from './writers.ts'

export type Validation =
  | { readonly kind: 'compatible' }
  /** Its turn is a later position: it met a write of this entry, or read ahead of this replica. */
  | { readonly kind: 'later' }
  | { readonly kind: 'final'; readonly verdict: Verdict }
  /** It has waited long enough. Its caller hears nothing: a copy may still take effect elsewhere. */
  | { readonly kind: 'given up' }

/** An entry in the making. */
interface Draft {
  readonly timestamp: Timestamp
  readonly chosen: Pending[]
  readonly writes: EntryWrites
  /** Floors that the entry's transactions so far raise, by session. */
  readonly floors: Map<string, number>
  /** Sessions that the group's state does not know yet. */
  newSessions: number
  /** The most bytes that the entry so far takes up, encoded: peers refuse a longer value. */
  bytes: number
  /** Whether an entry at this timestamp makes room; not known before a transaction waits for some. */
  makesRoom: boolean | undefined
}

/** The open position's entry, encoded; undefined when nothing is to be proposed. */
export function composeEntry(
  log: GroupLog,
  context: Context,
  options: { readonly orNoOp: boolean } = { orNoOp: false },
): Uint8Array | undefined {
  const { state } = log
  if (context.stamp < context.wall) context.trace.mark('stamped_by_clocks_of_others')
  if (context.stamp > context.wall) context.trace.mark('stamped_ahead_of_own_clock')
  const draft = newDraft(Math.max(state.timestamp + 1, context.stamp))
  if (context.mayPropose) selectCompatible(log, context, draft)
  const { timestamp, chosen, makesRoom } = draft
  if (chosen.length === 0 && !options.orNoOp && makesRoom !== true) return undefined
  if (chosen.length === 0) context.trace.mark('noop_proposed')
  if (chosen.length > 1) context.trace.mark('transactions_combined')
  return encodeEntry({
    position: state.position + 1,
    timestamp,
    horizon: horizonFor(log, timestamp, context.limits.historyMs),
    nextLeader: nextLeaderFor(log, context),
    transactions: chosen.map((pending) => pending.bytes),
  })
}

function newDraft(timestamp: Timestamp): Draft {
  return {
    timestamp,
    chosen: [],
    writes: new EntryWrites(),
    floors: new Map(),
    newSessions: 0,
    bytes: entryHeadBytesMax,
    makesRoom: undefined,
  }
}

function selectCompatible(log: GroupLog, context: Context, draft: Draft): void {
  const { limits } = context
  const { chosen, floors, writes } = draft
  for (const pending of log.waiting.values()) {
    if (chosen.length >= limits.entryTransactionsMax) break
    const bytes = transactionHeadBytesMax + pending.bytes.length
    if (chosen.length > 0 && draft.bytes + bytes > limits.entryBytesMax) break
    const validation = validate(log, context, pending, draft)
    if (validation.kind === 'final') settle(log, context, pending, validation.verdict)
    if (validation.kind === 'given up') giveUp(log, pending)
    if (validation.kind !== 'compatible') continue
    const { session, sequence, floor, mutations } = pending.transaction
    // Settled, as its client says with a later one of this entry: next time it is `expired`.
    if (sequence < (floors.get(session) ?? 0)) continue
    if (!floors.has(session) && !log.state.sessions.has(session)) draft.newSessions += 1
    floors.set(session, Math.max(floor, floors.get(session) ?? 0))
    assert(pending.proposedAt <= log.state.position + 1, 'LOG-1: proposed beyond the open position')
    pending.proposedAt = log.state.position + 1
    chosen.push(pending)
    draft.bytes += bytes
    writes.add(mutations)
  }
}

function validate(log: GroupLog, context: Context, pending: Pending, draft: Draft): Validation {
  const { state, window } = log
  const { transaction, readPosition, reads, ranges } = pending
  const known = findOutcome(log, transaction.session, transaction.sequence)
  if (known !== undefined) return { kind: 'final', verdict: known }
  // Only what is applied is final: at the open position another proposer, whose clock runs behind,
  // may still get it in. One that expires just now goes into the entry and is recorded as expired.
  if (state.timestamp > transaction.expiresAt)
    return { kind: 'final', verdict: { kind: 'expired' } }
  const roomless = findRoom(log, context, pending, draft)
  if (roomless !== undefined) return roomless
  if (readPosition > state.position) return { kind: 'later' }
  const conflict = window.conflict(readPosition, reads, ranges, state.position)
  if (conflict !== undefined) {
    context.trace.mark('conflict')
    const verdict: Verdict = { kind: 'conflict', ...conflict }
    if (pending.forwards > 0 && isOfOneCopy(verdict)) return { kind: 'given up' }
    return { kind: 'final', verdict }
  }
  if (draft.writes.meets(reads, ranges)) return { kind: 'later' }
  return { kind: 'compatible' }
}

/**
 * The verdict on a transaction whose outcome the group has no room to remember; undefined where it has.
 * Sessions leave with log time, which stands still while all are refused: an entry is made for it.
 */
function findRoom(
  log: GroupLog,
  context: Context,
  pending: Pending,
  draft: Draft,
): Validation | undefined {
  const { sessions } = log.state
  const { groupSessionsMax, sessionOutcomesMax, roomWaitMs } = context.limits
  const { session } = pending.transaction
  const known = sessions.get(session)
  if (known !== undefined) {
    if (known.outcomes.size < sessionOutcomesMax) return undefined
  } else {
    const isOfEntry = draft.floors.has(session)
    if (sessions.size + draft.newSessions < groupSessionsMax || isOfEntry) return undefined
    if (sessions.size < groupSessionsMax) return { kind: 'later' }
    draft.makesRoom ??= [...sessions.values()].some((one) => one.expiresAt < draft.timestamp)
    if (draft.makesRoom) return { kind: 'later' }
  }
  if (pending.forwards === 0) return { kind: 'final', verdict: { kind: 'overloaded' } }
  if (pending.roomDeadline === noDeadline) pending.roomDeadline = context.now + roomWaitMs
  if (context.now < pending.roomDeadline) return { kind: 'later' }
  context.trace.mark('session_room_wait_expired')
  return { kind: 'given up' }
}

/**
 * Whether a verdict speaks of the copy of a transaction that this proposer has, and of no other: it
 * remembers too little to say what was written since the reads, and another one may remember more.
 * A write that is named is in the log, and a proposer that validates another copy has applied it.
 */
export function isOfOneCopy(verdict: Verdict): boolean {
  return verdict.kind === 'conflict' && verdict.key === undefined
}

/** The outcome of an intent, if that is settled: exactly once, whichever node answers. */
export function findOutcome(log: GroupLog, session: string, sequence: number): Verdict | undefined {
  const known = log.state.sessions.get(session)
  if (known === undefined) return undefined
  if (sequence < known.floor) return { kind: 'expired' }
  return known.outcomes.get(sequence)
}

/** The highest position that a waiting transaction was read at: this replica may be behind it. */
export function readAhead(log: GroupLog): Position {
  let highest = log.state.position
  for (const pending of log.waiting.values()) highest = Math.max(highest, pending.readPosition)
  return highest
}
