/**
 * One group's log at one replica: the state that the handlers of this folder work on. It has one
 * owner, the replica's table of groups; handlers change it in place and emit effects.
 *
 * Positions up to `state.position` are applied; above it stand acceptor records, decisions whose
 * turn has not come, and at most one proposal (one open position per group, no pipelining).
 */
import type { GroupId, NodeId, Position, Timestamp } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Term } from '../lease/message.ts'
import type { ReplicaSet } from '../placement/placement.ts'
import type { Acceptor } from '../paxos/acceptor.ts'
import type { Ballot } from '../paxos/ballot.ts'
import type { Phase } from '../paxos/proposer.ts'
import type { Effect } from './effect.ts'
import type { Leader } from './entry.ts'
import type { HolderTable } from './holders.ts'
import type { TextRange } from './key-range.ts'
import type { Accept, Prepare, Query } from './message.ts'
import type { GroupState } from './state.ts'
import type { Transaction } from '../group/transaction.ts'
import { ValidationWindow } from './window.ts'

/** An acceptor's record of a position above the applied ones. `faulty`: the disk damaged it. */
export type PositionRecord =
  { readonly kind: 'present'; readonly acceptor: Acceptor } | { readonly kind: 'faulty' }

/**
 * This node's part in the present epoch: it votes; it has sealed the epoch, and votes in it no more; it has not
 * passed the gate of it (`epoch.ts`); or it is a read-only member, which has no vote in it (`reader.ts`).
 */
export type Standing = 'voting' | 'sealed' | 'before-gate' | 'reading'

/** A position known to be committed. Without a value it has to be fetched. */
export interface Decision {
  readonly ballot: Ballot
  readonly value?: Uint8Array
}

/** A node that waits for a transaction's verdict: this one, for its own edge, or one that forwarded it. */
export interface Waiter {
  readonly node: NodeId
  /** Of that node, when it sent this. */
  readonly incarnation: number
  readonly request: number
  readonly hops: number
}

/** A transaction that has no verdict yet. */
export interface Pending {
  readonly intent: string
  readonly transaction: Transaction
  readonly bytes: Uint8Array
  readonly readPosition: Position
  /** Keys read, as latin1 text. */
  readonly reads: readonly string[]
  /** Ranges read, in order and apart from one another. */
  readonly ranges: readonly TextRange[]
  /** The bytes that it takes of the group's room for waiting transactions. */
  readonly roomBytes: number
  readonly waiters: Waiter[]
  /** Other attempts of the same intent, with other content: looked at where this one is refused. */
  readonly rivals: Pending[]
  /** The node it was last forwarded to. */
  sentTo: NodeId | undefined
  /** How often it was forwarded without an answer. */
  forwards: number
  /** The last position whose entry this node has put it into. */
  proposedAt: Position
  /** Names it between this node and the one it was forwarded to. */
  readonly forwardId: number
  /** When it stops waiting for room among the sessions' outcomes; `noDeadline` while it need not wait. */
  roomDeadline: number
}

/** The open position's proposal. */
export interface Proposal {
  readonly position: Position
  phase: Phase | { readonly kind: 'backing-off' }
  /** Tries at this position so far; delays grow with it. */
  attempt: number
  /** When the present ballot's phase was sent first. */
  phaseStart: number
  /** When to start the phase again, or to end the back-off. */
  deadline: number
  /** The holders listed by the voters that accepted. */
  readonly holders: HolderTable
  /** A majority has accepted, and lease holders are waited for. */
  awaiting: { retries: number } | undefined
}

/** A majority read on its way (one at a time per group; later reads share the next). */
export interface ReadRound {
  readonly round: number
  reads: readonly number[]
  /** Whether sessions that claim positions beyond those known here wait for it, too. */
  readonly isOfClaims: boolean
  /** Whether what is known here counts as an answer; false: this replica was not restored when it began (LOG-19). */
  readonly countsOwn: boolean
  readonly answers: Map<NodeId, Position>
  deadline: number
}

/** This node's registrations for one group: those of its last attempt. */
export interface ReadLease {
  /** The read round that asked for them. */
  attempt: number
  /** The voters that have registered this attempt, each with its term. */
  readonly grants: Map<NodeId, Term>
  /** The voters that have revoked since: later answers of theirs to this attempt do not count. */
  readonly ignored: Set<NodeId>
  /** The last read that it served. */
  usedMs: number
}

/** A read that knows how far it must see. */
export interface TargetedRead {
  readonly read: number
  readonly position: Position
}

/** Going after positions this replica lacks: wait, ask peers in turn, then propose. */
export interface CatchUp {
  through: Position
  /** So far they exist, as a node said; the rest is the word of sessions. */
  known: Position
  /** The peer whose answer is awaited. */
  asking: NodeId | undefined
  /** The last peer that said so. It may have no vote in the present epoch. */
  informer: NodeId | undefined
  stage: number
  deadline: number
}

/** The amount that one step has applied. */
export interface Stride {
  readonly entries: number
  readonly bytes: number
}

export const noStride: Stride = { entries: 0, bytes: 0 }

/** A question of a peer that waits for what this node lacks (MOVE-10). */
export interface PutOff {
  readonly from: NodeId
  readonly message: Prepare | Accept | Query
}

/** The replica set of this node, for a group. */
export interface LogHome {
  /** The set's name. */
  readonly set: string
  /** The group begins in another set: this set has it only by a move. */
  readonly isGuest: boolean
  /** The set in which it begins, where this one has given its bucket away. */
  readonly begins?: string
  /** The group may leave the set, and come back. */
  readonly mayMove: boolean
}

/** Of a cluster with one set: no group leaves it. */
const onlySet: LogHome = { set: '', isGuest: false, mayMove: false }

export interface GroupLog {
  readonly group: GroupId
  /** The voters of the present epoch. */
  set: ReplicaSet
  standing: Standing
  home: LogHome
  readonly state: GroupState
  /** The ballot at which the applied position was committed, where known. */
  appliedBallot: Ballot | undefined
  readonly records: Map<Position, PositionRecord>
  readonly decisions: Map<Position, Decision>
  readonly window: ValidationWindow
  /** Timestamps of some commits, rising: what the horizon may become (`horizon.ts`). */
  readonly commits: Timestamp[]
  /** Where the last transactions that were proposed here came in (`writers.ts`). */
  readonly writers: Leader[]
  /** Highest round seen or used at the open position. */
  highestRound: number
  proposal: Proposal | undefined
  /** Decided by this node's own proposal, and not told to the others yet. */
  unannounced: { readonly position: Position; readonly ballot: Ballot } | undefined
  /** Transactions to be proposed by this node, by intent, in order of arrival. */
  readonly waiting: Map<string, Pending>
  /** Transactions forwarded to another node, by intent, and their intents by `forwardId`. */
  readonly forwarded: Map<string, Pending>
  readonly forwardIds: Map<number, string>
  /** Verdicts for the nodes that forwarded transactions: they leave last in a step (`group.ts`). */
  readonly replies: Effect[]
  /** Of the transactions in `waiting` and `forwarded`. */
  waitingBytes: number
  /** When to look again at transactions that no node has proposed or answered. */
  retryDeadline: number
  readRound: ReadRound | undefined
  /** The last question for which this node lacked all that came before: it answers once it has that. */
  putOff: PutOff | undefined
  readsWaiting: number[]
  readsTargeted: TargetedRead[]
  catchUp: CatchUp | undefined
  /** A majority is to be asked how far the log goes: only sessions speak of what is caught up to. */
  mustAskMajority: boolean
  /** The lease that lets this replica serve current reads without asking. */
  lease: ReadLease | undefined
  /** When to see whether the group is still read. */
  idleDeadline: number
  /** Positions up to here exist, as a peer said: no current read shows less. */
  minReadPosition: Position
  /** The amount applied in this step so far. */
  stride: Stride
  /** When to go on with what is decided and has a value: one step applies a bounded part. */
  applyDeadline: number
  /** When to look after an accepted position that stays undecided. */
  sweepDeadline: number
  /** Wake-ups asked for and not yet come: the earliest last, and each was earlier than all before it. */
  readonly wakes: number[]
}

export const noDeadline: number = Number.POSITIVE_INFINITY

/** A group's log as its record says: nothing under way. */
export function restoreLog(
  group: GroupId,
  set: ReplicaSet,
  state: GroupState,
  records: ReadonlyMap<Position, PositionRecord>,
  limits: Limits,
  home: LogHome = onlySet,
): GroupLog {
  return {
    group,
    set,
    standing: 'voting',
    home,
    state,
    appliedBallot: undefined,
    records: new Map(records),
    decisions: new Map(),
    window: new ValidationWindow(state.position, limits),
    commits: state.position === 0 ? [] : [state.timestamp],
    writers: [],
    highestRound: 0,
    proposal: undefined,
    unannounced: undefined,
    waiting: new Map(),
    forwarded: new Map(),
    forwardIds: new Map(),
    replies: [],
    waitingBytes: 0,
    retryDeadline: noDeadline,
    readRound: undefined,
    putOff: undefined,
    readsWaiting: [],
    readsTargeted: [],
    catchUp: undefined,
    mustAskMajority: false,
    lease: undefined,
    idleDeadline: noDeadline,
    minReadPosition: 0,
    stride: noStride,
    applyDeadline: noDeadline,
    sweepDeadline: noDeadline,
    wakes: [],
  }
}

/** The highest position this replica knows to exist: accepted, decided or applied. */
export function highestKnown(log: GroupLog): Position {
  let highest = log.state.position
  // As a rule, and each read under a lease asks.
  if (log.records.size === 0 && log.decisions.size === 0) return highest
  for (const [position, record] of log.records) {
    const holdsValue = record.kind === 'faulty' || record.acceptor.accepted !== undefined
    if (position > highest && holdsValue) highest = position
  }
  for (const position of log.decisions.keys()) if (position > highest) highest = position
  return highest
}

/** A transaction without a verdict, wherever it is. */
export function findPending(log: GroupLog, intent: string): Pending | undefined {
  return log.waiting.get(intent) ?? log.forwarded.get(intent)
}

/** Whether a client waits for what this replica lacks. */
export function isAwaited({ waiting: queue, readsTargeted, readsWaiting }: GroupLog): boolean {
  return queue.size > 0 || readsTargeted.length > 0 || readsWaiting.length > 0
}

/** Nothing under way: the record on disk says all there is, so the group may leave memory. */
export function isQuiescent(log: GroupLog): boolean {
  return (
    log.proposal === undefined &&
    log.waiting.size === 0 &&
    log.forwarded.size === 0 &&
    log.readRound === undefined &&
    log.readsWaiting.length === 0 &&
    log.readsTargeted.length === 0 &&
    log.catchUp === undefined &&
    log.lease === undefined &&
    log.decisions.size === 0 &&
    highestKnown(log) === log.state.position
  )
}

/** A wake-up has come: whether this log requested it, and not one that was let go. */
export function takeWakes({ wakes }: GroupLog, now: number): boolean {
  const count = wakes.length
  let earliest = wakes.at(-1)
  while (earliest !== undefined && earliest <= now) {
    wakes.pop()
    earliest = wakes.at(-1)
  }
  return wakes.length < count
}

/** When this group next wants to be woken; `noDeadline` while nothing waits for time. */
export function nextDeadline(log: GroupLog): number {
  return Math.min(
    log.proposal?.deadline ?? noDeadline,
    log.readRound?.deadline ?? noDeadline,
    log.catchUp?.deadline ?? noDeadline,
    log.retryDeadline,
    log.applyDeadline,
    log.sweepDeadline,
    log.idleDeadline,
  )
}
