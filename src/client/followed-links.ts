/**
 * Links to the nodes of a cluster as it changes: those of the given addresses, and those that the nodes tell of. It stands
 * between the links and the client, which sees addresses come and go.
 *
 * MAP-3  There are never more links than `linksMax`, or than there are given addresses where those are more. A node has one
 *        link; one by a given address goes before one by a told address.
 * MAP-4  The client leaves a link, as that with a removed node, only while another one is up that stays. The link ends once
 *        nothing waits there for an answer. Where no link is up, all given addresses are dialled again.
 *
 * A short while passes between a list and the first dial by it: most given addresses have links by then, and a process that
 * lives for one call dials no more than it was given.
 */
import { assert } from '../base/assert.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type {
  DialledAddress,
  Endpoint,
  LinkInfo,
  Transport,
  TransportHandlers,
} from '../ports/transport.ts'
import type { ClientFrame, SetList } from '../wire/client/client-message.ts'
import { KnownNodes } from './known-nodes.ts'

/** Links of one client, given addresses included. */
export const linksMaxDefault = 32

/** Between a list that is new and the first dial by it. */
const settleMs = 500
/** Between two looks at whether a link that is to end is idle. */
const leavingTickMs = 100

export interface FollowedLinksParts {
  readonly transport: Transport<ClientFrame>
  readonly clock: Clock
  readonly random: Random
  /** The client asks this replica set alone; absent: any. */
  readonly onlySet?: number
  /** Absent: `linksMaxDefault`. */
  readonly linksMax?: number
}

/** An address, and how the client came to it. */
export interface KnownAddress {
  readonly endpoint: Endpoint
  /** The node there, as far as it is known. */
  readonly node: string | undefined
  readonly from: 'given' | 'learned'
}

export class FollowedLinks implements Transport<ClientFrame> {
  /** Called when the lists have changed. */
  onLists: () => void = () => undefined
  readonly #parts: FollowedLinksParts
  readonly #given: readonly Endpoint[]
  readonly #known: KnownNodes
  readonly #linksMax: number
  /** The addresses that have dialers, each with the node that has to answer there. */
  #dialled: ReadonlyMap<Endpoint, string | undefined>
  /** Of each address the node that has answered there last. */
  readonly #nodeAt = new Map<Endpoint, string>()
  /** The cluster of the node at each address, as it has proven. */
  readonly #clusterAt = new Map<Endpoint, string>()
  /** Of the lists: those of another cluster are passed over, as are its nodes at told addresses. */
  #cluster: string | undefined
  readonly #up = new Set<Endpoint>()
  /** Links that are to end once they are idle. */
  readonly #leaving = new Set<Endpoint>()
  #handlers: TransportHandlers<ClientFrame> | undefined
  #timer: Timer | undefined
  #ticks: Timer | undefined
  /** Where in the list of each set this client begins, if it cannot have links to all. */
  #turn: number | undefined

  constructor(parts: FollowedLinksParts) {
    const { transport, onlySet, linksMax = linksMaxDefault } = parts
    this.#parts = parts
    this.#given = transport.endpoints ?? []
    this.#known = new KnownNodes(this.#given, onlySet)
    this.#linksMax = Math.max(linksMax, this.#given.length)
    this.#dialled = new Map(this.#given.map((endpoint) => [endpoint, undefined]))
  }

  /** Of each set the latest list. */
  get lists(): readonly SetList[] {
    return this.#known.lists
  }

  /** Told addresses that are not dialled. */
  get refusedAddresses(): number {
    return this.#known.refused
  }

  /** The addresses that are dialled now. */
  get known(): readonly KnownAddress[] {
    return [...this.#dialled].map(([endpoint, node]) => ({
      endpoint,
      node: this.#nodeAt.get(endpoint) ?? node,
      from: this.#isGiven(endpoint) ? 'given' : 'learned',
    }))
  }

  get addresses(): number {
    return this.#parts.transport.addresses ?? 0
  }

  start(handlers: TransportHandlers<ClientFrame>): void {
    this.#handlers = handlers
    this.#parts.transport.start({
      ...handlers,
      self: () => ({ ...handlers.self(), followsNodes: true }),
      admit: (endpoint, info) => this.#problem(endpoint, info) ?? handlers.admit(endpoint, info),
      onUnreached: (endpoint, why) => {
        // The application knows the given addresses alone, and waits for one of those.
        if (this.#isGiven(endpoint)) handlers.onUnreached?.(endpoint, why)
      },
      onLink: (endpoint, state, info) => this.#onLink(handlers, endpoint, state, info),
      onFrame: (endpoint, frame) => {
        if (frame.kind === 'nodes') this.#onLists(endpoint, frame.sets)
        else handlers.onFrame(endpoint, frame)
      },
    })
  }

  send(to: Endpoint, frame: ClientFrame): boolean {
    return this.#parts.transport.send(to, frame)
  }

  isUp(endpoint: Endpoint): boolean {
    return this.#parts.transport.isUp(endpoint)
  }

  async close(): Promise<void> {
    this.#handlers = undefined
    this.#timer?.cancel()
    this.#ticks?.cancel()
    await this.#parts.transport.close()
  }

  #isGiven(endpoint: Endpoint): boolean {
    return this.#given.includes(endpoint)
  }

  #problem(endpoint: Endpoint, { cluster }: LinkInfo): string | undefined {
    if (cluster === undefined) return undefined
    this.#clusterAt.set(endpoint, cluster)
    if (this.#isGiven(endpoint) || cluster === this.#cluster) return undefined
    return `cluster: this side follows cluster ${this.#cluster ?? ''}, the other belongs to ${cluster}`
  }

  #onLink(
    handlers: TransportHandlers<ClientFrame>,
    endpoint: Endpoint,
    state: 'up' | 'down',
    info: LinkInfo,
  ): void {
    if (state === 'up') {
      this.#up.add(endpoint)
      if (info.node !== undefined) this.#nodeAt.set(endpoint, info.node)
      handlers.onLink(endpoint, state, info)
      return this.#settleSoon()
    }
    this.#up.delete(endpoint)
    const hasLeft = this.#leaving.delete(endpoint)
    handlers.onLink(endpoint, state, info)
    if (this.#up.size === 0) this.#known.onAlone()
    else if (!hasLeft) return this.#settleSoon()
    this.#settle()
  }

  #onLists(endpoint: Endpoint, sets: readonly SetList[]): void {
    const node = this.#nodeAt.get(endpoint)
    const cluster = this.#clusterAt.get(endpoint)
    if (this.#known.isEmpty) this.#cluster = cluster
    if (node === undefined || cluster !== this.#cluster || !this.#known.take(node, sets)) return
    this.onLists()
    this.#settleSoon()
  }

  #settleSoon(): void {
    if (this.#timer !== undefined || this.#handlers === undefined) return
    // Before the first list there is nothing to go by.
    if (this.#known.lists.length === 0) return
    this.#timer = this.#parts.clock.setTimer(settleMs, () => {
      this.#timer = undefined
      this.#settle()
    })
  }

  /** Leaves unwanted links once a wanted link is up. Then dials wanted addresses, up to `linksMax` links. */
  #settle(): void {
    if (this.#handlers === undefined) return
    const wanted = this.#computeWanted()
    const isHeld = [...this.#up].some((one) => wanted.has(one) && !this.#leaving.has(one))
    const next = new Map<Endpoint, string | undefined>()
    for (const endpoint of this.#up) {
      if (isHeld && !wanted.has(endpoint)) this.#leave(endpoint, wanted)
      next.set(endpoint, this.#dialled.get(endpoint))
    }
    if (!isHeld) for (const endpoint of this.#given) wanted.set(endpoint, undefined)
    const first = isHeld ? [] : this.#given
    for (const endpoint of [...first, ...wanted.keys()]) {
      if (next.size < this.#linksMax && !next.has(endpoint)) {
        next.set(endpoint, wanted.get(endpoint))
      }
    }
    for (const endpoint of this.#dialled.keys()) if (!next.has(endpoint)) this.#forget(endpoint)
    this.#set(next)
  }

  /** Which node answers at a given address says later, too, whether that one was removed. */
  #forget(endpoint: Endpoint): void {
    if (this.#isGiven(endpoint)) return
    this.#nodeAt.delete(endpoint)
    this.#clusterAt.delete(endpoint)
  }

  #set(next: ReadonlyMap<Endpoint, string | undefined>): void {
    const isSame =
      next.size === this.#dialled.size &&
      [...next].every(([url, node]) => this.#dialled.has(url) && this.#dialled.get(url) === node)
    if (isSame) return
    assert(next.size <= this.#linksMax, 'MAP-3: more links than there may be')
    const isSafe = [...next.keys()].every((url) => this.#isGiven(url) || this.#known.mayDial(url))
    assert(isSafe, 'MAP-2: a told address is dialled that is less safe than the given ones')
    this.#dialled = next
    this.#parts.transport.setEndpoints?.([...next].map(toAddress))
  }

  /** Each wanted address, with the node that has to answer there. */
  #computeWanted(): Map<Endpoint, string | undefined> {
    const wanted = new Map<Endpoint, string | undefined>()
    const linked = new Set<string>()
    for (const endpoint of this.#given) {
      const node = this.#nodeAt.get(endpoint)
      if (node !== undefined && this.#known.isRemoved(node)) continue
      wanted.set(endpoint, undefined)
      if (node !== undefined && this.#up.has(endpoint)) linked.add(node)
    }
    for (const { node, url } of this.#listed()) {
      if (wanted.size >= this.#linksMax) break
      if (linked.has(node) || wanted.has(url) || !this.#known.mayDial(url)) continue
      wanted.set(url, node)
    }
    return wanted
  }

  /** A node of each set in turn, so that each has links where there are too few for all. */
  #listed(): SetList['nodes'][number][] {
    const { lists } = this.#known
    const longest = Math.max(0, ...lists.map(({ nodes }) => nodes.length))
    const count = lists.reduce((sum, { nodes }) => sum + nodes.length, 0)
    const turn = count > this.#linksMax ? this.#drawTurn() : 0
    return Array.from({ length: longest }, (_, nth) => nth).flatMap((nth) =>
      lists.flatMap(({ nodes }) => {
        const one = nth < nodes.length ? nodes[(nth + turn) % nodes.length] : undefined
        return one === undefined ? [] : [one]
      }),
    )
  }

  #drawTurn(): number {
    this.#turn ??= this.#parts.random.int(0, 65_535)
    return this.#turn
  }

  #leave(endpoint: Endpoint, wanted: ReadonlyMap<Endpoint, unknown>): void {
    if (this.#leaving.has(endpoint)) return
    const stays = [...this.#up].some((one) => wanted.has(one) && !this.#leaving.has(one))
    assert(stays, 'MAP-4: the client leaves its last link')
    this.#leaving.add(endpoint)
    this.#handlers?.onLeaving?.(endpoint)
    this.#look()
  }

  /** Ends the links that are to end and are idle, and looks at the others again. */
  #look(): void {
    if (this.#ticks !== undefined || this.#handlers === undefined) return
    this.#ticks = this.#parts.clock.setTimer(leavingTickMs, () => {
      this.#ticks = undefined
      const handlers = this.#handlers
      if (handlers === undefined) return
      const idle = [...this.#leaving].filter((one) => handlers.isIdle?.(one) !== false)
      if (idle.length > 0) this.#end(idle)
      if (this.#leaving.size > 0) this.#look()
    })
  }

  #end(idle: readonly Endpoint[]): void {
    const rest = new Map(this.#dialled)
    for (const endpoint of idle) {
      this.#leaving.delete(endpoint)
      this.#forget(endpoint)
      rest.delete(endpoint)
    }
    this.#set(rest)
    this.#settle()
  }
}

function toAddress([endpoint, node]: readonly [Endpoint, string | undefined]): DialledAddress {
  return node === undefined ? { endpoint } : { endpoint, node }
}
