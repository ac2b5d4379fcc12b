/**
 * A node's part in the changes of its replica set's voters: it follows the row of the set's own group, seals the epoch
 * before when the row names another one, passes the gate, and moves a change on. Between changes it does nothing.
 */
import { StoreError } from '../base/errors.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Leases } from '../lease/leases.ts'
import type { LogStore } from '../log/log-store.ts'
import { isRecovered } from '../log/quorum-loss.ts'
import type { Newcomer } from '../peers/admission.ts'
import type { Peers } from '../peers/peers.ts'
import { RetiredStore } from '../peers/refusal.ts'
import type { Work } from '../peers/slices.ts'
import type { SetNodes } from '../placement/set-nodes.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import type { VotersTold } from '../ports/transport.ts'
import type { GroupEvent } from '../replication/group.ts'
import type { EpochMessage, StandingTold } from '../replication/message.ts'
import * as changes from './change.ts'
import type { Epochs } from './epochs.ts'
import { GateKeeper } from './gate-keeper.ts'
import { MemberReports } from './member-reports.ts'
import { MemberRequests } from './member-requests.ts'
import { Mover, type MoverParts } from './mover.ts'
import { LaterSetRequests, type LaterSetRequestsParts } from './later-set-requests.ts'
import { findWithoutVote, hasTakenUp } from './newcomer.ts'
import type { MembersPort, VotersReport } from './report.ts'
import { ShareRequests, type ShareRequestsParts } from './share-requests.ts'
import { SealPages, type GroupLook } from './seal-pages.ts'
import { setRowKey } from './set-group.ts'
import { SetVersion, UnsupportedVersion } from './set-version.ts'
import { StandingsTold } from './standings-told.ts'
import type { VersionGate } from './version-gate.ts'

export interface MembersParts
  extends
    Pick<MoverParts, 'readCurrent' | 'submit' | 'stamp'>,
    Pick<ShareRequestsParts & LaterSetRequestsParts, 'isOfName' | 'get' | 'firstSetCount'> {
  readonly node: NodeId
  /** The nodes that the set began with, in their order, and the row before the first change. */
  readonly first: readonly NodeId[]
  readonly firstRow: changes.SetRow
  readonly nodes: SetNodes
  /** The set's own group. */
  readonly group: GroupId
  readonly log: LogStore
  readonly data: { readonly lastBatch: number; readonly durableBatch: number }
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: Limits
  readonly epochs: Epochs
  readonly gate: VersionGate
  leases(): Leases
  peers(): Peers
  watch(position: Position, wake: () => void): () => void
  /** Whether a snapshot is taking the place of the group's rows. */
  isAside(group: GroupId): boolean
  look(group: GroupId): GroupLook
  applied(group: GroupId): Position
  /** The event goes to each group in which a transaction or a read waits. */
  stepWaiting(event: GroupEvent): void
  step(group: GroupId, event: GroupEvent): void
  /** The nodes in `nodes` may have changed; where those are reached that the set did not begin with. */
  onNodes(urls: ReadonlyMap<NodeId, string>): void
  isRestored(): boolean
  later(lane: string, work: Work): void
  /** This node's store has no part in the set any more, or its build does not support the cluster version in force. */
  onRetired(reason: StoreError): void
  onFailed(error: unknown): void
}

/** Times between two looks at a seal or a gate that is on its way, and at a change that another node goes on with. */
const sealTickMs = 20
const changeTickMs = 100
/** The same of groups outside the gate, which wait for a node that may be down; and of a row that is to be confirmed. */
const idleTickMs = 1_000
/** A node tells its part again after this time, while a change is under way: the frame may have been lost. */
const tellAgainMs = 500
const confirmMs = 5_000
const remindersPerTelling = 5
/** A change that stands still for this long is the next node's to go on with. */
const moverPatienceMs = 3_000

export class Members {
  /** Called when another epoch has begun, as far as this node knows. */
  onEpoch: () => void = () => undefined
  readonly #parts: MembersParts
  readonly #gate: GateKeeper
  readonly #pages: SealPages
  readonly #mover: Mover
  readonly #reports: MemberReports
  readonly port: MembersPort
  readonly #version: SetVersion
  readonly shares: ShareRequests
  readonly laterSets: LaterSetRequests
  readonly #told: StandingsTold
  #row: changes.SetRow = changes.firstRow
  /** When this node found the row as it is. */
  #rowMs = 0
  #timer: Timer | undefined
  #unwatch: () => void = () => undefined
  #isStarted = false
  #isStopped = false
  #isConfirming = false
  #toldMs = 0
  #reminders = 0

  constructor(parts: MembersParts) {
    this.#parts = parts
    this.#told = new StandingsTold(parts)
    const { node, log, data, clock, trace, limits, epochs, group } = parts
    const { look, applied, step, later, readCurrent, submit, stamp, onFailed } = parts
    const isSound = (): boolean => this.#isStarted && parts.isRestored()
    const send = (to: NodeId, message: EpochMessage): void => this.#send(to, message)
    this.#pages = new SealPages({ epochs, trace, limits, log, isSound, look, later, send })
    this.#gate = new GateKeeper({
      ...{ node, epochs, clock, trace, log, data },
      ...{ isSound, look, applied, step, send, onFailed },
      ...{ isAside: parts.isAside },
      isTakenThrough: (...asked) => parts.peers().isTakenThrough(...asked),
      requireDirectory: (...asked) => parts.peers().requireDirectory(...asked),
      hasNamedAll: (...asked) => parts.peers().hasNamedAll(...asked),
      // Groups with open positions may keep others waiting until this node has a vote.
      requestDigest: (peer) => parts.peers().requestDigest(peer, true),
      onPassed: () => this.#onPassed(),
    })
    const run = `${log.identity.storeId}-${log.run}`
    const written = { group, readCurrent, submit, stamp }
    const votersOf = (row: changes.SetRow): readonly NodeId[] => this.#votersOf(row)
    this.#mover = new Mover({
      ...{ node, clock, trace, onFailed, ...written, votersOf, run: `change-${run}` },
      row: () => this.#read(),
      lastRow: () => this.#row,
      isFirst: () => this.#isFirst(),
      newcomer: (...asked) => this.#told.newcomer(...asked),
      isVoting: () => epochs.isVoting && epochs.own.epoch === this.#row.epoch,
    })
    this.#version = new SetVersion({ ...parts, send })
    const version = this.#version
    const common = { node, nodes: parts.nodes, log, peers: parts.peers, version }
    this.#reports = new MemberReports({
      ...{ ...common, epochs, votersOf },
      row: () => this.#row,
      told: (peer) => this.#told.get(peer),
    })
    const ofSet = { ...parts, ...written, mover: this.#mover }
    this.shares = new ShareRequests({ ...ofSet, run: `shares-${run}` })
    this.laterSets = new LaterSetRequests({ ...ofSet, run: `sets-${run}` })
    const reports = this.#reports
    this.port = new MemberRequests({ ...common, votersOf, reports, mover: this.#mover })
  }

  /** Called when the log is replayed: from now on the node follows the row. */
  start(): void {
    this.#isStarted = true
    this.#follow()
  }

  stop(): void {
    this.#isStopped = true
    this.#unwatch()
    this.#timer?.cancel()
  }

  #read(): changes.SetRow {
    const bytes = this.#parts.get(setRowKey)
    return bytes === undefined ? this.#parts.firstRow : this.#version.read(bytes)
  }

  /** Takes up the row as it is now, and again whenever the group moves. */
  #follow(): void {
    if (this.#isStopped) return
    const { group, applied, watch } = this.#parts
    this.#unwatch()
    this.#unwatch = watch(applied(group), () => this.#follow())
    try {
      this.#take(this.#read())
      this.shares.follow(this.#row.epoch)
    } catch (error) {
      if (error instanceof UnsupportedVersion) return this.#endAs(error)
      // The group is aside: a snapshot puts its rows right, and wakes the watcher.
      if (!(error instanceof StoreError)) throw error
    }
    this.#lookAtNodes()
    this.#tick()
  }

  #votersOf({ voters = this.#parts.first }: changes.SetRow): readonly NodeId[] {
    return voters
  }

  /** The row names the nodes to have links with, and where those are that the set did not begin with. */
  #lookAtNodes(): void {
    const { epochs, onNodes } = this.#parts
    epochs.look(this.#row)
    onNodes(this.#row.urls)
  }

  #take(row: changes.SetRow): void {
    if (!changes.isSameStep(row.change, this.#row.change))
      this.#rowMs = this.#parts.clock.monotonicMs()
    const isLater = row.epoch !== this.#row.epoch
    this.#row = row
    this.#version.apply(changes.versionOf(row))
    if (isLater) this.onEpoch()
  }

  /** UPG-1, MOVE-7: in words that the process says as it ends. */
  #endAs(reason: StoreError): void {
    this.stop()
    this.#parts.onRetired(reason)
  }

  #tick(): void {
    if (this.#isStopped) return
    const { epochs, onFailed, peers } = this.#parts
    try {
      if (this.#isOver()) return
      if (epochs.mayFollow(this.#row)) this.#takePart()
      if (epochs.own.isDoubted) this.#confirm()
      if (this.#mustSeal) this.#seal()
      peers().checkVoters()
      this.#gate.go()
      this.#mover.go()
      if (this.#isRowBehind) this.#recordRecovery()
      this.#tellAgain()
    } catch (error) {
      return onFailed(error)
    }
    this.#schedule()
  }

  /** A store without a vote has nothing to seal: it waits for the epoch that names it. One that leaves seals its last epoch. */
  get #mustSeal(): boolean {
    const { epochs, node } = this.#parts
    if (this.#row.epoch <= epochs.own.epoch) return false
    const { isMember } = epochs.own
    const isReader = this.#row.readers.has(node)
    return (
      (isMember && (isReader || changes.isLeaving(this.#row, node))) || epochs.isNamed(this.#row)
    )
  }

  /** As a read-only member of the row's epoch. */
  #takePart(): void {
    this.#parts.epochs.follow(this.#row, () => this.#onPassed())
    this.#lookAtNodes()
    this.#askDirectories()
  }

  /**
   * A list of groups that a read-only member makes needs them, of voters that are past their gates; and so does a node that
   * takes up what the others have.
   */
  #askDirectories(): void {
    const { epochs, nodes, peers, isRestored } = this.#parts
    const epoch = epochs.directoriesOf
    for (const node of nodes.otherVoters) {
      const told = this.#told.get(node)
      if (epoch > 0 && this.#told.hasVote(node)) peers().requireDirectory(node, epoch, true)
      if (told !== undefined && !isRestored() && hasTakenUp(told)) {
        peers().requireDirectory(node, told.epoch)
      }
    }
  }

  /**
   * Whether the peer has named all that it has; behind the first epoch, whether that is durably applied here, too. A node that is
   * past its gate has all of the epochs before.
   */
  hasNamedAll(peer: NodeId): boolean {
    const { peers, epochs, isRestored } = this.#parts
    if (isRestored() && epochs.isVoting) return true
    // A build of before epochs is in the first one.
    if (!peers().knowsEpochs(peer)) return epochs.own.epoch === 1
    const told = this.#told.get(peer)
    if (told === undefined || told.epoch === 1) return told !== undefined
    return hasTakenUp(told) && peers().hasNamedAll(peer, told.epoch, true)
  }

  /** An operator has begun this node's epoch, and the row does not say so yet. */
  get #isRowBehind(): boolean {
    const { own } = this.#parts.epochs
    return own.isMember && isRecovered(own.epoch, this.#row.epoch)
  }

  #recordRecovery(): void {
    const { epochs, nodes, log } = this.#parts
    if (!this.#isFirst()) return
    const { epoch } = epochs.own
    const known = log.memory.kept.map(({ incarnation }) => incarnation)
    const recovered = { epoch, voters: [...nodes.voters], lastSeat: Math.max(0, ...known) }
    this.#mover.record((row, now) => {
      return row.epoch < epoch ? changes.recordRecovery(row, recovered, now) : undefined
    })
  }

  #schedule(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#isStopped) return
    const { epochs, clock } = this.#parts
    const { own } = epochs
    const isAtGate = this.#gate.isBusy && own.gated < own.epoch
    const isSealing = this.#mustSeal || !epochs.isSealDurable || isAtGate
    const isIdle = !isSealing && !this.#mover.isBusy && !this.#isRowBehind
    if (isIdle && !this.#gate.isBusy && !own.isDoubted) return
    const ms = isSealing ? sealTickMs : isIdle ? idleTickMs : changeTickMs
    this.#timer = clock.setTimer(ms, () => this.#tick())
  }

  /** The record of the epoch was lost: it is the row's, if a majority of the others has no later one. */
  #confirm(): void {
    const { epochs, group, nodes, log, readCurrent, onFailed } = this.#parts
    if (this.#isConfirming || !log.memory.isWhole) return
    // The row of the last epoch names the nodes that a majority is of.
    if (this.#row.epoch < epochs.lastHeard) return
    const confirm = (): void => {
      this.#take(this.#read())
      // The peers have heard that it was in doubt. No change comes by which they would hear more.
      if (epochs.own.isDoubted) epochs.confirm(this.#row, () => this.#onSealed())
    }
    // Of fewer than three nodes the others are no majority.
    if (nodes.voters.length < 3) return confirm()
    this.#isConfirming = true
    readCurrent(group, confirmMs)
      .then(confirm)
      .catch((error: unknown) => {
        if (!(error instanceof StoreError)) onFailed(error)
      })
      .finally(() => (this.#isConfirming = false))
  }

  #tellAgain(): void {
    const { clock } = this.#parts
    const now = clock.monotonicMs()
    if (!this.#mover.isBusy || now - this.#toldMs < tellAgainMs) return
    this.#toldMs = now
    this.#tellAll()
  }

  /** The seal: not before every lease is over that this node has given in the epoch (LEASE-2). */
  #seal(): void {
    const { epochs, clock, leases } = this.#parts
    if (epochs.isVoting) {
      leases().end()
      if (!leases().areGrantsOver(clock.monotonicMs())) return
    }
    epochs.enter(this.#row, () => this.#onSealed())
    leases().begin()
    this.#lookAtNodes()
  }

  /** This node's part has changed, durably. */
  #onSealed(): void {
    if (this.#isStopped) return
    this.#tellAll()
    this.#tick()
  }

  #onPassed(): void {
    if (this.#isStopped) return
    this.#tellAll()
    this.#parts.stepWaiting({ kind: 'wake' })
    this.#tick()
  }

  /** A store that another one has replaced serves nothing any more, and neither does one whose seat was given up. */
  #isOver(): boolean {
    const { node, log } = this.#parts
    const { seat, storeId } = log.identity
    if (!changes.isOver(this.#row, node, storeId, seat)) return false
    const named = this.#row.readers.get(node) ?? this.#row.stores.get(node)
    const why =
      named !== undefined && named.seat > seat
        ? `Store ${named.store} takes part as ${node} in the place of this store ${storeId}`
        : this.#row.change?.seat === seat
          ? `Seat ${seat} was given up, and this store has none`
          : `${node} was removed from its replica set, with this store ${storeId}`
    this.#endAs(new RetiredStore(`${why}. Move this data folder away.`))
    return true
  }

  onMessage(from: NodeId, message: EpochMessage): void {
    switch (message.kind) {
      case 'standing':
        return this.#onStanding(from, message)
      case 'seal-request':
        if (message.epoch > this.#parts.epochs.own.epoch)
          this.#parts.peers().requestDigest(from, true)
        return this.#pages.ask(from, message)
      case 'seal-page':
        this.#gate.onPage(from, message)
        return this.#schedule()
      case 'version':
        return this.#version.hear(from, message.inForce)
    }
  }

  #onStanding(from: NodeId, told: StandingTold): void {
    const { own } = this.#parts.epochs
    const hadVote = this.#told.get(from)?.gated === own.epoch
    this.#told.set(from, told)
    const hasVote = told.epoch === own.epoch && told.gated === own.epoch && own.epoch > 1
    if (hasVote && !hadVote) this.#parts.stepWaiting({ kind: 'voter', peer: from })
    if (told.epoch === own.epoch) this.#gate.onSealed(from)
    this.#askDirectories()
    // It waits for this node's part, and the frame that told it may have been lost.
    if (!told.isRestored && this.#parts.isRestored()) this.#tell(from)
    // The row that begins that epoch stands in the peer's log. Positions that are open here may wait for it, and hold it not up.
    if (told.epoch > this.#parts.epochs.own.epoch) this.#parts.peers().requestDigest(from, true)
    this.#mover.go()
  }

  /** A link is in use: the peer hears of this node's part. */
  onJoined(peer: NodeId): void {
    this.#told.delete(peer)
    this.#tell(peer)
    this.#version.onJoined(peer)
  }

  /** The data store has all that it has to have. */
  onRestored(): void {
    this.#tellAll()
    this.#schedule()
  }

  /** Called every `digestMs`. Behind the first epoch a peer may have missed the frame that told it of this node's part. */
  remind(): void {
    this.#reminders += 1
    const isDue = this.#reminders % remindersPerTelling === 0
    const isNews = this.#parts.epochs.own.epoch > 1 || !this.#parts.isRestored()
    if (isDue && isNews) this.#tellAll()
    if (isDue) this.#version.tellAll()
  }

  #tellAll(): void {
    for (const node of this.#parts.nodes.others) this.#tell(node)
  }

  #tell(to: NodeId): void {
    const { epochs, isRestored } = this.#parts
    if (!epochs.isKept) return
    const { epoch, gated } = epochs.own
    this.#send(to, { kind: 'standing', epoch, gated, isRestored: isRestored() })
  }

  #send(to: NodeId, message: EpochMessage): void {
    if (this.#parts.peers().knowsEpochs(to)) this.#parts.peers().send(to, message)
  }

  /** A peer told which nodes vote, as its link began. */
  hearVoters(told: VotersTold): void {
    if (this.#parts.epochs.hear(told)) this.#lookAtNodes()
  }

  /** The store that may have a link under the node's name, and has no vote: a newcomer, or a read-only member. */
  findNewcomer(node: NodeId): Newcomer | undefined {
    return findWithoutVote(this.#row, node)
  }

  get lastSeat(): number {
    return this.#row.lastSeat
  }

  /** The features that may be used here. */
  get gate(): VersionGate {
    return this.#parts.gate
  }

  /**
   * Whether the row is of the last epoch that this node has heard of: it names the read-only members, too. An operator who
   * begins an epoch after the loss of a quorum leaves none.
   */
  get knowsNodes(): boolean {
    const { epochs } = this.#parts
    const { epoch, isDoubted } = epochs.own
    if (isDoubted) return false
    return this.#row.epoch >= epochs.lastHeard || isRecovered(epoch, this.#row.epoch)
  }

  /**
   * The first node that votes, as far as it has told; after a while the next one: the first may have no link to the
   * newcomer, or may not get on. The time that stands in the row is of another node's wall clock, which may be far ahead.
   */
  #isFirst(): boolean {
    const { node, nodes, epochs, clock } = this.#parts
    if (!epochs.isVoting) return false
    const waitedMs = clock.monotonicMs() - this.#rowMs
    const voting = nodes.voters.filter((one) => one === node || this.#told.hasVote(one))
    return waitedMs >= moverPatienceMs * voting.indexOf(node)
  }

  /** The voters of the last epoch that this node knows to have begun. */
  get voters(): VotersReport {
    return this.#reports.voters
  }
}
