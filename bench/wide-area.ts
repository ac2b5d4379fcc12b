/**
 * A cluster in the simulated world with a node and a client in each of some regions, and what an
 * operation costs there: time, messages, bytes, flushes. Every figure is the same on every machine.
 */
import type { NodeId } from '../src/base/ids.ts'
import { defaultLimits } from '../src/base/limits.ts'
import { readUuid } from '../src/base/uuid.ts'
import { shardGroup } from '../src/cells/shard.ts'
import { shardOf } from '../src/client/row-shard.ts'
import { Client } from '../src/client/client.ts'
import { sha256 } from '../src/base/bytes.ts'
import { assert, present } from '../src/base/assert.ts'
import { staticPlacement } from '../src/placement/placement.ts'
import { createClock } from '../sim/world/clock.ts'
import type { SimCluster } from '../sim/cluster/comparison.ts'
import { clientName, nodeName } from '../sim/cluster/endpoints.ts'
import { makeCluster, nobody } from '../sim/run-setup.ts'
import { calmFor, calmSkew } from '../sim/scenarios/scenario-calm.ts'
import { SimProcess } from '../sim/world/sim-process.ts'

/** Round trips between regions in milliseconds. */
export type Distances = readonly (readonly number[])[]

/** Between a client and the node of its region. */
const nearMicros = 100
const datastore = 'bench'
const patienceMicros = 60_000_000
/** For links to come up. */
const beginMicros = 2_000_000

/** The cost of an operation. */
export interface Cost {
  readonly ms: number
  readonly messages: number
  readonly bytes: number
  readonly flushes: number
}

export class WideArea {
  readonly distances: Distances
  readonly #cluster: SimCluster
  readonly #clients: readonly Client[]
  readonly #nodes: readonly NodeId[]
  #rows = 0

  private constructor(distances: Distances, cluster: SimCluster, clients: readonly Client[]) {
    this.distances = distances
    this.#cluster = cluster
    this.#clients = clients
    this.#nodes = distances.map((_, region) => nodeName(region))
  }

  /** A failure is noticed at once: when it is drawn, a gap says how much was drawn before, not what it costs. */
  static async open(distances: Distances): Promise<WideArea> {
    const calm = calmFor(distances.length)
    const options = {
      ...{ ...calm, nodeCount: distances.length },
      link: { ...calm.link, noticeMeanMicros: 0, between: buildWays(distances) },
      disk: { writeMinMicros: 50, writeMeanMicros: 0 },
    }
    const cluster = makeCluster({ options, faults: [] }, {}, nobody)
    const clients = distances.map((_, region) => openClient(cluster, region))
    cluster.start()
    await cluster.world.run(() => false, beginMicros)
    return new WideArea(distances, cluster, clients)
  }

  /** The round trip from a region to the nearest others that make a majority with it. */
  majorityMs(region: number): number {
    const others = this.distances[region]?.filter((_, other) => other !== region) ?? []
    const needed = Math.floor(this.distances.length / 2)
    return present(others.toSorted((a, b) => a - b)[needed - 1], 'bench: there is a majority')
  }

  /** A new row of a group whose first leader is in this region. */
  row(region: number): string {
    const placement = staticPlacement(this.#nodes)
    for (;;) {
      const row = readUuid(sha256(`row ${this.#rows++}`), 0)
      const { firstFull } = placement.replicasOf(shardGroup(datastore, shardOf(row)))
      if (firstFull === this.#nodes[region]) return row
    }
  }

  put(region: number, rowKey: string, refKey: number): Promise<Cost> {
    return this.#cost(() => this.#put(region, rowKey, refKey))
  }

  /** A put whose messages, bytes and flushes the report does not tell: to count them takes longer. Gives its milliseconds. */
  putUncounted(region: number, rowKey: string, refKey: number): Promise<number> {
    return this.#timed(() => this.#put(region, rowKey, refKey))
  }

  get(region: number, row: string): Promise<Cost> {
    return this.#cost(() =>
      this.#client(region).cells(datastore).get({ rowKey: row, column: 'BASE' }),
    )
  }

  /** Lease times from a failure to the answer of the first write after it; the node is back afterwards. */
  async gap(failing: number, region: number, row: string, refKey: number): Promise<number> {
    const host = present(this.#cluster.hosts[failing], 'bench: a region has a node')
    host.crash()
    const ms = await this.putUncounted(region, row, refKey)
    host.restart()
    const { world } = this.#cluster
    await world.run(() => false, world.nowMicros + beginMicros)
    return ms / defaultLimits.leaseMs
  }

  #client(region: number): Client {
    return present(this.#clients[region], 'bench: a region has a client')
  }

  #put(region: number, rowKey: string, refKey: number): Promise<unknown> {
    const cell = { rowKey, column: 'BASE', refKey, body: { refKey, text: 'x'.repeat(100) } }
    return this.#client(region).cells(datastore).put(cell)
  }

  async #timed(work: () => Promise<unknown>): Promise<number> {
    const { world } = this.#cluster
    const startMicros = world.nowMicros
    let isDone = false
    const done = work().then(() => (isDone = true))
    const ending = await world.run(() => isDone, world.nowMicros + patienceMicros)
    assert(ending === 'done', 'bench: an operation ends')
    await done
    const ms = (world.nowMicros - startMicros) / 1_000
    // The work that follows upon it is a part of its cost.
    await world.run(() => false, world.nowMicros + restMicros)
    return ms
  }

  async #cost(work: () => Promise<unknown>): Promise<Cost> {
    const before = this.#counts()
    const ms = await this.#timed(work)
    const after = this.#counts()
    return {
      ms,
      messages: after.messages - before.messages,
      bytes: after.bytes - before.bytes,
      flushes: after.flushes - before.flushes,
    }
  }

  #counts(): Omit<Cost, 'ms'> {
    const { traffic, programs } = this.#cluster
    const flushes = programs.map((program) => program.status().replica.durableFlush)
    const { messages, bytes } = traffic
    return { messages, bytes, flushes: flushes.reduce((sum, one) => sum + one, 0) }
  }
}

/** Beyond the longest way, and the delay of the applier. */
const restMicros = 500_000

function buildWays(distances: Distances): Readonly<Record<string, number>> {
  const ways: [string, number][] = []
  for (const [from, row] of distances.entries()) {
    for (const [to, ms] of row.entries()) {
      const micros = from === to ? nearMicros : (ms * 1_000) / 2
      if (from !== to) ways.push([`${nodeName(from)}>${nodeName(to)}`, micros])
      ways.push([`${clientName(from)}>${nodeName(to)}`, micros])
      ways.push([`${nodeName(to)}>${clientName(from)}`, micros])
    }
  }
  return Object.fromEntries(ways)
}

/** Knows the node of its own region only: it learns of no other. */
function openClient({ world, clientNetwork }: SimCluster, region: number): Client {
  const process = new SimProcess(world, clientName(region))
  const random = world.random.fork(`client ${region}`)
  const clock = createClock(process, calmSkew, random.fork('clock'))
  const transport = clientNetwork.attach(process, [nodeName(region)])
  return new Client({ transport, clock, random })
}
