/** Nodes with replicas in memory and a client, on the simulated network, for the client's tests. */
import { present } from '../../src/base/assert.ts'
import type { CellService } from '../../src/cells/operation.ts'
import { Bugs, type Bug } from '../../src/node/bugs.ts'
import { ClientServer, defaultClientServerLimits } from '../../src/node/client-server.ts'
import { CellStore } from '../../src/cells/cell-store.ts'
import type { ClientLimits } from '../../src/client/client-limits.ts'
import { Client } from '../../src/client/client.ts'
import type { Problem } from '../../src/base/problem.ts'
import { nodeId } from '../../src/base/ids.ts'
import { WorklistService } from '../../src/worklist/worklist-service.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { GroupService } from '../../src/txn/group-service.ts'
import { decodeClientFrame, encodeClientFrame } from '../../src/wire/client/client-codec.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import { createClock } from '../../sim/world/clock.ts'
import { Coverage } from '../../sim/coverage.ts'
import { Network } from '../../sim/world/network.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'
import { Weather, type LinkConditions } from '../../sim/world/weather.ts'
import { createBench, exactClock, settled, type Bench } from '../cells/kit.ts'
import { MemoryReplica } from '../cells/memory-replica.ts'

const calm: LinkConditions = {
  ...{ delayMinMicros: 100, delayMeanMicros: 50, tail: 0, tailFactor: 1, reorder: 0, drop: 0 },
  ...{ duplicate: 0, late: 0, lateMeanMicros: 0, survive: 0 },
  ...{ noticeMeanMicros: 20_000, reconnectMeanMicros: 20_000, framesUnderWayMax: 1000 },
}

export interface FakeNode {
  readonly replica: MemoryReplica
  readonly server: ClientServer
  readonly process: SimProcess
}

export interface ClientFrames {
  readonly from: string
  readonly frame: ClientFrame
}

export interface FakeCluster {
  readonly bench: Bench
  readonly weather: Weather
  readonly network: Network<ClientFrame>
  readonly nodes: ReadonlyMap<string, FakeNode>
  node(name: string): FakeNode
  /** All frames that were sent, in order. */
  readonly frames: readonly ClientFrames[]
  client(limits?: Partial<ClientLimits>, name?: string): Client
  /** A process of this name, with its clock. */
  clockOf(name: string): { readonly process: SimProcess; readonly clock: Clock }
}

export interface ClusterOptions {
  readonly names?: readonly string[]
  readonly conditions?: Partial<LinkConditions>
  readonly seed?: number
  readonly serverLimits?: Partial<typeof defaultClientServerLimits>
  /** By the nodes whose clocks are ahead of the client's. */
  readonly aheadMs?: Readonly<Record<string, number>>
  /** Stands in front of a node's store. */
  readonly wrap?: (store: CellService, name: string) => CellService
  /** Nodes that have been away, and lack much. */
  readonly returning?: ReadonlySet<string>
  /** Of any node; thrown when it is absent. */
  readonly onBug?: (error: Error) => void
  readonly onDamagedIndex?: (error: Error) => void
}

export function createCluster(options: ClusterOptions = {}): FakeCluster {
  const { names = ['n1', 'n2'], seed = 1 } = options
  const bench = createBench(seed)
  const weather = new Weather({ ...calm, ...options.conditions })
  const frames: ClientFrames[] = []
  const network = createNetwork(bench, weather, frames)
  const nodes = new Map(names.map((name) => [name, createNode(bench, network, name, options)]))
  return {
    ...{ bench, weather, network, nodes, frames },
    node: (name) => present(nodes.get(name), 'cluster: there is such a node'),
    clockOf: (name) => clockOf(bench, name),
    client: (limits, name = 'client') => {
      const { process, clock } = clockOf(bench, name)
      const transport = network.attach(process, names)
      return new Client({ transport, clock, random: bench.random.fork(name) }, limits)
    },
  }
}

function clockOf(
  bench: Bench,
  name: string,
): { readonly process: SimProcess; readonly clock: Clock } {
  const process = new SimProcess(bench.world, name)
  return { process, clock: createClock(process, exactClock, bench.random) }
}

function createNetwork(
  bench: Bench,
  weather: Weather,
  frames: ClientFrames[],
): Network<ClientFrame> {
  return new Network<ClientFrame>({
    ...{ world: bench.world, weather, coverage: new Coverage(), name: 'clients' },
    codec: {
      encode: encodeClientFrame,
      decode: (bytes) => {
        const decoded = decodeClientFrame(bytes)
        return decoded.ok ? decoded.frame : undefined
      },
    },
    observer: {
      onSent: (from, _, frame) => frames.push({ from, frame }),
      onDelivered: () => undefined,
    },
  })
}

function thrown(error: Error): never {
  throw error
}

function createNode(
  bench: Bench,
  network: Network<ClientFrame>,
  name: string,
  options: ClusterOptions,
): FakeNode {
  const process = new SimProcess(bench.world, name)
  const offsetMicros = (options.aheadMs?.[name] ?? 0) * 1000
  const clock = createClock(process, { ...exactClock, offsetMicros }, bench.random)
  const replica = new MemoryReplica(bench.log, clock)
  const tell = ({ error }: Bug): void => (options.onBug ?? thrown)(error)
  const { note } = new Bugs({ clock, random: bench.random, tell })
  const noteBug = (error: unknown): Problem => note('request', error)
  const own = options.onBug === undefined ? {} : { noteBug }
  const { onDamagedIndex } = options
  const ports = { replica, clock, random: bench.random.fork(name), onDamagedIndex }
  const store = new CellStore({ ...ports, ...own })
  const transport = network.attach(process, [])
  const cells = options.wrap?.(store, name) ?? store
  const groups = new GroupService({ replica, clock })
  const worklists = new WorklistService({
    replica,
    clock,
    random: bench.random,
    node: nodeId(name),
  })
  const limits = { ...defaultClientServerLimits, ...options.serverLimits }
  const server = new ClientServer(
    {
      ...{ transport, cells, groups, worklists, clock, status: () => ({ node: name }) },
      isReturning: () => options.returning?.has(name) === true,
      noteBug: note,
    },
    limits,
  )
  server.start()
  return { replica, server, process }
}

/** The node that answers the client at present. */
export async function servingNode(cluster: FakeCluster, client: Client): Promise<string> {
  const status = await settled(cluster.bench.world, client.status())
  return Object.values(status ?? {}).join()
}

export function others(cluster: FakeCluster, name: string): string[] {
  return [...cluster.nodes.keys()].filter((one) => one !== name)
}
