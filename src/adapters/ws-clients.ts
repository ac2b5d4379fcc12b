/**
 * Client links over WebSockets: a node's listener, whose endpoints are clients as it names them,
 * and a client's dialer, whose endpoints are the nodes' URLs.
 */
import type { Server } from 'node:http'
import type { ClusterId, NodeId } from '../base/ids.ts'
import type {
  DialledAddress,
  Endpoint,
  Transport,
  TransportHandlers,
  Unreached,
} from '../ports/transport.ts'
import type { Connections } from './connections.ts'
import { causeOfRefusal, waits } from './link-causes.ts'
import { WsDialer } from './ws-dialer.ts'
import { WsLink, zeroCounters, type LinkContext, type TransportCounters } from './ws-link.ts'
import { UnfinishedMessages, type Unfinished } from './unfinished.ts'
import { clientPath, routeUpgrades } from './ws-router.ts'

export interface ClientListenerOptions<Frame> extends Omit<LinkContext<Frame>, 'counters'> {
  readonly node: NodeId
  readonly cluster: ClusterId
  readonly server: Server
  /** Links at once; one more is refused. */
  readonly clientsMax: number
  /** Says whether the listener has room for one more of them. Absent: it has. */
  readonly connections?: Pick<Connections, 'prove'>
  /** Bytes of messages that have come in part, of all clients. Absent: `unfinishedBytesMax`. */
  readonly unfinishedBytesMax?: number
}

/** Handshakes under way beyond the clients that are linked, where the listener does not bound them. */
const handshakesMax = 1_000

export class WsClientListener<Frame> implements Transport<Frame> {
  readonly counters: TransportCounters = zeroCounters()
  readonly #options: ClientListenerOptions<Frame>
  /** Accepted links, up or not. */
  readonly #links = new Map<Endpoint, WsLink<Frame>>()
  /** Clients whose links are up. */
  readonly #linked = new Set<Endpoint>()
  readonly #unfinished: UnfinishedMessages
  #named = 0
  #unroute: () => void = () => undefined

  constructor(options: ClientListenerOptions<Frame>) {
    this.#options = options
    this.#unfinished = new UnfinishedMessages(options.unfinishedBytesMax)
  }

  start(handlers: TransportHandlers<Frame>): void {
    const { cluster, node, server, clientsMax, connections } = this.#options
    const context = { ...this.#options, counters: this.counters }
    this.#unroute = routeUpgrades(server, clientPath, (socket, remote, raw) => {
      const isFull = connections === undefined && this.#links.size >= clientsMax + handshakesMax
      if (isFull) return socket.terminate()
      const client = `c${(this.#named += 1)}`
      let unfinished: Unfinished | undefined
      const link = new WsLink<Frame>(context, {
        socket,
        raw: () => raw,
        side: 'listener',
        role: 'node',
        cluster,
        node,
        info: () => ({}),
        name: `${client} ${remote}`,
        expected: { role: 'client', cluster },
        admit: (theirs) => {
          if (this.#linked.size >= clientsMax) return `overloaded: ${clientsMax} clients have links`
          return handlers.admit(client, theirs.info) ?? connections?.prove(raw, 'client')
        },
        onUp: (link, theirs) => {
          this.#linked.add(client)
          unfinished = this.#unfinished.watch(raw, () => {
            this.counters.endedForRoom += 1
            link.fail(waits('it had sent the longest at a message while too much of such had come'))
          })
          // A client is no store: nothing else that it may tell of itself counts.
          const isFollowing = theirs.info.followsNodes === true
          handlers.onLink(client, 'up', isFollowing ? { followsNodes: true } : {})
        },
        onFrame: (_link, frame) => {
          unfinished?.finished()
          handlers.onFrame(client, frame)
        },
        onRefused: (reason, by) => {
          if (by === 'them') handlers.onRefused(client, reason)
        },
        onDrained: () => handlers.onDrained?.(client),
        onDown: () => {
          unfinished?.release()
          this.#links.delete(client)
          if (this.#linked.delete(client)) handlers.onLink(client, 'down', {})
        },
      })
      this.#links.set(client, link)
    })
  }

  send(to: Endpoint, frame: Frame): boolean {
    return this.#links.get(to)?.send(frame) ?? false
  }

  isUp(peer: Endpoint): boolean {
    return this.#links.get(peer)?.isUp ?? false
  }

  queuedBytes(to: Endpoint): number {
    return this.#links.get(to)?.queuedBytes ?? 0
  }

  hold(from: Endpoint, isHeld: boolean): void {
    this.#links.get(from)?.hold(isHeld)
  }

  get clients(): number {
    return this.#linked.size
  }

  async close(): Promise<void> {
    this.#unroute()
    await Promise.all([...this.#links.values()].map((link) => link.close('closing')))
  }
}

export interface ClientDialerOptions<Frame> extends Omit<LinkContext<Frame>, 'counters'> {
  /** `http://host:port` of each node that may be asked; the endpoints' names, as given. */
  readonly urls: readonly string[]
  /** The nodes there, by URL, where they are known: what the log calls them. */
  readonly nodes?: ReadonlyMap<string, string>
  /** Absent: whichever cluster answers. */
  readonly cluster?: string
  /** Whether errors name addresses: only the application that gave the addresses may read them. */
  readonly tellsAddresses?: boolean
}

/**
 * Between two tries at an address that a node has told: a client may be where it cannot be reached at all, and thousands of
 * clients would try in vain for as long as they run.
 */
const toldRedialMaxMs = 5_000

/** A dialer, and the node that has to answer where it dials. */
interface ClientDialer<Frame> {
  readonly node: string | undefined
  readonly dialer: WsDialer<Frame>
}

export class WsClientDialer<Frame> implements Transport<Frame> {
  readonly counters: TransportCounters = zeroCounters()
  readonly #options: ClientDialerOptions<Frame>
  readonly #dialers = new Map<Endpoint, ClientDialer<Frame>>()
  /** Of dialers that `setEndpoints` has ended: until their sockets are gone. */
  readonly #ending = new Set<Promise<unknown>>()
  /** Absent: it was not started, or has been closed. */
  #handlers: TransportHandlers<Frame> | undefined

  get addresses(): number {
    return this.#options.tellsAddresses === true ? this.#options.urls.length : 0
  }

  get endpoints(): readonly Endpoint[] {
    return this.#options.urls
  }

  constructor(options: ClientDialerOptions<Frame>) {
    this.#options = options
  }

  start(handlers: TransportHandlers<Frame>): void {
    this.#handlers = handlers
    for (const url of this.#options.urls) this.#dial(handlers, { endpoint: url })
  }

  setEndpoints(addresses: readonly DialledAddress[]): void {
    const handlers = this.#handlers
    if (handlers === undefined) return
    const next = new Map(addresses.map(({ endpoint, node }) => [endpoint, node]))
    for (const [url, { node, dialer }] of this.#dialers) {
      if (next.has(url) && next.get(url) === node) continue
      this.#dialers.delete(url)
      const ending = dialer.close()
      this.#ending.add(ending)
      void ending.then(() => this.#ending.delete(ending))
    }
    for (const address of addresses) {
      if (!this.#dialers.has(address.endpoint)) this.#dial(handlers, address)
    }
  }

  #dial(handlers: TransportHandlers<Frame>, { endpoint: url, node }: DialledAddress): void {
    const { nodes, cluster = '', secret, tellsAddresses = false } = this.#options
    const context = { ...this.#options, counters: this.counters }
    let isUp = false
    const tell = ({ kind, reason }: Unreached, theirs = ''): void => {
      const at = theirs === '' ? url : `${url} (node ${theirs})`
      handlers.onUnreached?.(url, { kind, reason: tellsAddresses ? `${at}: ${reason}` : reason })
    }
    const named = { ...(cluster !== '' && { cluster }), ...(node !== undefined && { node }) }
    const dialer = new WsDialer<Frame>(context, {
      url,
      path: clientPath,
      ...(node !== undefined && { redialMaxMs: toldRedialMaxMs }),
      role: 'client',
      cluster,
      node: '',
      name: nodes?.get(url) ?? node ?? url,
      expected: { role: 'node', ...named },
      info: () => handlers.self(),
      admit: ({ info, node: met, cluster: theirs }) =>
        handlers.admit(url, { ...info, node: met, cluster: theirs }),
      onUp: (_link, theirs) => {
        isUp = true
        handlers.onLink(url, 'up', { node: theirs.node })
      },
      onFrame: (_link, frame) => handlers.onFrame(url, frame),
      onRefused: (reason, by, theirs) => {
        // A stranger's words, too: they end nothing, and are all that tells why there is no link.
        handlers.onRefused(url, by === 'a stranger' ? `${reason} (so it says)` : reason, theirs)
        const isWithout = secret === '' && reason.startsWith('secret: ')
        tell(causeOfRefusal(isWithout ? `${reason} (this client gives none)` : reason), theirs)
      },
      onFailed: (why) => tell(why),
      onDown: () => {
        if (isUp) handlers.onLink(url, 'down', {})
        isUp = false
      },
    })
    this.#dialers.set(url, { node, dialer })
  }

  send(to: Endpoint, frame: Frame): boolean {
    return this.#dialers.get(to)?.dialer.link?.send(frame) ?? false
  }

  isUp(peer: Endpoint): boolean {
    return this.#dialers.get(peer)?.dialer.link?.isUp ?? false
  }

  async close(): Promise<void> {
    this.#handlers = undefined
    const closing = [...this.#dialers.values()].map(({ dialer }) => dialer.close())
    await Promise.all([...closing, ...this.#ending])
  }
}
