/**
 * A cluster in the world: nodes on their disks, the network between them, the nemesis, the judge.
 * What a node runs is given from outside; here are only its ports.
 */
import { fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { actingAs, type Versions } from '../../src/base/cluster-version.ts'
import {
  bytesOfGroup,
  clusterId,
  type ClusterId,
  type GroupId,
  type NodeId,
} from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import type { LaterSet, Placement } from '../../src/placement/placement.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { Random } from '../../src/ports/random.ts'
import type { Journal } from '../../src/ports/journal.ts'
import type { OrderedStore, Put } from '../../src/ports/storage.ts'
import type { Trace } from '../../src/ports/trace.ts'
import type { Transport } from '../../src/ports/transport.ts'
import type { PeerClocks } from '../../src/peers/peer-clocks.ts'
import type { MembersPort } from '../../src/members/report.ts'
import type { ObservedLeases } from '../../src/replica/replica.ts'
import type { PeerFrame } from '../../src/replication/message.ts'
import { decodePeerFrame, encodePeerFrame } from '../../src/wire/peer/peer-codec.ts'
import { Atlas } from '../faults/atlas.ts'
import { Judge } from '../checkers/judge.ts'
import { checkMended } from '../checkers/journal-checker.ts'
import { countGroupMessages, renewalsIn } from './frame-counts.ts'
import { Referee } from '../checkers/referee.ts'
import { Coverage } from '../coverage.ts'
import { aroundNodes, buildSets, listLater, listSpares } from './endpoints.ts'
import { placeAll, SetsOfNodes, type Waiting } from './sets-of-nodes.ts'
import type { Fault } from '../faults/fault.ts'
import { httpCodec, type HttpFrame } from './http-wire.ts'
import { LeaseWatch } from './lease-watch.ts'
import { Load } from '../workloads/load.ts'
import { Nemesis } from '../faults/nemesis.ts'
import { Narrator, type StoryLine } from './narrator.ts'
import { Network, type FrameCodec, type FrameObserver } from '../world/network.ts'
import { NodeHost, type HostDisk, type HostLog, type Program } from './node-host.ts'
import type { SwarmOptions } from '../swarm.ts'
import { noPriorities, Priorities } from '../world/priorities.ts'
import { noTimes } from '../world/turn-costs.ts'
import { Weather } from '../world/weather.ts'
import { World } from '../world/world.ts'

/** The ports of a node's program. */
export interface ProgramPorts<ClientFrame> {
  readonly clock: Clock
  readonly random: Random
  readonly trace: Trace
  readonly log: Journal
  readonly data: OrderedStore
  readonly peers: Transport<PeerFrame>
  readonly clients: Transport<ClientFrame>
  /** To the nodes of each other replica set, by its number. */
  readonly elsewhere: ReadonlyMap<number, Transport<ClientFrame>>
  /** The same to a set that has come later. */
  openElsewhere(number: number, set: LaterSet): Transport<ClientFrame>
}

export interface ProgramOptions {
  readonly node: NodeId
  readonly cluster: ClusterId
  readonly placement: Placement
  readonly limits: SwarmOptions['limits']
  /** Writes down the sets that have come later. */
  keepSets(sets: readonly LaterSet[]): Promise<void>
  /** Of a store that is to take the place of a lost one, while there is nothing of it on the disks. */
  readonly seat?: number
  /** The cluster versions of the build that it runs. */
  readonly supports: Versions
}

export interface ClusterParts<P extends Program, ClientFrame> {
  readonly options: SwarmOptions
  readonly eventsMax: number
  readonly clientCodec: FrameCodec<ClientFrame>
  readonly faults: readonly Fault[]
  /** Rules that count; all of them when absent. */
  readonly rules?: readonly string[] | undefined
  /** Gets the run told line by line. */
  readonly watch?: ((line: StoryLine) => void) | undefined
  /** `fail` is for a program that stops by itself. */
  open(
    ports: ProgramPorts<ClientFrame>,
    options: ProgramOptions,
    fail: (reason: unknown) => void,
  ): Promise<P>
  makeLog(
    world: World,
    name: string,
    priorities: Priorities,
    onDurable: (puts: readonly Put[], isWhole: boolean) => void,
  ): HostLog
  makeDisk(
    world: World,
    name: string,
    priorities: Priorities,
    onDurable: (puts: readonly Put[]) => void,
  ): HostDisk
  killClient(client: string, downMicros: number): void
  pauseClient(client: string, lengthMicros: number): void
  /** The leases that this node counts on, and those that it has granted; undefined: it is not open. */
  readLeases(program: P): ObservedLeases | undefined
  /** The voters of its replica set, which an operator may change. */
  readMembers(program: P): MembersPort
  /** Its knowledge of the others' clocks. */
  readClocks(program: P): Pick<PeerClocks, 'held' | 'isAwaited'>
}

export interface Traffic {
  readonly messages: number
  /** Of the frames that carried them. */
  readonly bytes: number
  readonly proposals: number
  /** Of leases, by those who serve groups alone. */
  readonly renewals: number
  /** Frames of clients that reached a node. */
  readonly requests: number
  /** Frames about groups that came when their senders had long gone on. */
  readonly latecomers: number
}

/** A node whose disk refused is started again after this. */
const startAgainMicros = 500_000

/** A frame that was under way for longer than this is a latecomer. */
const latecomerMicros = 10_000_000

const clusterName = clusterId('sim')

const peerCodec: FrameCodec<PeerFrame> = {
  encode: encodePeerFrame,
  decode(bytes) {
    const decoded = decodePeerFrame(bytes)
    return decoded.ok ? decoded.frame : undefined
  },
  messagesIn: ({ messages }) => messages.length,
  asks: ({ messages }) => messages.some(({ kind }) => kind === 'forward'),
  // Nodes say all the time what their clocks show, and would leave room for nothing else.
  hasContent: ({ messages }) => messages.some(({ kind }) => kind !== 'clock'),
}

export class Cluster<P extends Program, ClientFrame> {
  readonly world: World
  readonly coverage: Coverage = new Coverage()
  readonly referee: Referee
  readonly judge: Judge
  readonly nemesis: Nemesis
  readonly atlas: Atlas
  readonly load: Load
  readonly hosts: readonly NodeHost<P>[]
  readonly clientNetwork: Network<ClientFrame>
  /** From applications to gateways. */
  readonly httpNetwork: Network<HttpFrame>
  readonly #peerNetwork: Network<PeerFrame>
  readonly #leases: LeaseWatch<P>
  readonly #parts: ClusterParts<P, ClientFrame>
  /** With the set that may come later. */
  readonly placement: Placement
  readonly #sets: SetsOfNodes<ClientFrame>
  readonly #priorities: Priorities
  #tended = 0
  readonly #traffic = {
    messages: 0,
    ...{ bytes: 0, proposals: 0, renewals: 0, requests: 0, latecomers: 0 },
  }

  constructor(parts: ClusterParts<P, ClientFrame>) {
    const { options, eventsMax, clientCodec, faults } = parts
    this.#parts = parts
    const world = new World(options.seed, eventsMax)
    this.world = world
    const { coverage } = this
    this.referee = new Referee(() => world.nowMicros, parts.rules)
    const spares = listSpares(options)
    this.placement = placeAll(options)
    const names = this.placement.nodes
    const { watch } = parts
    const narrator = watch && new Narrator(() => world.nowMicros, watch)
    const { referee, placement } = this
    const { limits, times = noTimes } = options
    const monotonicMs = this.#monotonicMs.bind(this)
    const known = { placement, limits, referee, coverage, narrator, times, monotonicMs }
    const judge = new Judge({ ...known, nowMicros: () => world.nowMicros })
    this.judge = judge
    this.#priorities = new Priorities(options.priorities ?? noPriorities, world, coverage)
    const weather = new Weather(options.link, this.#priorities)
    const hasEchoes = faults.some(({ kind }) => kind === 'echo')
    const common = { world, weather, coverage, hasEchoes }
    this.#peerNetwork = new Network({
      ...common,
      ...{ name: 'peer', codec: peerCodec },
      observer: this.#peerObserver(),
    })
    this.clientNetwork = new Network({
      ...{ ...common, name: 'client', codec: clientCodec, keepsCopies: true },
      observer: this.#clientObserver(names),
    })
    this.httpNetwork = new Network({
      ...{ ...common, name: 'http', codec: httpCodec, isStream: true },
      observer: { onSent: () => undefined, onDelivered: () => undefined },
    })
    const hosts = (): readonly Waiting[] => this.hosts
    this.#sets = new SetsOfNodes({
      ...common,
      placement,
      options,
      hosts,
      links: this.clientNetwork,
    })
    this.hosts = names.map((name, index) => this.#makeHost(name, index))
    judge.versions.actsAs = (node) => this.hosts.find(({ name }) => name === node)?.actsAs ?? 0
    for (const host of this.hosts) prepareHost(host, spares, options)
    this.#leases = new LeaseWatch({
      ...{ hosts: this.hosts, checker: judge.log, coverage },
      readLeases: (program: P) => parts.readLeases(program),
    })
    judge.onVisible = (...visible) => this.#leases.onVisible(...visible)
    this.load = new Load(world)
    this.atlas = makeAtlas(this.hosts, options)
    judge.epochs.isHurt = (node) => this.atlas.isHurt(node)
    this.nemesis = new Nemesis({
      ...{ ...common, faults, victims: this.hosts, atlas: this.atlas, load: this.load },
      clients: aroundNodes(options.workload),
      resetLink: (a, b) => this.#resetLink(a, b),
      loseNextReply: (node) => this.clientNetwork.loseNext(node),
      echo: (...echoed) => this.#echo(...echoed),
      leader: () => judge.model.leader,
      onDataReplaced: (node) => this.#onDataReplaced(node),
      onForgotten: (node) => judge.onForgotten(node),
      onStoreLost: (node) => this.#onStoreLost(node),
      members: (node) => this.readMembers(node),
      killClient: parts.killClient,
      pauseClient: parts.pauseClient,
    })
  }

  #resetLink(a: string, b: string): void {
    this.#peerNetwork.reset(a, b)
    this.clientNetwork.reset(a, b)
    this.httpNetwork.reset(a, b)
    for (const one of this.#sets.outgoings(a)) this.clientNetwork.reset(one, b)
    for (const one of this.#sets.outgoings(b)) this.clientNetwork.reset(a, one)
  }

  /** The node as an operator asks it to change the voters of its set; undefined: it is not open. */
  readMembers(node: string): MembersPort | undefined {
    const program = this.hosts.find(({ name }) => name === node)?.program
    return program && this.#parts.readMembers(program)
  }

  #onStoreLost(node: string): void {
    this.judge.onStoreLost(node)
    this.#peerNetwork.forgetFramesOf(node)
  }

  #echo(node: string, framesMax: number): void {
    this.#peerNetwork.echo(node, framesMax)
    this.clientNetwork.echo(node, framesMax)
  }

  /** Its clock as it would read it now. */
  #monotonicMs(node: string): number {
    const host = this.hosts.find(({ name }) => name === node)
    return host?.readingAt(host.nowMicros ?? this.world.nowMicros).now ?? 0
  }

  /** The messages about groups between nodes so far, and the proposals. */
  get traffic(): Traffic {
    return { ...this.#traffic }
  }

  /** How often a node would not start, or stopped by itself. */
  get tended(): number {
    return this.#tended
  }

  /** All nodes that are open now. */
  get programs(): readonly P[] {
    return this.hosts.flatMap((host) => (host.program === undefined ? [] : [host.program]))
  }

  holds(node: string, group: GroupId): boolean {
    const set = this.judge.book.voters.setAt(latin1(bytesOfGroup(group)), Infinity)
    const nodes = this.placement.nodesOf(set)
    return nodes.length > 0 && this.atlas.setOf(nodes[0] ?? '').includes(node)
  }

  /** The nodes that vote in each replica set, as far as a disk durably names them. */
  get sets(): readonly (readonly string[])[] {
    const numbers = Array.from({ length: this.placement.setCount }, (_, set) => set)
    const begun = numbers.filter((set) => !this.#isToCome(set))
    return begun.map((set) => this.atlas.setOf(this.placement.nodesOf(set)[0] ?? ''))
  }

  #isToCome(set: number): boolean {
    const nodes = this.placement.nodesOf(set)
    return this.hosts.some(({ name, isWaiting }) => isWaiting && nodes.some((one) => one === name))
  }

  /** The set that may come later, for those who add it. */
  get laterSet(): LaterSet | undefined {
    return this.placement.laterSets[0]
  }

  /** Nodes that are part of the run: not those which rightly refuse to. */
  get inService(): readonly NodeHost<P>[] {
    return this.hosts.filter((host) => !host.isRetired)
  }

  start(): void {
    for (const { offsetMicros, driftPpm } of this.#parts.options.skews) {
      if (offsetMicros !== 0) this.coverage.count('offset')
      if (driftPpm !== 0) this.coverage.count('drift')
    }
    for (const host of this.hosts) host.restart()
  }

  #onDataReplaced(node: string): void {
    const image = this.hosts.find((host) => host.name === node)?.disks.data.disk.image()
    const rows = [...(image ?? [])]
    this.judge.onDataReplaced(
      node,
      rows.map(([key, value]) => ({ key: fromLatin1(key), value })),
    )
  }

  #clientObserver(names: readonly string[]): FrameObserver<ClientFrame> {
    return {
      onSent: () => undefined,
      onDelivered: (_from, to) => {
        if (names.includes(to)) this.#traffic.requests += 1
      },
    }
  }

  #peerObserver(): FrameObserver<PeerFrame> {
    const { judge } = this
    const hasLeases = this.#parts.options.limits.leaseMs > 0
    return {
      onSent: (from, to, frame, bytes) => {
        const messages = countGroupMessages(frame)
        this.#traffic.messages += messages
        this.#traffic.renewals += renewalsIn(frame)
        if (messages > 0) this.#traffic.bytes += bytes
        judge.onFrameSent(from, to, frame)
      },
      onDelivered: (from, to, frame, sentMicros) => {
        const isLate = this.world.nowMicros - sentMicros > latecomerMicros
        if (isLate && countGroupMessages(frame) > 0) this.#traffic.latecomers += 1
        judge.onFrameDelivered(from, to, frame)
      },
      onHandled: (to, { messages }) => {
        // A heartbeat changes no lease.
        if (hasLeases && messages.length > 0) this.#leases.onHandled(to)
      },
    }
  }

  /** The time by which a node dates requests, read without its noticing; undefined until it is open. */
  #heldWall({ program, reading }: NodeHost<P>): number | undefined {
    return program && reading && this.#parts.readClocks(program).held(reading)
  }

  /** Looks whether the node is ready (CLOCK-3). */
  #lookAtReadiness({ name, program, reading }: NodeHost<P>): void {
    if (program === undefined || reading === undefined) return
    const clocks = this.#parts.readClocks(program)
    this.judge.clocks.onSeen(name, reading.now, {
      isReady: () => !clocks.isAwaited(reading.now),
      held: (wall) => clocks.held({ ...reading, wall }),
    })
  }

  /** A node would not start, or stopped by itself: what its operator, or its daemon, would do. */
  #tend(host: NodeHost<P>, error: unknown): void {
    const { world, coverage, atlas } = this
    const treatment = atlas.classifyError(host.name, error)
    if (treatment === 'unexpected') return world.fail(error)
    coverage.count(`node: ${treatment}`)
    this.#tended += 1
    if (treatment === 'retire') return host.retire()
    host.crash()
    if (treatment === 'reset-data') {
      host.disks.data.disk.wipe()
      atlas.mendData(host.name)
      this.#onDataReplaced(host.name)
      host.restart()
    } else if (treatment === 'start-again') {
      world.schedule(startAgainMicros, 'start again', () => {
        host.restart()
      })
    }
  }

  #makeHost(name: NodeId, index: number): NodeHost<P> {
    const { options, makeDisk, makeLog, open } = this.#parts
    const { world, coverage, judge } = this
    const { limits, skews } = options
    const set = this.placement.setOfNode(name)
    const ofSet = [...this.placement.nodesOf(set), ...(set === 0 ? listSpares(options) : [])]
    const before = ofSet.slice(0, ofSet.indexOf(name))
    const log = makeLog(world, `${name} log`, this.#priorities, (puts, isWhole) =>
      judge.onLogDurable(name, puts, isWhole),
    )
    const data = makeDisk(world, `${name} data`, this.#priorities, (puts) =>
      judge.onDataDurable(name, puts, world.nowMicros),
    )
    const host: NodeHost<P> = new NodeHost<P>({
      world,
      ...{ coverage, name, disks: { log, data } },
      onFailed: (reason) => {
        this.#tend(host, reason)
      },
      times: options.times ?? noTimes,
      onTurn: (turn) => {
        judge.turns.onTurn(name, world.nowMicros, turn)
      },
      skew: skews[index] ?? { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 },
      open: ({ process, clock, random, trace, fail }) => {
        const peers = this.#peerNetwork.attach(process, before)
        const clients = this.clientNetwork.attach(process, [])
        const { placement, keepSets, elsewhere, openElsewhere } = this.#sets.open(process)
        const store = data.open(process)
        const own = { node: name, cluster: clusterName, placement, limits, keepSets }
        const links = { peers, clients, elsewhere, openElsewhere }
        const begin = (journal: Journal): Promise<P> =>
          open(
            { clock, random, trace, log: journal, data: store, ...links },
            { ...own, supports: actingAs(host.actsAs), ...seatOf(host) },
            fail,
          )
        const journal = log.openJournal(process)
        return journal instanceof Promise ? journal.then(begin) : begin(journal)
      },
      onDown: () => {
        judge.onDown(name)
        this.#peerNetwork.detach(name)
        this.clientNetwork.detach(name)
        for (const one of this.#sets.outgoings(name)) this.clientNetwork.detach(one)
      },
      onStart: () => {
        judge.onStart(name)
        judge.clocks.onStart(name, host.readingAt(world.nowMicros).now)
      },
      onOpen: () => {
        checkMended(name, log.disk, this.referee)
        if (this.atlas.isSound(name) && !this.atlas.hasHurtData(name)) judge.onOpen(name)
      },
      onTrace: (event) => {
        if (event.kind === 'propose') {
          this.#traffic.proposals += 1
          judge.clocks.onProposed(name, event, this.#heldWall(host))
          this.#lookAtReadiness(host)
        }
        if (event.kind === 'index-relayed') {
          judge.indexes.onRelayed(name, event, this.#heldWall(host))
        }
        judge.onTrace(name, event)
      },
    })
    return host
  }
}

/** Of a store that has to be made. */
function seatOf({ seat }: NodeHost<Program>): Pick<ProgramOptions, 'seat'> {
  return seat === undefined ? {} : { seat }
}

/** Spares come with this build. */
function prepareHost(
  host: NodeHost<Program>,
  spares: readonly string[],
  options: SwarmOptions,
): void {
  const { firstBuild } = options.faultRates
  if (spares.includes(host.name)) host.becomeSpare()
  else if (listLater(options).some((one) => one === host.name)) host.waitForSet()
  else if (firstBuild !== undefined) host.build = firstBuild
}

function makeAtlas(
  hosts: readonly Pick<NodeHost<Program>, 'name' | 'disks'>[],
  options: SwarmOptions,
): Atlas {
  return new Atlas(
    new Map(hosts.map(({ name, disks }) => [name, { log: disks.log.disk, data: disks.data.disk }])),
    [...buildSets(options.nodeCount, options.setCount), listLater(options)],
    options.limits.truncateBytesMin >= defaultLimits.truncateBytesMin,
    listSpares(options),
  )
}
