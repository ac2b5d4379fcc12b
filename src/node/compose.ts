/**
 * A node out of its parts: the replica, cells on it, and the server of client links. Given other
 * ports, the daemon, `npm start` and the simulator run the same node.
 */
import { present } from '../base/assert.ts'
import type { ClusterId, GroupId, NodeId } from '../base/ids.ts'
import { toStoreError } from '../base/problem.ts'
import { StoreError } from '../base/errors.ts'
import { CellStore } from '../cells/cell-store.ts'
import type { CellService } from '../cells/operation.ts'
import { Slices } from '../ports/slices.ts'
import { defaultSliceLimits, type SliceLimits } from '../ports/turn-budget.ts'
import type { Transport } from '../ports/transport.ts'
import { Driver } from '../replica/driver.ts'
import type { DriverOptions, DriverPorts } from '../replica/driver-ports.ts'
import { heldClock } from '../peers/peer-clocks.ts'
import type { LocalReplica } from '../group/replica-port.ts'
import type { ReplicaStatus } from '../replica/replica-status.ts'
import type { Upkeep } from '../replica/upkeep.ts'
import type { MembersPort, VotersReport } from '../members/report.ts'
import type { LaterSet, Placement } from '../placement/placement.ts'
import type { ReplicaSets } from '../cells/index-copies.ts'
import { notAnAnswer } from '../client/call.ts'
import { WorklistService } from '../worklist/worklist-service.ts'
import { GroupService } from '../txn/group-service.ts'
import type { ClientFrame } from '../wire/client/client-message.ts'
import { Admission, type AdmissionFigures } from './admission.ts'
import { admissionFigures } from './admission-figures.ts'
import { Bugs, type Bug } from './bugs.ts'
import { Background, type BackgroundOptions, type BackgroundStatus } from './background.ts'
import { ClientServer, type ClientServerLimits } from './client-server.ts'
import { costFigures } from './cost-figures.ts'
import type { Figure } from './metrics.ts'
import { plain, type PlainObject } from './plain.ts'
import type { GroupAnswer, GroupOperation } from '../txn/group-operation.ts'
import type { MovedCounts } from './moved-figures.ts'
import type { AskedSet } from './adding-sets.ts'
import { LaterSets } from './later-sets.ts'
import { Routing, type Executor } from './routing.ts'
import type { BucketsPort } from './sets-routes.ts'
import { SetLists, type NodeAddresses } from './set-lists.ts'

export interface NodePorts extends DriverPorts {
  readonly clients: Transport<ClientFrame>
  /** Links to the nodes of each other replica set, by its number; the own set has none. */
  readonly elsewhere?: ReadonlyMap<number, Transport<ClientFrame>>
  /** Opens links to a set that has come later. Absent: the node takes up no such set. */
  readonly openElsewhere?: (number: number, set: LaterSet) => Transport<ClientFrame>
}

export interface NodeOptions extends DriverOptions, BackgroundOptions {
  /** False: the cluster declares no indexes over cells, and no put looks for them. */
  readonly hasCellIndexes?: boolean
  /** How long the node uses the definitions of these indexes after it has read them. Absent: the default. */
  readonly cellIndexTrustMs?: number
  /** Bounds of one turn's work for clients, and of what clients may ask at once; absent: the usual ones. */
  readonly slices?: SliceLimits
  readonly clientLimits?: ClientServerLimits
  /** Where clients reach the nodes. Absent: the node tells clients of no nodes. */
  readonly addresses?: NodeAddresses
  /** Writes the sets down that have come later, before the node goes by them; it may reject. */
  readonly keepSets?: (sets: readonly LaterSet[]) => Promise<void>
  /** Called when the stores are known to be this node's, before it votes; it may reject. */
  readonly beforeStart?: () => Promise<void>
  /** Of each error of the program itself that ends no more than what met it; absent: it ends the node. */
  readonly onBug?: (bug: Bug) => void
  /** Of each index over cells whose stored definition cannot be read, once: its name, and advice. */
  readonly onDamagedIndex?: (error: StoreError) => void
}

/** The view that an operator has of a node; plain data, as `/status` gives it. */
export interface NodeStatus extends BackgroundStatus {
  readonly node: NodeId
  readonly cluster: ClusterId
  readonly isDraining: boolean
  /** Requests of clients that are at work. */
  readonly clientRequests: number
  readonly admission: AdmissionFigures
  /** Of groups that go from set to set; absent: there is one set. */
  readonly moves: MovedCounts | undefined
  readonly replica: ReplicaStatus
}

/** How long the set of a group has to say that it has it. */
const locateMs = 2_000

export class Node {
  /** Of all that clients ask of it, over links and over HTTP. */
  readonly slices: Slices
  /** For all that clients ask, over links and HTTP. */
  readonly admission: Admission
  readonly bugs: Bugs
  readonly #driver: Driver
  readonly #store: CellStore
  readonly #groups: GroupService
  readonly #worklists: WorklistService
  readonly #routing: Routing
  readonly #background: Background
  readonly #server: ClientServer
  readonly #lists: SetLists | undefined
  readonly #laterSets: LaterSets
  readonly #ports: NodePorts
  readonly #options: NodeOptions
  #isDraining = false

  /**
   * Opens the stores, takes up what the log holds and joins the others. Rejects with `corrupt` or `invalid`
   * when the stores must not be used; the caller, which opened them, closes them. `onFailure`: the node must
   * stop, since its disk refused or its peers will not have its store.
   */
  static async open(
    ports: NodePorts,
    options: NodeOptions,
    onFailure: (reason: Error) => void = () => undefined,
  ): Promise<Node> {
    const driver = await Driver.open(ports, options)
    await options.beforeStart?.()
    driver.onFailure = onFailure
    const node = new Node(ports, options, driver, onFailure)
    await node.#driver.start()
    node.#background.start()
    node.#laterSets.start()
    node.#server.start()
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
    const { random, trace, clients: transport, elsewhere = new Map() } = ports
    const { node, placement } = options
    const clock = heldClock(ports.clock, driver.clocks)
    const { onBug: tell = ({ error }: Bug) => onFailure(error) } = options
    this.bugs = new Bugs({ clock: ports.clock, random, tell })
    const noteBug = this.bugs.note
    const common = { replica: driver, clock, random }
    this.#groups = new GroupService(common)
    this.#worklists = new WorklistService({ node, ...common })
    const own = { groups: this.#groups, worklists: this.#worklists }
    this.#routing = new Routing({
      node,
      placement,
      elsewhere,
      moving: driver.moving,
      shares: driver.members.shares,
      ...common,
      ...own,
    })
    const { groups } = this.#routing
    const { hasCellIndexes: hasIndexes = true } = options
    const { cellIndexTrustMs: indexTrustMs } = options
    this.#store = new CellStore({
      groups,
      hasIndexes,
      ...common,
      ...(indexTrustMs !== undefined && { indexTrustMs }),
      noteBug: (thrown) => noteBug('request', thrown),
      onDamagedIndex: options.onDamagedIndex,
      sets: setsOfIndexes(placement, node),
      listGroups: this.#routing.list.bind(this.#routing),
    })
    const cells = this.#routing.cells(this.#store)
    driver.onBug = (error) => void noteBug('message', error)
    const { expiring } = this.#store
    const work = { groups, cells, expiring, trace, noteBug }
    this.#background = new Background({
      ...{ ...work, ...common, ...options },
      ...{ routing: this.#routing, shares: driver.members.shares },
    })
    const status = (): PlainObject => plain(this.status())
    const services = {
      cells: this.cells,
      groups: this.#routing,
      worklists: this.#routing.worklists,
    }
    const { slices: sliceLimits = defaultSliceLimits } = options
    const slices = new Slices(clock, sliceLimits)
    this.slices = slices
    const admission = new Admission(ports.clock)
    this.admission = admission
    const isReturning = (): boolean => driver.isReturning
    this.#lists = this.#makeLists()
    this.#laterSets = this.#followSets()
    const edge = { transport, clock, slices, admission, status, isReturning, noteBug }
    const lists = this.#lists === undefined ? {} : { lists: this.#lists }
    this.#server = new ClientServer({ ...services, ...edge, ...lists }, options.clientLimits)
  }

  #makeLists(): SetLists | undefined {
    const { clients: transport, clock } = this.#ports
    const { node, placement, addresses } = this.#options
    if (addresses === undefined) return undefined
    const { members } = this.#driver
    const set = placement.setOfNode(node)
    const voters = (): VotersReport => members.voters
    const lists = new SetLists({ transport, clock, set, addresses, voters })
    members.onEpoch = () => lists.tellAll()
    return lists
  }

  #followSets(): LaterSets {
    const { placement, keepSets } = this.#options
    const { openElsewhere } = this.#ports
    return new LaterSets({
      ...{ placement, clock: this.#ports.clock, sets: this.#driver.members.laterSets },
      execute: (...asked) => this.#routing.execute(...asked),
      keep: async (sets) => keepSets?.(sets),
      onSets: (sets) => {
        if (openElsewhere === undefined) return
        for (const number of placement.takeLater(sets)) {
          const set = present(sets[number - placement.firstSetCount], 'MOVE-16: a set has a row')
          this.#routing.addSet(number, openElsewhere(number, set))
        }
        this.onAddresses()
      },
      onFailed: (error) => {
        if (!(error instanceof StoreError)) this.bugs.note('sets', error)
      },
    })
  }

  /** The addresses that this node knows have changed: it tells its clients. */
  onAddresses(): void {
    this.#lists?.tellAll()
  }

  /** Of all shards, whichever set holds them. */
  get cells(): CellService {
    return this.#background.cells
  }

  /** Carries out operations on groups of all sets. */
  get groups(): Executor<GroupOperation, GroupAnswer> {
    return this.#routing
  }

  /** The name of the replica set that has the group now. Rejects with `unavailable` where that set does not answer in time. */
  async locate(group: GroupId): Promise<string> {
    const answer = await this.#routing.execute({ kind: 'locate-group', group }, locateMs)
    if (answer.kind === 'locate-group') return answer.set
    throw toStoreError(answer.kind === 'problem' ? answer.problem : notAnAnswer)
  }

  get replica(): LocalReplica & Pick<Driver, 'observedLeases' | 'clocks' | 'knownLeader'> {
    return this.#driver
  }

  /** Comparisons and scrubs that an operator begins. */
  get upkeep(): Upkeep {
    return this.#driver.upkeep
  }

  /** The voters of its replica set, which an operator may change. */
  get members(): MembersPort {
    return this.#driver.members.port
  }

  /** The buckets of its replica set, which an operator may give away. */
  get sets(): BucketsPort {
    const { node, placement } = this.#options
    const { shares } = this.#driver.members
    const progress = this.#background.status.buckets
    const add = (set: AskedSet): Promise<void> => this.#addSet(set)
    return { shares, placement, own: placement.setOfNode(node), progress, add }
  }

  #addSet(set: AskedSet): Promise<void> {
    const { placement, addresses } = this.#options
    const { voters, laterSets: sets } = this.#driver.members
    const lists = [voters, ...(addresses?.others() ?? [])]
    const nodes = (): NodeId[] => {
      return [...placement.nodes, ...lists.flatMap((list) => list.nodes.map(({ node }) => node))]
    }
    return this.#routing.addLaterSet(set, { sets, nodes, look: () => this.#laterSets.look() })
  }

  status(): NodeStatus {
    const { node, cluster } = this.#options
    return {
      node,
      cluster,
      isDraining: this.#isDraining,
      clientRequests: this.#server.requests,
      admission: this.admission.figures,
      ...this.#background.status,
      moves: this.#routing.moves,
      replica: this.#driver.status(),
    }
  }

  /** Figures for metrics about the requests of clients. */
  figures(): readonly Figure[] {
    return [
      ...costFigures(this.#server, this.slices),
      ...admissionFigures(this.admission),
      ...this.bugs.figures(),
    ]
  }

  /** Takes nothing new, and resolves when what is at work is answered and applied. */
  async drain(): Promise<void> {
    this.#isDraining = true
    const hasEnded = this.#end()
    await this.#server.drain()
    await hasEnded
    await this.#driver.drain()
  }

  async stop(): Promise<void> {
    // Work in the background waits for the services that are closed here.
    void this.#end()
    this.#lists?.stop()
    await this.#ports.clients.close()
    await this.#routing.close()
    await this.#driver.stop()
  }

  /** Takes and begins nothing more; resolves when nothing is under way in the background. */
  #end(): Promise<void> {
    this.#store.stop()
    this.#groups.stop()
    this.#worklists.stop()
    return Promise.all([this.#background.stop(), this.#laterSets.stop()]).then(() => undefined)
  }
}

/** Definitions of indexes over cells are in each set that the cluster began with. A node of a later one goes by those of the first. */
function setsOfIndexes(placement: Placement, node: NodeId): ReplicaSets {
  const [count, own] = [placement.firstSetCount, placement.setOfNode(node)]
  return { count, own: own < count ? own : 0, setOf: placement.setOf.bind(placement) }
}
