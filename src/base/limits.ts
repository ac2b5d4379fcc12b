/**
 * Every bound of the store, by name. Users can read them; tests and the simulator may pass
 * smaller ones (`Limits` is an ordinary option), since every bound is sometimes 1.
 */
import { assert } from './assert.ts'

export const keyBytesMax = 1024
/** The key that comes right after the longest one has a byte more. */
export const rangeEndBytesMax: number = keyBytesMax + 1
/** A session's name, which the client that opens it draws. */
export const sessionCharsMax = 256
export const cellBytesMax: number = 1024 * 1024
export const columnNameCharsMax = 64
export const datastoreNameCharsMax = 64
export const transactionBytesMax: number = 4 * 1024 * 1024
/** Rows that a transaction writes, and numbers that it draws. */
export const transactionMutationsMax = 10_000
/**
 * The same with all that it takes away: rows written under one set of indexes can be deleted under another,
 * larger one.
 */
export const submissionMutationsMax = 50_000
export const entryBytesMax: number = 8 * 1024 * 1024
/** A frame carries many messages; one that is larger than an entry and its envelope is refused. */
export const frameBytesMax: number = 16 * 1024 * 1024
export const batchItemsMax = 1000
export const pageItemsMax = 1000
/** Of the bound of a read with bounded staleness: a smaller one would be missed by most answers of other nodes. */
export const stalenessMsMin = 100
export const tailWaitSecondsMax = 60
/** Groups in one answer to the question which groups have rows under a topic of their worklists. */
export const listedGroupsMax = 1000

/** Nodes of one replica set: more make every commit slower and none safer. */
export const nodeCountMax = 15

/** The units of placement: 12 bits of a hash. */
export const bucketCount = 4096

/** Replica sets of a cluster. */
export const setCountMax = 64

/** Scheme, host and port of a node, characters. */
export const nodeUrlCharsMax = 300

/** The bounds and delays that a replica runs under. Milliseconds, bytes and counts, as named. */
export interface Limits {
  /** Groups whose record stays in memory; only quiescent ones above this are forgotten. */
  readonly groupsInMemoryMax: number
  /** Transactions waiting in one group at one node. */
  readonly groupQueueMax: number
  /** Their bytes, with what they have read; one alone may be larger. */
  readonly groupQueueBytesMax: number
  /** Transactions waiting at one node in all. */
  readonly nodeQueueMax: number
  /** Positions above the applied one that a group keeps; a replica further behind stops voting. */
  readonly openPositionsMax: number
  /** Transactions combined into one entry. */
  readonly entryTransactionsMax: number
  /** An entry of several transactions, encoded; one alone may make a larger one. */
  readonly entryBytesMax: number
  /** Keys and ranges that one transaction may name as read. */
  readonly transactionReadsMax: number
  /** Entries whose write sets a group remembers for validation, however old they are. */
  readonly validationWindow: number
  /** Entries remembered at most: beyond `validationWindow` only those younger than `validationMs`. */
  readonly validationWindowMax: number
  readonly validationMs: number
  /** Keys remembered in all. */
  readonly validationKeysMax: number
  /** Sessions whose outcomes a group remembers. */
  readonly groupSessionsMax: number
  /** Outcomes remembered for one session and group. */
  readonly sessionOutcomesMax: number
  /** How long a transaction that may have copies elsewhere waits for room among these. */
  readonly roomWaitMs: number
  /** Rows applied but not yet in the data store, in bytes; above it proposals are refused. */
  readonly overlayBytesMax: number
  /** Records taken but not yet in the log, in bytes; above it proposals are refused. */
  readonly logQueueBytesMax: number
  /** Rows that were read lately, kept in memory; 0 keeps none. */
  readonly rowCacheBytesMax: number
  /** One batch of the applier. */
  readonly applierBatchBytesMax: number
  /** How long the applier gathers work for a batch that more is wanted of than its groups. */
  readonly applierDelayMs: number
  /**
   * How long a committed entry may wait for a checkpoint: the batch that brings its group to the data store. A start
   * takes up from the log what came after.
   */
  readonly checkpointMs: number
  /** Rows that wait for checkpoints, in bytes; above it those that wait longest wait no longer. */
  readonly checkpointBytesMax: number
  /** The same of one group. */
  readonly checkpointGroupBytesMax: number
  /** How long a superseded version of a row stays readable: a group's horizon trails by this time. */
  readonly historyMs: number
  /**
   * The time after which the bytes of what was deleted are in no file. Four times `historyMs` at least: less counts as
   * that. 0: nothing is done about it, and the bytes go when other work takes their place.
   */
  readonly eraseWithinMs: number
  /** How long an open snapshot that is not read holds on, at its node, to what the horizon passed. */
  readonly snapshotHoldMs: number
  /** One flush of the log. */
  readonly flushBytesMax: number
  /** Flushes after which an undecided position holds up no longer what a start has to read. */
  readonly carryAfterFlushes: number
  /**
   * The log does not wait for a peer that holds up more bytes of it, or an older flush.
   */
  readonly logRetainBytes: number
  readonly logRetainMs: number
  /** The log gives up old flushes where they take this many bytes of the disk together. */
  readonly truncateBytesMin: number
  /** Entries sent in one catch-up answer. */
  readonly catchUpEntriesMax: number
  readonly catchUpBytesMax: number
  /**
   * Entries of a group above which a replica that lacks them is offered a snapshot of the group in their place.
   */
  readonly snapshotAfterEntries: number
  /** Groups of which a node takes snapshots in at once, and as many more that clients wait for. */
  readonly snapshotsMax: number
  /** One part of a snapshot. */
  readonly snapshotPartBytesMax: number
  /** The bytes of a snapshot that a node holds in memory and writes in one batch. It puts a larger one down beside the group first. */
  readonly snapshotBatchBytesMax: number
  /** How long the sender of a snapshot keeps it after a part has left: its store gives back nothing that was superseded meanwhile. */
  readonly snapshotPinMs: number
  /** Snapshots that a node sends in a second, bytes and groups; less while they slow its commits. */
  readonly snapshotBytesPerSecond: number
  readonly snapshotGroupsPerSecond: number
  /**
   * Groups named in one digest answer. A node that still lacks this many of a peer's groups asks that peer
   * for no more.
   */
  readonly digestGroupsMax: number
  /** Groups whose entries a peer may ask for before it is answered. */
  readonly questionsMax: number
  /** Groups whose entries this node asks a peer for at once; the others wait until those have come. */
  readonly fetchesMax: number
  /** The most that background work takes of one turn: time, pieces of work, bytes. */
  readonly sliceMs: number
  readonly slicePiecesMax: number
  readonly sliceBytesMax: number
  /** While others are at work, the next slice waits this many times as long as the last one took. */
  readonly sliceRests: number
  /** Between two rounds in which a node compares its groups with its peers'. */
  readonly compareMs: number
  /** Between two looks at what differs, or is at unequal positions, within a round. */
  readonly compareAgainMs: number
  /** How much of its stores a node scrubs in a second; an eighth of it while others are at work. */
  readonly scrubBytesPerSecond: number
  /** Between the end of a scrub and the next one. */
  readonly scrubPauseMs: number
  /** A proposer that lost waits this long at first; doubled at each loss up to the maximum. */
  readonly backoffMs: number
  readonly backoffMaxMs: number
  /** A phase whose answers do not come is started again after this. */
  readonly phaseTimeoutMs: number
  /**
   * A replica that waits for a position asks one peer after another for it, after this each time. After one wait
   * more than it has peers, it prepares.
   */
  readonly settleMs: number
  /**
   * When an accepted position stays undecided this long, the replica asks its peers for it, and then finishes
   * it.
   */
  readonly sweepMs: number
  /** A transaction forwarded to a leader is sent again after this. */
  readonly forwardMs: number
  /** How long a read lease lasts that is not renewed; 0: this node neither grants nor holds any. */
  readonly leaseMs: number
  /** The most by which a monotonic clock is taken to run fast or slow, in millionths. */
  readonly clockDriftPpm: number
  /** How far this node's wall clock may be ahead of a majority's: a node that is further goes by theirs. */
  readonly clockLeadMsMax: number
  /** Groups that this node holds a lease for, and that each peer may hold one for here. */
  readonly leaseGroupsMax: number
  /** A group without a read for this long is taken out of the lease. */
  readonly leaseIdleMs: number
  /** How long after a majority has accepted a position an invalidation goes to a lease holder that has not. */
  readonly invalidateMs: number
  /** A peer whose frames stop for this long is suspected. */
  readonly suspectMs: number
  readonly heartbeatMs: number
  /** How often a node asks each peer for what it may have missed. */
  readonly digestMs: number
  /** A peer's outgoing queue; above it messages are dropped and counted. */
  readonly peerQueueBytesMax: number
}

export const defaultLimits: Limits = {
  groupsInMemoryMax: 20_000,
  groupQueueMax: 10_000,
  groupQueueBytesMax: 64 * 1024 * 1024,
  nodeQueueMax: 50_000,
  openPositionsMax: 64,
  entryTransactionsMax: 1_000,
  entryBytesMax,
  transactionReadsMax: 10_000,
  validationWindow: 64,
  validationWindowMax: 1_024,
  validationMs: 10_000,
  validationKeysMax: 100_000,
  groupSessionsMax: 4_000,
  sessionOutcomesMax: 10_000,
  roomWaitMs: 5_000,
  overlayBytesMax: 128 * 1024 * 1024,
  logQueueBytesMax: 64 * 1024 * 1024,
  rowCacheBytesMax: 32 * 1024 * 1024,
  applierBatchBytesMax: 1024 * 1024,
  applierDelayMs: 50,
  checkpointMs: 5_000,
  checkpointBytesMax: 16 * 1024 * 1024,
  checkpointGroupBytesMax: 64 * 1024,
  historyMs: 3_600_000,
  eraseWithinMs: 86_400_000,
  snapshotHoldMs: 60_000,
  flushBytesMax: 16 * 1024 * 1024,
  carryAfterFlushes: 1_000,
  logRetainBytes: 1024 * 1024 * 1024,
  logRetainMs: 3_600_000,
  truncateBytesMin: 32 * 1024 * 1024,
  catchUpEntriesMax: 256,
  catchUpBytesMax: 4 * 1024 * 1024,
  snapshotAfterEntries: 10_000,
  snapshotsMax: 64,
  snapshotPartBytesMax: 256 * 1024,
  snapshotBatchBytesMax: 1024 * 1024,
  snapshotPinMs: 300_000,
  snapshotBytesPerSecond: 32 * 1024 * 1024,
  snapshotGroupsPerSecond: 5_000,
  digestGroupsMax: 4_096,
  questionsMax: 1_024,
  fetchesMax: 32,
  sliceMs: 4,
  slicePiecesMax: 256,
  sliceBytesMax: 1024 * 1024,
  sliceRests: 2,
  compareMs: 600_000,
  compareAgainMs: 500,
  scrubBytesPerSecond: 16 * 1024 * 1024,
  scrubPauseMs: 24 * 3_600_000,
  backoffMs: 10,
  backoffMaxMs: 2_000,
  phaseTimeoutMs: 500,
  settleMs: 30,
  sweepMs: 1_000,
  forwardMs: 1_000,
  leaseMs: 1_000,
  clockDriftPpm: 10_000,
  clockLeadMsMax: 500,
  leaseGroupsMax: 10_000,
  leaseIdleMs: 10_000,
  invalidateMs: 5,
  suspectMs: 1_000,
  heartbeatMs: 200,
  digestMs: 2_000,
  peerQueueBytesMax: 64 * 1024 * 1024,
}

/** Clocks that are off by more are broken, and no lease could be relied on. */
export const clockDriftPpmMax = 200_000

/** Less than messages take makes every clock look ahead. */
export const clockLeadMsMin = 100

/** A machine that stands still for this long, its monotonic clock with it, may not notice. */
export const suspensionMs = 50

/**
 * How long a holder counts on a lease. The function takes off the longest suspension that the holder may not
 * notice, and the drift of its two clocks: the one that it counts by, and the one that shows the suspension.
 */
export function heldMs(leaseMs: number, clockDriftPpm: number): number {
  return leaseMs * (1 - (2 * clockDriftPpm) / 1_000_000) - suspensionMs
}

/** The shortest lease that is held for half its time: renewals come after each quarter. */
export function leaseMsMin(clockDriftPpm: number): number {
  return Math.ceil((suspensionMs * 1_000_000) / (500_000 - 2 * clockDriftPpm))
}

/** A hundred years: in microseconds, still far from the end of exact numbers. */
const historyMsMax = 100 * 366 * 86_400_000

/** Stops when the bounds contradict one another. */
export function checkLimits(limits: Limits): void {
  assert(limits.heartbeatMs * 3 <= limits.suspectMs, 'limits: a peer is suspected too soon')
  assert(limits.backoffMs <= limits.backoffMaxMs, 'limits: back-off starts above its maximum')
  assert(limits.entryBytesMax <= entryBytesMax, 'limits: an entry is larger than its bound')
  assert(entryBytesMax < frameBytesMax, 'limits: an entry does not fit a frame')
  assert(transactionBytesMax <= entryBytesMax, 'limits: a transaction does not fit an entry')
  assert(
    limits.clockDriftPpm <= clockDriftPpmMax,
    'limits: under such clocks no lease can be given',
  )
  assert(
    limits.leaseMs === 0 || limits.leaseMs >= leaseMsMin(limits.clockDriftPpm),
    'limits: a lease is hardly held before it is over',
  )
  assert(limits.clockLeadMsMax >= clockLeadMsMin, 'limits: every message makes a clock look ahead')
  assert(limits.validationWindow >= 1, 'limits: the validation window is empty')
  assert(limits.historyMs >= 1, 'limits: a version is gone as soon as it is superseded')
  assert(limits.historyMs <= historyMsMax, 'limits: history is kept beyond all clocks')
  assert(limits.snapshotHoldMs >= 1, 'limits: a snapshot is not held between two reads of it')
}

checkLimits(defaultLimits)
