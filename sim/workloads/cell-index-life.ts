/**
 * The life of an index over cells in a world: declared, built while cells are put, dropped while it
 * is made anew, declared again as something else. Those who know less than the cluster are waited
 * for, as the grace says, and no longer.
 */
import { StoreError } from '../../src/base/errors.ts'
import { toStoreError } from '../../src/base/problem.ts'
import type { KnownIndex } from '../../src/cells/index-registry.ts'
import type { Answer, DropIndex } from '../../src/cells/operation.ts'
import { getCellService, type Client } from '../../src/client/client.ts'
import type { CellIndexAdmin } from '../../src/client/cell-indexes.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { judgeBuild } from '../checkers/built-index.ts'
import type { Referee } from '../checkers/referee.ts'
import { buildOverFew } from './build-index.ts'
import type { Coverage } from '../coverage.ts'
import type { Load } from './load.ts'
import type { SeededRandom } from '../world/random.ts'
import type { WorkloadOptions } from '../swarm.ts'
import {
  datastore,
  buildDefinition,
  isOfShape,
  name,
  shapes,
  shards,
  type Shape,
} from './cell-index-shapes.ts'
import type { World } from '../world/world.ts'

export interface CellIndexLifeParts {
  readonly world: World
  readonly coverage: Coverage
  readonly referee: Referee
  readonly options: WorkloadOptions
  readonly load: Load
  readonly clock: Clock
  /** Connects one more. */
  client(): Client
  readonly random: SeededRandom
  isEnding(): boolean
  /** Undefined when the world was in the way. */
  told<Value>(call: () => Promise<Value>): Promise<Value | undefined>
  /**
   * Called before each try of a build. The function that it returns is called once the index is
   * ready.
   */
  onBuild(): () => Promise<void>
  /** Starts work whose end no caller awaits. */
  begin(work: Promise<void>): void
}

/** Longer than any world. */
const neverMs = 86_400_000
const dropsMax = 2
const markTimeoutMs = 20_000

export class CellIndexLife {
  readonly #parts: CellIndexLifeParts
  readonly #drops: number
  #declarer: Client | undefined
  #isOver = false
  /** The declared shape at the end; undefined: no index. */
  #wanted: Shape | undefined = shapes[0]

  constructor(parts: CellIndexLifeParts) {
    this.#parts = parts
    this.#drops = parts.random.pick([0, 0, 1, dropsMax])
  }

  /** The shape that queries use. */
  get shape(): Shape {
    return this.#wanted ?? shapes[0]
  }

  get #client(): Client {
    this.#declarer ??= this.#parts.client()
    return this.#declarer
  }

  get #indexes(): CellIndexAdmin {
    return this.#client.cells(datastore).indexes
  }

  declare(): Promise<boolean> {
    return this.#until(() => this.#indexes.apply(buildDefinition(this.shape)))
  }

  /** Nothing more becomes of it. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** From when it is declared. */
  async run(): Promise<void> {
    await this.#live()
    this.#isOver = true
  }

  async #live(): Promise<void> {
    const { world, random, coverage, options, load, isEnding } = this.#parts
    await this.#build()
    for (let drop = 1; drop <= this.#drops && !isEnding(); drop++) {
      await world.sleep(random.exponential(20 * options.thinkMeanMicros))
      while (load.idleMicros > 0 && !isEnding()) await load.passIdle()
      if (random.chance(700_000)) this.#parts.begin(this.#rebuildOnce())
      const next = shapes[drop % shapes.length]
      this.#wanted = drop < this.#drops || random.chance(600_000) ? next : undefined
      if (!(await this.#drop())) return
      coverage.count('cells: an index dropped')
      if (this.#wanted === undefined) return
      if (!(await this.declare())) return
      coverage.count('cells: an index declared again')
      await this.#build()
    }
  }

  /**
   * Brings the index to its final state, once no client writes, whatever was under way before.
   * Throws the world's errors.
   */
  async settle(client: Client): Promise<KnownIndex | undefined> {
    const indexes = client.cells(datastore).indexes
    const found = (await indexes.list()).find((one) => one.definition.name === name)
    const wanted = this.#wanted
    const isWanted =
      found !== undefined && wanted !== undefined && isOfShape(found.definition, wanted)
    if (found !== undefined && (found.state === 'dropping' || !isWanted)) {
      await this.#dropUnwanted(client, found.definition.number)
    }
    if (wanted === undefined) return undefined
    await indexes.apply(buildDefinition(wanted))
    await this.#buildBy(client)
    return (await indexes.list()).find((one) => one.definition.name === name)
  }

  /**
   * Drops by number. Under the same name a settling client at another node may already have
   * declared, and be filling, the wanted index. This client does not wait for that one.
   */
  async #dropUnwanted(client: Client, number: number): Promise<void> {
    const operation = { kind: 'drop-index', datastore, name, number } as const
    await execute(client, { ...operation, graceMs: neverMs })
    for (;;) {
      const answer = await execute(client, { ...operation, graceMs: 0 })
      if (answer.kind === 'drop-index' && answer.phase === 'dropped') return
    }
  }

  async #build(): Promise<void> {
    await this.#wait()
    let ready = this.#parts.onBuild()
    const build = async (): Promise<void> => {
      ready = this.#parts.onBuild()
      const rowsAtOnce = this.#parts.random.pick([1, 2, 50])
      const run = (): Promise<void> => this.#buildBy(this.#client, rowsAtOnce)
      await judgeBuild(this.#parts.referee, name, run).catch(unlessGone)
    }
    if (await this.#until(build)) await this.#parts.told(ready)
  }

  #buildBy(client: Client, rowsAtOnce?: number): Promise<void> {
    const { clock, random } = this.#parts
    const options = { graceMs: 0, shards, ...(rowsAtOnce !== undefined && { rowsAtOnce }) }
    return buildOverFew(client, { clock, random }, { datastore, name }, options)
  }

  async #rebuildOnce(): Promise<void> {
    await this.#parts.told(() =>
      this.#indexes.rebuild(name, { shards, rowsAtOnce: 1 }).catch(unlessGone),
    )
  }

  async #drop(): Promise<boolean> {
    if (!(await this.#until(() => this.#markDropping(this.#client)))) return false
    await this.#wait()
    return this.#until(() => this.#indexes.drop(name, { graceMs: 0 }).catch(unlessGone))
  }

  async #markDropping(client: Client): Promise<void> {
    const operation = { kind: 'drop-index', datastore, name, graceMs: neverMs } as const
    await execute(client, operation).catch(unlessGone)
  }

  /** How long until no program trusts the earlier definition and all work under way has ended. */
  get waitMicros(): number {
    const { schemaTrustMs, timeoutMs } = this.#parts.options
    return 1300 * (schemaTrustMs + timeoutMs)
  }

  #wait(): Promise<void> {
    return this.#parts.world.sleep(this.waitMicros)
  }

  /** Retries until the work succeeds or the run ends. It does not retry while the load is idle. */
  async #until(work: () => Promise<unknown>): Promise<boolean> {
    const { world, load, isEnding, told } = this.#parts
    while (!isEnding()) {
      while (load.idleMicros > 0 && !isEnding()) await load.passIdle()
      if ((await told(async () => ({ done: await work() }))) !== undefined) return true
      await world.sleep(50_000)
    }
    return false
  }
}

async function execute(client: Client, operation: DropIndex): Promise<Answer> {
  const { answer } = await getCellService(client).execute(operation, { timeoutMs: markTimeoutMs })
  if (answer.kind === 'problem') throw toStoreError(answer.problem)
  return answer
}

/** Another client dropped it, or an earlier try whose answer was lost. */
function unlessGone(error: unknown): void {
  if (!(error instanceof StoreError) || error.code !== 'not-found') throw error
}
