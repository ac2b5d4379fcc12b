/**
 * The other nodes as this one sees them: one frame per peer and turn, heartbeats, suspicion, which peer may
 * join, and what this node may have missed of them. Per peer, never per group.
 */
import { compareText } from '../base/bytes.ts'
import { supportsVersion } from '../base/cluster-version.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import type { LinkInfo, Transport } from '../ports/transport.ts'
import type { ClockTold, Digest, Directory, Message, PeerFrame } from '../replication/message.ts'
import { Admission, areCredible, versionsOf } from './admission.ts'
import type { AdmissionParts, MetaStore } from './admission.ts'
import type { OwnLog } from './peer-digest-cursor.ts'
import { DurableMarks } from './durable-marks.ts'
import { PeerMarks } from './peer-marks.ts'
import { ClockAsks } from './clock-asks.ts'
import { PeerClocks } from './peer-clocks.ts'
import { isFirst } from '../log/own-epochs.ts'
import { PeerDigests } from './peer-digests.ts'
import { makePeer, type Peer } from './peer.ts'
import type { Digested } from './group-discovery.ts'
import type { SetNodes } from '../placement/set-nodes.ts'
import type { Work } from './slices.ts'

export interface PeersOptions extends Pick<
  AdmissionParts,
  'hearVoters' | 'findNewcomer' | 'lastSeat' | 'knowsNodes' | 'version' | 'memory' | 'remember'
> {
  readonly node: NodeId
  readonly incarnation: number
  readonly nodes: SetNodes
  readonly limits: Limits
  readonly clock: Clock
  readonly trace: Trace
  readonly transport: Transport<PeerFrame>
  readonly meta: MetaStore
  /** This node's log, and the id of its store. */
  readonly log: OwnLog
  readonly storeId: string
  /** Its data store, looked at in the same way: batches for flushes. */
  readonly applied: OwnLog
  /** The peer's link may be used; these frames have come over it meanwhile. */
  onJoined(peer: NodeId, info: LinkInfo, held: readonly PeerFrame[]): void
  /** The store of a link that is in use has come to have its node's vote. */
  onVoter(peer: NodeId, info: LinkInfo): void
  onSuspicion(peer: NodeId, isSuspected: boolean): void
  /** A peer has this position of such a group, and this node's log does not. */
  onNamed(group: GroupId, position: Position, informer: NodeId): void
  /** No client waits for the work: it is done piece by piece (`slices.ts`), in order within its lane. */
  later(lane: string, work: Work): void
  /** A digest was taken up. */
  onDigested(peer: NodeId, digested: Digested): void
}

/** Frames of a link that is not used yet: those beyond that number are as if lost on the way. */
const heldFramesMax = 64

export class Peers {
  readonly clocks: PeerClocks
  readonly #options: PeersOptions
  #peers: ReadonlyMap<NodeId, Peer> = new Map()
  readonly #admission: Admission
  readonly #clockAsks: ClockAsks
  readonly #digests: PeerDigests
  readonly #durableMarks: DurableMarks
  #isFlushing = false
  /** Only notices wait, and leave a turn later. */
  #isWaiting = false

  constructor(options: PeersOptions) {
    this.#options = options
    const now = options.clock.monotonicMs()
    this.clocks = new PeerClocks(options.nodes.voters, options.limits, now)
    this.#admission = new Admission(options)
    const { clocks } = this
    const send = (to: NodeId, message: Message): void => this.send(to, message)
    this.#digests = new PeerDigests({ ...options, send })
    this.#durableMarks = new DurableMarks({ ...options, send })
    this.#clockAsks = new ClockAsks({ ...options, clocks, send })
    this.#takeUpNodes(now)
  }

  #makeMarks(node: NodeId, peerStore: string | undefined, isNewStore: boolean): PeerMarks {
    const { meta, log, applied, memory, storeId, onNamed } = this.#options
    return new PeerMarks({
      ...{ node, log, applied, storeId, meta, peerStore, isNewStore },
      areOld: isFirst(memory.epochs),
      onNamed: (group, position) => onNamed(group, position, node),
    })
  }

  #remember(node: NodeId, now: number): Peer {
    const { trace, memory } = this.#options
    const marks = this.#makeMarks(node, memory.of(node)?.storeId, false)
    if (marks.digestedThrough > 0) trace.mark('digests_resumed')
    return makePeer(node, now, marks, memory.of(node)?.durableFlush ?? 0)
  }

  /** The nodes to have links with, as they are now. */
  #takeUpNodes(now: number): void {
    const { others } = this.#options.nodes
    const known = this.#peers
    this.#peers = new Map(
      others
        .toSorted(compareText)
        .map((node) => [node, known.get(node) ?? this.#remember(node, now)]),
    )
  }

  /** It has no vote any more. Its next link is refused in words, by which it ends. */
  #cutOff(peer: Peer): void {
    const { transport } = this.#options
    peer.isJoined = false
    this.#setSuspected(peer, true)
    transport.disconnect?.(peer.node)
  }

  /** Nodes were added or removed. Returns those that are new to this node. */
  checkNodes(): readonly NodeId[] {
    const { nodes, clock, trace } = this.#options
    const before = this.#peers
    if (before.size === nodes.others.length && nodes.others.every((one) => before.has(one)))
      return []
    for (const peer of before.values()) {
      if (nodes.has(peer.node)) continue
      trace.mark('removed_node_cut_off')
      this.#cutOff(peer)
    }
    this.#takeUpNodes(clock.monotonicMs())
    return nodes.others.filter((one) => !before.has(one))
  }

  /**
   * Whether a majority, this node included, has let its store in since it started. A log that went
   * back in time cannot grow past what the others remember of it before they have seen it.
   */
  get isAdmitted(): boolean {
    const { voters, node } = this.#options.nodes
    let admitted = 0
    for (const one of voters) {
      if (one === node || this.#peers.get(one)?.hasAdmitted === true) admitted += 1
    }
    return 2 * admitted > voters.length
  }

  /** For status: which peers are reachable. */
  list(): readonly {
    readonly node: NodeId
    readonly isUp: boolean
    readonly isSuspected: boolean
  }[] {
    const { transport } = this.#options
    return [...this.#peers.values()].map(({ node, isSuspected }) => ({
      node,
      isSuspected,
      isUp: transport.isUp(node),
    }))
  }

  /** This node, or one with a vote that has been heard of lately. */
  isAlive(node: NodeId): boolean {
    return this.isHeardOf(node) && !this.isNewcomer(node)
  }

  isHeardOf(node: NodeId): boolean {
    return node === this.#options.node || this.#peers.get(node)?.isSuspected === false
  }

  /** Whether the peer's store has come to take the place of another one, and has no vote as yet. */
  isNewcomer(node: NodeId): boolean {
    return this.#peers.get(node)?.isNewcomer === true
  }

  /** The facts that the peer told as its present link began; undefined: there is none. */
  linkOf(node: NodeId): LinkInfo | undefined {
    const peer = this.#peers.get(node)
    return peer?.isJoined === true ? peer.info : undefined
  }

  /** Whether the peer's build knows the messages about changes of the voters. */
  knowsEpochs(node: NodeId): boolean {
    return this.linkOf(node)?.knowsEpochs === true
  }

  /**
   * Another store may have come to have the vote of a node: a newcomer is a peer from then on, and no other store is. Or a store has
   * lost its vote, and is a read-only member from now on.
   */
  checkVoters(): void {
    const { memory, trace } = this.#options
    for (const peer of this.#peers.values()) {
      const voter = memory.of(peer.node)?.storeId
      if (!peer.isJoined || voter === undefined) continue
      if (peer.info.storeId === voter) {
        const isNewcomer = this.#admission.isNewcomer(peer.node, peer.info)
        if (peer.isNewcomer === isNewcomer) continue
        peer.isNewcomer = isNewcomer
        this.#onVote(peer, !isNewcomer)
      } else if (!peer.isNewcomer) {
        trace.mark('replaced_store_cut_off')
        this.#cutOff(peer)
      }
    }
  }

  /** Another cluster version is in force: peers whose builds do not support it have no link any more (UPG-1). */
  checkVersions(): void {
    for (const peer of this.#peers.values()) {
      if (!peer.isJoined || supportsVersion(versionsOf(peer.info), this.#options.version()))
        continue
      this.#options.trace.mark('earlier_build_cut_off')
      this.#cutOff(peer)
    }
  }

  /** To the groups a store without a vote is a node that does not answer. */
  #onVote({ node, info, durableFlush }: Peer, hasVote: boolean): void {
    this.#options.trace.mark(hasVote ? 'newcomer_votes' : 'voter_became_reader')
    if (!hasVote) return this.#options.onSuspicion(node, true)
    // Also what its log has come to since the link began: a store that writes nothing more tells no later flush (LOG-10).
    this.#admission.learn(node, { ...info, durableFlush })
    this.#options.onVoter(node, info)
  }

  /** Whether the nodes beside this one that are alive are a majority. */
  get areOthersEnough(): boolean {
    const { otherVoters, voters } = this.#options.nodes
    return otherVoters.filter((node) => this.isAlive(node)).length * 2 > voters.length
  }

  /** Whether the peer may be sent, in this turn, what it can ask for again. */
  hasRoomFor(to: NodeId): boolean {
    return this.#peers.get(to)?.outbox.isFull === false
  }

  send(to: NodeId, message: Message): void {
    const peer = this.#peers.get(to)
    if (peer === undefined) return
    peer.outbox.add(message)
    // No caller waits for a notice. The client that wrote waits for its answer, which this very turn sends:
    // before it the processor would go to the nodes that a frame wakes.
    if (message.kind === 'committed') this.#flushLater()
    else this.#flushSoon()
  }

  #flushSoon(): void {
    if (this.#isFlushing) return
    this.#isFlushing = true
    this.#options.clock.defer(() => this.flush())
  }

  #flushLater(): void {
    if (this.#isFlushing || this.#isWaiting) return
    this.#isWaiting = true
    this.#options.clock.defer(() => {
      this.#isWaiting = false
      this.#flushSoon()
    })
  }

  /** Sends what waits for the end of the turn. */
  flush(): void {
    this.#isFlushing = false
    for (const peer of this.#peers.values()) {
      for (const messages of peer.outbox.take()) this.#sendFrame(peer, messages)
    }
  }

  #sendFrame(peer: Peer, messages: readonly Message[]): void {
    const { transport, clock, trace } = this.#options
    // Nothing leaves for a store that this node could forget to have let in.
    if (!peer.isJoined) return trace.mark('frame_dropped')
    peer.lastSentMs = clock.monotonicMs()
    const frame = { durableFlush: this.#options.log.durableFlush, messages }
    if (!transport.send(peer.node, frame) && messages.length > 0) trace.mark('frame_dropped')
  }

  /** Why this peer may not have a link, or undefined when it may. */
  admit(node: string, info: LinkInfo): string | undefined {
    return this.#admission.findProblem(node, info)
  }

  /** Returns the peer as a node of the cluster, or undefined. */
  onLink(node: string, state: 'up' | 'down', info: LinkInfo): NodeId | undefined {
    const peer = [...this.#peers.values()].find((one) => one.node === node)
    if (peer === undefined) return undefined
    const link = (peer.link += 1)
    peer.isJoined = false
    peer.held.length = 0
    if (state === 'down') {
      this.#setSuspected(peer, true)
      return peer.node
    }
    if (this.#admission.isForeign(peer.node, info)) {
      // It was admitted as a newcomer, and its change was given up meanwhile.
      this.#options.trace.mark('link_of_store_without_seat')
      return peer.node
    }
    peer.info = info
    peer.isNewcomer = this.#admission.isNewcomer(peer.node, info)
    if (!peer.isNewcomer) this.#admission.learn(peer.node, info)
    this.#checkStore(peer)
    peer.knowsLogEnds = info.knowsLogEnds === true
    peer.compares = info.compares === true
    peer.toldMark = undefined
    peer.durableFlush = Math.max(peer.durableFlush, info.durableFlush ?? 0)
    this.#options.memory.whenKept(() => {
      if (peer.link === link) this.#join(peer, info)
    })
    this.#options.remember()
    return peer.node
  }

  /** Marks of another store's flushes say nothing of this one's. */
  #checkStore(peer: Peer): void {
    const { storeId } = peer.info
    const { peerStore } = peer.marks
    peer.marks.peerStore = storeId
    if (peerStore === undefined || peerStore === storeId) return
    this.#options.trace.mark('marks_of_another_store_dropped')
    peer.marks = this.#makeMarks(peer.node, storeId, true)
    peer.heardMark = undefined
    peer.durableFlush = 0
  }

  /** The peer's store stands in this node's log: from now on its votes count here. */
  #join(peer: Peer, info: LinkInfo): void {
    if (!peer.isNewcomer) this.#admission.checkKept(peer.node, info)
    peer.isJoined = true
    this.heard(peer.node)
    this.#clockAsks.ask(peer.node)
    this.askDigest(peer.node)
    this.#options.onJoined(peer.node, info, peer.held.splice(0))
  }

  /** Remembers how far the peer's log once was: a disk that is behind that must not vote again. */
  #learn(peer: Peer, durableFlush: number): void {
    if (durableFlush <= peer.durableFlush || !areCredible({ durableFlush })) return
    peer.durableFlush = durableFlush
    if (!peer.isNewcomer) this.#admission.raise(peer.node, durableFlush)
  }

  /** Has what was learnt since the last time go along with the data store's next batch. */
  save(): void {
    for (const { marks } of this.#peers.values()) marks.save()
  }

  /**
   * A frame came from this peer. Returns it as a node of the cluster, or undefined: it is of no node, or
   * is kept until the peer has joined.
   */
  onFrame(from: string, frame: PeerFrame): NodeId | undefined {
    const peer = [...this.#peers.values()].find((one) => one.node === from)
    if (peer === undefined) return undefined
    if (!peer.isJoined) {
      if (peer.held.length < heldFramesMax) peer.held.push(frame)
      else this.#options.trace.mark('frame_dropped')
      return undefined
    }
    // A peer says nothing before this node's store stands in its log.
    peer.hasAdmitted ||= !peer.isNewcomer
    this.#learn(peer, frame.durableFlush)
    this.heard(peer.node)
    return peer.node
  }

  heard(node: NodeId): void {
    const peer = this.#peers.get(node)
    if (peer === undefined) return
    peer.lastHeardMs = this.#options.clock.monotonicMs()
    this.#setSuspected(peer, false)
  }

  #setSuspected(peer: Peer, isSuspected: boolean): void {
    if (peer.isSuspected === isSuspected) return
    peer.isSuspected = isSuspected
    this.#options.trace.mark(isSuspected ? 'peer suspected' : 'peer trusted again')
    this.#options.onSuspicion(peer.node, isSuspected)
  }

  /** Called every `heartbeatMs`. */
  beat(): void {
    const { clock, limits } = this.#options
    const now = clock.monotonicMs()
    this.#clockAsks.watch(now)
    // With a commit it goes along; an idle node keeps it, too.
    this.#options.remember()
    for (const peer of this.#peers.values()) {
      if (this.#clockAsks.isDue(peer.node, now)) this.#clockAsks.ask(peer.node)
      else if (now - peer.lastSentMs >= limits.heartbeatMs) this.#sendFrame(peer, [])
      if (now - peer.lastHeardMs >= limits.suspectMs) this.#setSuspected(peer, true)
      if (peer.isThrottled) this.#digests.request(peer)
      this.#durableMarks.tell(peer)
    }
  }

  /** A peer asks for this node's clock, or says what its own showed. */
  onClock(from: NodeId, told: ClockTold): void {
    if (this.#peers.has(from)) this.#clockAsks.onTold(from, told)
  }

  /** Called every `digestMs`. */
  askDigests(): void {
    this.advanceMarks()
    for (const { node } of this.#peers.values()) this.askDigest(node)
  }

  /** Takes up how much of the peers' flushes this node has by now. */
  advanceMarks(): void {
    for (const { marks } of this.#peers.values()) marks.advance()
  }

  askDigest(node: NodeId): void {
    const peer = this.#peers.get(node)
    if (peer !== undefined) this.#digests.ask(peer)
  }

  /**
   * Whether or not there is anything known to be new. Gives the number of the question; where it is put
   * off, the one that leaves instead has a higher number. `isUrgent`: it is never put off.
   */
  requestDigest(node: NodeId, isUrgent = false): number {
    return this.#digests.request(this.#peers.get(node), isUrgent)
  }

  /**
   * The peer has sealed the epoch before this one: its directory of a later time is needed. `isPastGate`: the peer is past the
   * gate of this epoch, too.
   */
  requireDirectory(node: NodeId, epoch: number, isPastGate = false): void {
    const peer = this.#peers.get(node)
    if (peer !== undefined) this.#digests.requireDirectory(peer, epoch, isPastGate)
  }

  /** Whether that directory is here whole; `isApplied`: and whether all that the peer has named is durably applied here. */
  hasNamedAll(node: NodeId, epoch: number, isApplied = false): boolean {
    const marks = this.#peers.get(node)?.marks
    const isHere = isApplied ? marks?.hasAppliedAll(epoch) : marks?.hasNamedAll(epoch)
    return isHere === true
  }

  onDigest(from: NodeId, digest: Digest): void {
    const peer = this.#peers.get(from)
    if (peer !== undefined) this.#digests.onDigest(peer, digest)
  }

  onDirectory(from: NodeId, page: Directory): void {
    const peer = this.#peers.get(from)
    if (peer !== undefined) this.#digests.onDirectory(peer, page)
  }

  /** Everything that the flushes of the peer's voting store through here name is durably applied here (LOG-18). */
  appliedThrough(node: NodeId): number {
    return this.isNewcomer(node) ? 0 : (this.#peers.get(node)?.marks.appliedThrough ?? 0)
  }

  /** Whether everything that the peer's flushes through this one name is `isKnown`, or durably applied here. */
  isTakenThrough(
    node: NodeId,
    flush: number,
    isKnown: (group: GroupId, position: Position) => boolean,
  ): boolean {
    return this.#peers.get(node)?.marks.isTakenThrough(flush, isKnown) === true
  }

  /** Whether the peer's build knows of directories. */
  knowsLogEnds(node: NodeId): boolean {
    return this.#peers.get(node)?.knowsLogEnds === true
  }

  /** The marks of the store that votes as this node; undefined: this node knows none. */
  marksOf(node: NodeId): PeerMarks | undefined {
    return this.isNewcomer(node) ? undefined : this.#peers.get(node)?.marks
  }

  /** Whether the peer's build answers how far its flushes go. */
  tellsReach(node: NodeId): boolean {
    return this.linkOf(node)?.tellsReach === true
  }

  /** Whether the peer can be asked what it has of groups now. */
  compares(node: NodeId): boolean {
    const peer = this.#peers.get(node)
    return peer?.compares === true && peer.isJoined && !peer.isSuspected
  }

  /** A peer tells how much of this node's log it has durably applied. */
  onDurableMark(from: NodeId, through: number): void {
    const peer = this.#peers.get(from)
    if (peer !== undefined) this.#durableMarks.hear(peer, through)
  }

  /** The marks of LOG-18 that the peers' present stores have told. */
  heardMarks(): readonly (readonly [NodeId, number | undefined])[] {
    return [...this.#peers.values()].map((peer) => [peer.node, this.#durableMarks.heardOf(peer)])
  }
}
