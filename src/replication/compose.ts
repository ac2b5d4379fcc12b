/**
 * Making an entry: which of the waiting transactions share the open position (combination), which
 * wait for the next one (promotion), and which get a verdict without being logged
 * (REPLICATION "Writes" 3).
 */
import { latin1 } from '../base/bytes.ts'
import type { Position } from '../base/ids.ts'
import type { Context } from './effect.ts'
import { encodeEntry } from './entry.ts'
import { settle } from './learn.ts'
import type { GroupLog, Pending } from './log.ts'
import type { Verdict } from './message.ts'

export type Validation =
  | { readonly kind: 'compatible' }
  /** Its turn is a later position: it met a write of this entry, or read ahead of this replica. */
  | { readonly kind: 'later' }
  | { readonly kind: 'final'; readonly verdict: Verdict }

/** The open position's entry, encoded; undefined when nothing is to be proposed. */
export function composeEntry(
  log: GroupLog,
  context: Context,
  options: { readonly orNoOp: boolean } = { orNoOp: false },
): Uint8Array | undefined {
  const { state } = log
  const timestamp = Math.max(state.timestamp + 1, context.wall)
  const chosen = context.mayPropose ? selectCompatible(log, context) : []
  if (chosen.length === 0 && !options.orNoOp) return undefined
  if (chosen.length === 0) context.trace.mark('no-op proposed')
  if (chosen.length > 1) context.trace.mark('transactions combined')
  return encodeEntry({
    position: state.position + 1,
    timestamp,
    nextLeader: { node: context.node, incarnation: context.incarnation },
    transactions: chosen.map((pending) => pending.bytes),
  })
}

function selectCompatible(log: GroupLog, context: Context): Pending[] {
  const { limits } = context
  const chosen: Pending[] = []
  const written = new Set<string>()
  /** Floors that the entry's transactions so far raise, by session. */
  const floors = new Map<string, number>()
  let bytes = 0
  for (const pending of log.queue.values()) {
    if (chosen.length >= limits.entryTransactionsMax) break
    if (chosen.length > 0 && bytes + pending.bytes.length > limits.entryBytesMax) break
    const validation = validate(log, context, pending, written)
    if (validation.kind === 'final') settle(log, context, pending, validation.verdict)
    if (validation.kind !== 'compatible') continue
    const { session, sequence, floor } = pending.transaction
    // Settled, as its client says with a later one of this entry: next time it is `expired`.
    if (sequence < (floors.get(session) ?? 0)) continue
    floors.set(session, Math.max(floor, floors.get(session) ?? 0))
    chosen.push(pending)
    bytes += pending.bytes.length
    for (const mutation of pending.transaction.mutations) written.add(latin1(mutation.key))
  }
  return chosen
}

function validate(
  log: GroupLog,
  context: Context,
  pending: Pending,
  written: ReadonlySet<string>,
): Validation {
  const { state, window } = log
  const { transaction, readPosition, reads } = pending
  const known = outcomeOf(log, transaction.session, transaction.sequence)
  if (known !== undefined) return { kind: 'final', verdict: known }
  // Only what is applied is final: at the open position another proposer, whose clock runs behind,
  // may still get it in. One that expires just now goes into the entry and is recorded as expired.
  if (state.timestamp > transaction.expiresAt)
    return { kind: 'final', verdict: { kind: 'expired' } }
  const session = state.sessions.get(transaction.session)
  const { groupSessionsMax, sessionOutcomesMax } = context.limits
  const full =
    session === undefined
      ? state.sessions.size >= groupSessionsMax
      : session.outcomes.size >= sessionOutcomesMax
  if (full && pending.forwards > 0) return { kind: 'later' }
  if (full) return { kind: 'final', verdict: { kind: 'overloaded' } }
  if (readPosition > state.position) return { kind: 'later' }
  const conflict = window.conflict(readPosition, reads, state.position)
  if (conflict !== undefined) {
    context.trace.mark('conflict')
    return { kind: 'final', verdict: { kind: 'conflict', position: conflict } }
  }
  if (reads.some((key) => written.has(key))) return { kind: 'later' }
  return { kind: 'compatible' }
}

/** What became of an intent, if that is settled: exactly once, whichever node is asked. */
export function outcomeOf(log: GroupLog, session: string, sequence: number): Verdict | undefined {
  const known = log.state.sessions.get(session)
  if (known === undefined) return undefined
  if (sequence < known.floor) return { kind: 'expired' }
  return known.outcomes.get(sequence)
}

/** The highest position that a waiting transaction was read at: this replica may be behind it. */
export function readAhead(log: GroupLog): Position {
  let highest = log.state.position
  for (const pending of log.queue.values()) highest = Math.max(highest, pending.readPosition)
  return highest
}
