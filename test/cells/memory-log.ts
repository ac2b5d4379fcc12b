/**
 * The log that all replicas in memory of a test apply. It validates with the real `ValidationWindow` and
 * applies with the real `applyEntry`, so conflicts, numbers and outcomes are those of a cluster. What it
 * leaves out is agreement: each transaction is an entry of its own, chosen at once.
 */
import { latin1 } from '../../src/base/bytes.ts'
import { nodeId, type GroupId, type Position } from '../../src/base/ids.ts'
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import type { Outcome, Submission } from '../../src/group/replica-port.ts'
import {
  decodeTransaction,
  encodeTransaction,
  type Transaction,
} from '../../src/group/transaction.ts'
import { toTransaction } from '../../src/replica/submission-size.ts'
import { applyEntry } from '../../src/replication/apply.ts'
import type { Entry } from '../../src/replication/entry.ts'
import { orderRanges } from '../../src/replication/key-range.ts'
import { emptyState, type GroupState } from '../../src/replication/state.ts'
import { ValidationWindow } from '../../src/replication/window.ts'

const microsPerMs = 1_000

/** A replica of the log. */
export interface LogReader {
  /** Something was committed in the group. */
  onCommitted(group: GroupId): void
}

interface GroupLog {
  readonly entries: Entry[]
  readonly state: GroupState
  readonly window: ValidationWindow
  /** Entries whose states are gone for readers. */
  forgotten: number
}

export class MemoryLog {
  readonly readers: LogReader[] = []
  /** A test may change them before anything is committed. */
  readonly limits: { -readonly [Name in keyof Limits]: Limits[Name] } = { ...defaultLimits }
  readonly #groups = new Map<GroupId, GroupLog>()

  #group(group: GroupId): GroupLog {
    const known = this.#groups.get(group)
    if (known !== undefined) return known
    const window = new ValidationWindow(0, this.limits)
    const made = { entries: [], state: emptyState(), window, forgotten: 0 }
    this.#groups.set(group, made)
    return made
  }

  entriesAfter(group: GroupId, position: Position): readonly Entry[] {
    return this.#groups.get(group)?.entries.slice(position) ?? []
  }

  entryCount(): number {
    return [...this.#groups.values()].reduce((sum, { entries }) => sum + entries.length, 0)
  }

  /** Names of the groups that were written to, in no order. */
  groups(): readonly GroupId[] {
    return [...this.#groups].flatMap(([group, { state }]) => (state.position > 0 ? [group] : []))
  }

  commit(submission: Submission, wallMicros: number): Outcome {
    const { group, intent, readPosition, reads, ranges } = submission
    const log = this.#group(group)
    const { position, sessions } = log.state
    const session = sessions.get(intent.session)
    if (session !== undefined && intent.sequence < session.floor) return { kind: 'expired' }
    const known = session?.outcomes.get(intent.sequence)
    if (known !== undefined) return known
    // No replica has such a position: a real proposer asks a majority before it says so.
    if (readPosition > position) return { kind: 'conflict', position }
    const conflict = log.window.conflict(
      readPosition,
      reads.map(latin1),
      orderRanges(ranges),
      position,
    )
    if (conflict !== undefined) return { kind: 'conflict', ...conflict }
    return this.#append(log, group, throughBytes(submission), wallMicros)
  }

  #append(log: GroupLog, group: GroupId, transaction: Transaction, wallMicros: number): Outcome {
    const { state, entries, window } = log
    const position = state.position + 1
    const timestamp = Math.max(state.timestamp + 1, wallMicros)
    const entry: Entry = {
      position,
      timestamp,
      horizon: this.#horizon(log, timestamp),
      nextLeader: { node: nodeId('n1'), incarnation: 1 },
      transactions: [transaction],
    }
    const {
      outcomes: [outcome],
      writes,
    } = applyEntry(state, entry)
    if (outcome === undefined) throw new Error('an entry has an outcome for its transaction')
    entries.push(entry)
    const { session, sequence } = transaction
    const keys = writes.map(({ text }) => text)
    window.add({ position, timestamp, sets: [{ by: { session, sequence }, keys }] })
    for (const reader of this.readers) reader.onCommitted(group)
    return outcome
  }

  /** The newest state that was superseded `historyMs` ago. */
  #horizon(log: GroupLog, timestamp: number): number {
    const old = timestamp - this.limits.historyMs * microsPerMs
    while ((log.entries[log.forgotten]?.timestamp ?? Infinity) <= old) log.forgotten += 1
    return log.entries[log.forgotten - 1]?.timestamp ?? 0
  }
}

function throughBytes(submission: Submission): Transaction {
  const transaction = decodeTransaction(encodeTransaction(toTransaction(submission)))
  if (transaction === undefined) throw new Error('a transaction does not decode')
  return transaction
}
