/**
 * Runs the pure core on the ports: steps groups, has their effects carried out (`effect-runner.ts`), and
 * answers this node's edge. The same driver runs in the daemon and in the simulator; only the ports
 * differ.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, NodeId, Position, Timestamp } from '../base/ids.ts'
import { Holdings } from '../placement/holdings.ts'
import type { LinkInfo } from '../ports/transport.ts'
import type { GroupEvent } from '../replication/group.ts'
import type { Message, PeerFrame } from '../replication/message.ts'
import { encodeTransaction, formatIntent } from '../group/transaction.ts'
import { LocalWorklist } from '../store/worklist.ts'
import { SubmitBatcher } from './submit-batcher.ts'
import { EffectRunner } from './effect-runner.ts'
import { toError } from '../store/damage.ts'
import type { DataStore } from '../store/data-store.ts'
import type { DriverOptions, DriverPorts } from './driver-ports.ts'
import { openStores } from './open-stores.ts'
import { Deadlines } from '../time/deadlines.ts'
import { appliedOf } from './applied-log.ts'
import { listGroups } from './group-list.ts'
import { isOfLogs, LogEnding } from '../peers/log-ending.ts'
import { Backpressure } from '../peers/backpressure.ts'
import type {
  LocalWorklists,
  IntentName,
  IntentOutcome,
  LocalReplica,
  Outcome,
  PageRange,
  ReadPoint,
  Row,
  Submission,
} from '../group/replica-port.ts'
import { LeaseKeeper } from '../peers/lease-keeper.ts'
import type { LogStore } from '../log/log-store.ts'
import type { PeerClocks } from '../peers/peer-clocks.ts'
import { PeerWork } from '../peers/peer-work.ts'
import { Peers } from '../peers/peers.ts'
import { StoredRecords } from './record-source.ts'
import { Reads } from './reads.ts'
import { Refusals, describeSelf } from '../peers/refusal.ts'
import { Replica, type ObservedLeases, type Reading } from './replica.ts'
import { buildStatus, type ReplicaStatus } from './replica-status.ts'
import { Requests } from './requests.ts'
import { GroupDiscovery } from '../peers/group-discovery.ts'
import { Rounds } from '../time/rounds.ts'
import { Steps } from './steps.ts'
import { findExcess, toTransaction } from './submission-size.ts'
import { replayLog } from './log-replay.ts'

export class Driver implements LocalReplica {
  /** The node must stop: its disk refused, a peer says that it is stale, or it found a bug. Called once. */
  onFailure: (reason: Error) => void = () => undefined
  /** A message of a peer met a bug, and nothing came of it. */
  onBug: (error: unknown) => void = (error) => this.#fail(toError(error))
  readonly worklist: LocalWorklists
  readonly groups: LocalReplica['groups']
  readonly #ports: DriverPorts
  readonly #options: DriverOptions
  readonly #holdings: Holdings
  readonly #log: LogStore
  readonly #data: DataStore
  readonly #source: StoredRecords
  readonly #replica: Replica
  readonly #peers: Peers
  readonly #work: PeerWork
  readonly #ending: LogEnding
  readonly #discovery: GroupDiscovery
  readonly #keeper: LeaseKeeper
  readonly #requests: Requests
  readonly #reads: Reads
  readonly #wakes: Deadlines<GroupId>
  readonly #rounds: Rounds
  readonly #steps: Steps = new Steps({
    run: (group, event) =>
      this.#effects.run(this.#replica.step(group, event, this.#reading()), group),
    // A store that cannot be read, or a bug. The node does nothing of what the step asked for, and answers
    // no waiting call: the node is what fails, not the call that met it.
    onFailed: (error) => this.#fail(toError(error)),
    onDone: () => this.#effects.tellApplied(),
  })
  readonly #submitBatcher: SubmitBatcher = new SubmitBatcher((group, arrived) =>
    this.#guarded(() => this.#step(group, { kind: 'submit', arrived })),
  )
  readonly #backpressure: Backpressure
  readonly #effects: EffectRunner
  readonly #refusals: Refusals
  #failure: Error | undefined
  #isStopped = false

  /** Opens the stores. Rejects with `corrupt` or `invalid` when they must not be used. */
  static async open(ports: DriverPorts, options: DriverOptions): Promise<Driver> {
    const { log, data } = await openStores(ports, options)
    return new Driver(ports, options, log, data)
  }

  private constructor(ports: DriverPorts, options: DriverOptions, log: LogStore, data: DataStore) {
    this.#ports = ports
    this.#options = options
    this.#log = log
    this.#data = data
    const { clock, trace } = ports
    const { node, limits } = options
    this.#holdings = new Holdings(options.placement, node)
    const [{ nodes }, { incarnation, storeId }] = [this.#holdings, log.identity]
    const source = new StoredRecords(log, data)
    this.#source = source
    this.#keeper = new LeaseKeeper({
      send: (to, message) => this.#peers.send(to, message),
      onRevoked: (group, peer) => this.#step(group, { kind: 'revoked', peer }),
      ...{ node, nodes, incarnation },
      ...{ limits, clock, longestLeaseMs: log.longestLeaseMs },
    })
    this.#backpressure = new Backpressure({ limits, log, data, held: () => this.#replica })
    this.#work = this.#peerWork()
    const [{ fetches, slices, replies }, { leases }] = [this.#work, this.#keeper]
    const held = { source, leases, fetchPatienceMs: fetches.patienceMs.bind(fetches) }
    this.#replica = new Replica({ incarnation, trace, ...held, ...options })
    this.#wakes = new Deadlines(clock, (group, nowMs) => this.#onDue(group, nowMs))
    this.#rounds = new Rounds(clock)
    this.#requests = new Requests(clock, (group, read) =>
      this.#step(group, { kind: 'cancel-read', read }),
    )
    this.#reads = new Reads({
      replica: this.#replica,
      ...{ clock, trace, limits, data, requests: this.#requests },
      isOver: () => this.#isOver,
      wake: (group) => this.#step(group, { kind: 'wake' }),
      begin: (group, read) => this.#step(group, { kind: 'read', read }),
    })
    this.#peers = new Peers({
      ...{ node, incarnation, nodes, limits, storeId },
      ...{ clock, trace, transport: ports.peers, meta: data, log, applied: appliedOf(log, data) },
      ...{ memory: log.memory, remember: () => log.remember() },
      onJoined: (...joined) => this.#onJoined(...joined),
      onSuspicion: (peer, isSuspected) => this.#onSuspicion(peer, isSuspected),
      isHeld: (group) => this.#isHeld(group),
      onNamed: fetches.name.bind(fetches),
      later: slices.add.bind(slices),
      onDigested: (peer, digested) => this.#discovery.onDigest(peer, digested),
    })
    this.#ending = new LogEnding({
      ...{ log, data, clock, trace, limits, replies, slices, peers: this.#peers },
      onFailed: (error) => this.#fail(toError(error)),
    })
    this.#effects = new EffectRunner({
      ...{ node, clock, trace, log, data, replica: this.#replica, fetches, replies },
      ...{ peers: this.#peers, keeper: this.#keeper, requests: this.#requests, wakes: this.#wakes },
      deliver: (message) => this.#step(message.group, { kind: 'message', from: node, message }),
    })
    const others = nodes.filter((one) => one !== node)
    // A transaction passed on to a node before there is a link is lost, and its caller would wait for it.
    for (const other of others) this.#replica.suspect(other, true)
    this.#discovery = new GroupDiscovery({
      ask: (peer) => this.#peers.requestDigest(peer),
      ...{ clock, againMs: limits.heartbeatMs, others },
    })
    const known = (): GroupId[] => [...this.#replica.known(), ...fetches.named()]
    const listing = { discovery: this.#discovery, data, known, isOver: () => this.#isOver }
    this.groups = (...asked) => listGroups(listing, ...asked)
    this.#refusals = new Refusals(log, trace, (error) => this.#fail(error))
    this.#watchStores()
    this.worklist = new LocalWorklist(data.listing, clock, (group) =>
      this.#holdings.isFirst(group, (one) => this.#peers.isAlive(one)),
    )
  }

  #peerWork(): PeerWork {
    const { clock, trace } = this.#ports
    const { limits } = this.#options
    return new PeerWork({
      ...{ limits, clock, trace, log: this.#log, backpressure: this.#backpressure },
      send: (to, message) => this.#peers.send(to, message),
      hasRoomFor: (to) => this.#peers.hasRoomFor(to),
      stores: this.#ports,
      onLogDamaged: (what) =>
        this.#guarded(() => void this.#log.renew(what, () => this.#data.wantBatch())),
      applied: (group) => this.#replica.appliedInMemory(group)?.position,
      isAwaited: (group) => this.#replica.isAwaited(group),
      areOthersEnough: () => this.#peers.areOthersEnough,
      step: (group, event) => this.#step(group, event),
      onFailed: (error) => this.#fail(toError(error)),
    })
  }

  #onDue(group: GroupId, nowMs: number): void {
    const { trace } = this.#ports
    if (!this.#replica.isAwaitingTime(group, nowMs)) return
    trace.begin?.('deadlines')
    this.#step(group, { kind: 'wake' })
    trace.end?.()
  }

  #watchStores(): void {
    const { node } = this.#options
    const { clock } = this.#ports
    const log = this.#log
    const data = this.#data
    log.onFailure = (reason) => this.#fail(reason)
    // As if a peer had spoken of it: the node fetches what others have, and closes the rest by a no-op.
    log.onHeldUp = (group, position) =>
      clock.defer(() => this.#step(group, { kind: 'exists', position, informer: node }))
    data.onFailure = (reason) => this.#fail(reason)
    data.onBatch = (groups) => {
      this.#peers.save()
      log.onBatch(groups)
    }
    data.lastFlushOf = (group) => log.lastFlushOf(group)
    data.beforeWrite = async (groups) => {
      await log.sync()
      log.checkLogged(groups)
    }
    data.onApplied = () => this.#onApplied()
  }

  /** Takes up what the log holds beyond the data store, then joins the others. */
  async start(): Promise<void> {
    await replayLog({
      ...{ limits: this.#options.limits, clock: this.#ports.clock },
      ...{ log: this.#log, data: this.#data, source: this.#source, replica: this.#replica },
      wake: (group) => this.#step(group, { kind: 'wake' }),
    })
    if (this.#log.settledFlush < this.#log.durableFlush) this.#data.wantBatch()
    if (this.#isStopped) return
    assert(!this.#log.isReplaying, 'LOG-7: a node joins before its log is replayed')
    this.#work.scrubber.start()
    this.#join()
  }

  #join(): void {
    const { peers } = this.#ports
    const { heartbeatMs, digestMs } = this.#options.limits
    peers.start({
      self: () => describeSelf(this.#log),
      admit: (peer, info) => this.#peers.admit(peer, info),
      onRefused: (peer, reason) => this.#refusals.hear(peer, reason),
      onLink: (peer, state, info) => this.#onLink(peer, state, info),
      onFrame: (from, frame) => this.#onFrame(from, frame),
    })
    this.#rounds.every(heartbeatMs, () =>
      this.#guarded(() => {
        this.#peers.beat()
        this.#work.fetches.go()
      }),
    )
    this.#rounds.every(digestMs, () => {
      this.#guarded(() => this.#peers.askDigests())
      this.#ending.look()
    })
  }

  #onLink(from: string, state: 'up' | 'down', info: LinkInfo): void {
    if (!this.#isOver) this.#peers.onLink(from, state, info)
  }

  #onJoined(peer: NodeId, info: LinkInfo, held: readonly PeerFrame[]): void {
    assert(this.#holdings.nodes.includes(peer), 'MOVE-4: a node of another set joins')
    this.#onSuspicion(peer, false)
    this.#keeper.onLink(peer, info.incarnation ?? 0)
    for (const frame of held) this.#onFrame(peer, frame)
  }

  holds(group: GroupId): boolean {
    return this.#holdings.has(group)
  }

  submit(submission: Submission, timeoutMs: number): Promise<Outcome> {
    const { group, readPosition, reads, ranges } = submission
    if (this.#isOver) return Promise.resolve({ kind: 'unknown' })
    this.#work.noteForeground()
    if (this.#requests.count >= this.#options.limits.nodeQueueMax) {
      return Promise.resolve({ kind: 'overloaded', isOfNode: true })
    }
    assert(this.holds(group), 'MOVE-4: a group is asked of a node that does not hold it')
    const transaction = toTransaction(submission)
    const bytes = encodeTransaction(transaction)
    const excess = findExcess(submission, bytes, this.#options.limits)
    if (excess !== undefined) return Promise.reject(excess)
    assert(bytes.length > 0, 'LOG-3: a transaction without bytes')
    const submitted = { transaction, bytes, readPosition, reads, ranges }
    return this.#requests.submission(
      timeoutMs,
      (request) => this.#submitBatcher.add(group, { request, submitted }),
      (request) =>
        this.#step(group, { kind: 'cancel-submit', intent: formatIntent(transaction), request }),
    )
  }

  read(...asked: Parameters<LocalReplica['read']>): ReturnType<LocalReplica['read']> {
    this.#work.noteForeground()
    return this.#reads.read(...asked)
  }

  rowsNow(...asked: Parameters<LocalReplica['rowsNow']>): ReturnType<LocalReplica['rowsNow']> {
    return this.#reads.rowsNow(...asked)
  }

  readAt(group: GroupId, at: Timestamp, timeoutMs: number): Promise<ReadPoint> {
    return this.#reads.readAt(group, at, timeoutMs)
  }

  async outcome(group: GroupId, intent: IntentName, timeoutMs: number): Promise<IntentOutcome> {
    await this.read(group, 'current', timeoutMs)
    return this.#replica.outcome(group, intent)
  }

  /** Whether clients had better ask another node: this one lacks much (LIVE-8). */
  get isReturning(): boolean {
    return this.#work.returning.isUnderWay
  }

  /** This node's knowledge of the others' clocks, for observers and for `heldClock`. */
  get clocks(): PeerClocks {
    return this.#peers.clocks
  }

  /** Leases that this node counts on or has granted, for observers; absent once it stops. */
  get observedLeases(): ObservedLeases | undefined {
    return this.#isOver ? undefined : this.#replica
  }

  leaderElsewhere(group: GroupId): NodeId | undefined {
    const leader = this.#replica.leaderInMemory(group)
    return leader === this.#options.node ? undefined : leader
  }

  get(group: GroupId, key: Uint8Array): Row | undefined {
    return this.#reads.get(group, key)
  }

  getAt(...asked: Parameters<LocalReplica['getAt']>): ReturnType<LocalReplica['getAt']> {
    return this.#reads.getAt(...asked)
  }

  scan(group: GroupId, range: PageRange, at?: Timestamp): Promise<readonly Row[]> {
    return this.#reads.scan(group, range, at)
  }

  positionHere(group: GroupId): Position | undefined {
    return this.#isOver ? undefined : this.#replica.appliedInMemory(group)?.position
  }

  watch(group: GroupId, position: Position, wake: () => void): () => void {
    return this.#requests.watch(group, position, wake)
  }

  status(): ReplicaStatus {
    return buildStatus({
      ...{ log: this.#log, data: this.#data, replica: this.#replica, requests: this.#requests },
      ...{ work: this.#work, leases: this.#keeper.leases, peers: this.#peers },
      ...{ refusals: this.#refusals, failure: this.#failure, clock: this.#ports.clock },
      ending: this.#ending,
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
    this.#work.scrubber.stop()
    this.#wakes.stop()
    this.#requests.stop()
    assert(this.#requests.count === 0, 'LIVE-1: a request waits at a node that has stopped')
    this.#discovery.stop()
    this.#keeper.stop()
    this.#work.slices.stop()
    this.#peers.flush()
    await this.#log.stop()
    await this.#data.stop()
    // Last: the leases handed back, and the answers of the last flush, are on their way by now.
    await this.#ports.peers.close()
  }

  #onFrame(from: string, frame: PeerFrame): void {
    if (this.#isOver) return
    const peer = this.#peers.onFrame(from, frame)
    if (peer === undefined) return
    const { trace } = this.#ports
    trace.begin?.('messages of peers')
    this.#guarded(() => {
      for (const message of frame.messages) this.#onMessage(peer, message)
    })
    trace.end?.()
  }

  /** The log's facts about settled positions are read from the data store, which may be damaged. */
  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#fail(toError(error))
    }
  }

  /** Of messages that are no steps: a bug ends what met it alone. A store that cannot be read ends the node. */
  #apart(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (error instanceof StoreError) throw error
      this.onBug(error)
    }
  }

  #onMessage(from: NodeId, message: Message): void {
    if (isOfLogs(message)) return this.#apart(() => this.#ending.onMessage(from, message))
    switch (message.kind) {
      case 'clock':
        return this.#apart(() => this.#peers.onClock(from, message))
      case 'renew':
      case 'renewed':
      case 'hand-back':
      case 'slow':
        return this.#keeper.onMessage(from, message)
      case 'entries':
        if (!this.#isHeld(message.group)) return
        return this.#apart(() => this.#work.onEntries(from, message))
      case 'fetch':
        if (!this.#isHeld(message.group)) return
        return this.#step(message.group, { kind: 'message', from, message })
      default:
        if (!this.#isHeld(message.group)) return
        this.#work.noteForeground()
        if (!this.#backpressure.admits(message))
          return this.#ports.trace.mark('no_room_to_take_more')
        return this.#step(message.group, { kind: 'message', from, message })
    }
  }

  /**
   * A peer with another configuration: this node neither votes on nor fetches a group that it does not
   * hold.
   */
  #isHeld(group: GroupId): boolean {
    const isHeld = this.holds(group)
    if (!isHeld) this.#ports.trace.mark('group_of_other_nodes')
    return isHeld
  }

  #onSuspicion(peer: NodeId, isSuspected: boolean): void {
    if (isSuspected) this.#work.fetches.forget(peer)
    for (const group of this.#replica.suspect(peer, isSuspected)) {
      this.#step(group, { kind: 'suspect', peer })
    }
  }

  /** Stopped, or failed: a node in doubt of itself answers no request. */
  get #isOver(): boolean {
    return this.#isStopped || this.#failure !== undefined
  }

  /** Steps run one at a time; what a step delivers to this node itself waits its turn. */
  #step(group: GroupId, event: GroupEvent): void {
    if (this.#isOver) return
    assert(this.holds(group), 'MOVE-4: a group is asked of a node that does not hold it')
    this.#steps.take(group, event)
  }

  #reading(): Reading {
    const { clock } = this.#ports
    const { mayPropose } = this.#backpressure
    const { isAdmitted, clocks } = this.#peers
    const wall = clock.wallMicros()
    const now = clock.monotonicMs()
    assert(wall > 0, 'CLOCK-1: the wall clock shows no time')
    return { wall, now, stamp: clocks.held({ wall, now }), mayPropose, isAdmitted }
  }

  #onApplied(): void {
    this.#log.onBatchWritten()
    this.#work.fetches.go()
    if (this.#log.isBehind) this.#data.wantBatch()
  }

  #fail(reason: Error): void {
    if (this.#failure !== undefined || this.#isStopped) return
    this.#failure = reason
    this.onFailure(reason)
  }
}
