/**
 * The messages of the replicas of one group. Every message names its group and the epoch of the bucket;
 * positional on the wire (`wire/peer/peer-codec.ts`). A message may come late, twice or never.
 */
import type { KeyRange, Verdict } from '../group/outcome.ts'
import type { GroupId, NodeId, Position, Timestamp } from '../base/ids.ts'
import type { LeaseHolder, LeaseMessage, Term } from '../lease/message.ts'
import type { BallotValue } from '../paxos/acceptor.ts'
import type { Ballot } from '../paxos/ballot.ts'

/** A version of a row of a snapshot, as a data store has it. */
export interface SnapshotRow {
  /** Newest versions, or those that were superseded. */
  readonly subspace: number
  /** The key within its subspace of the group. */
  readonly key: Uint8Array
  /** The start of a newest version, the end of one that was superseded. */
  readonly stamp: Timestamp
  readonly payload: Uint8Array
}

/** A value known to be chosen at a position. */
export interface ChosenEntry extends BallotValue {
  readonly position: Position
}

/** A transaction on its way to the leader: the reads that validation needs, beside the bytes to be logged. */
export interface Forwarded {
  readonly readPosition: Position
  /** Keys read, absent ones included. */
  readonly reads: readonly Uint8Array[]
  readonly ranges: readonly KeyRange[]
  /** `encodeTransaction` of it. */
  readonly transaction: Uint8Array
}

interface Envelope {
  readonly group: GroupId
  readonly epoch: number
}

/** Phase 1a: promise to refuse ballots below this one at this position. */
export interface Prepare extends Envelope {
  readonly kind: 'prepare'
  readonly position: Position
  readonly ballot: Ballot
}

/** Phase 1b: promised, durably; with what was accepted here at the highest ballot so far. */
export interface Promised extends Envelope {
  readonly kind: 'promised'
  readonly position: Position
  readonly ballot: Ballot
  readonly accepted?: BallotValue
}

/** Phase 2a: accept this value at this ballot. */
export interface Accept extends Envelope {
  readonly kind: 'accept'
  readonly position: Position
  readonly ballot: Ballot
  readonly value: Uint8Array
  /** The ballot at which position - 1 was committed, when the proposer knows it. */
  readonly previous?: Ballot
}

/** Phase 2b: accepted, durably. */
export interface Accepted extends Envelope {
  readonly kind: 'accepted'
  readonly position: Position
  readonly ballot: Ballot
  /** The holders of a read lease for the group at this voter, as the answer leaves. */
  readonly holders: readonly LeaseHolder[]
}

/** To a prepare or accept below the promise; `promised` says what to go above. */
export interface Refused extends Envelope {
  readonly kind: 'refused'
  readonly position: Position
  readonly ballot: Ballot
  readonly promised: Ballot
}

/** To a prepare or accept at a position whose record the disk has damaged: no vote either way. */
export interface Faulty extends Envelope {
  readonly kind: 'faulty'
  readonly position: Position
  readonly ballot: Ballot
}

/** Position is committed at this ballot; a replica that accepted that ballot has the value. */
export interface Committed extends Envelope {
  readonly kind: 'committed'
  readonly position: Position
  readonly ballot: Ballot
}

/** Asks for the committed entries from `from` on. */
export interface Fetch extends Envelope {
  readonly kind: 'fetch'
  readonly from: Position
  /** Wanted through here; the answer may hold less. */
  readonly through: Position
  /** A client of the asking node waits for them. */
  readonly isAwaited: boolean
}

/** Committed entries, contiguous from `from`; none when the first is not known here. */
export interface Entries extends Envelope {
  readonly kind: 'entries'
  readonly from: Position
  readonly entries: readonly ChosenEntry[]
  /** The highest position known to be committed here. */
  readonly committed: Position
  /**
   * A position at or above `from` of which the sender has a snapshot to give, in the place of entries that are not in its log, or
   * are many. Absent: it has none to give.
   */
  readonly snapshot?: Position
}

/** Asks for part `part` of a snapshot of the group, of a position above `above`. Part 0 begins it. */
export interface SnapshotRequest extends Envelope {
  readonly kind: 'snapshot-request'
  /** The asking node's own number of this snapshot: it has never drawn it before. */
  readonly transfer: number
  readonly part: number
  readonly above: Position
}

/** A part of a snapshot. */
export interface SnapshotPart extends Envelope {
  readonly kind: 'snapshot-part'
  readonly transfer: number
  readonly part: number
  readonly position: Position
  readonly rows: readonly SnapshotRow[]
  /** The next piece of the group's state record, which follows the rows. */
  readonly state: Uint8Array
  /** Of the last part: the checksum over all of it. */
  readonly crc?: number
}

/** The snapshot of that number cannot be had here, or not any more. */
export interface SnapshotRefused extends Envelope {
  readonly kind: 'snapshot-refused'
  readonly transfer: number
}

/** Asks a voter for its highest accepted position (a majority read, 4.6.2), and to be registered there. */
export interface Query extends Envelope {
  readonly kind: 'query'
  /** Names the attempt to register, too: unique over all incarnations of the node, and rising. */
  readonly read: number
  readonly mayRegister: boolean
}

export interface Highest extends Envelope {
  readonly kind: 'highest'
  readonly read: number
  /** Accepted, applied or known committed, whichever is highest; 0 when nothing ever was. */
  readonly position: Position
  /** The term under which the asker is registered now; absent: it is not. */
  readonly term?: Term
}

/** To a lease holder that has not accepted: position exists, and nothing below it may be shown. */
export interface Invalidate extends Envelope {
  readonly kind: 'invalidate'
  readonly position: Position
}

export interface Invalidated extends Envelope {
  readonly kind: 'invalidated'
  readonly position: Position
  /** Of the sender. */
  readonly incarnation: number
}

/** To a voter that listed `holder` when it accepted `position`: end that registration. */
export interface Revoke extends Envelope {
  readonly kind: 'revoke'
  readonly position: Position
  readonly holder: NodeId
}

/** The registration has ended: acknowledged by its holder, or its lease has run out. */
export interface Revoked extends Envelope {
  readonly kind: 'revoked'
  readonly position: Position
  readonly holder: NodeId
}

/** The sender does not serve the group by itself any more, by attempts up to this one. */
export interface Release extends Envelope {
  readonly kind: 'release'
  readonly attempt: number
}

/** A transaction for the leader. */
export interface Forward extends Envelope, Forwarded {
  readonly kind: 'forward'
  /** Unique in the sending node's incarnation. */
  readonly request: number
  readonly incarnation: number
  /** How often it was passed on; a node that gets it at the limit proposes itself. */
  readonly hops: number
}

export interface ForwardReply extends Envelope {
  readonly kind: 'forward-reply'
  readonly request: number
  readonly verdict: Verdict
}

/** The sender's wall clock as this left; a question, an answer, or both. */
export interface ClockTold {
  readonly kind: 'clock'
  readonly wall: Timestamp
  /** The number under which the sender asks the same; 0: it does not. */
  readonly asked: number
  /** The number of the question that this answers; 0: none. */
  readonly answers: number
}

/** The messages about the leases for one group. */
export type GroupLeaseMessage = Invalidate | Invalidated | Revoke | Revoked | Release

export type GroupMessage =
  | Prepare
  | Promised
  | Accept
  | Accepted
  | Refused
  | Faulty
  | Committed
  | Fetch
  | Entries
  | Query
  | Highest
  | GroupLeaseMessage
  | Forward
  | ForwardReply

/** Asks a peer for what its log was given after flush `after`. */
export interface DigestRequest {
  readonly kind: 'digest-request'
  readonly after: number
  /** Rises with each question of a node, over its lives too; the answer repeats it. */
  readonly asked: number
}

/** Groups written in the sender's flushes up to `through`, with their highest known position. */
export interface Digest {
  readonly kind: 'digest'
  readonly after: number
  readonly asked: number
  readonly through: number
  /** All of these are named. Else the sender's disk no longer says what some of the flushes wrote. */
  readonly isWhole: boolean
  readonly groups: readonly (readonly [GroupId, Position])[]
}

/**
 * Everything that the receiver's flushes through `through` name is durably applied at the sender (LOG-18). It may be
 * lower than one that the sender told before: its data store is made anew.
 */
export interface DurableMark {
  readonly kind: 'durable-mark'
  readonly through: number
}

/** Asks for the next page of the peer's directory of groups. */
export interface DirectoryRequest {
  readonly kind: 'directory-request'
  /** Rises with each question of a node, those for digests among them; the answer repeats it. */
  readonly asked: number
  /** As the first page told it; 0: this asks for the first page. */
  readonly through: number
  /** The last group of the page before. */
  readonly after?: GroupId
}

/**
 * A page of the sender's groups, in their order, each with its highest position with a value. Together with the pages
 * before and after it names all that the sender's flushes through `through` name.
 */
export interface Directory {
  readonly kind: 'directory'
  readonly asked: number
  readonly through: number
  readonly after?: GroupId
  /** The next page begins behind this group; absent: this one is the last. */
  readonly next?: GroupId
  readonly groups: readonly (readonly [GroupId, Position])[]
}

/** Asks a voter how far its flushes go, and in which epoch it votes. */
export interface ReachRequest {
  readonly kind: 'reach-request'
  /** Rises with each such question of a node, over its lives too; the answer repeats it. */
  readonly asked: number
}

/** How far the sender's durable flushes went after it got the question. */
export interface Reach {
  readonly kind: 'reach'
  readonly asked: number
  /** The epoch in which the sender votes in every group; 0: it has no vote now, or not in all groups. */
  readonly epoch: number
  readonly through: number
}

/**
 * A node's part in the present epoch of its replica set, as it durably is. Told as a link comes up, and again when it
 * changes.
 */
export interface StandingTold {
  readonly kind: 'standing'
  /** The highest epoch that the sender has heard of: it acts in no earlier one. */
  readonly epoch: number
  /** The last epoch whose gate it has passed; 0: none. */
  readonly gated: number
  /** Whether its data store holds all that it has to (LOG-19). */
  readonly isRestored: boolean
}

/** Asks a voter of the epoch before `epoch` for its seal. */
export interface SealRequest {
  readonly kind: 'seal-request'
  readonly epoch: number
  /** The last group of the page before; absent: this asks for the first page. */
  readonly after?: GroupId
}

/** A group with positions above what the sealing voter has applied, and all that the voter had accepted there. */
export interface SealedGroup {
  readonly group: GroupId
  readonly applied: Position
  /** Undefined: a record is damaged. The seal counts for nothing in this group. */
  readonly open: readonly OpenAcceptance[] | undefined
}

/** An acceptance at an open position, as a voter of the epoch before told it with its seal. */
export interface OpenAcceptance extends BallotValue {
  readonly position: Position
}

/** A page of the sender's seal: it acts at no epoch before `epoch`, and has passed the gate of the one before. */
export interface SealPage {
  readonly kind: 'seal-page'
  readonly epoch: number
  /** All that the sender accepted before its seal stands in its flushes through here. */
  readonly through: number
  readonly after?: GroupId
  /** The next page begins behind this group; absent: this one is the last. */
  readonly next?: GroupId
  /** In their order. */
  readonly groups: readonly SealedGroup[]
}

/** Messages about a change of the voters of a replica set. */
/** The cluster version that is in force at the sender: builds of version 2 and later know the message. */
export interface VersionTold {
  readonly kind: 'version'
  readonly inForce: number
}

export type EpochMessage = StandingTold | SealRequest | SealPage | VersionTold

/** Asks a peer for the sums of its buckets of groups. */
export interface SumsRequest {
  readonly kind: 'sums-request'
  /** A number of the asking node, which the answer repeats. */
  readonly asked: number
}

/** The sums of the sender's buckets, 16 bytes each; none: its groups are not counted yet. */
export interface Sums {
  readonly kind: 'sums'
  readonly asked: number
  readonly sums: Uint8Array
}

/** A group at a node: its position, and the hash of its rows there, 16 bytes; none: it is not known, or not to be relied on. */
export type ToldMark = readonly [group: GroupId, position: Position, hash: Uint8Array]

/** Says what the sender has of groups, and asks the same of the peer. */
export interface MarksRequest {
  readonly kind: 'marks-request'
  readonly asked: number
  readonly marks: readonly ToldMark[]
}

/** The groups as the sender has them, in their order. */
export interface Marks {
  readonly kind: 'marks'
  readonly asked: number
  readonly marks: readonly ToldMark[]
}

/** Messages by which nodes compare what they have of their groups. */
export type CompareMessage = SumsRequest | Sums | MarksRequest | Marks

/** About snapshots of a group. No step takes them: what they bring is put into the data store first. */
export type SnapshotMessage = SnapshotRequest | SnapshotPart | SnapshotRefused

export type Message = GroupMessage | NodeMessage | SnapshotMessage

/** Between two nodes, of no group. */
export type NodeMessage =
  | DigestRequest
  | Digest
  | DurableMark
  | DirectoryRequest
  | Directory
  | ReachRequest
  | Reach
  | CompareMessage
  | EpochMessage
  | ClockTold
  | LeaseMessage

/** A frame from one node to another: the messages of one turn of the loop. Empty: a heartbeat. */
export interface PeerFrame {
  /** The sender's durable flush number; a peer that has seen a higher one calls the disk stale. */
  readonly durableFlush: number
  readonly messages: readonly Message[]
}
