/** The clients of a run, each with a process, a clock and a link to some of the nodes. */
import type { CellName } from '../src/cells/cell.ts'
import type { ClientFrame } from '../src/cells/operation.ts'
import { Client } from '../src/client/client.ts'
import { CellClient, Frontier } from './cell-client.ts'
import type { CellChecker } from './checkers/cell-checker.ts'
import { createClock } from './clock.ts'
import type { Coverage } from './coverage.ts'
import { hotRows, hotShards } from './hot-rows.ts'
import type { Network } from './network.ts'
import type { SeededRandom } from './random.ts'
import { SimProcess } from './sim-process.ts'
import type { WorkloadOptions } from './swarm.ts'
import type { World } from './world.ts'

export const datastore = 'sim'

export interface CellWorkloadParts {
  readonly world: World
  readonly network: Network<ClientFrame>
  readonly coverage: Coverage
  readonly checker: CellChecker
  readonly options: WorkloadOptions
  readonly nodes: readonly string[]
  onFailed(error: unknown): void
}

export function clientNames(options: WorkloadOptions): string[] {
  return Array.from({ length: options.clientCount }, (_, i) => `c${i + 1}`)
}

export class CellWorkload {
  readonly shards: readonly number[]
  readonly #parts: CellWorkloadParts
  readonly #clients: CellClient[] = []
  readonly #rows: readonly string[]
  readonly #looks: SeededRandom
  #busy = 0

  constructor(parts: CellWorkloadParts) {
    this.#parts = parts
    this.#looks = parts.world.random.fork('looks')
    const { shardCount, rowsPerShard } = parts.options
    this.shards = hotShards.slice(0, shardCount)
    this.#rows = this.shards.flatMap((shard) => (hotRows().get(shard) ?? []).slice(0, rowsPerShard))
  }

  /** Whether every client has done what it was given. */
  isDone(): boolean {
    return this.#busy === 0
  }

  start(): void {
    const frontier = new Frontier()
    for (const name of clientNames(this.#parts.options)) {
      const client = this.#makeClient(name, frontier)
      this.#clients.push(client)
      this.#begin(client.run())
    }
  }

  /** What is under way comes to its end; nothing more is begun. */
  end(): void {
    for (const client of this.#clients) client.end()
  }

  /** Once the world has healed: what must now work for everybody. */
  finish(): void {
    for (const client of this.#clients) this.#begin(client.finish(this.shards))
  }

  /** Another client, on another node perhaps, looks at once for what was acknowledged. */
  #lookFor(cell: CellName): void {
    if (!this.#looks.chance(this.#parts.options.lookedFor)) return
    this.#begin(this.#looks.pick(this.#clients).lookFor(cell))
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

  #makeClient(name: string, frontier: Frontier): CellClient {
    const { world, network, options, nodes, checker, coverage } = this.#parts
    const random = world.random.fork(`client ${name}`)
    const process = new SimProcess(world, name)
    // Some know all nodes, some only one: reads of different clients go through different nodes.
    const known = random.shuffle(nodes).slice(0, random.int(1, nodes.length))
    const transport = network.attach(process, known)
    const skew = {
      offsetMicros: random.int(-200_000, 200_000),
      driftPpm: 0,
      timerLatenessMicros: 0,
    }
    const clock = createClock(process, skew, random.fork('clock'))
    const { tryTimeoutMs } = options
    const client = new Client(
      { transport, clock, random: random.fork('library') },
      { tryTimeoutMs, avoidMs: tryTimeoutMs },
    )
    return new CellClient({
      ...{ name, world, random: random.fork('operations'), options, checker, coverage, frontier },
      ...{ cells: client.cells(datastore), rows: this.#rows },
      onAcknowledged: (cell) => {
        this.#lookFor(cell)
      },
    })
  }
}
