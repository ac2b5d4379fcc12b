/**
 * An index over cells: a few clients put cells of few rows, in any order of ref keys and some of them
 * twice, and ask the index meanwhile. The index is declared before, and filled while they write. At the
 * end its entries are compared with what the latest cells say, which are read one by one.
 *
 * IDX-2  A verified query gives nothing that contradicts it.
 * IDX-7  At the end an index has of each row what its latest cells say.
 */
import { StoreError } from '../src/base/errors.ts'
import type { Json } from '../src/cells/body.ts'
import { Client } from '../src/client/client.ts'
import type { ClientFrame } from '../src/wire/client-message.ts'
import type { IndexChecker } from './checkers/index-checker.ts'
import type { Referee } from './checkers/referee.ts'
import { createClock } from './clock.ts'
import type { Coverage } from './coverage.ts'
import type { Network } from './network.ts'
import type { SeededRandom } from './random.ts'
import { SimProcess } from './sim-process.ts'
import type { WorkloadOptions } from './swarm.ts'
import type { World } from './world.ts'

export interface CellIndexWorkloadParts {
  readonly world: World
  readonly network: Network<ClientFrame>
  readonly coverage: Coverage
  readonly referee: Referee
  readonly indexes: IndexChecker
  readonly options: WorkloadOptions
  readonly nodes: readonly string[]
  mayBeCorrupt(): boolean
  isInService(node: string): boolean
  onFailed(error: unknown): void
}

const datastore = 'indexed'
const name = 'by_city'
const definition = {
  ...{ table: name, datastore },
  column_defs: [
    {
      column_key: 'BASE',
      fields: [
        { field: 'city', type: 'string' },
        { field: 'at', type: 'integer' },
      ],
    },
    { column_key: 'STATUS', fields: [{ field: 'done', type: 'boolean' }] },
  ],
}
const cities = ['Oslo', 'Rome', 'Bern'] as const
const rowCount = 5
const refKeyMax = 6
const putsPerClient = 25

export class CellIndexWorkload {
  readonly #parts: CellIndexWorkloadParts
  #busy = 0
  #isEnding = false

  constructor(parts: CellIndexWorkloadParts) {
    this.#parts = parts
  }

  isDone(): boolean {
    return this.#busy === 0
  }

  start(): void {
    if (this.#parts.options.indexClientCount > 0) this.#begin(this.#run())
  }

  end(): void {
    this.#isEnding = true
  }

  finish(nodes: readonly string[]): void {
    if (this.#parts.options.indexClientCount === 0) return
    for (const node of nodes) this.#begin(this.#compare(node))
  }

  async #run(): Promise<void> {
    const { options } = this.#parts
    const declarer = this.#connect('index-declarer', this.#parts.nodes)
    const isDeclared = await this.#until(async () =>
      declarer.cellIndexes(datastore).apply(definition),
    )
    if (!isDeclared) return
    for (let i = 1; i <= options.indexClientCount; i++) this.#begin(this.#write(`index-${i}`))
    await this.#until(() => declarer.cellIndexes(datastore).build(name, { graceMs: 0 }))
  }

  async #write(who: string): Promise<void> {
    const { world, options, nodes } = this.#parts
    const random = world.random.fork(`${who} puts`)
    const client = this.#connect(who, random.shuffle(nodes).slice(0, random.int(1, nodes.length)))
    for (let i = 0; i < putsPerClient && !this.#isEnding; i++) {
      await world.sleep(1 + random.exponential(options.thinkMeanMicros))
      if (random.chance(700_000)) await this.#put(client, random)
      else await this.#ask(client, random)
    }
  }

  async #put(client: Client, random: SeededRandom): Promise<void> {
    const { options } = this.#parts
    const isBase = random.chance(700_000)
    const body: Json = isBase
      ? { city: random.chance(900_000) ? random.pick(cities) : 0, at: random.int(1, 9) }
      : { done: random.chance(500_000) }
    const cell = {
      ...{ rowKey: rowKeyOf(random.int(1, rowCount)), column: isBase ? 'BASE' : 'STATUS' },
      ...{ refKey: random.int(0, refKeyMax), body },
    }
    await this.#told(() => client.cells(datastore).put(cell, { timeoutMs: options.timeoutMs }))
  }

  async #ask(client: Client, random: SeededRandom): Promise<void> {
    const { referee, coverage, options } = this.#parts
    const city = random.pick(cities)
    const from = random.int(1, 9)
    const asked = { verify: true, limit: random.pick([1, 3, 100]), timeoutMs: options.timeoutMs }
    const index = client.cells(datastore).index(name)
    const page = await this.#told(() => index.query({ city, at: { gte: from } }, asked))
    if (page === undefined) return
    coverage.count('cells: verified query of an index')
    for (const { fields } of page.entries) {
      const fits = fields['city'] === city && Number(fields['at']) >= from
      const sentence = 'A query of an index over cells gave what contradicts it.'
      referee.check(fits, 'IDX-2', sentence, () => ({ city, from, fields }))
    }
  }

  async #compare(node: string): Promise<void> {
    const { world, indexes, isInService } = this.#parts
    const client = this.#connect(`index-reader-${node}`, [node])
    while (isInService(node)) {
      const isCompared = await this.#told(async () => {
        await client.cellIndexes(datastore).apply(definition)
        await client.cellIndexes(datastore).build(name, { graceMs: 0 })
        return indexes.pending === 0 && (await this.#compareOnce(client, node))
      })
      if (isCompared === true) return
      await world.sleep(200_000)
    }
  }

  async #compareOnce(client: Client, node: string): Promise<boolean> {
    const { referee, indexes, coverage } = this.#parts
    const cells = client.cells(datastore)
    const expected: string[] = []
    for (let row = 1; row <= rowCount; row++) {
      const rowKey = rowKeyOf(row)
      const base = (await cells.latest(rowKey, 'BASE'))?.body
      const status = (await cells.latest(rowKey, 'STATUS'))?.body
      const [city, at, done] = [member(base, 'city'), member(base, 'at'), member(status, 'done')]
      if (typeof city === 'string') expected.push(JSON.stringify([rowKey, city, at, done ?? null]))
    }
    const found: string[] = []
    for (const city of cities) {
      const { entries } = await cells.index(name).query({ city })
      for (const { rowKey, fields } of entries) {
        found.push(JSON.stringify([rowKey, fields['city'], fields['at'], fields['done']]))
      }
    }
    if (indexes.pending > 0) return false
    coverage.count('cells: an index compared')
    const isSame = found.toSorted().join('\n') === expected.toSorted().join('\n')
    const sentence = 'Entries of an index over cells are not what the latest cells say.'
    referee.check(isSame, 'IDX-7', sentence, () => ({ node, expected, found }))
    return true
  }

  /** Until it works, or the work ends. */
  async #until(work: () => Promise<unknown>): Promise<boolean> {
    while (!this.#isEnding) {
      if ((await this.#told(async () => ({ done: await work() }))) !== undefined) return true
      await this.#parts.world.sleep(50_000)
    }
    return false
  }

  /** Undefined when the world was in the way. */
  async #told<Value>(call: () => Promise<Value>): Promise<Value | undefined> {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      const { code, retry } = error
      this.#parts.coverage.count(`cells: indexed ${code}`)
      const excused = ['conflict', 'closed', 'expired', 'snapshot-too-old', 'already-exists']
      const isDamage = code === 'corrupt' && this.#parts.mayBeCorrupt()
      if (retry === 'never' && !excused.includes(code) && !isDamage) throw error
      return undefined
    }
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

  #connect(who: string, known: readonly string[]): Client {
    const { world, network, options } = this.#parts
    const random = world.random.fork(`${who} library`)
    const process = new SimProcess(world, who)
    const transport = network.attach(process, known)
    const skew = { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 }
    const clock = createClock(process, skew, random.fork('clock'))
    const { tryTimeoutMs, timeoutMs } = options
    const limits = { timeoutMs, tryTimeoutMs, avoidMs: tryTimeoutMs }
    return new Client({ transport, clock, random: random.fork('chance') }, limits)
  }
}

function rowKeyOf(row: number): string {
  return `00000000-0000-4000-8000-00000000000${row}`
}

function member(body: Json | undefined, name: string): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return undefined
  return Object.entries(body).find(([one]) => one === name)?.[1]
}
