/**
 * Links between the nodes of a cluster over WebSockets: of each pair the node with the smaller id
 * dials the other. A newer link of a peer takes the place of an older one, which may be dead
 * without having noticed.
 *
 * The other one knocks where it has been without a link for some time: it dials, and the first says why there is no link. So a
 * node hears that it was removed. A knock never becomes a link.
 *
 * Peers come and go while the node runs (`setPeers`). A node that is no peer any more has no link and no dialer. One that
 * dials this node is judged as any other one is, so that it hears why it gets no link.
 */
import type { Server } from 'node:http'
import { assert } from '../base/assert.ts'
import { sha256 } from '../base/bytes.ts'
import type { ClusterId, NodeId } from '../base/ids.ts'
import type { Timer } from '../ports/clock.ts'
import type {
  Endpoint,
  LinkInfo,
  PeerAddress,
  Transport,
  TransportHandlers,
} from '../ports/transport.ts'
import type { Met } from '../wire/handshake.ts'
import type { Connections } from './connections.ts'
import { WsDialer } from './ws-dialer.ts'
import {
  WsLink,
  zeroCounters,
  type LinkContext,
  type LinkParts,
  type TransportCounters,
} from './ws-link.ts'
import { peerPath, routeUpgrades } from './ws-router.ts'

export interface PeerTransportOptions<Frame> extends Omit<LinkContext<Frame>, 'counters'> {
  readonly node: NodeId
  readonly cluster: ClusterId
  /** The other nodes at first, and where each is unless `setPeers` says otherwise; this one may stand among them. */
  readonly peers: readonly { readonly node: NodeId; readonly url: string }[]
  /** All nodes that the cluster began with, in the order of the configuration, in words: `a b c`, `a@east d@west`. */
  readonly nodeList?: string
  /** Where clients reach this node, if not where its peers do. */
  readonly clientUrl?: string
  readonly server: Server
  /** Told of links that are a peer's. */
  readonly connections?: Pick<Connections, 'prove'>
}

interface PeerDialer<Frame> {
  readonly url: string
  readonly dialer: WsDialer<Frame>
}

/** The parts that links have in common, whichever side dialled. */
type CommonParts<Frame> = Omit<LinkParts<Frame>, 'socket' | 'raw' | 'side'>

/**
 * Links at once, those included whose handshake has not ended: no cluster has this many nodes. Where the
 * listener counts its connections, the listener bounds them: strangers must not keep peers out.
 */
const acceptedMax = 1_000

/** A node looks for peers without a link this often. It knocks at those that two looks in a row have missed. */
const missedLookMs = 5_000

const wrongSide = 'side: '

/** Of a list of nodes in a refusal. */
const listCharsMax = 250

export class WsPeerTransport<Frame> implements Transport<Frame> {
  readonly counters: TransportCounters = zeroCounters()
  readonly #options: PeerTransportOptions<Frame>
  readonly #context: LinkContext<Frame>
  readonly #dialers = new Map<Endpoint, PeerDialer<Frame>>()
  /** Of dialers and links that `setPeers` has ended: until their sockets are gone. */
  readonly #ending = new Set<Promise<unknown>>()
  /** Where each peer is; undefined: that is not known, and it can only dial. */
  #addresses: ReadonlyMap<Endpoint, string | undefined>
  /** Links that are up and count: by peer, and the peer of each. */
  readonly #links = new Map<Endpoint, WsLink<Frame>>()
  readonly #peers = new Map<WsLink<Frame>, Endpoint>()
  /** Where clients reach the peers, of those that have said so. */
  readonly #clientUrls = new Map<Endpoint, string>()
  /** Called when a peer says where clients reach it, and had not said that before. */
  onClientUrl: () => void = () => undefined
  /** Why peers have no link, as of the latest try. */
  readonly #troubles = new Map<string, string>()
  /** Accepted links, up or not. */
  readonly #accepted = new Set<WsLink<Frame>>()
  #unroute: () => void = () => undefined
  /** Before that any node has a link that `admit` lets in. */
  #isListSet = false
  /** Peers that had no link at the last look. */
  #missed: ReadonlySet<Endpoint> = new Set()
  #looking: Timer | undefined
  /** Absent: it was not started, or has been closed. */
  #handlers: TransportHandlers<Frame> | undefined

  constructor(options: PeerTransportOptions<Frame>) {
    const { node, peers } = options
    this.#options = options
    this.#context = { ...options, counters: this.counters }
    const others = peers.filter((peer) => peer.node !== node)
    this.#addresses = new Map(others.map((peer) => [peer.node, peer.url]))
  }

  /** Where each peer is, of those that this node has links with; undefined: that is not known. */
  get peerUrls(): ReadonlyMap<Endpoint, string | undefined> {
    return this.#addresses
  }

  /** Of peers without a link: why the latest try gave none, where that is known. */
  get troubles(): ReadonlyMap<string, string> {
    return this.#troubles
  }

  /** Where clients reach the peers, of those that have said so: a peer that has a link now, or had one. */
  get clientUrls(): ReadonlyMap<Endpoint, string> {
    return this.#clientUrls
  }

  start(handlers: TransportHandlers<Frame>): void {
    const { server, connections } = this.#options
    this.#handlers = handlers
    this.#unroute = routeUpgrades(server, peerPath, (socket, remote, raw) => {
      const isFull = connections === undefined && this.#accepted.size >= acceptedMax
      if (isFull) return socket.terminate()
      const parts = this.#buildParts(handlers, remote, undefined)
      const admit = (theirs: Met): string | undefined =>
        parts.admit(theirs) ?? connections?.prove(raw, 'peer')
      const ends = { socket, raw: () => raw, side: 'listener', admit } as const
      this.#accepted.add(new WsLink(this.#context, { ...parts, ...ends }))
    })
    this.#dial(handlers)
    this.#lookForMissed(handlers)
  }

  #lookForMissed(handlers: TransportHandlers<Frame>): void {
    this.#looking = this.#options.clock.setTimer(missedLookMs, () => {
      const peers = [...this.#addresses.keys()]
      const missed = new Set(peers.filter((peer) => !this.#links.has(peer)))
      for (const peer of missed) if (this.#missed.has(peer)) this.#knock(handlers, peer)
      this.#missed = missed
      this.#lookForMissed(handlers)
    })
  }

  /** At a peer that is to dial this node. */
  #knock(handlers: TransportHandlers<Frame>, peer: Endpoint): void {
    const url = this.#addresses.get(peer)
    if (url === undefined || this.#dialers.has(peer)) return
    const parts = this.#buildParts(handlers, peer, peer)
    const dialer = new WsDialer(this.#context, {
      ...{ ...parts, url, path: peerPath },
      // The peer's own tries have the last word.
      onFailed: () => undefined,
      onRefused: (...refusal) => {
        if (!refusal[0].startsWith(wrongSide)) parts.onRefused(...refusal)
      },
      onDown: (link) => {
        parts.onDown(link)
        if (this.#dialers.get(peer)?.dialer === dialer) this.#dialers.delete(peer)
        void dialer.close()
      },
    })
    this.#dialers.set(peer, { url, dialer })
  }

  /** Ends the links of nodes that are no peers any more, and dials those that are peers now. */
  setPeers(peers: readonly PeerAddress[]): void {
    const { node: own } = this.#options
    const next = new Map<Endpoint, string | undefined>()
    for (const { node, url } of peers) {
      if (node !== own) next.set(node, url ?? this.#firstUrl(node))
    }
    this.#isListSet = true
    if (areSame(next, this.#addresses)) return
    this.#addresses = next
    for (const peer of this.#troubles.keys()) if (!next.has(peer)) this.#troubles.delete(peer)
    for (const peer of this.#clientUrls.keys()) if (!next.has(peer)) this.#clientUrls.delete(peer)
    for (const [peer, { url, dialer }] of this.#dialers) {
      if (next.get(peer) === url) continue
      this.#dialers.delete(peer)
      this.#troubles.delete(peer)
      this.#await(dialer.close())
    }
    for (const [peer, link] of this.#links) if (!next.has(peer)) this.#await(link.close('removed'))
    if (this.#handlers !== undefined) this.#dial(this.#handlers)
  }

  disconnect(peer: Endpoint): void {
    const link = this.#links.get(peer)
    if (link !== undefined) this.#await(link.close('removed'))
  }

  #firstUrl(node: Endpoint): string | undefined {
    return this.#options.peers.find((one) => one.node === node)?.url
  }

  #await(ending: Promise<unknown>): void {
    this.#ending.add(ending)
    void ending.then(() => this.#ending.delete(ending))
  }

  /** Begins to dial each peer that this node is to dial, and does not. */
  #dial(handlers: TransportHandlers<Frame>): void {
    for (const [peer, url] of this.#addresses) {
      if (this.#options.node >= peer || url === undefined || this.#dialers.has(peer)) continue
      const parts = this.#buildParts(handlers, peer, peer)
      const dialer = new WsDialer(this.#context, { ...parts, url, path: peerPath })
      this.#dialers.set(peer, { url, dialer })
    }
  }

  /** `node` is known of those that are dialled. */
  #buildParts(
    handlers: TransportHandlers<Frame>,
    name: string,
    node: Endpoint | undefined,
  ): CommonParts<Frame> {
    const { cluster } = this.#options
    const expected = { role: 'peer', cluster, ...(node === undefined ? {} : { node }) } as const
    return {
      role: 'peer',
      cluster,
      node: this.#options.node,
      name,
      expected,
      info: () => ({ ...handlers.self(), ...this.#ownList(), ...this.#ownUrl() }),
      admit: (theirs) =>
        this.#listProblem(theirs) ??
        handlers.admit(theirs.node, theirs.info) ??
        this.#sideProblem(theirs),
      onUp: (link, theirs) => this.#onUp(handlers, link, theirs),
      onFrame: (link, frame) => {
        const peer = this.#peers.get(link)
        if (peer !== undefined) handlers.onFrame(peer, frame)
      },
      onFailed: ({ reason }) => this.#noteTrouble(node, reason),
      onRefused: (reason, by, theirNode, isProven) => {
        const noted = node ?? (isProven ? theirNode : undefined)
        // It is the peer that is to dial, and its own tries tell.
        const isOfSide = reason.startsWith(wrongSide)
        if (!isOfSide)
          this.#noteTrouble(noted, by === 'a stranger' ? `${reason} (so it says)` : reason)
        if (by === 'them') handlers.onRefused(theirNode, reason)
      },
      onDown: (link) => this.#onDown(handlers, link),
    }
  }

  /**
   * Of a peer alone, by the name under which it was dialled or has proven itself: a stranger may say any
   * name, and would write into what this node says of its peers.
   */
  #noteTrouble(node: string | undefined, reason: string): void {
    if (node !== undefined && this.#addresses.has(node)) this.#troubles.set(node, reason)
  }

  #ownUrl(): LinkInfo {
    const { clientUrl } = this.#options
    return clientUrl === undefined ? {} : { clientUrl }
  }

  #noteUrl(peer: Endpoint, url: string | undefined): void {
    if (this.#clientUrls.get(peer) === url) return
    if (url === undefined) this.#clientUrls.delete(peer)
    else this.#clientUrls.set(peer, url)
    this.onClientUrl()
  }

  #ownList(): LinkInfo {
    const { nodeList } = this.#options
    return nodeList === undefined ? {} : { nodes: computeDigest(nodeList) }
  }

  /** A side that tells of no list is refused as well: each that speaks this protocol has one. */
  #listProblem({ info: { nodes } }: Met): string | undefined {
    const own = this.#ownList().nodes
    if (own === undefined || nodes === own) return undefined
    if (nodes === undefined) return 'nodes: the other side does not tell its list of nodes'
    const { nodeList = '' } = this.#options
    const list = `this side's is ${nodeList.slice(0, listCharsMax)}`
    return `nodes: the two sides have different lists of nodes, ${list}; give all nodes the same ids and sets, in the same order: that of their data folders`
  }

  /** A peer that may have a link, and is to be dialled instead. */
  #sideProblem({ side, node }: Met): string | undefined {
    const isKnock = side === 'dialer' && node > this.#options.node
    return isKnock ? `${wrongSide}of two nodes the one with the smaller id dials` : undefined
  }

  #onUp(handlers: TransportHandlers<Frame>, link: WsLink<Frame>, theirs: Met): void {
    // Compared anew, whatever `admit` has found: a link past it is to be seen here.
    const own = this.#ownList().nodes
    const isSame = own === undefined || theirs.info.nodes === own
    assert(isSame, 'HELLO-4: a link of nodes whose lists of nodes differ')
    const peer = theirs.node
    // It was a peer as the handshake began.
    if (this.#isListSet && !this.#addresses.has(peer)) return void link.close('removed')
    this.#troubles.delete(peer)
    const older = this.#links.get(peer)
    // `onDown` reports its end, before the new link's beginning.
    void older?.close('replaced')
    this.#links.set(peer, link)
    this.#peers.set(link, peer)
    this.#noteUrl(peer, theirs.info.clientUrl)
    handlers.onLink(peer, 'up', theirs.info)
  }

  #onDown(handlers: TransportHandlers<Frame>, link: WsLink<Frame>): void {
    this.#accepted.delete(link)
    const peer = this.#peers.get(link)
    if (peer === undefined) return
    this.#peers.delete(link)
    this.#links.delete(peer)
    handlers.onLink(peer, 'down', {})
  }

  send(to: Endpoint, frame: Frame): boolean {
    const link = this.#links.get(to)
    if (link !== undefined) return link.send(frame)
    this.counters.framesDropped += 1
    return false
  }

  isUp(peer: Endpoint): boolean {
    return this.#links.get(peer)?.isUp ?? false
  }

  async close(): Promise<void> {
    this.#unroute()
    this.#looking?.cancel()
    this.#handlers = undefined
    const accepted = [...this.#accepted].map((link) => link.close('closing'))
    const dialers = [...this.#dialers.values()].map(({ dialer }) => dialer.close())
    await Promise.all([...dialers, ...accepted, ...this.#ending])
  }
}

function areSame<Key, Value>(
  some: ReadonlyMap<Key, Value>,
  others: ReadonlyMap<Key, Value>,
): boolean {
  const isIn = ([key, value]: readonly [Key, Value]): boolean =>
    others.has(key) && others.get(key) === value
  return some.size === others.size && [...some].every(isIn)
}

function computeDigest(list: string): string {
  return sha256(list).toString('hex').slice(0, 32)
}
