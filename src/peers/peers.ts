/**
 * The other nodes as this one sees them: one frame per peer and turn, heartbeats, suspicion, which peer may
 * join, and what this node may have missed of them. Per peer, never per group.
 */
import { present } from '../base/assert.ts'
import { compareText } from '../base/bytes.ts'
import { numbersFrom } from '../base/drawn-numbers.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import type { LinkInfo, Transport } from '../ports/transport.ts'
import type {
  ClockTold,
  Digest,
  DigestRequest,
  Directory,
  DirectoryRequest,
  Message,
  PeerFrame,
} from '../replication/message.ts'
import { Admission, areCredible, type MetaStore } from './admission.ts'
import type { OwnLog } from './peer-digest-cursor.ts'
import { PeerMarks } from './peer-marks.ts'
import { PeerClocks, clockAnswerMsMax, clockTellMs } from './peer-clocks.ts'
import type { PeerMemory } from '../log/peer-memory.ts'
import { PeerOutbox } from './peer-outbox.ts'
import type { Digested } from './group-discovery.ts'
import type { Work } from './slices.ts'

export interface PeersOptions {
  readonly node: NodeId
  readonly incarnation: number
  readonly nodes: readonly NodeId[]
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
  /** Which store of each peer may vote, as the log remembers it. */
  readonly memory: PeerMemory
  /** Has the news in `memory` made durable. */
  remember(): void
  /** The peer's link may be used; these frames have come over it meanwhile. */
  onJoined(peer: NodeId, info: LinkInfo, held: readonly PeerFrame[]): void
  onSuspicion(peer: NodeId, isSuspected: boolean): void
  /** Whether the group is one of this node's. */
  isHeld(group: GroupId): boolean
  /** A peer has this position of such a group, and this node's log does not. */
  onNamed(group: GroupId, position: Position, informer: NodeId): void
  /** No client waits for the work: it is done piece by piece (`slices.ts`), in order within its lane. */
  later(lane: string, work: Work): void
  /** A digest was taken up. */
  onDigested(peer: NodeId, digested: Digested): void
}

interface Peer {
  readonly node: NodeId
  readonly outbox: PeerOutbox
  lastHeardMs: number
  lastSentMs: number
  clockAskedMs: number
  /** Questions that are not answered: when they left, by their numbers, which rise. */
  readonly clockAsks: Map<number, number>
  isSuspected: boolean
  readonly marks: PeerMarks
  /** The build that it runs knows the messages about where a log ends. */
  knowsLogEnds: boolean
  /** It knows the messages by which nodes compare their groups. */
  compares: boolean
  /** The mark of LOG-18 as this node last told it over this link; undefined: it has not. */
  toldMark: number | undefined
  /** The peer's mark of LOG-18, and the store that told it. */
  heardMark: { readonly storeId: string; readonly through: number } | undefined
  /** A digest is to be asked for when enough of what the last ones named has come. */
  isThrottled: boolean
  /** It has let this node's store in since the start, and remembers it. */
  hasAdmitted: boolean
  /** The highest durable flush number heard of it. */
  durableFlush: number
  /** Of links that came and went. */
  link: number
  /** Its store stands in this node's log, durably: the link is used. */
  isJoined: boolean
  readonly held: PeerFrame[]
}

/** Frames of a link that is not used yet: those beyond that number are as if lost on the way. */
const heldFramesMax = 64

export class Peers {
  readonly clocks: PeerClocks
  readonly #options: PeersOptions
  readonly #peers: ReadonlyMap<NodeId, Peer>
  #admittedBy = 0
  readonly #admission: Admission
  /** Digests and clocks asked for. */
  #asked: number
  #isFlushing = false
  /** Only notices wait, and leave a turn later. */
  #isWaiting = false

  constructor(options: PeersOptions) {
    this.#options = options
    this.#asked = numbersFrom(options.incarnation)
    const now = options.clock.monotonicMs()
    this.clocks = new PeerClocks(options.nodes, options.limits, now)
    const others = options.nodes.filter((node) => node !== options.node)
    this.#admission = new Admission(options)
    this.#peers = new Map(
      others.toSorted(compareText).map((node) => [node, this.#remember(node, now)]),
    )
  }

  #remember(node: NodeId, now: number): Peer {
    const { meta, log, applied, trace, memory, storeId, isHeld, onNamed } = this.#options
    const marks = new PeerMarks({
      ...{ node, log, applied, storeId, meta, isHeld },
      onNamed: (group, position) => onNamed(group, position, node),
    })
    if (marks.digestedThrough > 0) trace.mark('digests_resumed')
    return {
      node,
      outbox: new PeerOutbox(),
      lastHeardMs: now,
      lastSentMs: now,
      clockAskedMs: now,
      clockAsks: new Map(),
      isSuspected: false,
      hasAdmitted: false,
      marks,
      ...{ knowsLogEnds: false, compares: false, toldMark: undefined, heardMark: undefined },
      isThrottled: false,
      durableFlush: memory.of(node)?.durableFlush ?? 0,
      ...{ link: 0, isJoined: false, held: [] },
    }
  }

  /**
   * Whether a majority, this node included, has let its store in since it started. A log that went
   * back in time cannot grow past what the others remember of it before they have seen it.
   */
  get isAdmitted(): boolean {
    return 2 * (this.#admittedBy + 1) > this.#options.nodes.length
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

  /** This node, or one that has been heard of lately. */
  isAlive(node: NodeId): boolean {
    return this.#peers.get(node)?.isSuspected !== true
  }

  /** Whether the nodes beside this one that are alive are a majority. */
  get areOthersEnough(): boolean {
    const alive = this.list().filter(({ isSuspected }) => !isSuspected)
    return alive.length * 2 > this.#options.nodes.length
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
    this.#admission.learn(peer.node, info)
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

  /** The peer's store stands in this node's log: from now on its votes count here. */
  #join(peer: Peer, info: LinkInfo): void {
    this.#admission.checkKept(peer.node, info)
    peer.isJoined = true
    this.heard(peer.node)
    this.#askClock(peer)
    this.askDigest(peer.node)
    this.#options.onJoined(peer.node, info, peer.held.splice(0))
  }

  /** Remembers how far the peer's log once was: a disk that is behind that must not vote again. */
  #learn(peer: Peer, durableFlush: number): void {
    if (durableFlush <= peer.durableFlush || !areCredible({ durableFlush })) return
    peer.durableFlush = durableFlush
    this.#admission.raise(peer.node, durableFlush)
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
    if (!peer.hasAdmitted) this.#admittedBy += 1
    peer.hasAdmitted = true
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
    this.#watchClock(now)
    // With a commit it goes along; an idle node keeps it, too.
    this.#options.remember()
    for (const peer of this.#peers.values()) {
      if (now - peer.clockAskedMs >= clockTellMs) this.#askClock(peer)
      else if (now - peer.lastSentMs >= limits.heartbeatMs) this.#sendFrame(peer, [])
      if (now - peer.lastHeardMs >= limits.suspectMs) this.#setSuspected(peer, true)
      if (peer.isThrottled) this.#request(peer)
      this.#tellMark(peer)
    }
  }

  #askClock(peer: Peer): void {
    const { clock } = this.#options
    const now = clock.monotonicMs()
    const asked = (this.#asked += 1)
    peer.clockAskedMs = now
    for (const [number, leftMs] of peer.clockAsks) {
      if (now - leftMs > clockAnswerMsMax) peer.clockAsks.delete(number)
    }
    peer.clockAsks.set(asked, now)
    this.send(peer.node, { kind: 'clock', wall: clock.wallMicros(), asked, answers: 0 })
  }

  /** A peer asks for this node's clock, or says what its own showed. */
  onClock(from: NodeId, { wall, asked, answers }: ClockTold): void {
    const peer = this.#peers.get(from)
    if (peer === undefined) return
    const { clock } = this.#options
    if (asked > 0) {
      this.send(from, { kind: 'clock', wall: clock.wallMicros(), asked: 0, answers: asked })
    }
    const leftMs = peer.clockAsks.get(answers)
    if (leftMs === undefined) return
    // The answer to an older question may come later: that clock may have been set since.
    for (const number of peer.clockAsks.keys()) {
      if (number <= answers) peer.clockAsks.delete(number)
    }
    const now = clock.monotonicMs()
    if (now - leftMs <= clockAnswerMsMax) this.clocks.hear(from, wall, leftMs, now)
  }

  #watchClock(now: number): void {
    const { clock, trace } = this.#options
    const reading = { wall: clock.wallMicros(), now }
    const is = this.clocks.look(reading)
    if (is === undefined) return
    trace.mark(is === 'right' ? 'the wall clock is right again' : `the wall clock is ${is}`)
    const { clocks } = this
    trace.emit({ kind: 'clock', is, leadMs: clocks.leadMs(reading), lagMs: clocks.lagMs(reading) })
  }

  /** Called every `digestMs`. */
  askDigests(): void {
    for (const peer of this.#peers.values()) {
      peer.marks.advance()
      this.askDigest(peer.node)
    }
  }

  askDigest(node: NodeId): void {
    const peer = this.#peers.get(node)
    if (peer === undefined) return
    const isBehind = peer.marks.digestedThrough < peer.durableFlush
    if (isBehind || nextPage(peer) !== undefined) this.#request(peer)
  }

  /**
   * Whether or not there is anything known to be new. Gives the number of the question; where it is put
   * off, the one that leaves instead has a higher number.
   */
  requestDigest(node: NodeId): number {
    return this.#request(present(this.#peers.get(node), 'replica: a digest is of a peer'))
  }

  /**
   * As long as one digest's worth of what the peer named is still on its way, this node asks for no more:
   * each group that it goes after stays in memory until its entries have come.
   */
  #request(peer: Peer): number {
    const { limits, trace } = this.#options
    const asked = (this.#asked += 1)
    peer.isThrottled = peer.marks.isFull(limits.digestGroupsMax)
    if (peer.isThrottled) {
      trace.mark('digest_throttled')
      return asked
    }
    const page = nextPage(peer)
    const message: DigestRequest | DirectoryRequest =
      page === undefined
        ? { kind: 'digest-request', after: peer.marks.digestedThrough, asked }
        : { kind: 'directory-request', asked, ...page }
    this.send(peer.node, message)
    return asked
  }

  onDigest(from: NodeId, digest: Digest): void {
    const peer = this.#peers.get(from)
    if (peer === undefined) return
    this.#options.later(`digest of ${from}`, { name: 'digest', pieces: this.#takeIn(peer, digest) })
  }

  *#takeIn(peer: Peer, digest: Digest): Generator<number, void> {
    if (digest.after === peer.marks.digestedThrough) yield* this.#takeUp(peer, digest)
    this.#tellDigested(peer, digest.asked)
  }

  *#takeUp(peer: Peer, digest: Digest): Generator<number, void> {
    yield* peer.marks.takeDigest(digest)
    if (!digest.isWhole) this.#options.trace.mark('digest_incomplete')
    if (digest.through > digest.after) this.askDigest(peer.node)
  }

  #tellDigested({ node, marks, durableFlush: durable }: Peer, asked: number): void {
    this.#options.onDigested(node, { asked, through: marks.knownThrough, durable })
  }

  onDirectory(from: NodeId, page: Directory): void {
    const peer = this.#peers.get(from)
    if (peer === undefined) return
    this.#options.later(`digest of ${from}`, { name: 'digest', pieces: this.#takePage(peer, page) })
  }

  *#takePage(peer: Peer, page: Directory): Generator<number, void> {
    if (!peer.marks.isNextPage(page)) return
    if (page.after === undefined) this.#options.trace.mark('directory_begun')
    yield* peer.marks.takePage(page, this.#asked)
    if (page.next === undefined) {
      this.#options.trace.mark('directory_taken')
      this.#tellDigested(peer, page.asked)
    }
    this.askDigest(peer.node)
  }

  /** Tells how much of its log this node has durably applied, where that is news. */
  #tellMark(peer: Peer): void {
    const { appliedThrough: through } = peer.marks
    if (!peer.isJoined || !peer.knowsLogEnds || peer.toldMark === through) return
    peer.toldMark = through
    this.send(peer.node, { kind: 'durable-mark', through })
  }

  /** Everything that the peer's flushes through here name is durably applied here (LOG-18). */
  appliedThrough(node: NodeId): number {
    return this.#peers.get(node)?.marks.appliedThrough ?? 0
  }

  /** Whether the peer's build knows of directories. */
  knowsLogEnds(node: NodeId): boolean {
    return this.#peers.get(node)?.knowsLogEnds === true
  }

  /** Whether the peer can be asked what it has of groups now. */
  compares(node: NodeId): boolean {
    const peer = this.#peers.get(node)
    return peer?.compares === true && peer.isJoined && !peer.isSuspected
  }

  /** A peer tells how much of this node's log it has durably applied. */
  onDurableMark(from: NodeId, through: number): void {
    const { log, memory, trace } = this.#options
    const peer = this.#peers.get(from)
    const storeId = memory.of(from)?.storeId
    if (peer === undefined || storeId === undefined) return
    // It can have heard of no flush that is not durable here.
    if (through > log.durableFlush) return trace.mark('durable_mark_beyond_the_log')
    peer.heardMark = { storeId, through }
  }

  /** The marks of LOG-18 that the peers' present stores have told. */
  heardMarks(): readonly (readonly [NodeId, number | undefined])[] {
    const { memory } = this.#options
    return [...this.#peers.values()].map(({ node, heardMark }) => {
      const isPresent = heardMark !== undefined && heardMark.storeId === memory.of(node)?.storeId
      return [node, isPresent ? heardMark.through : undefined]
    })
  }
}

/** The page of the peer's directory to ask for; undefined: digests do, or it knows of no directory. */
function nextPage({ marks, knowsLogEnds }: Peer): PeerMarks['nextPage'] {
  return knowsLogEnds ? marks.nextPage : undefined
}
