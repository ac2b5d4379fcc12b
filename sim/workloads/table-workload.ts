/**
 * Programs on typed tables: a few sessions, each with a process, a clock and a link to some of the
 * nodes, on the real client library. In some seeds one of them gives the cluster the next version
 * of the schema while the others go on with the one that they have opened.
 */
import type { GroupId } from '../../src/base/ids.ts'
import { Client } from '../../src/client/client.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import type { Judge } from '../checkers/judge.ts'
import type { Referee } from '../checkers/referee.ts'
import { TableChecker } from '../checkers/table-checker.ts'
import { createClock } from '../world/clock.ts'
import type { Coverage } from '../coverage.ts'
import { BucketGiver, type SetsView } from './bucket-giver.ts'
import { GroupMaker } from './group-maker.ts'
import { GroupMover } from './group-mover.ts'
import type { Network } from '../world/network.ts'
import { SimProcess } from '../world/sim-process.ts'
import type { WorkloadOptions } from '../swarm.ts'
import type { SeededRandom } from '../world/random.ts'
import { LaterIndexes } from './later-indexes.ts'
import { notAlone } from './lone-draw.ts'
import { loneStore, LoneTables } from './lone-tables.ts'
import { TableGlobals, type Standing, type TableGlobalsParts } from './table-globals.ts'
import { renewalsMax, renewEarliestMicros, renewMeanMicros } from './table-erase.ts'
import { globalShopSchemas, shopSchemas } from './table-schema.ts'
import { patienceMs, TableSession } from './table-session.ts'
import type { World } from '../world/world.ts'

export interface TableWorkloadParts {
  readonly world: World
  readonly network: Network<ClientFrame>
  readonly coverage: Coverage
  readonly referee: Referee
  readonly judge: Judge
  readonly options: WorkloadOptions
  readonly historyMs: number
  readonly nodes: readonly string[]
  readonly sets: SetsView
  /** Whether a node may have a damaged data disk now, and say so. */
  mayBeCorrupt(): boolean
  /** Whether the node may answer again some time. */
  isInService(node: string): boolean
  tell(client: string, what: string): void
  onFailed(error: unknown): void
}

/** The groups, one for each store. */
export const storeNames = ['north', 'south', 'west'] as const

export class TableWorkload {
  readonly #parts: TableWorkloadParts
  readonly #checker: TableChecker
  readonly #isHot: boolean
  readonly #sessions: TableSession[] = []
  readonly #made = new Set<GroupId>()
  readonly #builders = new Map<LaterIndexes, number>()
  #hasUnknown = false
  #isEnding = false
  #lone: LoneTables | undefined
  /** The backfill of the later index began only once every writer maintained that index. */
  #isBuiltInTime = false
  #busy = 0

  constructor(parts: TableWorkloadParts) {
    this.#parts = parts
    const { referee, coverage, judge, world } = parts
    this.#checker = new TableChecker(referee, coverage)
    this.#isHot = world.random.fork('hot tables').chance(600_000)
    judge.model.onEffect = (effect) => {
      this.#checker.onEffect(effect)
    }
  }

  isDone(): boolean {
    return this.#busy === 0
  }

  start(): void {
    const { options, nodes, world } = this.#parts
    for (let i = 1; i <= options.tableSessionCount; i++) {
      const name = `table-${i}`
      const random = world.random.fork(name)
      const drawn = random.shuffle(nodes).slice(0, random.int(1, nodes.length))
      const changesSchema = i <= options.schemaChanges
      const known = changesSchema && options.lone ? notAlone(nodes, options.lone) : drawn
      const session = this.#open(name, known, changesSchema)
      this.#sessions.push(session)
      this.#begin(session.run())
    }
    if (options.tableSessionCount > 0 && options.hasGlobalIndexes) this.#leaveAlone()
    if (options.tableSessionCount > 0 && this.#parts.sets.names.length > 1) {
      this.#moveGroups().catch((error: unknown) => this.#parts.onFailed(error))
      this.#giveBuckets().catch((error: unknown) => this.#parts.onFailed(error))
    }
    if (options.tableSessionCount > 0 && options.erases === true) {
      this.#renewOffers().catch((error: unknown) => this.#parts.onFailed(error))
    }
  }

  /** It keeps no session from ending. */
  async #moveGroups(): Promise<void> {
    const { world, coverage, nodes, options, sets } = this.#parts
    const name = 'table-mover'
    const { client } = this.#connect(name, nodes)
    const mover = new GroupMover({
      ...{ world, coverage, client, sets: sets.names, timeoutMs: options.timeoutMs },
      random: world.random.fork('moves of groups'),
      isEnding: () => this.#isEnding,
      tell: (what) => this.#parts.tell(name, what),
    })
    await mover.run()
  }

  async #giveBuckets(): Promise<void> {
    const { world, coverage, sets, tell } = this.#parts
    const giver = new BucketGiver({
      ...{ world, coverage, ports: () => sets.ports(), isEnding: () => this.#isEnding },
      later: sets.later,
      random: world.random.fork('buckets'),
      tell: (what) => tell('bucket-giver', what),
    })
    await giver.run()
  }

  /** For as long as the others work: it keeps none of them from ending. */
  async #renewOffers(): Promise<void> {
    const { nodes, world } = this.#parts
    const session = this.#open('table-renewer', nodes, false)
    this.#sessions.push(session)
    const random = world.random.fork('renewals')
    for (let i = 1; i <= renewalsMax && !this.#isEnding; i++) {
      this.#busy += 1
      await session.renewOffers(i)
      this.#busy -= 1
      await world.sleep(renewEarliestMicros + random.exponential(renewMeanMicros))
    }
  }

  #leaveAlone(): void {
    const { world, options, mayBeCorrupt } = this.#parts
    const { lone, timeoutMs } = options
    if (lone === undefined) return
    const { client } = this.#connect('table-lone', [lone.node])
    this.#lone = new LoneTables({
      ...{ world, client, lone, timeoutMs, mayBeCorrupt, checker: this.#checker },
      isEnding: () => this.#isEnding,
      onUnknown: () => {
        this.#hasUnknown = true
      },
    })
    this.#begin(this.#lone.run())
  }

  /** The operation under way is brought to its end; no other is begun. */
  end(): void {
    this.#isEnding = true
    for (const session of this.#sessions) session.end()
  }

  /**
   * Once the world has healed: all rows and indexes are read and compared through each of `nodes`.
   */
  finish(nodes: readonly string[]): void {
    if (this.#sessions.length === 0) return
    const isInService = (node: string): boolean => this.#parts.isInService(node)
    const stores = this.#stores
    for (const [index, node] of nodes.entries()) {
      // A build makes some hundred calls one after another, at several programs at once: one that fails ends it.
      const session = this.#open(`table-reader-${node}`, [node], false, patienceMs)
      this.#begin(session.finish(stores[index % stores.length] ?? '', () => !isInService(node)))
    }
  }

  get #stores(): readonly string[] {
    const { lone, hasGlobalIndexes } = this.#parts.options
    const isAlone = lone !== undefined && hasGlobalIndexes
    return isAlone ? [...this.#writtenStores, loneStore] : this.#writtenStores
  }

  get #writtenStores(): readonly string[] {
    return storeNames.slice(0, this.#parts.options.tableStoreCount)
  }

  #begin(work: Promise<void>): void {
    this.#busy += 1
    work.then(
      () => (this.#busy -= 1),
      (error: unknown) => {
        this.#parts.onFailed(error)
      },
    )
  }

  /** `callMs`: of a call that names no time. */
  #open(
    name: string,
    known: readonly string[],
    changesSchema: boolean,
    callMs: number = this.#parts.options.timeoutMs,
  ): TableSession {
    const { world, coverage, options, historyMs } = this.#parts
    const random = world.random.fork(`${name} life`)
    const { client, clock } = this.#connect(name, known, callMs)
    const { hasGlobalIndexes, schemaTrustMs } = options
    return new TableSession({
      name,
      world,
      coverage,
      historyMs,
      changesSchema,
      checker: this.#checker,
      random: random.fork('operations'),
      client,
      schemaTrustMs,
      schemas: hasGlobalIndexes ? globalShopSchemas : shopSchemas,
      globals: hasGlobalIndexes ? this.#globals(random.fork('globals')) : undefined,
      later: hasGlobalIndexes ? this.#later(random.fork('later'), client) : undefined,
      maker: this.#maker(random.fork('maker'), client, clock),
      onUnknown: () => {
        this.#hasUnknown = true
      },
      operations: options.tableOperations,
      thinkMeanMicros: options.thinkMeanMicros,
      timeoutMs: options.timeoutMs,
      isHot: this.#isHot,
      stores: this.#stores,
      writtenStores: this.#writtenStores,
      lone: options.lone,
      erases: options.erases === true,
      isAtOneNode: known.length === 1 && this.#parts.sets.names.length === 1,
      mayBeCorrupt: () => this.#parts.mayBeCorrupt(),
      tell: (what) => {
        this.#parts.tell(name, what)
      },
    })
  }

  /** The parts that each class of looks at indexes needs. */
  get #looking(): Pick<TableGlobalsParts, keyof Standing | 'indexes' | 'timeoutMs'> {
    const { referee, coverage, judge, options } = this.#parts
    const { timeoutMs } = options
    const [checker, stores] = [this.#checker, this.#stores]
    return { checker, referee, coverage, stores, indexes: judge.indexes, timeoutMs }
  }

  #globals(random: SeededRandom): TableGlobals {
    const mayHaveLateWrites = (): boolean => this.#hasUnknown && !this.#isBuiltInTime
    return new TableGlobals({ ...this.#looking, random, mayHaveLateWrites })
  }

  #later(random: SeededRandom, client: Client): LaterIndexes {
    const { world, coverage, options } = this.#parts
    return new LaterIndexes({
      ...this.#looking,
      ...{ world, random, client, builders: this.#builders },
      onBuilt: (graceMs) => {
        this.#isBuiltInTime = graceMs > 0
        const { lone } = options
        const isAlone = lone !== undefined && world.nowMicros < lone.untilMicros
        if (isAlone && this.#lone?.isLeft === true) {
          coverage.count('tables: a write waited at one node while an index was built')
        }
      },
    })
  }

  #maker(random: SeededRandom, client: Client, clock: Clock): GroupMaker {
    const { referee, coverage, options } = this.#parts
    const { timeoutMs } = options
    return new GroupMaker({ client, clock, random, referee, coverage, timeoutMs, made: this.#made })
  }

  #connect(
    name: string,
    known: readonly string[],
    timeoutMs: number = this.#parts.options.timeoutMs,
  ): { readonly client: Client; readonly clock: Clock } {
    const { world, network, options } = this.#parts
    const random = world.random.fork(`${name} library`)
    const process = new SimProcess(world, name)
    const transport = network.attach(process, known)
    const skew = {
      offsetMicros: random.int(-200_000, 200_000),
      driftPpm: 0,
      timerLatenessMicros: 0,
    }
    const clock = createClock(process, skew, random.fork('clock'))
    const { tryTimeoutMs, schemaTrustMs } = options
    const limits = { timeoutMs, tryTimeoutMs, avoidMs: tryTimeoutMs, schemaTrustMs }
    const client = new Client({ transport, clock, random: random.fork('chance') }, limits)
    return { client, clock }
  }
}
