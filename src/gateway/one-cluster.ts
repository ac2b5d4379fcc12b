/**
 * Links to nodes of one cluster: of the one that is named, or of the one that the first node to prove
 * itself belongs to. A node of another cluster is refused from then on.
 */
import type { DialledAddress, Endpoint, Transport, TransportHandlers } from '../ports/transport.ts'

export class OneCluster<Frame> implements Transport<Frame> {
  /** Told once, when the cluster was not named and is known. */
  onKnown: (cluster: string) => void = () => undefined
  readonly #transport: Transport<Frame>
  #cluster: string | undefined
  readonly #troubles = new Map<Endpoint, string>()

  /** Of addresses without a link: why the latest try gave none, where that is known. */
  get troubles(): ReadonlyMap<Endpoint, string> {
    return this.#troubles
  }

  constructor(transport: Transport<Frame>, cluster: string | undefined) {
    this.#transport = transport
    this.#cluster = cluster
  }

  get cluster(): string | undefined {
    return this.#cluster
  }

  start(handlers: TransportHandlers<Frame>): void {
    this.#transport.start({
      self: () => handlers.self(),
      admit: (peer, info) => this.#problem(info.cluster) ?? handlers.admit(peer, info),
      onRefused: (...refused) => handlers.onRefused(...refused),
      onUnreached: (peer, { reason }) => this.#troubles.set(peer, reason),
      onLink: (peer, state, info) => {
        this.#troubles.delete(peer)
        handlers.onLink(peer, state, info)
      },
      onFrame: (from, frame) => handlers.onFrame(from, frame),
    })
  }

  #problem(theirs: string | undefined): string | undefined {
    if (theirs === undefined || theirs === this.#cluster) return undefined
    if (this.#cluster !== undefined) {
      return `cluster: this gateway serves cluster ${this.#cluster}, the node belongs to ${theirs}`
    }
    this.#cluster = theirs
    this.onKnown(theirs)
    return undefined
  }

  get endpoints(): readonly Endpoint[] {
    return this.#transport.endpoints ?? []
  }

  setEndpoints(addresses: readonly DialledAddress[]): void {
    const dialled = new Set(addresses.map(({ endpoint }) => endpoint))
    for (const one of this.#troubles.keys()) if (!dialled.has(one)) this.#troubles.delete(one)
    this.#transport.setEndpoints?.(addresses)
  }

  send(to: Endpoint, frame: Frame): boolean {
    return this.#transport.send(to, frame)
  }

  isUp(peer: Endpoint): boolean {
    return this.#transport.isUp(peer)
  }

  close(): Promise<void> {
    return this.#transport.close()
  }
}
