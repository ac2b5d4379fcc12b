/**
 * A node out of its parts: the replica, cells on it, and the server of client links. Given other
 * ports, the daemon, `npm start` and the simulator run the same node.
 */
import { StoreError } from '../base/errors.ts'
import type { ClusterId, NodeId } from '../base/ids.ts'
import { CellStore } from '../cells/cell-store.ts'
import type { CellService } from '../cells/operation.ts'
import type { Transport } from '../ports/transport.ts'
import {
  Driver,
  type DriverOptions,
  type DriverPorts,
  type ReplicaStatus,
} from '../replica/driver.ts'
import type { LocalReplica, TopicCounts } from '../replica/local-replica.ts'
import { AgendaService } from '../queues/agenda-service.ts'
import { deliveryBounds, type DeliveryBounds } from '../queues/bounds.ts'
import { Delivery, type DeliveryCounts } from '../queues/delivery.ts'
import { IndexRelay, type RelayFigures } from '../tables/index-relay.ts'
import { GroupService } from '../txn/group-service.ts'
import type { ClientFrame } from '../wire/client-message.ts'
import { Buffering, type BufferCounts } from './buffering.ts'
import { ClientServer } from './client-server.ts'
import { plain, type PlainObject } from './plain.ts'
import { Routing } from './routing.ts'

export interface NodePorts extends DriverPorts {
  readonly clients: Transport<ClientFrame>
  /** Links to the nodes of each other replica set, by its number; the own set has none. */
  readonly elsewhere?: ReadonlyMap<number, Transport<ClientFrame>>
}

export interface NodeOptions extends DriverOptions {
  /** Other replica sets that take a copy of a cell whose own set is silent. Default 1; 0: none. */
  readonly bufferCopies?: number
  /** How messages are delivered; the default bounds when absent. */
  readonly delivery?: DeliveryBounds
}

const bufferCopiesDefault = 1

export interface QueuesStatus extends Readonly<DeliveryCounts> {
  /** Groups whose outbox waits to be looked at, or is. */
  readonly busyGroups: number
  /** Rows that came and went as applied here, by topic: `outbox`, `queue/NAME`, `dead/NAME`. */
  readonly topics: Readonly<Record<string, TopicCounts>>
}

/** What an operator sees of a node; plain data, as `/status` gives it. */
export interface NodeStatus {
  readonly node: NodeId
  readonly cluster: ClusterId
  readonly isDraining: boolean
  /** Requests of clients that are at work. */
  readonly clientRequests: number
  readonly buffer: BufferCounts
  /** What this node delivered from group to group, and groups that wait for it. */
  readonly queues: QueuesStatus
  readonly replica: ReplicaStatus
  readonly indexes: RelayFigures
}

export class Node {
  readonly #buffering: Buffering
  readonly #store: CellStore
  readonly #routing: Routing
  readonly #relay: IndexRelay
  readonly #driver: Driver
  readonly #groups: GroupService
  readonly #agendas: AgendaService
  readonly #delivery: Delivery
  readonly #server: ClientServer
  readonly #ports: NodePorts
  readonly #options: NodeOptions
  #isDraining = false

  /**
   * Opens the stores, takes up what the log holds and joins the others. Rejects with `corrupt` or
   * `invalid` when the stores must not be used; they are closed by whoever opened them.
   * `onFailure`: the node must stop, since its disk refused or its peers will not have its store.
   */
  static async open(
    ports: NodePorts,
    options: NodeOptions,
    onFailure: (reason: Error) => void = () => undefined,
  ): Promise<Node> {
    const driver = await Driver.open(ports, options)
    driver.onFailure = onFailure
    const node = new Node(ports, options, driver, onFailure)
    await node.#driver.start()
    node.#delivery.start()
    node.#relay.start()
    node.#server.start()
    if (options.placement.setCount > 1) node.#buffering.start()
    return node
  }

  private constructor(
    ports: NodePorts,
    options: NodeOptions,
    driver: Driver,
    onFailure: (reason: Error) => void,
  ) {
    this.#ports = ports
    this.#options = options
    this.#driver = driver
    const { clock, random, clients: transport } = ports
    this.#store = new CellStore({ replica: driver, clock, random })
    this.#relay = new IndexRelay({ replica: driver, clock, random, trace: ports.trace })
    this.#groups = new GroupService({ replica: driver, clock })
    const { node, placement } = options
    this.#routing = new Routing({
      ...{ node, placement, replica: driver, clock, random },
      ...{ cells: this.#store, groups: this.#groups, elsewhere: ports.elsewhere ?? new Map() },
    })
    const { cells, groups } = this.#routing
    this.#buffering = new Buffering({
      ...{ replica: driver, placement, clock, random, cells, groups },
      copies: options.bufferCopies ?? bufferCopiesDefault,
    })
    const status = (): PlainObject => plain(this.status())
    this.#agendas = new AgendaService({ replica: driver, clock, random, node: options.node })
    const bounds = options.delivery ?? deliveryBounds
    this.#delivery = new Delivery({ replica: driver, clock, random }, bounds, (error) => {
      // What the world does is tried again; anything else is a bug, and nothing rests on it any more.
      if (!(error instanceof StoreError)) onFailure(asError(error))
    })
    const services = { cells: this.cells, groups: this.#routing, agendas: this.#agendas }
    this.#server = new ClientServer({ transport, ...services, clock, status })
  }

  /** Of all shards, whichever set holds them. */
  get cells(): CellService {
    return this.#buffering.cells
  }

  get replica(): LocalReplica & Pick<Driver, 'observedLeases'> {
    return this.#driver
  }

  status(): NodeStatus {
    const { node, cluster } = this.#options
    return {
      ...{ node, cluster, isDraining: this.#isDraining },
      clientRequests: this.#server.requests,
      buffer: this.#buffering.counts,
      queues: {
        ...{ ...this.#delivery.counts, busyGroups: this.#delivery.busyGroups },
        topics: this.#driver.agenda.counts(),
      },
      replica: this.#driver.status(),
      indexes: this.#relay.figures,
    }
  }

  /** Takes nothing new, and resolves when what is at work is answered and applied. */
  async drain(): Promise<void> {
    this.#isDraining = true
    const hasServed = this.#buffering.stop()
    this.#store.stop()
    this.#groups.stop()
    this.#agendas.stop()
    await this.#delivery.stop()
    await this.#server.drain()
    await hasServed
    await this.#relay.stop()
    await this.#driver.drain()
  }

  async stop(): Promise<void> {
    const hasServed = this.#buffering.stop()
    this.#store.stop()
    this.#groups.stop()
    this.#agendas.stop()
    void this.#delivery.stop()
    await this.#ports.clients.close()
    await this.#routing.close()
    // What it waits for ends with the driver.
    void this.#relay.stop()
    await this.#driver.stop()
    // What it waits for has been ended by now.
    await hasServed
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason))
}
