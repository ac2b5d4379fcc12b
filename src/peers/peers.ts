/**
 * The other nodes as this one sees them: one frame per peer and turn, heartbeats, suspicion, which peer may
 * join, and what this node may have missed of them. Per peer, never per group.
 */
import { present } from '../base/assert.ts'
import { compareText } from '../base/bytes.ts'
import { numbersFrom } from '../base/drawn-numbers.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import { pack, unpack } from '../base/pack.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import type { LinkInfo, Transport } from '../ports/transport.ts'
import type {
  ClockTold,
  Digest,
  DigestRequest,
  Message,
  PeerFrame,
} from '../replication/message.ts'
import { Admission, areCredible, type MetaStore } from './admission.ts'
import { PeerDigestCursor, type OwnLog } from './peer-digest-cursor.ts'
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
  /** All groups of the peer's flushes through here were named to this node, of those that it can read. */
  digestedThrough: number
  /** The same of all of its flushes through here: none of them was damaged when the peer answered. */
  knownThrough: number
  readonly mark: PeerDigestCursor
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
  /** How far its digests need not be asked for is news, and not with the data store yet. */
  isUnsaved: boolean
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
    const { meta, log, trace, memory, storeId: ownStore } = this.#options
    const known = unpack(meta.meta(`digest/${node}`) ?? new Uint8Array())
    const mark: readonly unknown[] = Array.isArray(known) ? known : []
    const digestedThrough = readMark(mark, log, ownStore)
    if (digestedThrough > 0) trace.mark('digests_resumed')
    return {
      node,
      outbox: new PeerOutbox(),
      lastHeardMs: now,
      lastSentMs: now,
      clockAskedMs: now,
      clockAsks: new Map(),
      isSuspected: false,
      hasAdmitted: false,
      digestedThrough,
      knownThrough: digestedThrough,
      // One that is refused goes with the next batch: the log may come to be as long as it was.
      isUnsaved: mark.length > 0 && digestedThrough === 0,
      mark: new PeerDigestCursor(log, digestedThrough),
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
    const { meta, storeId: ownStore } = this.#options
    for (const peer of this.#peers.values()) {
      const { node, mark } = peer
      if (!peer.isUnsaved) continue
      peer.isUnsaved = false
      meta.setMeta(`digest/${node}`, pack([ownStore, mark.coveredByFlush, mark.through]))
    }
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
      if (peer.mark.advance()) peer.isUnsaved = true
      this.askDigest(peer.node)
    }
  }

  askDigest(node: NodeId): void {
    const peer = this.#peers.get(node)
    if (peer === undefined || peer.digestedThrough >= peer.durableFlush) return
    this.#request(peer)
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
    peer.isThrottled = peer.mark.isFull(limits.digestGroupsMax)
    if (peer.isThrottled) {
      trace.mark('digest_throttled')
      return asked
    }
    const message: DigestRequest = { kind: 'digest-request', after: peer.digestedThrough, asked }
    this.send(peer.node, message)
    return asked
  }

  onDigest(from: NodeId, digest: Digest): void {
    const peer = this.#peers.get(from)
    if (peer === undefined) return
    this.#options.later(`digest of ${from}`, { name: 'digest', pieces: this.#takeIn(peer, digest) })
  }

  *#takeIn(peer: Peer, digest: Digest): Generator<number, void> {
    if (digest.after === peer.digestedThrough) yield* this.#takeUp(peer, digest)
    const { node, knownThrough: through, durableFlush: durable } = peer
    this.#options.onDigested(node, { asked: digest.asked, through, durable })
  }

  *#takeUp(peer: Peer, { after, through, isWhole, groups }: Digest): Generator<number, void> {
    const { log, isHeld, onNamed, trace } = this.#options
    const coming: (readonly [GroupId, Position])[] = []
    let isAll = isWhole
    for (const named of groups) {
      const [group, position] = named
      // A look at a group that is not in memory reads its record.
      yield 0
      if (log.highest(group) >= position) continue
      if (isHeld(group)) coming.push(named)
      else isAll = false
    }
    peer.mark.take(through, coming, isAll)
    for (const [group, position] of coming) onNamed(group, position, peer.node)
    peer.digestedThrough = through
    // Perhaps no other peer knows the groups that the digest left out: from there on this peer counts for
    // no list of groups.
    if (!isWhole) trace.mark('digest_incomplete')
    else if (peer.knownThrough === after) peer.knownThrough = through
    if (through > after) this.askDigest(peer.node)
  }
}

/** How far digests need not be asked for: what another log knew, or a longer one, this one does not. */
function readMark(
  [inStore, coveredByFlush, through]: readonly unknown[],
  log: OwnLog,
  ownStore: string,
): number {
  const isOfThisLog = inStore === ownStore && Number(coveredByFlush) <= log.durableFlush
  return isOfThisLog && typeof through === 'number' ? through : 0
}
