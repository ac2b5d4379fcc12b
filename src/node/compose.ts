/**
 * A node out of its parts: the replica, cells on it, and the server of client links. Given other
 * ports, the daemon, `npm start` and the simulator run the same node.
 */
import { present } from '../base/assert.ts'
import type { ClusterId, NodeId } from '../base/ids.ts'
import { CellStore } from '../cells/cell-store.ts'
import type { CellService } from '../cells/operation.ts'
import { RoutedCells } from '../cells/routed-cells.ts'
import { ClientGroups } from '../client/groups.ts'
import { SeenPositions } from '../client/seen-positions.ts'
import { shardGroup } from '../cells/shard.ts'
import type { Transport } from '../ports/transport.ts'
import {
  Driver,
  type DriverOptions,
  type DriverPorts,
  type ReplicaStatus,
} from '../replica/driver.ts'
import type { LocalReplica } from '../replica/local-replica.ts'
import { groupOf, type GroupAnswer, type GroupOperation } from '../txn/group-operation.ts'
import { GroupService } from '../txn/group-service.ts'
import type { ClientFrame } from '../wire/client-message.ts'
import { Buffering, type BufferCounts } from './buffering.ts'
import { ClientServer } from './client-server.ts'
import { Elsewhere } from './elsewhere.ts'

export interface NodePorts extends DriverPorts {
  readonly clients: Transport<ClientFrame>
  /** Links to the nodes of each other replica set, by its number; the own set has none. */
  readonly elsewhere?: ReadonlyMap<number, Transport<ClientFrame>>
}

export interface NodeOptions extends DriverOptions {
  /** Other replica sets that take a copy of a cell whose own set is silent. Default 1; 0: none. */
  readonly bufferCopies?: number
}

const bufferCopiesDefault = 1

/** What an operator sees of a node; plain data, as `/status` gives it. */
export interface NodeStatus {
  readonly node: NodeId
  readonly cluster: ClusterId
  readonly isDraining: boolean
  /** Requests of clients that are at work. */
  readonly clientRequests: number
  readonly buffer: BufferCounts
  readonly replica: ReplicaStatus
}

export class Node {
  readonly #buffering: Buffering
  readonly #store: CellStore
  readonly #elsewhere: ReadonlyMap<number, Elsewhere>
  readonly #driver: Driver
  readonly #groups: GroupService
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
    const node = new Node(ports, options, driver)
    await node.#driver.start()
    node.#server.start()
    if (options.placement.setCount > 1) node.#buffering.start()
    return node
  }

  private constructor(ports: NodePorts, options: NodeOptions, driver: Driver) {
    this.#ports = ports
    this.#options = options
    this.#driver = driver
    const { clock, random, clients: transport } = ports
    this.#store = new CellStore({ replica: driver, clock, random })
    this.#groups = new GroupService({ replica: driver, clock })
    this.#elsewhere = new Map(
      [...(ports.elsewhere ?? [])].map(([set, links]) => {
        return [set, new Elsewhere({ transport: links, clock, random })]
      }),
    )
    this.#buffering = new Buffering({
      ...{ replica: driver, placement: options.placement, clock, random },
      ...{ cells: this.#routedCells(), copies: options.bufferCopies ?? bufferCopiesDefault },
      groups: new ClientGroups((one, ms) => this.#askGroup(one, ms), new SeenPositions()),
    })
    const status = (): ReturnType<typeof plain> => plain(this.status())
    const groups = { execute: this.#askGroup.bind(this) }
    this.#server = new ClientServer({ transport, cells: this.cells, groups, clock, status })
  }

  #routedCells(): CellService {
    const { node, placement } = this.#options
    if (placement.setCount === 1) return this.#store
    const own = placement.setOfNode(node)
    const services = Array.from({ length: placement.setCount }, (_, set) => {
      return set === own ? this.#store : this.#setElsewhere(set)
    })
    const setOf = (datastore: string, shard: number): number =>
      placement.setOf(shardGroup(datastore, shard))
    return new RoutedCells({ services, setOf })
  }

  #setElsewhere(set: number): Elsewhere {
    return present(this.#elsewhere.get(set), 'node: there are links to every other set')
  }

  #askGroup(operation: GroupOperation, timeoutMs: number): Promise<GroupAnswer> {
    const { placement } = this.#options
    const group = groupOf(operation)
    if (this.#driver.holds(group)) return this.#groups.execute(operation, timeoutMs)
    return this.#setElsewhere(placement.setOf(group)).askGroup(operation, timeoutMs)
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
      replica: this.#driver.status(),
    }
  }

  /** Takes nothing new, and resolves when what is at work is answered and applied. */
  async drain(): Promise<void> {
    this.#isDraining = true
    const hasServed = this.#buffering.stop()
    this.#store.stop()
    this.#groups.stop()
    await this.#server.drain()
    await hasServed
    await this.#driver.drain()
  }

  async stop(): Promise<void> {
    const hasServed = this.#buffering.stop()
    this.#store.stop()
    this.#groups.stop()
    await this.#ports.clients.close()
    await Promise.all([...this.#elsewhere.values()].map((set) => set.close()))
    await this.#driver.stop()
    // What it waits for has been ended by now.
    await hasServed
  }
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Plain JSON of a status: what is undefined is left out. */
function plain(status: NodeStatus): { readonly [key: string]: Json } {
  const text: unknown = JSON.parse(JSON.stringify(status))
  return isJsonObject(text) ? text : {}
}

function isJsonObject(value: unknown): value is { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
