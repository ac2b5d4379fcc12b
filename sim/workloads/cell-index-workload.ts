/**
 * An index over cells: a few clients put cells of few rows, in any order of ref keys and some of
 * them twice, purge some, and ask the index meanwhile. The index is declared before, filled while
 * they write, and in some worlds dropped and declared anew. At the end its entries are compared
 * with what the latest cells say, which are read one by one.
 *
 * IDX-2  A verified query gives nothing that contradicts it.
 * IDX-6  A ready index holds what the cells of each row say that had no write since the build
 *        began.
 * IDX-7  At the end an index has of each row what its latest cells say.
 * IDX-10 What stood in it from before a verified query until its end is in the pages of the answer.
 * IDX-9  At the end no row has anything in an index that was dropped.
 */
import { StoreError, type StoreErrorCode } from '../../src/base/errors.ts'
import type { Json } from '../../src/cells/body.ts'
import { openCellTables } from '../../src/cells/cell-table.ts'
import type { NumberedIndex } from '../../src/cells/index-definition.ts'
import { Client } from '../../src/client/client.ts'
import type {
  CellIndexEntry,
  IndexQueryOptions,
  IndexWhere,
} from '../../src/client/cell-indexes.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import { buildCellEntries } from './cell-index-entries.ts'
import { CellIndexLife } from './cell-index-life.ts'
import {
  atMax,
  cities,
  datastore,
  drawQuery,
  type DrawnQuery,
  buildEntry,
  leftOvers,
  name,
  rowCount,
  buildRowKey,
  sharedRows,
} from './cell-index-shapes.ts'
import type { IndexChecker, StandingEntry } from '../checkers/index-checker.ts'
import { IndexedRows } from '../checkers/indexed-rows.ts'
import type { Judge } from '../checkers/judge.ts'
import { QuietRows } from '../checkers/quiet-rows.ts'
import type { Referee } from '../checkers/referee.ts'
import { checkWhole } from '../checkers/whole-answer.ts'
import { createClock } from '../world/clock.ts'
import type { Coverage } from '../coverage.ts'
import type { Load } from './load.ts'
import { loneMicros, notAlone, type LoneOptions } from './lone-draw.ts'
import { writeAlone } from './lone-writer.ts'
import type { Network } from '../world/network.ts'
import type { SeededRandom } from '../world/random.ts'
import { SimProcess } from '../world/sim-process.ts'
import type { WorkloadOptions } from '../swarm.ts'
import type { World } from '../world/world.ts'
import { toldBy } from './told.ts'
import { shardOf } from './datastore.ts'

export interface CellIndexWorkloadParts {
  readonly world: World
  readonly network: Network<ClientFrame>
  readonly coverage: Coverage
  readonly referee: Referee
  readonly judge: Judge
  readonly indexes: IndexChecker
  readonly options: WorkloadOptions
  readonly load: Load
  readonly nodes: readonly string[]
  mayBeCorrupt(): boolean
  isInService(node: string): boolean
  onFailed(error: unknown): void
}

const refKeyMax = 6
/**
 * In worlds with purges: clients never put a purged cell again, so later cells get higher ref keys.
 */
const refKeyRise = 3
const putsPerClient = 25
const homecomingMicros = 5_000_000
/** A step of looking after indexes is many reads and writes, one after another. */
const upkeepTimes = { timeoutMs: 20_000, tryTimeoutMs: 10_000 }
/** Where an index is to be built before the world heals. */
const hastyTimes = { timeoutMs: 20_000, tryTimeoutMs: 500 }

const excused: readonly StoreErrorCode[] = [
  ...(['immutable', 'closed', 'expired', 'snapshot-too-old', 'already-exists'] as const),
]

export class CellIndexWorkload {
  readonly #parts: CellIndexWorkloadParts
  readonly #life: CellIndexLife
  readonly #rows = new QuietRows()
  #busy = 0
  #isEnding = false
  #purges = 0
  #builds = 0
  /** A node that is cut off may be the only one to have a write. */
  #isLeftAlone = false

  constructor(parts: CellIndexWorkloadParts) {
    this.#parts = parts
    this.#life = new CellIndexLife({
      ...parts,
      client: () => {
        const { lone } = parts.options
        const times = lone === undefined ? upkeepTimes : hastyTimes
        return this.#connect('index-declarer', notAlone(parts.nodes, lone), times)
      },
      clock: this.#clock(new SimProcess(parts.world, 'index-life')),
      random: parts.world.random.fork('index life'),
      isEnding: () => this.#isEnding,
      told: (call) => this.#told(call),
      begin: (work) => this.#begin(work),
      onBuild: () => this.#lookWhenReady(),
    })
    if (parts.options.indexClientCount === 0) return
    const { model } = parts.judge
    const rows = new IndexedRows(model, parts.referee, parts.coverage)
    const others = model.onEffect
    model.onEffect = (effect) => {
      others(effect)
      rows.onEffect(effect)
    }
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
    const life = this.#life
    if (options.lone !== undefined) await this.#leaveAlone(options.lone)
    if (!(await life.declare())) return
    for (let i = 1; i <= options.indexClientCount; i++) this.#begin(this.#write(`index-${i}`))
    await life.run()
  }

  /** A client writes at one node alone, until after that node has been cut off. */
  async #leaveAlone(lone: LoneOptions): Promise<void> {
    const { world, options } = this.#parts
    const rowKey = buildRowKey(rowCount)
    const client = this.#connect('index-lone', [lone.node])
    const put = async (refKey: number, isLast: boolean): Promise<boolean> => {
      // Before that the row is in no index, so a builder writes nothing in the row's shard.
      const city = isLast ? cities[0] : 0
      const cell = { rowKey, column: 'BASE', refKey, body: { city, at: 1 } }
      const call = { timeoutMs: options.timeoutMs }
      await this.#written([rowKey], () => client.cells(datastore).put(cell, call))
      return this.#rows.isQuietSince(rowKey, Number.MAX_SAFE_INTEGER)
    }
    this.#begin(
      writeAlone({ world, ...lone, put, isEnding: () => this.#isEnding }).then((isLeft) => {
        this.#isLeftAlone = isLeft
      }),
    )
    await world.sleep(Math.max(0, lone.atMicros + loneMicros - world.nowMicros))
  }

  async #write(who: string): Promise<void> {
    const { world, options, nodes, load } = this.#parts
    const random = world.random.fork(`${who} puts`)
    const purges = world.random.fork(`${who} purges`)
    const client = this.#connect(who, random.shuffle(nodes).slice(0, random.int(1, nodes.length)))
    const isBusy = (done: number): boolean => done < putsPerClient || !this.#life.isOver
    for (let i = 0; isBusy(i) && !this.#isEnding; i++) {
      // Then as often as it takes to be at work whenever something becomes of the index.
      const mean = i < putsPerClient ? options.thinkMeanMicros : this.#life.waitMicros / 20
      await world.sleep(1 + random.exponential(mean))
      while (load.idleMicros > 0 && !this.#isEnding) await load.passIdle()
      if (options.purges !== undefined && purges.chance(100_000)) await this.#purge(client, purges)
      if (random.chance(700_000)) await this.#put(client, random)
      else await this.#ask(client, random)
    }
  }

  async #put(client: Client, random: SeededRandom): Promise<void> {
    const { options } = this.#parts
    const isBase = random.chance(700_000)
    const body: Json = isBase
      ? { city: random.chance(900_000) ? random.pick(cities) : 0, at: random.int(1, atMax) }
      : { done: random.chance(500_000) }
    const cell = {
      rowKey: buildRowKey(random.int(1, sharedRows)),
      column: isBase ? 'BASE' : 'STATUS',
      refKey: random.int(0, refKeyMax) + refKeyRise * this.#purges,
      body,
    }
    const call = { timeoutMs: options.timeoutMs }
    const done = await this.#written([cell.rowKey], () => client.cells(datastore).put(cell, call))
    // The buffer may write the cell to its shard at any later time.
    if (done?.buffered === true) this.#rows.begin([cell.rowKey])
  }

  /** A write to these rows, which are quiet again when it is known what became of it. */
  #written<Value>(
    rows: readonly string[],
    write: () => Promise<Value>,
  ): Promise<Value | undefined> {
    this.#rows.begin(rows)
    return this.#told(async () => {
      try {
        const value = await write()
        this.#rows.end(rows)
        return value
      } catch (error) {
        const isKnown = error instanceof StoreError && error.code !== 'unknown-outcome'
        if (isKnown) this.#rows.end(rows)
        throw error
      }
    })
  }

  /** All versions, the latest too: what their rows have in the index goes with them. */
  async #purge(client: Client, random: SeededRandom): Promise<void> {
    const { options, coverage } = this.#parts
    const shard = shardOf(buildRowKey(random.int(1, sharedRows)))
    const rows = allRows.filter((row) => shardOf(row) === shard)
    const asked = {
      before: Number.MAX_SAFE_INTEGER,
      keepLatest: false,
      timeoutMs: options.timeoutMs,
    }
    this.#purges += 1
    const page = await this.#written(rows, () => client.cells(datastore).purgeShard(shard, asked))
    if (page === undefined) return
    if (page.purged > 0) coverage.count('cells: indexed ones purged')
  }

  async #ask(client: Client, random: SeededRandom): Promise<void> {
    const { referee, coverage, options, indexes } = this.#parts
    const query = drawQuery(random, this.#life.shape)
    const { where, fits } = query
    const limit = random.pick([1, 3, 100])
    const asked = { verify: true, limit, timeoutMs: options.timeoutMs }
    const before = await this.#live(client)
    const { moment } = indexes
    const all = (): ReturnType<typeof allEntries> => allEntries(client, where, asked)
    const entries = await this.#told(all, ['not-found', 'invalid'])
    if (entries === undefined) return
    coverage.count('cells: verified query of an index')
    for (const { fields } of entries) {
      const sentence = 'A query of an index over cells gave what contradicts it.'
      referee.check(fits(fields), 'IDX-2', sentence, () => ({ where, fields }))
    }
    // Taken at once: what changes later is of no concern to this answer.
    const standing = indexes.standingSince(moment)
    const after = before === undefined ? undefined : await this.#live(client)
    if (before === undefined || after?.number !== before.number) return
    this.#checkWhole(before, query, standing, entries)
  }

  /** Entries that stood from before the query until its end are in its pages. */
  #checkWhole(
    definition: NumberedIndex,
    { value, where, fits }: DrawnQuery,
    standing: readonly StandingEntry[],
    entries: readonly CellIndexEntry[],
  ): void {
    const { referee, coverage } = this.#parts
    const stood = buildCellEntries(definition, value, standing).filter(({ fields }) => fits(fields))
    if (stood.length > 0) coverage.count('cells: an answer of an index was to have what stood')
    checkWhole(referee, 'IDX-10', {
      index: definition.name,
      query: where,
      standing: stood.map(({ rowKey }) => rowKey),
      found: entries.map(({ rowKey }) => rowKey),
    })
  }

  /** The index that can be asked, as its datastore's own set has it. */
  async #live(client: Client): Promise<NumberedIndex | undefined> {
    const known = await this.#told(() => client.cells(datastore).indexes.list())
    const own = known?.find(({ definition }) => definition.name === name)
    return own?.state !== 'ready' ? undefined : own.definition
  }

  /**
   * Reads an index page by page as soon as it is built, and compares it with the cells of those
   * rows that had no write since the build began.
   */
  #lookWhenReady(): () => Promise<void> {
    const { moment } = this.#rows
    return async () => {
      const { referee, coverage, world, nodes, options } = this.#parts
      const { lone } = options
      if (this.#isLeftAlone && lone !== undefined && world.nowMicros < lone.untilMicros) {
        coverage.count('cells: a write waited at one node while an index was built')
      }
      const who = `index-ready-${++this.#builds}`
      const client = this.#connect(who, nodes, upkeepTimes)
      const found = await this.#found(client, world.random.fork(`${who} pages`))
      const expected = await this.#expected(client)
      const quiet = allRows.filter((row) => this.#rows.isQuietSince(row, moment))
      const isQuiet = (entry: string): boolean => quiet.some((row) => entry.includes(row))
      const [seen, said] = [found.filter(isQuiet).toSorted(), expected.filter(isQuiet).toSorted()]
      if (said.length > 0) coverage.count('cells: an index looked at when it was ready')
      const sentence = 'An index was asked that has not what rows say, or has what none says.'
      const isSame = seen.join('\n') === said.join('\n')
      referee.check(isSame, 'IDX-6', sentence, () => ({ quiet, expected: said, found: seen }))
    }
  }

  async #compare(node: string): Promise<void> {
    const { world, indexes, isInService, options } = this.#parts
    const client = this.#connect(`index-reader-${node}`, [node], upkeepTimes)
    // Waits until buffered cells are in their shards; no other client writes any more.
    await world.sleep(1300 * options.schemaTrustMs + homecomingMicros)
    while (isInService(node)) {
      const isCompared = await this.#told(async () => {
        const live = await this.#life.settle(client)
        return indexes.pending === 0 && (await this.#compareOnce(client, node, live?.definition))
        // At several nodes the same is done at once.
      }, ['not-found'])
      if (isCompared === true) return
      await world.sleep(200_000)
    }
  }

  async #compareOnce(
    client: Client,
    node: string,
    live: NumberedIndex | undefined,
  ): Promise<boolean> {
    const { referee, indexes, coverage, world } = this.#parts
    const [expected, found] = [
      live === undefined ? [] : await this.#expected(client),
      live === undefined ? [] : await this.#found(client, world.random.fork(`${node} pages`)),
    ]
    const clock = this.#clock(new SimProcess(world, `index-left-${node}`))
    const tables = openCellTables(client.groups, {
      clock,
      random: world.random.fork(`${node} left`),
    })
    const left = await leftOvers(tables, live)
    if (indexes.pending > 0) return false
    coverage.count('cells: an index compared')
    const isSame = found.toSorted().join('\n') === expected.toSorted().join('\n')
    const sentence = 'Entries of an index over cells are not what the latest cells say.'
    referee.check(isSame, 'IDX-7', sentence, () => ({ node, expected, found }))
    const leaves = 'A dropped index over cells has left entries.'
    referee.check(left.length === 0, 'IDX-9', leaves, () => ({ node, left }))
    return true
  }

  async #expected(client: Client): Promise<string[]> {
    const cells = client.cells(datastore)
    const entries: string[] = []
    for (let row = 1; row <= rowCount; row++) {
      const rowKey = buildRowKey(row)
      const BASE = (await cells.get({ rowKey, column: 'BASE' }))?.body
      const STATUS = (await cells.get({ rowKey, column: 'STATUS' }))?.body
      const entry = buildEntry(this.#life.shape, rowKey, { BASE, STATUS })
      if (entry !== undefined) entries.push(entry)
    }
    return entries
  }

  /** By pages that are smaller than what there is, in whatever order: cursors lead to the end. */
  async #found(client: Client, random: SeededRandom): Promise<string[]> {
    const { fields, values } = this.#life.shape
    const shardField = fields[0]?.[1] ?? ''
    const [, last] = fields.at(-1) ?? []
    const found: string[] = []
    for (const value of values) {
      const isSorted = random.chance(500_000)
      const order = { ...(isSorted && last !== undefined && { order: last }) }
      const asked = { limit: random.pick([1, 2, 3, 1_000]), reverse: random.chance(500_000) }
      const entries = await allEntries(client, { [shardField]: value }, { ...order, ...asked })
      if (entries.length > asked.limit) this.#parts.coverage.count(pagesMark(isSorted))
      for (const { rowKey, fields: held } of entries) {
        found.push(JSON.stringify([rowKey, ...fields.map(([, field]) => held[field])]))
      }
    }
    return found
  }

  /** Undefined when the world was in the way. */
  #told<Value>(
    call: () => Promise<Value>,
    alsoExcused: readonly StoreErrorCode[] = [],
  ): Promise<Value | undefined> {
    const { coverage, mayBeCorrupt } = this.#parts
    return toldBy(call, {
      ...{ codes: [...excused, ...alsoExcused], mayBeCorrupt },
      onFailed: (code) => coverage.count(`cells: indexed ${code}`),
    })
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

  #clock(process: SimProcess): Clock {
    const skew = { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 }
    return createClock(process, skew, this.#parts.world.random.fork(`${process.name} clock`))
  }

  #connect(
    who: string,
    known: readonly string[],
    longer: Partial<typeof upkeepTimes> = {},
  ): Client {
    const { world, network, options } = this.#parts
    const random = world.random.fork(`${who} library`)
    const process = new SimProcess(world, who)
    const transport = network.attach(process, known)
    const clock = this.#clock(process)
    const { tryTimeoutMs, timeoutMs, schemaTrustMs } = options
    const own = { timeoutMs, tryTimeoutMs, avoidMs: tryTimeoutMs, schemaTrustMs }
    const limits = { ...own, ...longer }
    return new Client({ transport, clock, random: random.fork('chance') }, limits)
  }
}

const allRows = Array.from({ length: rowCount }, (_, k) => buildRowKey(k + 1))

function pagesMark(isSorted: boolean): string {
  return isSorted ? 'cells: sorted pages of an index compared' : 'cells: pages of an index compared'
}

/** No index of such a world has more pages. */
const pagesMax = 100

/** All pages of a query; more than there can be are given as they are. */
async function allEntries(
  client: Client,
  where: IndexWhere,
  options: IndexQueryOptions,
): Promise<readonly CellIndexEntry[]> {
  const index = client.cells(datastore).index(name)
  const entries: CellIndexEntry[] = []
  let cursor: string | undefined
  for (let page = 1; page <= pagesMax; page++) {
    const place = cursor === undefined ? {} : { cursor }
    const answer = await index.query(where, { ...options, ...place })
    entries.push(...answer.items)
    cursor = answer.cursor
    if (cursor === undefined) break
  }
  return entries
}
