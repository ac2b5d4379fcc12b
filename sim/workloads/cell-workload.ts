/** The clients of a run, each with a process, a clock and a link to some of the nodes. */
import type { CellName } from '../../src/cells/cell.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import { Client } from '../../src/client/client.ts'
import { BatchingCells } from './batching-cells.ts'
import { StoreError } from '../../src/base/errors.ts'
import { eraseCells } from './cell-eraser.ts'
import { briefColumn, CellClient, Frontier, type CellClientParts } from './cell-client.ts'
import { encodeBody } from './cell-reads.ts'
import type { CellChecker } from '../checkers/cell-checker.ts'
import type { LogModel } from '../checkers/log-model.ts'
import { createClock } from '../world/clock.ts'
import type { Coverage } from '../coverage.ts'
import { clientName, nameEndpoint } from '../cluster/endpoints.ts'
import { KnownColumns } from '../history/cell-micros.ts'
import { HistoryLog } from '../history/history-log.ts'
import type { History } from '../history/operation.ts'
import { recordCells, type CellCalls, type Sink } from '../history/record-client.ts'
import type { Gateways } from '../cluster/gateways.ts'
import { datastore, shardOf } from './datastore.ts'
import { hotRows, findHotShard, hotShards } from './hot-rows.ts'
import { HttpCells } from './http-cells.ts'
import type { Load } from './load.ts'
import type { Network } from '../world/network.ts'
import type { SeededRandom } from '../world/random.ts'
import type { CellOperation } from '../scenarios/scenario-operation.ts'
import { SimProcess } from '../world/sim-process.ts'
import type { WorkloadOptions } from '../swarm.ts'
import type { World } from '../world/world.ts'

const ttlTriesMax = 50
/** Of each caller of the application that asks in batches. */
const batchOperations = 15

export interface CellWorkloadParts {
  readonly world: World
  readonly network: Network<ClientFrame>
  readonly coverage: Coverage
  readonly checker: CellChecker
  /** All others hear of its effects by the time that this workload starts. */
  readonly model: Pick<LogModel, 'onMoment'>
  readonly options: WorkloadOptions
  readonly nodes: readonly string[]
  readonly load: Load
  readonly gateways: Gateways
  /** Whether a node may have a damaged data disk now, and say so. */
  mayBeCorrupt(): boolean
  /** The operations of the clients, and no others; drawn as they go when absent. */
  readonly operations?: readonly CellOperation[] | undefined
  /** The nodes a client knows, by its name; drawn for those that are not named. */
  readonly nodesByClient?: Readonly<Record<string, readonly string[]>> | undefined
  onOperation(operation: CellOperation): void
  /** Receives the client's answers, in words. */
  tell(client: string, what: string): void
  onFailed(error: unknown): void
}

/** A client and its process. */
interface Living {
  readonly name: string
  /** The nodes it asks. */
  readonly known: readonly string[]
  readonly client: CellClient
  readonly process: SimProcess
  /** Counts those that had the name. */
  readonly life: number
  /** Calls and sequences of calls that are not at their end. */
  busy: number
}

/** The parts that clients of one way to the cells have of their own. */
type OwnParts = Pick<CellClientParts, 'options' | 'onOperation'> &
  Pick<Sink, 'isSession' | 'hasBatchSession' | 'mayBeItsOwn'>

export class CellWorkload {
  readonly shards: readonly number[]
  readonly #parts: CellWorkloadParts
  readonly #living = new Map<string, Living>()
  readonly #frontier = new Frontier()
  readonly #rows: readonly string[]
  readonly #looks: SeededRandom
  readonly #log: HistoryLog
  readonly #columns = new KnownColumns()
  /** Shards that may lose cells. */
  readonly #purged: ReadonlySet<number>
  #isEnding = false
  #isErasing = false

  constructor(parts: CellWorkloadParts) {
    this.#parts = parts
    this.#log = new HistoryLog(() => parts.world.nowMicros)
    this.#looks = parts.world.random.fork('looks')
    const { shardCount, rowsPerShard } = parts.options
    this.shards = hotShards.slice(0, shardCount)
    const named = parts.operations?.flatMap((one) => (one.kind === 'purge' ? [one.shard] : []))
    const { purges = 0, cellTtl } = parts.options
    const loses = purges > 0 || cellTtl !== undefined
    this.#purged = new Set(named ?? (loses ? this.shards.slice(-1) : []))
    this.#rows = this.shards.flatMap((shard) => (hotRows().get(shard) ?? []).slice(0, rowsPerShard))
  }

  /** The clients' operations and answers. */
  get history(): History {
    return this.#log.history()
  }

  /** Whether every client has ended its operations, but those that know none of `nodes`. */
  isDone(nodes: readonly string[]): boolean {
    if (this.#isErasing) return false
    for (const { busy, known } of this.#living.values()) {
      if (busy > 0 && known.some((node) => nodes.includes(node))) return false
    }
    return true
  }

  start(): void {
    const { options, nodes, world } = this.#parts
    for (let i = 0; i < options.clientCount; i++) {
      const name = clientName(i)
      const random = world.random.fork(`client ${name}`)
      // Some know all nodes, some only one: reads of different clients go through different nodes.
      const drawn = random.shuffle(nodes).slice(0, random.int(1, nodes.length))
      // A client of gateways can reach all nodes.
      const asked = this.#isWeb(name) ? nodes : drawn
      const known = this.#parts.nodesByClient?.[name] ?? asked
      this.#work(this.#bringUp(name, known), options.operationsPerClient)
    }
    this.#startBatches()
    const { cellTtl } = options
    if (cellTtl === undefined) return
    this.#parts.checker.expectExpiry(this.#parts.model)
    const work = this.#loseCells(cellTtl)
    work.catch((error: unknown) => this.#parts.onFailed(error))
  }

  async #loseCells(ttlSeconds: number): Promise<void> {
    const { world, nodes, network, options } = this.#parts
    const process = new SimProcess(world, 'ttl')
    const random = world.random.fork('ttl')
    const clock = this.#makeClock(process, random)
    const { tryTimeoutMs, timeoutMs } = options
    const ports = { transport: network.attach(process, nodes), clock, random }
    const client = new Client(ports, { tryTimeoutMs, timeoutMs, avoidMs: tryTimeoutMs })
    await this.#declareTtl(client, ttlSeconds)
    this.#isErasing = true
    const rows = this.#rows.filter((row) => this.#purged.has(shardOf(row)))
    const { coverage, checker, mayBeCorrupt } = this.#parts
    await eraseCells({
      ...{ world, client, checker, coverage, timeoutMs, rows, mayBeCorrupt },
      ...{ frontier: this.#frontier, random: world.random.fork('erase') },
      ...{ operations: options.operationsPerClient, thinkMeanMicros: options.thinkMeanMicros },
      isEnding: () => this.#isEnding,
    })
    this.#isErasing = false
  }

  /** Until it is known: cells that are put before have no TTL, and stay. */
  async #declareTtl(client: Client, seconds: number): Promise<void> {
    const { world, coverage } = this.#parts
    const { ttls } = client.cells(datastore)
    for (let tries = 0; tries < ttlTriesMax && !this.#isEnding; tries++) {
      try {
        await ttls.set(briefColumn, `${seconds} seconds`)
        coverage.count('TTL declared')
        return
      } catch (error) {
        if (!(error instanceof StoreError) || error.retry === 'never') throw error
      }
      await world.sleep(100_000)
    }
  }

  /** The last ones of the clients. */
  #isWeb(name: string): boolean {
    const { clientCount, gateways } = this.#parts.options
    const count = Math.min(gateways?.webClientCount ?? 0, clientCount)
    return Array.from({ length: count }, (_, i) => clientName(clientCount - 1 - i)).includes(name)
  }

  /** Several callers in one process, whose cells go together. */
  #startBatches(): void {
    const { world, options, nodes, coverage } = this.#parts
    const count = options.gateways?.batchCallerCount ?? 0
    if (count === 0) return
    const process = new SimProcess(world, 'batch')
    const random = world.random.fork('batch callers')
    const clock = this.#makeClock(process, random)
    const http = this.#overHttp(process, clock, random)
    const cells = new BatchingCells(http, clock, coverage)
    for (let i = 1; i <= count; i++) {
      const name = `batch-${i}`
      const client = this.#openClient(name, random.fork(name), cells, {
        options: withoutLosses(options),
        onOperation: () => undefined,
        // Answers to batches tell no positions.
        isSession: false,
        mayBeItsOwn: (written) => http.wasSentAgain(written),
      })
      const living = { name, known: nodes, client, process, life: 1, busy: 0 }
      this.#living.set(name, living)
      this.#begin(living, client.run(batchOperations))
    }
  }

  #work(living: Living, count: number): void {
    const { world, operations } = this.#parts
    const { client, name } = living
    if (operations === undefined) return this.#begin(living, client.run(count))
    const own = operations.filter((one) => one.client === name && one.atMicros >= world.nowMicros)
    return this.#begin(living, client.perform(own))
  }

  /** The client dies with whatever it was doing. Another one takes its place after a while. */
  kill(name: string, downMicros: number): void {
    const { world, network } = this.#parts
    const living = this.#living.get(name)
    if (living === undefined) return
    const { client, process, known, life } = living
    const { left } = client
    client.end()
    this.#living.delete(name)
    network.detach(process.name)
    this.#parts.gateways.disconnect(process.name)
    process.kill()
    world.schedule(downMicros, 'client again', () => {
      if (!this.#isEnding) this.#work(this.#bringUp(name, known, life + 1), left)
    })
  }

  /** Operations under way come to their end; the clients begin no more. */
  end(): void {
    this.#isEnding = true
    for (const { client } of this.#living.values()) client.end()
  }

  /**
   * Starts the final operations once the world has healed. They must succeed for every client that
   * knows one of `nodes`.
   */
  finish(nodes: readonly string[]): void {
    for (const living of this.#living.values()) {
      if (!living.known.some((node) => nodes.includes(node))) continue
      this.#begin(living, living.client.finish(this.shards))
    }
  }

  /** Through each of `nodes` alone: a write to every shard, and a current read of all of it. */
  probe(nodes: readonly string[]): void {
    for (const node of nodes) {
      const living = this.#bringUp(`probe-${node}`, [node])
      this.#begin(living, living.client.finish(this.shards))
    }
  }

  /** Probes that are not at their end. */
  get openProbes(): readonly string[] {
    const probes = [...this.#living.values()].filter(({ name }) => name.startsWith('probe-'))
    return probes.filter(({ busy }) => busy > 0).map(({ name }) => name)
  }

  /** Another client, on another node perhaps, looks at once for an acknowledged cell. */
  #lookFor(cell: CellName): void {
    const { options, operations } = this.#parts
    if (operations !== undefined || !this.#looks.chance(options.lookedFor)) return
    const living = this.#looks.pick([...this.#living.values()])
    this.#begin(living, living.client.lookFor(cell))
  }

  #begin(living: Living, work: Promise<void>): void {
    living.busy += 1
    work.then(
      () => (living.busy -= 1),
      (error: unknown) => {
        this.#parts.onFailed(error)
      },
    )
  }

  #bringUp(name: string, known: readonly string[], life = 1): Living {
    const { world } = this.#parts
    const process = new SimProcess(world, nameEndpoint(name, life))
    const client = this.#makeClient(name, process, known)
    const living = { name, known, client, process, life, busy: 0 }
    this.#living.set(name, living)
    return living
  }

  #makeClient(client: string, process: SimProcess, known: readonly string[]): CellClient {
    const { name } = process
    const random = this.#parts.world.random.fork(`client ${name} life`)
    const clock = this.#makeClock(process, random)
    const http = this.#isWeb(client) ? this.#overHttp(process, clock, random) : undefined
    const cells = http ?? this.#overLibrary(process, clock, random, known)
    const { options } = this.#parts
    return this.#openClient(name, random, cells, {
      options,
      // Over HTTP answers to batches tell no positions.
      hasBatchSession: http === undefined,
      mayBeItsOwn: (written) => http?.wasSentAgain(written) === true,
      onOperation: (operation) => {
        this.#parts.onOperation({ ...operation, client })
      },
    })
  }

  #makeClock(process: SimProcess, random: SeededRandom): Clock {
    const offsetMicros = random.int(-200_000, 200_000)
    const skew = { offsetMicros, driftPpm: 0, timerLatenessMicros: 0 }
    return createClock(process, skew, random.fork('clock'))
  }

  #overLibrary(
    process: SimProcess,
    clock: Clock,
    random: SeededRandom,
    known: readonly string[],
  ): CellCalls {
    const { network, options } = this.#parts
    const transport = network.attach(process, known)
    const { tryTimeoutMs } = options
    return new Client(
      { transport, clock, random: random.fork('library') },
      { tryTimeoutMs, avoidMs: tryTimeoutMs },
    ).cells(datastore)
  }

  #overHttp(process: SimProcess, clock: Clock, random: SeededRandom): HttpCells {
    const { gateways, checker } = this.#parts
    return new HttpCells({
      datastore,
      caller: gateways.connect(process, clock, random.fork('gateways')),
      onSentAgain: ({ rowKey: row, column, refKey, body }) => {
        checker.onPutSent({ shard: findHotShard(row), row, column, refKey }, encodeBody(body))
      },
      onPosition: (...told) => checker.onPosition(process.name, ...told),
    })
  }

  /** A client that starts again has seen nothing: it gets another name. */
  #openClient(
    name: string,
    random: SeededRandom,
    calls: CellCalls,
    { isSession, hasBatchSession, mayBeItsOwn, ...own }: OwnParts,
  ): CellClient {
    const { world, checker, coverage, load } = this.#parts
    const sink: Sink = {
      client: name,
      isSession,
      hasBatchSession,
      mayBeItsOwn,
      log: this.#log,
      columns: this.#columns,
      isPurged: (shard) => this.#purged.has(shard),
    }
    return new CellClient({
      ...own,
      name,
      world,
      random: random.fork('operations'),
      checker,
      coverage,
      load,
      frontier: this.#frontier,
      mayBeCorrupt: () => this.#parts.mayBeCorrupt(),
      cells: recordCells(calls, datastore, sink),
      rows: this.#rows,
      purgedShard: this.shards.at(-1),
      onAcknowledged: (cell) => {
        this.#lookFor(cell)
      },
      tell: (what) => {
        this.#parts.tell(name, what)
      },
    })
  }
}

/** Callers in batches purge nothing, and put no cells that expire. */
function withoutLosses(options: WorkloadOptions): WorkloadOptions {
  const { cellTtl: _, ...others } = options
  return { ...others, purges: 0 }
}
