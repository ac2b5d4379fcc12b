/** The nodes of all replica sets as this node tells them to clients, and to nodes of other sets, which ask as clients do. */
import type { NodeId } from '../base/ids.ts'
import type { VotersReport } from '../members/report.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Endpoint, LinkInfo, Transport } from '../ports/transport.ts'
import type { ClientFrame, ListedNode, SetList } from '../wire/client/client-message.ts'

/** Where clients reach the nodes, as far as this node knows. */
export interface NodeAddresses {
  /**
   * Of a node of this node's set. `url`: where its peers reach it, as the set's own row says; absent: as the configuration says.
   * Its own word goes before both.
   */
  find(node: NodeId, url: string | undefined): Omit<ListedNode, 'node'>
  /** The lists of the other sets. */
  others(): readonly SetList[]
}

export interface SetListsParts {
  readonly transport: Pick<Transport<ClientFrame>, 'send'>
  readonly clock: Pick<Clock, 'setTimer'>
  /** The number of this node's set. */
  readonly set: number
  readonly addresses: NodeAddresses
  voters(): VotersReport
}

/** Clients told in one turn: with thousands of them a change must not hold up their requests. */
const toldPerTurn = 100
const turnMs = 5
/** The node tries again after this time where a client's link takes nothing now. */
const againMs = 1_000

export class SetLists {
  readonly #parts: SetListsParts
  /** Clients that follow the nodes and have links. */
  readonly #clients = new Set<Endpoint>()
  /** Those of them that have yet to be told. */
  readonly #untold = new Set<Endpoint>()
  #timer: Timer | undefined

  constructor(parts: SetListsParts) {
    this.#parts = parts
  }

  /** The own set's first. */
  get lists(): readonly SetList[] {
    const { set, addresses, voters } = this.#parts
    const { epoch, nodes } = voters()
    const own = nodes.map(({ node, url }) => ({ node, ...addresses.find(node, url) }))
    return [{ set, epoch, nodes: own }, ...addresses.others()]
  }

  /** A client's link is up: the node tells it at once, if it knows such messages. */
  open(client: Endpoint, { followsNodes }: LinkInfo): void {
    if (followsNodes !== true) return
    this.#clients.add(client)
    if (!this.#tell(client, this.lists)) this.#tellLater([client], againMs)
  }

  close(client: Endpoint): void {
    this.#clients.delete(client)
    this.#untold.delete(client)
  }

  /** The lists have changed. */
  tellAll(): void {
    this.#tellLater(this.#clients, turnMs)
  }

  stop(): void {
    this.#timer?.cancel()
    this.#clients.clear()
    this.#untold.clear()
  }

  #tellLater(clients: Iterable<Endpoint>, ms: number): void {
    for (const client of clients) this.#untold.add(client)
    if (this.#untold.size === 0) return
    this.#timer ??= this.#parts.clock.setTimer(ms, () => {
      this.#timer = undefined
      this.#tellSome()
    })
  }

  #tellSome(): void {
    const { lists } = this
    const now = [...this.#untold].slice(0, toldPerTurn)
    for (const client of now) this.#untold.delete(client)
    const missed = now.filter((client) => !this.#tell(client, lists))
    this.#tellLater(missed, missed.length === now.length ? againMs : turnMs)
  }

  #tell(client: Endpoint, sets: readonly SetList[]): boolean {
    return this.#parts.transport.send(client, { kind: 'nodes', sets })
  }
}
