/**
 * The calls that the asynchronous edge (cells, gateway, client sessions) may make to the replica in its
 * process. Everything above the replica is written against this and the ports, nothing else.
 */
import type { GroupId, NodeId, Position, Timestamp } from '../base/ids.ts'
import type { KeyRange, Verdict } from './outcome.ts'
import type { RecordedOutcome } from './outcome.ts'
import type { Mutation } from './transaction.ts'

/** (session, sequence) of the intent, for exactly-once retries through any node. */
export interface Intent {
  readonly session: string
  readonly sequence: number
  readonly floor: number
  readonly expiresAt: Timestamp
}

/** A transaction to be committed in one group. */
export interface Submission {
  readonly group: GroupId
  readonly intent: Intent
  /** Distinguishes reruns of one intent; the maker of the content draws it at random. */
  readonly attempt: number
  /** The position at which the content was read. */
  readonly readPosition: Position
  /** Keys read, absent ones included: an entry after `readPosition` that wrote one is a conflict. */
  readonly reads: readonly Uint8Array[]
  /** Ranges read: an entry after `readPosition` that wrote any key in one is a conflict. */
  readonly ranges: readonly KeyRange[]
  readonly allocations: readonly number[]
  readonly mutations: readonly Mutation[]
}

/**
 * The outcome of a submission.
 * - `committed`: in effect at `position`; `sequences` are the numbers drawn, one per allocation;
 *   `attempt` says whose content won (another one's, when an earlier try had committed already).
 * - `conflict`: read something older than what entry `position` wrote (`key`, for the intent `by`;
 *   without these: the proposer's window does not reach back to the read); nothing happened; read at
 *   `position` or later and try again with another attempt.
 * - `expired`: the intent is too old; it did not take effect and never will.
 * - `overloaded`: refused at once, nothing happened.
 * - `unknown`: no majority answered before the deadline; it may still take effect.
 */
export type Outcome = Verdict | { readonly kind: 'unknown' }

/** An intent as one asks for it. */
export type IntentName = Pick<Intent, 'session' | 'sequence'> & Partial<Pick<Intent, 'expiresAt'>>

/**
 * The outcome of an intent that a group remembers, as of `position` (its entry's `timestamp`).
 * - `committed`, `expired`: that became of it, for good. `committed` comes with what the first
 *   verdict said: attempt, sequences.
 * - `none`: it is not in effect as of `position`, and its `expiresAt` has not passed: it may yet take effect,
 *   by a copy still on its way.
 * - `forgotten`: the group remembers no outcome, and one may have been recorded before. The intent is below its
 *   session's floor, or log time has passed `expiresAt`: then no copy takes effect any more. Or the caller named
 *   no `expiresAt`: then a copy may still take effect.
 */
export type IntentOutcome =
  | RecordedOutcome
  | { readonly kind: 'none'; readonly position: Position; readonly timestamp: Timestamp }
  | { readonly kind: 'forgotten'; readonly position: Position; readonly timestamp: Timestamp }

/**
 * `current`: sees everything acknowledged, and everything shown to any read, before it began.
 * `snapshot`: this replica's newest applied state, without a message.
 */
export type ReplicaReadLevel = 'current' | 'snapshot'

/**
 * Sees everything that was acknowledged more than `maxStalenessMs` before the replica took the read up, and maybe more: from
 * what this replica has applied, where it can show that, and else by a current read.
 */
export interface BoundedStaleness {
  readonly maxStalenessMs: number
}

/** The state a read sees: whole entries up to `position`. */
export interface ReadPoint {
  readonly position: Position
  /** Of the entry at `position`; 0 when nothing was ever written. */
  readonly timestamp: Timestamp
}

/** A row as the group's state holds it. */
export interface Row {
  readonly key: Uint8Array
  readonly value: Uint8Array
  /** Of the entry that wrote it. */
  readonly timestamp: Timestamp
}

export interface RowRange {
  readonly gte?: Uint8Array
  readonly gt?: Uint8Array
  readonly lt?: Uint8Array
  readonly reverse?: boolean
  readonly limit?: number
}

/** A range to be read in pages: each ends where it is full, or at the end of the range. */
export interface PageRange extends RowRange {
  /** A page ends with the row whose key and value bring it above this many bytes. */
  readonly bytesMax?: number
}

/** Whether a page reached the end of its range; if not, go on after its last row. */
export function isAtEnd(
  rows: readonly Row[],
  { limit = Infinity, bytesMax = Infinity }: PageRange,
): boolean {
  return rows.length < limit && rows.reduce((bytes, row) => bytes + sizeInBytes(row), 0) <= bytesMax
}

/** The bytes that a row counts where they are bounded. */
export function sizeInBytes({ key, value }: Pick<Row, 'key' | 'value'>): number {
  return key.length + value.length
}

/** A group with something under a topic on its worklist. */
export interface ListedGroup {
  readonly group: GroupId
  /** Of the newest row that was put there, as far as is known here. */
  readonly position: Position
}

/** Groups that have work: rows under a topic (`group/worklist-key.ts`) applied at this node. */
export interface Worklist {
  /**
   * At most `limit` groups, and `listedGroupsMax`, in the order of their names, those behind `after`.
   * Some may have nothing any more: a worker that finds nothing there calls `unlist`.
   */
  list(topic: string, after: GroupId | undefined, limit: number): Promise<readonly ListedGroup[]>
  /** At `position` the group had nothing under the topic. */
  unlist(topic: string, group: GroupId, position: Position): void
  /** Calls `wake` whenever a row under the topic was applied here; returns a canceller. */
  watch(topic: string, wake: (listed: ListedGroup) => void): () => void
  /** Whether this node is, as far as it knows, the first one alive of those that hold the group. */
  isOurs(group: GroupId): boolean
  /** Whether the group has left this node's replica set. Absent: the list is of all sets. */
  hasLeft?(group: GroupId): boolean
  /** The same worklist for listings that the signal gives up. Absent: a listing goes on to its end. */
  until?(signal: AbortSignal): Worklist
}

/** Rows of a topic that were put, and that were taken away, as applied at this node since it started. */
export interface TopicCounts {
  readonly put: number
  readonly gone: number
}

export interface LocalWorklists extends Worklist {
  /** Topics that groups are listed under, in the order of their names; at most `limit`. */
  topics(limit: number): Promise<readonly string[]>
  counts(): Readonly<Record<string, TopicCounts>>
}

/** Rows in the order of the requested keys, all of the point. */
export interface RowsAtPoint {
  readonly point: ReadPoint
  readonly rows: readonly (Row | undefined)[]
}

/** All of it is of groups that this node holds (`holds`). */
export interface LocalReplica {
  /** Whether this node is a replica of the group. Requests for other groups go to other nodes. */
  holds(group: GroupId): boolean
  /**
   * Resolves with the outcome, at the latest `timeoutMs` from now (`unknown`, as a node says that stops). Rejects
   * with `too-large` where the submission exceeds a bound, and with `unavailable` where the rows of this replica are damaged
   * or the replicas have different ones; nothing happened then.
   */
  submit(submission: Submission, timeoutMs: number): Promise<Outcome>
  /**
   * The outcome of an intent, whichever node took it: by a current read, so that everything acknowledged
   * before is seen. Rejects as `read` does. To have a transaction take effect once, send it again under its
   * intent; this is for a caller that only wants to know.
   */
  outcome(group: GroupId, intent: IntentName, timeoutMs: number): Promise<IntentOutcome>
  /**
   * Brings the group up to what `level` promises and resolves with the point reached; the row
   * reads below then see at least that. Rejects with `unavailable` when no majority answers in time.
   * `atLeast` makes it wait for a position a session has already seen; one that no entry has is `invalid`.
   */
  read(
    group: GroupId,
    level: ReplicaReadLevel | BoundedStaleness,
    timeoutMs: number,
    atLeast?: Position,
  ): Promise<ReadPoint>
  /**
   * How far a group in memory is applied here: what `read` at `snapshot` would resolve with, at once.
   * Undefined when it is not in memory, or nothing is read here any more: `read` tells.
   */
  positionHere(group: GroupId): Position | undefined
  /**
   * The point to read at for a timestamp of the past; one of the future is read as of now: then it is
   * a current read. The point's timestamp is the one to read rows at, on this replica and for as long
   * as it is used every now and then. Rejects with `snapshot-too-old` for one before the group's
   * horizon that is not being read here already, or as `read` does.
   */
  readAt(group: GroupId, at: Timestamp, timeoutMs: number): Promise<ReadPoint>
  /**
   * The node that is to propose the group's next entry, as far as this replica knows; undefined
   * when that is this node, or when the group is not at hand. Asking that node saves a hop.
   */
  leaderElsewhere(group: GroupId): NodeId | undefined
  /** One row, its newest applied version. Keys are relative to the group. */
  get(group: GroupId, key: Uint8Array): Row | undefined
  /**
   * Rows as of timestamp `at`, in the order of `keys`. Rejects with `snapshot-too-old` as `readAt`
   * does, with `unavailable` for an `at` beyond what is applied here (`readAt` comes first), and with `invalid`
   * for one that is no whole number.
   */
  getAt(
    group: GroupId,
    keys: readonly Uint8Array[],
    at: Timestamp,
  ): Promise<readonly (Row | undefined)[]>
  /**
   * A read and its rows at once: at the newest state, where this node needs no message, or where that is
   * the timestamp named. Undefined where it has to ask, to wait or to refuse: `read` and `getAt` do.
   */
  rowsNow(
    group: GroupId,
    from: ReplicaReadLevel | BoundedStaleness | Timestamp,
    atLeast: Position,
    keys: readonly Uint8Array[],
  ): RowsAtPoint | undefined
  /**
   * Rows in key order: newest applied versions as of the call, or those as of timestamp `at`. What lies
   * behind the page is not read; `isAtEnd` tells whether something may.
   */
  scan(group: GroupId, range: PageRange, at?: Timestamp): Promise<readonly Row[]>
  /** Calls `wake` once when the group's applied position passes `position`; returns a canceller. */
  watch(group: GroupId, position: Position, wake: () => void): () => void
  /**
   * Names behind `after`, in order, of groups that were written to, or may have been: every group whose
   * write was acknowledged before the call is among them (LOG-8). Rejects with `unavailable` when a
   * majority cannot be asked in time.
   */
  groups(
    prefix: string,
    after: GroupId | undefined,
    limit: number,
    timeoutMs: number,
  ): Promise<readonly GroupId[]>
  readonly worklist: LocalWorklists
}
