/**
 * Runs the pure core on the ports: steps groups, has their effects carried out (`effect-runner.ts`), and
 * answers this node's edge. The same driver runs in the daemon and in the simulator; only the ports
 * differ.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import { Holdings } from '../placement/holdings.ts'
import { isFirstAlive, type ReplicaSet } from '../placement/placement.ts'
import { SetNodes } from '../placement/set-nodes.ts'
import type { GroupEvent } from '../replication/group.ts'
import { LocalWorklist } from '../store/worklist.ts'
import { Comparing } from './comparing.ts'
import { EffectRunner } from './effect-runner.ts'
import { Edge } from './edge.ts'
import { Erasing } from './erasing.ts'
import { Inbound } from './inbound.ts'
import { toError } from '../store/damage.ts'
import type { DataStore } from '../store/data-store.ts'
import { DriverLinks, makePeers } from './driver-links.ts'
import { makeMembers, testReader } from './driver-members.ts'
import { makePeerWork, readNow } from './driver-work.ts'
import type { DriverOptions, DriverPorts } from './driver-ports.ts'
import { openStores, type OpenStores } from './open-stores.ts'
import { watchStores } from './store-hooks.ts'
import { Deadlines } from '../time/deadlines.ts'
import { listGroups } from './group-list.ts'
import { LogEnding } from '../peers/log-ending.ts'
import { Backpressure } from '../peers/backpressure.ts'
import type {
  LocalWorklists,
  IntentName,
  IntentOutcome,
  LocalReplica,
  Outcome,
  Submission,
} from '../group/replica-port.ts'
import { LeaseKeeper } from '../peers/lease-keeper.ts'
import { Epochs } from '../members/epochs.ts'
import type { Members } from '../members/members.ts'
import { Moving } from './moving.ts'
import type { LogStore } from '../log/log-store.ts'
import type { PeerClocks } from '../peers/peer-clocks.ts'
import type { PeerWork } from '../peers/peer-work.ts'
import type { Peers } from '../peers/peers.ts'
import { StoredRecords } from './record-source.ts'
import { Refusals } from '../peers/refusal.ts'
import { Replica, type ObservedLeases, type Reading } from './replica.ts'
import { buildStatus, type ReplicaStatus } from './replica-status.ts'
import { GroupDiscovery } from '../peers/group-discovery.ts'
import { Rounds } from '../time/rounds.ts'
import { Steps } from './steps.ts'
import { Upkeep } from './upkeep.ts'
import { replayLog } from './log-replay.ts'

export class Driver implements LocalReplica {
  /** The node must stop: its disk refused, a peer says that it is stale, or it found a bug. Called once. */
  onFailure: (reason: Error) => void = () => undefined
  /** A message of a peer met a bug, and nothing came of it. */
  onBug: (error: unknown) => void = (error) => this.#fail(toError(error))
  readonly worklist: LocalWorklists
  readonly groups: LocalReplica['groups']
  /** The rounds of comparing and of scrubbing that an operator begins. */
  readonly upkeep: Upkeep
  readonly #ports: DriverPorts
  readonly #options: DriverOptions
  readonly #holdings: Holdings
  readonly #nodes: SetNodes
  readonly #log: LogStore
  readonly #data: DataStore
  readonly #source: StoredRecords
  readonly #replica: Replica
  readonly #peers: Peers
  readonly #work: PeerWork
  readonly #ending: LogEnding
  readonly #erasing: Erasing
  readonly #comparing: Comparing
  readonly #discovery: GroupDiscovery
  readonly #keeper: LeaseKeeper
  readonly #epochs: Epochs
  readonly members: Members
  readonly moving: Moving
  readonly #hasLeft = (group: GroupId): boolean => this.moving.movedTo(group) !== undefined
  readonly #edge: Edge
  readonly #inbound: Inbound
  readonly #links: DriverLinks
  readonly #wakes: Deadlines<GroupId>
  readonly #rounds: Rounds
  /** The calls that nearly all parts make. */
  readonly #calls = {
    step: (group: GroupId, event: GroupEvent): void => this.#step(group, event),
    onFailed: (error: unknown): void => this.#fail(toError(error)),
  }
  readonly #steps: Steps = new Steps({
    run: (group, event) =>
      this.#effects.run(this.#replica.step(group, event, this.#reading()), group),
    // A store that cannot be read, or a bug. The node does nothing of what the step asked for, and answers
    // no waiting call: the node is what fails, not the call that met it.
    onFailed: (error) => this.#fail(toError(error)),
    onDone: () => this.#effects.tellApplied(),
  })
  readonly #backpressure: Backpressure
  readonly #effects: EffectRunner
  readonly #refusals: Refusals
  #failure: Error | undefined
  #isStopped = false

  /** Opens the stores. Rejects with `corrupt` or `invalid` when they must not be used. */
  static async open(ports: DriverPorts, options: DriverOptions): Promise<Driver> {
    return new Driver(ports, options, await openStores(ports, options))
  }

  private constructor(ports: DriverPorts, options: DriverOptions, stores: OpenStores) {
    const { log, data, settled } = stores
    ;[this.#ports, this.#options, this.#log, this.#data] = [ports, options, log, data]
    const [{ clock, trace }, { node, limits }] = [ports, options]
    this.#holdings = new Holdings(options.placement, node)
    const { incarnation } = log.identity
    const first = options.placement.nodesOf(options.placement.setOfNode(node))
    const nodes = (this.#nodes = new SetNodes(node, first))
    const source = (this.#source = new StoredRecords(log, data))
    this.#epochs = new Epochs({ ...log.identity, ...options, trace, log, nodes, first })
    this.#keeper = new LeaseKeeper({
      send: (to, message) => this.#peers.send(to, message),
      onRevoked: (group, peer) => this.#step(group, { kind: 'revoked', peer }),
      ...{ node, nodes: nodes.others, incarnation },
      ...{ limits, clock, longestLeaseMs: log.longestLeaseMs },
    })
    this.#backpressure = new Backpressure({ limits, log, data, held: () => this.#replica })
    this.#work = this.#peerWork()
    const [{ fetches, slices, replies, taking }, { leases }] = [this.#work, this.#keeper]
    const fetchPatienceMs = this.#work.patienceMs.bind(this.#work)
    const held = { source, leases, fetchPatienceMs, epochs: this.#epochs, incarnation, trace }
    this.#replica = new Replica({ ...held, ...options })
    this.#wakes = new Deadlines(clock, (group, nowMs) => this.#onDue(group, nowMs))
    this.#rounds = new Rounds(clock)
    this.#links = this.#makeLinks()
    this.#peers = makePeers({
      ...{ node, nodes, limits, clock, trace, transport: ports.peers, data, log },
      ...{ links: this.#links, work: this.#work, members: () => this.members },
      onDigested: (...told) => this.#ending.onDigested(...told),
    })
    this.#comparing = this.#makeComparing()
    this.upkeep = new Upkeep({ comparing: this.#comparing, scrubber: this.#work.scrubber, log })
    this.#edge = this.#makeEdge()
    const [{ installs }, { shares }] = [this.#edge, this.#epochs]
    const own = { nodes, peers: this.#peers, replica: this.#replica, trace, data, taking }
    this.moving = new Moving({ ...options, ...own, installs, shares })
    this.#ending = new LogEnding({
      ...{ nodes, settled, log, data, clock, trace, limits, replies, slices, peers: this.#peers },
      hasNamedAll: (peer) => this.members.hasNamedAll(peer),
      onRestored: () => this.members.onRestored(),
      ...{ epochs: this.#epochs, onFailed: this.#calls.onFailed },
      onDigested: (...told) => this.#discovery.onDigest(...told),
    })
    this.#erasing = this.#makeErasing(stores.book)
    this.members = this.#makeMembers()
    this.#inbound = this.#makeInbound()
    this.#effects = new EffectRunner({
      ...{ node, clock, trace, log, data, replica: this.#replica, fetches, replies },
      ...{ peers: this.#peers, keeper: this.#keeper, wakes: this.#wakes },
      requests: this.#edge.requests,
      deliver: (message) => this.#step(message.group, { kind: 'message', from: node, message }),
    })
    // A transaction passed on to a node before there is a link is lost, and its caller would wait for it.
    for (const other of nodes.others) this.#replica.suspect(other, true)
    this.#discovery = new GroupDiscovery({
      ask: (peer) => this.#peers.requestDigest(peer),
      ...{ clock, againMs: limits.heartbeatMs, nodes, epochs: this.#epochs },
      isRestored: () => this.#ending.restoring.isOver,
    })
    const known = (): GroupId[] => [...this.#replica.known(), ...fetches.named()]
    const listing = { discovery: this.#discovery, data, known, isOver: () => this.#isOver }
    this.groups = (...asked) => listGroups(listing, ...asked)
    this.#refusals = new Refusals(log, trace, (error) => this.#fail(error))
    this.#watchStores()
    this.worklist = new LocalWorklist(data.listing, clock, {
      isOurs: (group) => this.#isFirst(group),
      ...(options.placement.setCount > 1 && { hasLeft: this.#hasLeft }),
    })
  }

  #isFirst(group: GroupId): boolean {
    if (!this.#epochs.own.isMember) return false
    const { voters } = this.#setOf(group)
    return isFirstAlive(this.#options.node, voters, (one) => this.#peers.isAlive(one))
  }

  #makeErasing(book: OpenStores['book']): Erasing {
    const [{ clock, trace, data: store }, { limits }] = [this.#ports, this.#options]
    return new Erasing({
      ...{ book, store, log: this.#log, data: this.#data, clock, trace, limits },
      ...{ ending: this.#ending, isFirst: (group) => this.#isFirst(group) },
      stamp: () => this.#reading().stamp,
      ...{ onFailed: this.#calls.onFailed, submit: (...asked) => this.submit(...asked) },
    })
  }

  #makeLinks(): DriverLinks {
    return new DriverLinks({
      ...{ nodes: this.#nodes, trace: this.#ports.trace, log: this.#log },
      transport: this.#ports.peers,
      ...{ replica: this.#replica, keeper: this.#keeper, work: this.#work },
      ...{ peers: () => this.#peers, members: () => this.members },
      ...{ inbound: () => this.#inbound, refusals: () => this.#refusals },
      ...{ isOver: () => this.#isOver, step: this.#calls.step },
      guarded: (work) => this.#guarded(work),
    })
  }

  #makeMembers(): Members {
    const [{ clock, trace }, { node, limits, placement }] = [this.#ports, this.#options]
    return makeMembers({
      ...{ node, nodes: this.#nodes, placement, clock, trace, limits },
      onNodes: (urls) => this.#links.onNodes(urls),
      ...{ log: this.#log, data: this.#data },
      supports: this.#options.supports,
      ...{ epochs: this.#epochs, replica: this.#replica, edge: this.#edge, work: this.#work },
      leases: () => this.#keeper.leases,
      peers: () => this.#peers,
      readCurrent: (group, timeoutMs) => this.read(group, 'current', timeoutMs),
      submit: (...asked) => this.submit(...asked),
      stamp: () => this.#reading().stamp,
      ...this.#calls,
      ...{ healing: this.#comparing.healing },
      isRestored: () => this.#ending.restoring.isOver,
      onRetired: (reason) => this.#fail(reason),
    })
  }

  #setOf(group: GroupId): ReplicaSet {
    return this.#epochs.setOf(this.#options.placement.replicasOf(group))
  }

  #makeComparing(): Comparing {
    const [{ clock, trace }, { node, limits }] = [this.#ports, this.#options]
    return new Comparing({
      ...{ node, others: this.#nodes.otherVoters, clock, trace, limits },
      ...{ data: this.#data, replica: this.#replica },
      ...{ peers: this.#peers, work: this.#work },
      epochOf: (group) => this.#setOf(group).epoch,
      hasLeft: this.#hasLeft,
      ...this.#calls,
    })
  }

  #makeEdge(): Edge {
    const [{ clock, trace }, { limits }] = [this.#ports, this.#options]
    return new Edge({
      ...{ clock, trace, limits, data: this.#data, replica: this.#replica },
      ...{ healing: this.#comparing.healing, isOver: () => this.#isOver },
      mayHaveCome: (one) => !this.#holdings.has(one) || this.#epochs.shares.of(one) !== undefined,
      ...{ guarded: (work) => this.#guarded(work), ending: () => this.#ending },
      step: this.#calls.step,
      onSettled: (ms) => this.#work.supply.pace.onCommit(ms),
    })
  }

  #makeInbound(): Inbound {
    return new Inbound({
      ...{ work: this.#work, peers: this.#peers, keeper: this.#keeper },
      ...{ backpressure: this.#backpressure, trace: this.#ports.trace, ending: this.#ending },
      ...{ comparing: this.#comparing, epochs: this.members, node: this.#options.node },
      ...{ step: this.#calls.step, isReader: testReader(this.#options, this.#epochs) },
      onBug: (error) => this.onBug(error),
    })
  }

  #peerWork(): PeerWork {
    return makePeerWork({
      ...{ ports: this.#ports, limits: this.#options.limits, log: this.#log, data: this.#data },
      ...{ backpressure: this.#backpressure, guarded: (work) => this.#guarded(work) },
      ...{ peers: () => this.#peers, replica: () => this.#replica },
      ...{ edge: () => this.#edge, comparing: () => this.#comparing },
      ...this.#calls,
    })
  }

  #onDue(group: GroupId, nowMs: number): void {
    if (!this.#replica.isAwaitingTime(group, nowMs)) return
    this.#ports.trace.begin?.('deadlines')
    this.#step(group, { kind: 'wake' })
    this.#ports.trace.end?.()
  }

  #watchStores(): void {
    const { node: informer } = this.#options
    watchStores({
      ...{ log: this.#log, data: this.#data, clock: this.#ports.clock },
      // As if a peer had spoken of it: the node fetches what others have, and closes the rest by a no-op.
      onHeldUp: (group, position) => this.#step(group, { kind: 'exists', position, informer }),
      onGroupDamaged: (group) => this.#comparing.onDamaged(group),
      onBatch: (groups) => {
        this.#peers.save()
        this.#erasing.onBatch(groups)
      },
      onApplied: () => this.#onApplied(),
      onFailed: (reason) => this.#fail(reason),
    })
  }

  /** Takes up what the log holds beyond the data store, then joins the others. */
  async start(): Promise<void> {
    await this.#edge.installs.resume()
    await this.#comparing.healing.resume()
    await replayLog({
      ...{ limits: this.#options.limits, clock: this.#ports.clock },
      ...{ log: this.#log, data: this.#data, source: this.#source, replica: this.#replica },
      wake: (group) => this.#step(group, { kind: 'wake' }),
    })
    if (this.#log.settledFlush < this.#log.durableFlush) this.#data.wantBatch()
    if (this.#isStopped) return
    assert(!this.#log.isReplaying, 'LOG-7: a node joins before its log is replayed')
    this.members.start()
    // Its build does not support the cluster version in force, or its store has no part in the set.
    if (this.#isOver) return
    this.#work.scrubber.start()
    this.#comparing.start()
    this.#join()
  }

  #join(): void {
    const { heartbeatMs, digestMs } = this.#options.limits
    this.#erasing.start(this.#rounds)
    this.#links.start()
    this.#rounds.every(heartbeatMs, () =>
      this.#guarded(() => {
        this.#peers.beat()
        this.#work.go()
        this.#comparing.go()
        this.#ending.restoring.goOn()
      }),
    )
    this.#rounds.every(digestMs, () => {
      this.#guarded(() => this.#peers.askDigests())
      this.members.remind()
      this.#ending.look()
    })
  }

  holds(group: GroupId): boolean {
    if (this.#holdings.has(group) || this.#epochs.shares.of(group) !== undefined) return true
    return (this.#replica.appliedInMemory(group) ?? this.#data.applied(group)).position > 0
  }

  submit(submission: Submission, timeoutMs: number): Promise<Outcome> {
    if (this.#isOver) return Promise.resolve({ kind: 'unknown' })
    this.#work.noteForeground()
    assert(this.holds(submission.group), 'MOVE-4: a group is asked of a node that does not hold it')
    const refusal = this.#comparing.findRefusal(submission.group)
    if (refusal !== undefined) return Promise.reject(refusal)
    return this.#edge.submissions.submit(submission, timeoutMs)
  }

  read(...asked: Parameters<LocalReplica['read']>): ReturnType<LocalReplica['read']> {
    this.#work.noteForeground()
    return this.#edge.reads.read(...asked)
  }

  rowsNow(...asked: Parameters<LocalReplica['rowsNow']>): ReturnType<LocalReplica['rowsNow']> {
    return this.#edge.reads.rowsNow(...asked)
  }

  readAt(...asked: Parameters<LocalReplica['readAt']>): ReturnType<LocalReplica['readAt']> {
    return this.#edge.reads.readAt(...asked)
  }

  async outcome(group: GroupId, intent: IntentName, timeoutMs: number): Promise<IntentOutcome> {
    await this.read(group, 'current', timeoutMs)
    return this.#replica.outcome(group, intent)
  }

  /** Whether clients had better ask another node: this one lacks much (LIVE-8). */
  get isReturning(): boolean {
    if (this.#work.returning.isUnderWay) return true
    return !this.#ending.restoring.isOver && this.#peers.areOthersEnough
  }

  /** This node's knowledge of the others' clocks, for observers and for `heldClock`. */
  get clocks(): PeerClocks {
    return this.#peers.clocks
  }

  /** Leases that this node counts on or has granted, for observers; absent once it stops. */
  get observedLeases(): ObservedLeases | undefined {
    return this.#isOver ? undefined : this.#edge.installs.observe(this.#replica)
  }

  /** The node that is to propose the group's next entry; undefined when the group is not at hand. */
  knownLeader(group: GroupId): NodeId | undefined {
    return this.#replica.leaderInMemory(group)
  }

  leaderElsewhere(group: GroupId): NodeId | undefined {
    const leader = this.knownLeader(group)
    return leader === this.#options.node ? undefined : leader
  }

  get(...asked: Parameters<LocalReplica['get']>): ReturnType<LocalReplica['get']> {
    return this.#edge.reads.get(...asked)
  }

  getAt(...asked: Parameters<LocalReplica['getAt']>): ReturnType<LocalReplica['getAt']> {
    return this.#edge.reads.getAt(...asked)
  }

  scan(...asked: Parameters<LocalReplica['scan']>): ReturnType<LocalReplica['scan']> {
    return this.#edge.reads.scan(...asked)
  }

  positionHere(group: GroupId): Position | undefined {
    return this.#isOver ? undefined : this.#replica.appliedInMemory(group)?.position
  }

  watch(group: GroupId, position: Position, wake: () => void): () => void {
    return this.#edge.requests.watch(group, position, wake)
  }

  status(): ReplicaStatus {
    const members = this.members.port.report
    return buildStatus({
      ...{ log: this.#log, data: this.#data, replica: this.#replica },
      requests: this.#edge.requests,
      ...{ work: this.#work, leases: this.#keeper.leases, peers: this.#peers },
      ...{ refusals: this.#refusals, failure: this.#failure, clock: this.#ports.clock },
      ...{ ending: this.#ending, erasing: this.#erasing, comparing: this.#comparing, members },
    })
  }

  /** Resolves when everything applied so far is in the data store. */
  drain(): Promise<void> {
    return this.#data.drain()
  }

  /** Stops answering, waits for the writes under way. The stores stay open for their owner to close. */
  async stop(): Promise<void> {
    if (this.#isStopped) return
    this.#isStopped = true
    this.#rounds.stop()
    this.#work.stop()
    this.members.stop()
    this.#erasing.stop()
    this.#comparing.stop()
    this.#edge.installs.stop()
    this.#ending.freshness.stop()
    this.#wakes.stop()
    this.#edge.requests.stop()
    assert(this.#edge.requests.count === 0, 'LIVE-1: a request waits at a node that has stopped')
    this.#discovery.stop()
    this.#keeper.stop()
    this.#peers.flush()
    await this.#log.stop()
    await this.#data.stop()
    // Last: the leases handed back, and the answers of the last flush, are on their way by now.
    await this.#ports.peers.close()
  }

  /** The log's facts about settled positions are read from the data store, which may be damaged. */
  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#fail(toError(error))
    }
  }

  /** Stopped, or failed: a node in doubt of itself answers no request. */
  get #isOver(): boolean {
    return this.#isStopped || this.#failure !== undefined
  }

  /** Steps run one at a time; what a step delivers to this node itself waits its turn. */
  #step(group: GroupId, event: GroupEvent): void {
    if (this.#isOver) return
    if (this.#comparing.healing.keep(group, event)) return
    if (this.#edge.installs.keep(group, event)) return
    this.#steps.take(group, event)
  }

  #reading(): Reading {
    const { mayPropose } = this.#backpressure
    const isRestored = this.#ending.restoring.isOver
    return readNow(this.#ports.clock, this.#peers, { mayPropose, isRestored })
  }

  #onApplied(): void {
    this.#log.onBatchWritten()
    this.#work.fetches.go()
    this.#ending.restoring.goOn()
    if (this.#log.isBehind) this.#data.wantBatch()
  }

  #fail(reason: Error): void {
    if (this.#failure !== undefined || this.#isStopped) return
    this.#failure = reason
    this.#edge.installs.stop()
    this.members.stop()
    this.onFailure(reason)
  }
}
