/**
 * The footings of the suites of ports: replicas in memory, a node alone on real stores and sockets, and a
 * simulated cluster. All of them are driven alike.
 */
import { OrderedJournal } from '../../src/journal/ordered-journal.ts'
import { createServer } from 'node:http'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { WsClientListener } from '../../src/adapters/ws-clients.ts'
import { assert, present } from '../../src/base/assert.ts'
import { clusterId, groupOfBytes, nodeId, type GroupId } from '../../src/base/ids.ts'
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import { CellStore } from '../../src/cells/cell-store.ts'
import type { CellService } from '../../src/cells/operation.ts'
import { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import type { LocalReplica } from '../../src/group/replica-port.ts'
import { Node } from '../../src/node/compose.ts'
import { staticPlacement } from '../../src/placement/placement.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { decodeClientFrame, encodeClientFrame } from '../../src/wire/client/client-codec.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import { makeCluster, nobody } from '../../sim/run-setup.ts'
import { calmOptions, calmSkew } from '../../sim/scenarios/scenario-calm.ts'
import { createClock } from '../../sim/world/clock.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'
import { createBench, exactClock, settled } from '../cells/kit.ts'
import { MemoryReplica } from '../cells/memory-replica.ts'
import { ToldTransport } from '../replica/told-transport.ts'
import type { Disk } from '../store/stores.ts'

/** One node as a test uses it. */
export interface FootingNode {
  readonly replica: LocalReplica
  readonly cells: CellService
  /** A client that asks this node alone. */
  connect(): Promise<Client>
  /** Ends it in an orderly way. */
  stop(): Promise<void>
}

export interface Footing {
  /** The first and the last may be the same one. */
  readonly nodes: readonly FootingNode[]
  readonly clock: Clock
  /** Lets happen what has to, until the promise has settled; gives its value. */
  settled<Value>(work: Promise<Value>): Promise<Value>
  /** From now on the first node reaches no majority. Absent: it is a majority by itself. */
  cutOff?(): void
  /** Ends what is still there. */
  remove(): Promise<void>
}

export function firstOf({ nodes }: Footing): FootingNode {
  return present(nodes[0], 'footing: there is a node')
}

export function lastOf({ nodes }: Footing): FootingNode {
  return present(nodes.at(-1), 'footing: there is a node')
}

let named = 0

/** A group that no other test has. */
export function newGroup(prefix = 'group'): GroupId {
  return groupOfBytes(Buffer.from(`${prefix} ${(named += 1)}`))
}

/** A name that no other test has; sessions and datastores may be called so. */
export function newName(prefix: string): string {
  return `${prefix}${(named += 1)}`
}

function noClient(): Promise<never> {
  return Promise.reject(new Error('footing: no client can ask this node'))
}

/** Two replicas of one log, in virtual time. `limits`: those that differ from the default. */
export function memoryFooting(limits: Partial<Limits> = {}): Promise<Footing> {
  const bench = createBench()
  Object.assign(bench.log.limits, limits)
  const clock = bench.clockOf('test')
  const replicas: MemoryReplica[] = []
  const nodes = ['n1', 'n2'].map((name): FootingNode => {
    const own = bench.clockOf(name)
    const replica = new MemoryReplica(bench.log, own)
    replica.isFirst = replicas.length === 0
    replicas.push(replica)
    const cells = new CellStore({ replica, clock: own, random: bench.random.fork(name) })
    const stop = async (): Promise<void> => {
      cells.stop()
      replica.stop()
    }
    return { replica, cells, connect: noClient, stop }
  })
  return Promise.resolve({
    nodes,
    clock,
    settled: (work) => settled(bench.world, work),
    cutOff: () => {
      for (const replica of replicas) replica.isCutOff = true
    },
    remove: () => Promise.resolve(),
  })
}

/** A node that is its whole cluster, on stores of this kind, with a socket for clients. */
export async function loneFooting(
  makeDisk: () => Promise<Disk>,
  limits: Partial<Limits> = {},
): Promise<Footing> {
  const [log, data] = [await makeDisk(), await makeDisk()]
  const [name, cluster] = [nodeId('n1'), clusterId('test')]
  const server = createServer()
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const clients = new WsClientListener<ClientFrame>({
    ...{ node: name, cluster, server, clientsMax: 100, secret: '' },
    ...{ clock: systemClock, random: systemRandom, queueBytesMax: 64 * 1024 * 1024 },
    codec: { encode: encodeClientFrame, decode: decodeClientFrame },
    log: () => undefined,
  })
  const stores = { log: new OrderedJournal(await log.open()), data: await data.open() }
  const ports = { clock: systemClock, random: systemRandom, trace: silentTrace }
  const node = await Node.open(
    { ...ports, ...stores, clients, peers: new ToldTransport() },
    {
      ...{ node: name, cluster, placement: staticPlacement([name]) },
      limits: { ...defaultLimits, ...limits },
    },
  )
  const address = server.address()
  assert(typeof address === 'object' && address !== null, 'footing: the server listens')
  const url = `http://127.0.0.1:${address.port}`
  const opened: Client[] = []
  const one: FootingNode = {
    replica: node.replica,
    cells: node.cells,
    connect: async () => {
      const client = await connect({ endpoints: [url] })
      opened.push(client)
      return client
    },
    stop: () => node.stop(),
  }
  return {
    nodes: [one],
    clock: systemClock,
    settled: (work) => work,
    remove: async () => {
      for (const client of opened) await client.close()
      await node.stop()
      server.closeAllConnections()
      await new Promise<void>((resolve) => void server.close(() => resolve()))
      await log.remove()
      await data.remove()
    },
  }
}

const second = 1_000_000

/**
 * The real nodes on simulated disks and links, three in each replica set, watched by all checkers. A footing
 * of several sets has a node of each; cells and clients reach all sets through any of them.
 */
export async function simulatedFooting(
  limits: Partial<Limits> = {},
  setCount = 1,
): Promise<Footing> {
  const calm = calmOptions(1)
  const nodeCount = 3 * setCount
  const skews = Array.from({ length: nodeCount }, () => calmSkew)
  const more = { nodeCount, setCount, skews, limits: { ...calm.limits, ...limits } }
  const plan = { options: { ...calm, ...more }, faults: [] }
  const cluster = makeCluster(plan, { eventsMax: 5_000_000 }, nobody)
  const { world, hosts, clientNetwork } = cluster
  cluster.start()
  const isUp = (): boolean => cluster.programs.length === nodeCount
  assert((await world.run(isUp, 10 * second)) === 'done', 'footing: all nodes start')
  const random = world.random.fork('test')
  const process = new SimProcess(world, 'test')
  const clock = createClock(process, exactClock, random)
  const nodes = hosts.map(({ name, program }): FootingNode => {
    const node = present(program, 'footing: a node is down')
    return {
      replica: node.replica,
      cells: node.cells,
      connect: async () => {
        const transport = clientNetwork.attach(new SimProcess(world, newName('client')), [name])
        return new Client({ transport, clock, random: random.fork(newName('client')) })
      },
      stop: () => node.stop(),
    }
  })
  return {
    nodes,
    clock,
    settled: (work) => settled(world, work),
    cutOff: () => {
      for (const host of hosts.slice(1)) host.crash()
    },
    remove: async () => {
      const { violations } = cluster.referee
      assert(violations.length === 0, `footing: ${JSON.stringify(violations[0])}`)
    },
  }
}
