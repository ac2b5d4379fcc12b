/**
 * Links between the nodes of a cluster over WebSockets: of each pair the node with the smaller id
 * dials the other. A newer link of a peer takes the place of an older one, which may be dead
 * without having noticed.
 */
import type { Server } from 'node:http'
import { assert } from '../base/assert.ts'
import { sha256 } from '../base/bytes.ts'
import type { ClusterId, NodeId } from '../base/ids.ts'
import type { Endpoint, LinkInfo, Transport, TransportHandlers } from '../ports/transport.ts'
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
  /** The other nodes; this one may stand among them. */
  readonly peers: readonly { readonly node: NodeId; readonly url: string }[]
  /** All nodes of the cluster, in the order of the configuration, in words: `a b c`, `a@east d@west`. */
  readonly nodeList?: string
  readonly server: Server
  /** Told of links that are a peer's. */
  readonly connections?: Pick<Connections, 'prove'>
}

/** The parts that links have in common, whichever side dialled. */
type CommonParts<Frame> = Omit<LinkParts<Frame>, 'socket' | 'raw' | 'side'>

/**
 * Links at once, those included whose handshake has not ended: no cluster has this many nodes. Where the
 * listener counts its connections, the listener bounds them: strangers must not keep peers out.
 */
const acceptedMax = 1_000

/** Of a list of nodes in a refusal. */
const listCharsMax = 250

export class WsPeerTransport<Frame> implements Transport<Frame> {
  readonly counters: TransportCounters = zeroCounters()
  readonly #options: PeerTransportOptions<Frame>
  readonly #context: LinkContext<Frame>
  readonly #dialers: WsDialer<Frame>[] = []
  /** Links that are up and count: by peer, and the peer of each. */
  readonly #links = new Map<Endpoint, WsLink<Frame>>()
  readonly #peers = new Map<WsLink<Frame>, Endpoint>()
  /** Why peers have no link, as of the latest try. */
  readonly #troubles = new Map<string, string>()
  /** Accepted links, up or not. */
  readonly #accepted = new Set<WsLink<Frame>>()
  #unroute: () => void = () => undefined

  constructor(options: PeerTransportOptions<Frame>) {
    this.#options = options
    this.#context = { ...options, counters: this.counters }
  }

  /** Of peers without a link: why the latest try gave none, where that is known. */
  get troubles(): ReadonlyMap<string, string> {
    return this.#troubles
  }

  start(handlers: TransportHandlers<Frame>): void {
    const { server, node, peers, connections } = this.#options
    this.#unroute = routeUpgrades(server, peerPath, (socket, remote, raw) => {
      const isFull = connections === undefined && this.#accepted.size >= acceptedMax
      if (isFull) return socket.terminate()
      const parts = this.#buildParts(handlers, remote, undefined)
      const admit = (theirs: Met): string | undefined =>
        parts.admit(theirs) ?? connections?.prove(raw, 'peer')
      const ends = { socket, raw: () => raw, side: 'listener', admit } as const
      this.#accepted.add(new WsLink(this.#context, { ...parts, ...ends }))
    })
    for (const peer of peers) {
      if (node >= peer.node) continue
      const parts = this.#buildParts(handlers, peer.node, peer.node)
      const target = { url: peer.url, path: peerPath }
      this.#dialers.push(new WsDialer(this.#context, { ...parts, ...target }))
    }
  }

  /** `node` is known of those that are dialled. */
  #buildParts(
    handlers: TransportHandlers<Frame>,
    name: string,
    node: NodeId | undefined,
  ): CommonParts<Frame> {
    const { cluster } = this.#options
    const expected = { role: 'peer', cluster, ...(node === undefined ? {} : { node }) } as const
    return {
      role: 'peer',
      cluster,
      node: this.#options.node,
      name,
      expected,
      info: () => ({ ...handlers.self(), ...this.#ownList() }),
      admit: (theirs) => this.#listProblem(theirs) ?? handlers.admit(theirs.node, theirs.info),
      onUp: (link, theirs) => this.#onUp(handlers, link, theirs),
      onFrame: (link, frame) => {
        const peer = this.#peers.get(link)
        if (peer !== undefined) handlers.onFrame(peer, frame)
      },
      onFailed: ({ reason }) => this.#noteTrouble(node, reason),
      onRefused: (reason, by, theirNode, isProven) => {
        const noted = node ?? (isProven ? theirNode : undefined)
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
    const peer = this.#options.peers.find((one) => one.node === node)
    if (peer !== undefined) this.#troubles.set(peer.node, reason)
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

  #onUp(handlers: TransportHandlers<Frame>, link: WsLink<Frame>, theirs: Met): void {
    // Compared anew, whatever `admit` has found: a link past it is to be seen here.
    const own = this.#ownList().nodes
    const isSame = own === undefined || theirs.info.nodes === own
    assert(isSame, 'HELLO-4: a link of nodes whose lists of nodes differ')
    const peer = theirs.node
    this.#troubles.delete(peer)
    const older = this.#links.get(peer)
    // `onDown` reports its end, before the new link's beginning.
    void older?.close('replaced')
    this.#links.set(peer, link)
    this.#peers.set(link, peer)
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
    const accepted = [...this.#accepted].map((link) => link.close('closing'))
    await Promise.all([...this.#dialers.map((dialer) => dialer.close()), ...accepted])
  }
}

function computeDigest(list: string): string {
  return sha256(list).toString('hex').slice(0, 32)
}
