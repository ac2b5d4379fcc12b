import type { NodeId } from '../base/ids.ts'
import type { Leases } from '../lease/leases.ts'
import { countDamages } from '../log/log-mending.ts'
import type { LogEndFigures, PeerMark } from '../log/log-end.ts'
import type { LogStore } from '../log/log-store.ts'
import type { ScrubFigures } from '../log/scrubber.ts'
import type { MembersReport } from '../members/report.ts'
import type { PeerWork } from '../peers/peer-work.ts'
import type { Peers } from '../peers/peers.ts'
import type { Refusals } from '../peers/refusal.ts'
import type { Clock } from '../ports/clock.ts'
import type { DataStore } from '../store/data-store.ts'
import type { LogEnding } from '../peers/log-ending.ts'
import type { EraseFigures } from './erase-report.ts'
import type { Erasing } from './erasing.ts'
import type { CompareFigures, Comparing } from './comparing.ts'
import type { Replica } from './replica.ts'
import type { RowScrubFigures } from './row-scrub.ts'
import type { Requests } from './requests.ts'

/** Snapshots of groups, which nodes send each other in the place of entries. Counted since the start, or as of the call. */
export interface SnapshotFigures {
  /** Sent whole, and the bytes of all parts that were sent. */
  readonly sent: number
  readonly sentBytes: number
  /** On their way to peers. */
  readonly sending: number
  /** The part of what the limits allow that is sent at present, from 1/16 to 1: less while commits take long. */
  readonly pace: number
  /** Taken from peers to their end. */
  readonly taken: number
  /** On their way here; groups that wait for theirs to begin. */
  readonly taking: number
  readonly waiting: number
}

/** The state of a replica as an operator sees it. Counts and bytes as of the call. */
export interface ReplicaStatus extends ScrubFigures, RowScrubFigures, LogEndFigures {
  readonly storeId: string
  readonly incarnation: number
  readonly durableFlush: number
  readonly settledFlush: number
  readonly groupsInMemory: number
  readonly requests: number
  readonly overlayBytes: number
  /** Groups whose entries this node lacks, as far as it knows, and asks peers for. */
  readonly lackingGroups: number
  /** These are many: it was away, and serves fewer clients than it could until it has them. */
  readonly isCatchingUp: boolean
  /**
   * The data store was lost, and the peers restore it: these have more that it needs. Until a majority of them is done with, the
   * node has no vote (LOG-19). Empty: it is restored.
   */
  readonly restoringFrom: readonly NodeId[]
  /** Snapshots that delay collection here. */
  readonly openSnapshots: number
  /** Snapshots of groups between this node and its peers. */
  readonly snapshots: SnapshotFigures
  /** Deletions whose bytes may still stand in files of this node. */
  readonly erase: EraseFigures
  /** The comparison of this node's groups with its peers', and what it mends. */
  readonly compare: CompareFigures
  /** Groups that this node may serve current reads of without asking. */
  readonly leasedGroups: number
  /** Groups that peers may serve so as far as this node knows, each peer's counted. */
  readonly grantedGroups: number
  /** How far this node's wall clock is ahead of a majority's at least, or behind them, milliseconds; 0: it is not. */
  readonly clockLeadMs: number
  readonly clockLagMs: number
  /** By more than `clockLeadMsMax`. */
  readonly isClockAhead: boolean
  readonly isClockBehind: boolean
  /** CLOCK-3: too few others have told their clocks yet. */
  readonly areClocksAwaited: boolean
  /** False: the log has lost who votes with which store; no peer is let in before a majority has told it. */
  readonly remembersPeers: boolean
  /** How often `log/` was found damaged; flushes lost with that; where each was, in words. */
  readonly logDamages: number
  /** How many of these a scrub found beneath the running node, which lost nothing by it. */
  readonly scrubLogDamages: number
  readonly lostFlushes: number
  readonly logDamage: readonly string[]
  /** Refusals of peers that this node's own log refutes. */
  readonly falseClaims: number
  readonly failure: string | undefined
  /** The voters of the replica set, and the last change of them. */
  readonly members: MembersReport
  readonly peers: readonly PeerStatus[]
}

export type PeerStatus = ReturnType<Peers['list']>[number] & PeerMark

export interface StatusParts {
  readonly log: LogStore
  readonly data: DataStore
  readonly replica: Replica
  readonly requests: Requests
  readonly work: PeerWork
  readonly leases: Leases
  readonly peers: Peers
  readonly refusals: Refusals
  readonly failure: Error | undefined
  readonly clock: Clock
  readonly ending: LogEnding
  readonly erasing: Pick<Erasing, 'figures'>
  readonly comparing: Pick<Comparing, 'figures' | 'rows'>
  readonly members: MembersReport
}

export function buildStatus(parts: StatusParts): ReplicaStatus {
  const { log, data, replica, requests, work, leases, peers, refusals, failure, clock } = parts
  const { ending } = parts
  const marks = ending.peers()
  const { storeId, incarnation } = log.identity
  const { durableFlush, settledFlush } = log
  return {
    ...{ storeId, incarnation, durableFlush, settledFlush, ...ending.figures },
    groupsInMemory: replica.groupsInMemory,
    requests: requests.count,
    overlayBytes: data.overlayBytes,
    lackingGroups: work.fetches.lacking,
    isCatchingUp: work.returning.isCatchingUp,
    restoringFrom: ending.restoring.lacking,
    snapshots: countSnapshots(work),
    compare: parts.comparing.figures,
    openSnapshots: data.pins.count(clock.monotonicMs()),
    erase: parts.erasing.figures,
    leasedGroups: leases.heldGroups,
    grantedGroups: leases.grantedGroups,
    ...peers.clocks.status({ wall: clock.wallMicros(), now: clock.monotonicMs() }),
    remembersPeers: log.memory.isWhole,
    ...countDamages(log.damages),
    falseClaims: refusals.falseClaims,
    ...{ ...work.scrubber.figures, ...parts.comparing.rows.figures },
    failure: failure?.message,
    members: parts.members,
    peers: peers
      .list()
      .map((peer) => ({ ...peer, ...(marks.get(peer.node) ?? { isBehind: false }) })),
  }
}

function countSnapshots({ supply, taking }: PeerWork): SnapshotFigures {
  const { groups: sent, bytes: sentBytes, open: sending } = supply.figures
  const { groups: taken, open, waiting } = taking.figures
  return { sent, sentBytes, sending, pace: supply.pace.part, taken, taking: open, waiting }
}
