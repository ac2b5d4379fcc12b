/**
 * Learning what is committed, and applying it in order (Megastore, 4.6.2 step 3 and 4.6.3 step 5).
 *
 * A decided value is committed: the proposer that decides has passed `commit.ts`, which waits for lease
 * holders; other replicas hear it from such a proposer.
 */
import { assert, present } from '../base/assert.ts'
import { equalBytes } from '../base/bytes.ts'
import type { Position } from '../base/ids.ts'
import { equalBallots, type Ballot } from '../paxos/ballot.ts'
import { applyEntry, type Applied } from './apply.ts'
import { jitter, type Context, type LogRecord } from './effect.ts'
import { decodeEntry, type Entry } from './entry.ts'
import {
  highestKnown,
  noDeadline,
  noStride,
  findPending,
  type Decision,
  type GroupLog,
} from './log.ts'
import { rememberCommit } from './horizon.ts'
import type { ChosenEntry } from './message.ts'
import { type RecordedOutcome } from '../group/outcome.ts'
import { settle } from './settle.ts'
import { hasLeft } from './standing.ts'
import { encodeState } from './state.ts'
import { formatIntent } from '../group/transaction.ts'
import type { WriteSet } from './window.ts'
import { noteWriter } from './writers.ts'

/**
 * `position` is committed at `ballot`. Without a value it is this replica's own acceptance that
 * says which, and only one at exactly this ballot: any other value here is not the committed one.
 */
export function decide(
  log: GroupLog,
  context: Context,
  position: Position,
  ballot: Ballot,
  value?: Uint8Array,
): void {
  const record = learn(log, context, position, ballot, value)
  if (record !== undefined) context.emit({ kind: 'persist', records: [record], after: [] })
}

/** The same of entries that a peer has supplied: the new ones among them become durable at once. */
export function decideAll(log: GroupLog, context: Context, entries: readonly ChosenEntry[]): void {
  const records: LogRecord[] = []
  for (const { position, ballot, value } of entries) {
    const record = learn(log, context, position, ballot, value)
    if (record !== undefined) records.push(record)
  }
  if (records.length > 0) context.emit({ kind: 'persist', records, after: [] })
}

/** Gives what has to be made durable of it. */
function learn(
  log: GroupLog,
  context: Context,
  position: Position,
  ballot: Ballot,
  value?: Uint8Array,
): LogRecord | undefined {
  if (position <= log.state.position) return undefined
  const known = log.decisions.get(position)
  const own = acceptedValue(log, position, ballot)
  const found = value ?? own
  if (known?.value !== undefined) {
    if (found !== undefined) {
      assert(equalBytes(known.value, found), 'PAX-1: two values decided at one position')
    }
    return undefined
  }
  log.decisions.set(position, found === undefined ? { ballot } : { ballot, value: found })
  if (found === undefined) return undefined
  const { group } = log
  context.trace.emit({ kind: 'chosen', group, position, ballot, value: found })
  // Learnt from a peer: kept in the log, so that this replica can pass it on after a restart.
  if (own === undefined) return { kind: 'chosen', group, position, ballot, value: found }
  context.emit({ kind: 'note', record: { kind: 'chosen', group, position, ballot } })
  return undefined
}

function acceptedValue(log: GroupLog, position: Position, ballot: Ballot): Uint8Array | undefined {
  const record = log.records.get(position)
  if (record?.kind !== 'present') return undefined
  const { accepted } = record.acceptor
  if (accepted === undefined || !equalBallots(accepted.ballot, ballot)) return undefined
  return accepted.value
}

/** Applies the entries that a group just read from the stores can apply; the step that follows goes on. */
export function resume(log: GroupLog, context: Context): void {
  advance(log, context)
  log.stride = noStride
}

/**
 * Applies decided positions whose turn has come, never past a hole, and in one step no more than one answer
 * of a peer brings (LIVE-7): behind a hole that is filled there may be a whole log. The group is woken for the rest.
 */
export function advance(log: GroupLog, context: Context): void {
  const before = log.state.position
  log.applyDeadline = noDeadline
  for (;;) {
    const position = log.state.position + 1
    const decision = log.decisions.get(position)
    if (decision?.value === undefined) break
    if (isStrideOver(log, context)) {
      log.applyDeadline = context.now
      context.trace.mark('apply_continues_in_next_step')
      break
    }
    const { entries, bytes } = log.stride
    log.stride = { entries: entries + 1, bytes: bytes + decision.value.length }
    apply(log, context, position, decision, decision.value)
  }
  if (log.state.position === before) return
  // Progress is no reason to begin anew with what only sessions speak of: it may go on for ever.
  if (log.catchUp !== undefined && log.catchUp.through <= log.catchUp.known) log.catchUp.stage = 0
  const undecided = highestKnown(log) > log.state.position
  const delay = jitter(context, context.limits.sweepMs, log.state.position, 0)
  log.sweepDeadline = undecided ? context.now + delay : noDeadline
}

function isStrideOver({ stride }: GroupLog, { limits }: Context): boolean {
  return stride.entries >= limits.catchUpEntriesMax || stride.bytes >= limits.catchUpBytesMax
}

function apply(
  log: GroupLog,
  context: Context,
  position: Position,
  decision: Decision,
  value: Uint8Array,
): void {
  const entry = present(decodeEntry(value), 'LOG-1: a chosen entry is of no known format')
  assert(!hasLeft(log), 'MOVE-9: an entry is applied behind the last one of this set')
  const horizonBefore = log.state.horizon
  const leaderBefore = log.state.nextLeader?.node
  const { writes, outcomes } = applyEntry(log.state, entry)
  const { timestamp } = entry
  rememberCommit(log, context.limits.historyMs)
  if (entry.nextLeader.node !== leaderBefore) log.writers.length = 0
  log.window.add({ position, timestamp, sets: buildWriteSets(entry, writes, outcomes) })
  log.appliedBallot = decision.ballot
  log.decisions.delete(position)
  log.records.delete(position)
  log.highestRound = 0
  if (log.proposal !== undefined && log.proposal.position <= position) log.proposal = undefined
  const { group, state } = log
  const encode = (): Uint8Array => encodeState(state)
  context.emit({
    kind: 'apply',
    group,
    position,
    timestamp,
    horizonBefore,
    horizon: state.horizon,
    value,
    writes,
    encodeState: encode,
  })
  answer(log, context, entry, outcomes)
  assert(state.position === position, 'LOG-1: the position applied is not the one decided')
}

const absentRow = 'TXN-1: an entry wrote fewer rows than its transactions'

/**
 * The rows of an entry by the transaction that wrote them: rows of one transaction follow one another, in its
 * order.
 */
function buildWriteSets(
  { transactions }: Entry,
  writes: Applied['writes'],
  outcomes: Applied['outcomes'],
): readonly WriteSet[] {
  const sets: WriteSet[] = []
  let from = 0
  for (let index = 0; index < transactions.length; index++) {
    const by = present(transactions[index], absentRow)
    if (outcomes[index]?.kind !== 'committed') continue
    const through = from + by.mutations.length
    const keys: string[] = []
    for (let at = from; at < through; at++) keys.push(present(writes[at], absentRow).text)
    sets.push({ by, keys })
    from = through
  }
  assert(from === writes.length, 'TXN-1: a row was written that no transaction of the entry wrote')
  return sets
}

function answer(
  log: GroupLog,
  context: Context,
  entry: Entry,
  outcomes: readonly RecordedOutcome[],
): void {
  // A replica that only follows has no caller to answer.
  if (log.waiting.size === 0 && log.forwarded.size === 0) return
  for (const [index, transaction] of entry.transactions.entries()) {
    const pending = findPending(log, formatIntent(transaction))
    const outcome = outcomes[index]
    if (pending === undefined || outcome === undefined) continue
    const [first] = pending.waiters
    if (first !== undefined) noteWriter(log, first)
    settle(log, context, pending, outcome)
  }
}
