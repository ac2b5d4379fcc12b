/**
 * A cluster in the world: nodes on their disks, the network between them, the nemesis, the judge.
 * What a node runs is given from outside; here are only its ports.
 */
import { clusterId, nodeId, type ClusterId, type NodeId } from '../src/base/ids.ts'
import { staticPlacement, type Placement } from '../src/placement/placement.ts'
import type { Clock } from '../src/ports/clock.ts'
import type { Random } from '../src/ports/random.ts'
import type { OrderedStore, Put } from '../src/ports/storage.ts'
import type { Trace } from '../src/ports/trace.ts'
import type { Transport } from '../src/ports/transport.ts'
import type { PeerFrame } from '../src/replication/message.ts'
import { decodePeerFrame, encodePeerFrame } from '../src/wire/peer-codec.ts'
import { Judge } from './checkers/judge.ts'
import { Referee } from './checkers/referee.ts'
import { Coverage } from './coverage.ts'
import { Nemesis } from './nemesis.ts'
import { Narrator } from './narrator.ts'
import { Network, type FrameCodec } from './network.ts'
import { NodeHost, type HostDisk, type Program } from './node-host.ts'
import type { SwarmOptions } from './swarm.ts'
import { Weather } from './weather.ts'
import { World } from './world.ts'

/** The ports of a node's program. */
export interface ProgramPorts<ClientFrame> {
  readonly clock: Clock
  readonly random: Random
  readonly trace: Trace
  readonly log: OrderedStore
  readonly data: OrderedStore
  readonly peers: Transport<PeerFrame>
  readonly clients: Transport<ClientFrame>
}

export interface ProgramOptions {
  readonly node: NodeId
  readonly cluster: ClusterId
  readonly placement: Placement
  readonly limits: SwarmOptions['limits']
}

export interface ClusterParts<P extends Program, ClientFrame> {
  readonly options: SwarmOptions
  readonly eventsMax: number
  readonly clientCodec: FrameCodec<ClientFrame>
  readonly clientNames: readonly string[]
  /** Rules that count; all of them when absent. */
  readonly rules?: readonly string[] | undefined
  /** Gets the run told line by line. */
  readonly watch?: ((line: string) => void) | undefined
  /** `fail` is for a program that stops by itself. */
  open(
    ports: ProgramPorts<ClientFrame>,
    options: ProgramOptions,
    fail: (reason: unknown) => void,
  ): Promise<P>
  makeDisk(world: World, name: string, onDurable: (puts: readonly Put[]) => void): HostDisk
}

const clusterName = clusterId('sim')

const peerCodec: FrameCodec<PeerFrame> = {
  encode: encodePeerFrame,
  decode(bytes) {
    const decoded = decodePeerFrame(bytes)
    return decoded.ok ? decoded.frame : undefined
  },
}

export class Cluster<P extends Program, ClientFrame> {
  readonly world: World
  readonly coverage: Coverage = new Coverage()
  readonly referee: Referee
  readonly judge: Judge
  readonly nemesis: Nemesis
  readonly hosts: readonly NodeHost<P>[]
  readonly clientNetwork: Network<ClientFrame>
  readonly #peerNetwork: Network<PeerFrame>
  readonly #parts: ClusterParts<P, ClientFrame>
  readonly #placement: Placement

  constructor(parts: ClusterParts<P, ClientFrame>) {
    const { options, eventsMax, clientCodec, clientNames } = parts
    this.#parts = parts
    const world = new World(options.seed, eventsMax)
    this.world = world
    const { coverage } = this
    this.referee = new Referee(() => world.nowMicros, parts.rules)
    const names = Array.from({ length: options.nodeCount }, (_, i) => nodeId(`n${i + 1}`))
    this.#placement = staticPlacement(names)
    const { watch } = parts
    const narrator = watch && new Narrator(() => world.nowMicros, watch)
    const { referee } = this
    this.judge = new Judge({ placement: this.#placement, referee, coverage, narrator })
    const weather = new Weather(options.link)
    const common = { world, weather, coverage }
    const { judge } = this
    this.#peerNetwork = new Network({
      ...common,
      ...{ name: 'peer', codec: peerCodec },
      observer: {
        onSent: (from, to, frame) => judge.onFrameSent(from, to, frame),
        onDelivered: (from, to, frame) => judge.onFrameDelivered(from, to, frame),
      },
    })
    this.clientNetwork = new Network({
      ...common,
      ...{ name: 'client', codec: clientCodec },
      observer: { onSent: () => undefined, onDelivered: () => undefined },
    })
    this.hosts = names.map((name, index) => this.#makeHost(name, index, names))
    this.nemesis = new Nemesis({
      ...common,
      ...{ plan: options.faults, victims: this.hosts, bystanders: clientNames },
      resetLink: (a, b) => {
        this.#peerNetwork.reset(a, b)
        this.clientNetwork.reset(a, b)
      },
    })
  }

  /** All nodes that are open now. */
  get programs(): readonly P[] {
    return this.hosts.flatMap((host) => (host.program === undefined ? [] : [host.program]))
  }

  start(): void {
    for (const host of this.hosts) host.restart()
  }

  #makeHost(name: NodeId, index: number, names: readonly NodeId[]): NodeHost<P> {
    const { options, makeDisk, open } = this.#parts
    const { world, coverage, judge } = this
    const { limits, skews } = options
    const log = makeDisk(world, `${name} log`, (puts) => judge.onLogDurable(name, puts))
    const data = makeDisk(world, `${name} data`, (puts) => judge.onDataDurable(name, puts))
    const onFailed = (reason: unknown): void => {
      world.fail(reason)
    }
    return new NodeHost<P>({
      ...{ world, coverage, name, disks: [log, data], onFailed },
      skew: skews[index] ?? { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 },
      open: ({ process, clock, random, trace }) => {
        const peers = this.#peerNetwork.attach(process, names.slice(0, index))
        const clients = this.clientNetwork.attach(process, [])
        const stores = { log: log.open(process), data: data.open(process) }
        return open(
          { clock, random, trace, ...stores, peers, clients },
          { node: name, cluster: clusterName, placement: this.#placement, limits },
          onFailed,
        )
      },
      onDown: () => {
        judge.onDown(name)
        this.#peerNetwork.detach(name)
        this.clientNetwork.detach(name)
      },
      onStart: () => judge.onStart(name),
      onTrace: (event) => judge.onTrace(name, event),
    })
  }
}
