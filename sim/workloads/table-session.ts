/**
 * A session of tables: a program on the real client library, with a link to some of the nodes. It
 * opens the schema, makes transactions and reads of every kind, and reports every answer to the
 * checker.
 */
import type { Schema } from '../../schema/model.ts'
import type { StoreErrorCode } from '../../src/base/errors.ts'
import type { Timestamp } from '../../src/base/ids.ts'
import type { Client } from '../../src/client/client.ts'
import type { Tables } from '../../src/tables/tables.ts'
import type { TableChecker, TableReading } from '../checkers/table-checker.ts'
import { knownCount, laterLocal } from '../checkers/table-model.ts'
import type { Coverage } from '../coverage.ts'
import type { GroupMaker } from './group-maker.ts'
import type { LaterIndexes } from './later-indexes.ts'
import type { SeededRandom } from '../world/random.ts'
import { loneMicros, type LoneOptions } from './lone-draw.ts'
import {
  allReads,
  drawIndexed,
  drawKept,
  drawReads,
  drawTransaction,
  markStep,
} from './table-draw.ts'
import { drawHold, drawRenewal, liftAll, withClearings, withPurges } from './table-erase.ts'
import type { TableGlobals } from './table-globals.ts'
import { buildRoot, type Opened, type ShopVersion } from './table-schema.ts'
import {
  performRead,
  performStep,
  readMoment,
  type TableRead,
  type TableRun,
  type TableStep,
} from './table-step.ts'
import type { World } from '../world/world.ts'
import { applied, toldBy } from './told.ts'

export interface TableSessionParts {
  readonly name: string
  readonly world: World
  readonly random: SeededRandom
  readonly client: Client
  readonly checker: TableChecker
  readonly coverage: Coverage
  readonly operations: number
  readonly thinkMeanMicros: number
  readonly timeoutMs: number
  /** How long a version is kept at least: some reads are held open for about as long. */
  readonly historyMs: number
  readonly stores: readonly string[]
  /** Those that sessions write. */
  readonly writtenStores: readonly string[]
  /** Most transactions are of the first store. */
  readonly isHot: boolean
  /** Whether this one gives the cluster the next version, in the middle of its work. */
  readonly changesSchema: boolean
  readonly schemas: Readonly<Record<ShopVersion, Schema>>
  /** Absent where there are no global indexes. */
  readonly globals: TableGlobals | undefined
  /** Absent where there are no global indexes. */
  readonly later: LaterIndexes | undefined
  readonly schemaTrustMs: number
  readonly lone: LoneOptions | undefined
  readonly maker: GroupMaker
  /** Whether its requests for one group are all answered by one node, when it has a link to one only. */
  readonly isAtOneNode: boolean
  /** Some rows are purged instead of deleted, and holds forbid both for a while. */
  readonly erases: boolean
  /** A write by the first version has an unknown outcome. */
  onUnknown(): void
  /** Whether a node may have a damaged data disk now, and say so. */
  mayBeCorrupt(): boolean
  tell(what: string): void
}

type Reading = Pick<TableReading, 'store' | 'level' | 'atLeast'> & {
  readonly steps: readonly TableRead[]
  readonly at: Timestamp
  readonly pauseMeanMicros: number
  readonly isPatient: boolean
  /** The coverage counts its failures by this name. */
  readonly what?: string
}

/** A client over slow ways may read row by row, and the run waits for builds of indexes to end: both get this time. */
export const patienceMs = 60_000
const atOnce = { level: 'current', pauseMeanMicros: 0, at: 0 } as const
const holdMeanMicrosMin = 5_000
const holdMeanMicrosMax = 250_000
const momentsBackMax = 12
const buildTriesMax = 5
const looksWhenBuilt = 6
/** Sessions think this many times less while a build goes on: each of its pages is a short moment. */
const busyHaste = 4
const levels = ['current', 'snapshot', 'at', 'at'] as const
/** Parts per million. */
const snapshotsAfterCommit = 250_000
/**
 * Codes that the world may be the reason of, beside those that say that a call may be made again.
 */
const excused: readonly StoreErrorCode[] = ['closed', 'expired', 'snapshot-too-old']

export class TableSession {
  readonly #parts: TableSessionParts
  /** The newest timestamp of each store in this session's answers. */
  readonly #seenAt = new Map<string, Timestamp>()
  #renewing: Opened | undefined
  #isEnding = false

  constructor(parts: TableSessionParts) {
    this.#parts = parts
  }

  end(): void {
    this.#isEnding = true
  }

  async run(): Promise<void> {
    const { operations, changesSchema, world, random, thinkMeanMicros } = this.#parts
    let opened = await this.#open(1)
    const changeAt = Math.ceil(operations / 3)
    let build = Promise.resolve()
    for (let i = 1; this.#isBusy(i) && opened !== undefined; i++) {
      if (i > operations) await this.#parts.later?.untilBusy(() => this.#isEnding)
      const thought = random.exponential(thinkMeanMicros)
      await world.sleep(1 + (i > operations ? Math.ceil(thought / busyHaste) : thought))
      if (changesSchema && i === changeAt) {
        await this.#waitToBeAlone()
        if (this.#parts.later !== undefined) await this.#transact(opened, 0, drawKept)
        opened = await this.#open(2)
        if (opened !== undefined) build = this.#build(opened)
      }
      if (opened === undefined || this.#isEnding) break
      if (i > operations) {
        await this.#transact(opened, i, drawIndexed)
        continue
      }
      if (random.chance(650_000)) await this.#transact(opened, i)
      else await this.#look(opened, this.#pickStore(), random.pick(levels))
      await this.#told<unknown>(drawHold(random.fork(`hold ${i}`), opened.db, this.#parts), 'hold')
      await this.#lookGlobally(opened)
      await this.#told(() => this.#parts.maker.act(), 'list of groups')
    }
    await build
  }

  /** A transaction beside those of `run`. */
  async renewOffers(number: number): Promise<void> {
    this.#renewing ??= await this.#open(1)
    if (this.#renewing !== undefined) await this.#transact(this.#renewing, number, drawRenewal)
  }

  /** Until a node that is cut off has what it alone accepts. */
  async #waitToBeAlone(): Promise<void> {
    const { lone, world } = this.#parts
    if (lone === undefined) return
    await world.sleep(Math.max(0, lone.atMicros + loneMicros - world.nowMicros))
  }

  #isBusy(operation: number): boolean {
    const { operations, later } = this.#parts
    return operation <= operations || (later?.isBuilding === true && !this.#isEnding)
  }

  /** How long until every program is known to use the new schema. */
  get #graceMs(): number {
    const { schemaTrustMs, timeoutMs } = this.#parts
    return schemaTrustMs * 1.3 + timeoutMs
  }

  /** The later indexes are built while all write. */
  async #build(opened: Opened): Promise<void> {
    const { later, world } = this.#parts
    if (later === undefined) return
    for (let left = buildTriesMax; left > 0 && !this.#isEnding; left--) {
      if (await this.#tryToBuild(opened, later, this.#graceMs)) break
      await world.sleep(20_000)
    }
    // Also as of moments before it was ready.
    for (let left = looksWhenBuilt; left > 0; left--) await this.#lookLater(opened, later)
  }

  async #tryToBuild(opened: Opened, later: LaterIndexes, graceMs: number): Promise<boolean> {
    const onLocalReady = (before: Timestamp): Promise<void> =>
      this.#lookBefore(opened, later, before)
    const build = async (): Promise<boolean> => {
      await later.build(opened.db, { graceMs, onLocalReady })
      return true
    }
    return (await this.#told(build, 'build')) === true
  }

  async #lookGlobally(opened: Opened): Promise<void> {
    const { db, version } = opened
    const { globals, later, changesSchema } = this.#parts
    if (globals === undefined || later === undefined) return
    if (version === 2 && globals.random.chance(300_000)) await this.#lookLater(opened, later)
    if (!globals.random.chance(200_000)) return
    await this.#told(() => globals.look(db), 'global read')
    if (version === 1 || !changesSchema || later.isBuilding) return
    if (globals.random.chance(500_000)) await this.#tryToBuild(opened, later, this.#graceMs)
  }

  /** Of the past too: it is refused there where the index was not ready. */
  async #lookLater(opened: Opened, later: LaterIndexes): Promise<void> {
    const { checker, random } = this.#parts
    const [store, level] = [this.#pickStore(), random.pick(levels)]
    const moments = checker.listMoments(store).slice(-momentsBackMax)
    const at = moments.length === 0 ? 0 : random.pick(moments)
    const told = this.#readFloor(store)
    const own = level === 'current' ? told : (this.#seenAt.get(store) ?? 0)
    const atLeast = level === 'at' ? Math.min(at, told) : own
    const steps = [later.drawRead()]
    const kept = { pauseMeanMicros: 0, isPatient: false }
    const isRead = await this.#read(opened, { store, level, atLeast, at, steps, ...kept })
    if (isRead) this.#parts.coverage.count(`tables: later local index read ${level}`)
  }

  /**
   * Asks the ready index as of a moment before it was filled: its entries were not there, so the index
   * is to refuse that. By the clock of a node that is behind, it may have been filled by then.
   */
  async #lookBefore(opened: Opened, later: LaterIndexes, at: Timestamp): Promise<void> {
    for (const store of this.#parts.stores) {
      const atLeast = Math.min(at, this.#readFloor(store))
      const moment = { store, level: 'at', at, atLeast } as const
      const own = { pauseMeanMicros: 0, isPatient: false, what: 'read of before it was filled' }
      await this.#read(opened, { ...moment, ...own, steps: [later.wholeRead()] })
    }
  }

  /**
   * All rows and indexes of all stores, as of now, until that works or `isOver`; one of them is
   * also checked row by row, which takes a request for each entry.
   */
  async finish(checkedStore: string, isOver: () => boolean): Promise<void> {
    const { stores, world, random, checker, name } = this.#parts
    const opened = await this.#open(1, isOver)
    if (opened === undefined) return
    for (const store of stores) {
      const own = { store, ...atOnce, isPatient: true }
      while (!isOver()) {
        const held = checker.listHeld(store)
        await this.#told(liftAll(opened.db, store, held, this.#parts), 'lift')
        const atLeast = checker.toldAt(store)
        const isRead = await this.#read(opened, { ...own, atLeast, steps: allReads(store) })
        if (isRead) await this.#lookBeforePurge(opened, store)
        if (isRead && store !== checkedStore) break
        if (isRead && (await this.#checkIndexes(opened, store))) break
        await world.sleep(10_000 + random.exponential(100_000))
      }
    }
    await this.#finishGlobals(opened, isOver)
    this.#parts.tell(`has read all tables as ${name}`)
  }

  /** PURGE-1: this node has just answered a current read. */
  async #lookBeforePurge(opened: Opened, store: string): Promise<void> {
    const { checker, name, isAtOneNode } = this.#parts
    const at = checker.purgedAt(store) - 1
    if (at < 0 || !isAtOneNode) return
    const moment = {
      store,
      level: 'at',
      at,
      atLeast: Math.min(at, this.#readFloor(store)),
    } as const
    const own = { pauseMeanMicros: 0, isPatient: true, what: 'read of before a purge' }
    const steps: readonly TableRead[] = [{ kind: 'get', table: 'Store', keys: [{ store }] }]
    checker.onPastAsked(name, store, await this.#read(opened, { ...moment, ...own, steps }))
  }

  async #finishGlobals(opened: Opened, isOver: () => boolean): Promise<void> {
    const { globals, later, world, random } = this.#parts
    if (globals === undefined || later === undefined) return
    const hasLater = opened.version === 2
    const compare = (): Promise<boolean> => globals.compareAll(opened.db, hasLater)
    while (!isOver()) {
      // One at a time: builders of one index are in each other's way.
      const mayBuild = !later.isBuilding
      const isBuilt = !hasLater || (mayBuild && (await this.#tryToBuild(opened, later, 0)))
      if (isBuilt && (await this.#told(compare, 'global comparison')) === true) return
      await world.sleep(10_000 + random.exponential(100_000))
    }
  }

  async #checkIndexes({ db, version }: Opened, store: string): Promise<boolean> {
    const { checker, name } = this.#parts
    const timeoutMs = patienceMs
    const report = await this.#told(
      () => db.checkIndexes(buildRoot(store), { timeoutMs }),
      'index check',
    )
    if (report === undefined) return false
    const { rows } = report
    const isExcused = this.#parts.globals?.isExcused === true
    const faults = report.faults.filter(({ index }) => !(isExcused && index === laterLocal))
    checker.onIndexesChecked(name, store, faults)
    const state = checker.stateAt(store, Number.MAX_SAFE_INTEGER)
    // Rows of tables that this version does not know are counted as well.
    if (rows < knownCount(state, version)) checker.onIndexesChecked(name, store, ['rows', rows])
    return true
  }

  /** Undefined when the run ends before the cluster has the schema. */
  async #open(
    least: ShopVersion,
    isOver: () => boolean = () => this.#isEnding,
  ): Promise<Opened | undefined> {
    const { world, random, coverage, name } = this.#parts
    for (; !isOver(); await world.sleep(10_000 + random.exponential(50_000))) {
      const opened = await this.#told(() => this.#tryToOpen(least), 'open')
      if (opened === undefined) continue
      coverage.count(`tables: opened version ${opened.version}`)
      this.#parts.tell(`opens version ${opened.version} as ${name}`)
      return opened
    }
    return undefined
  }

  async #tryToOpen(least: ShopVersion): Promise<Opened | undefined> {
    const { client, checker, stores } = this.#parts
    const schema = this.#parts.schemas[least]
    const before = await client.schemaVersion(schema.name)
    if (before === undefined || before.version < least) {
      await applied(client, schema)
      return undefined
    }
    const db = await client.tables({ name: schema.name, tables: [], model: schema })
    const after = await client.schemaVersion(schema.name)
    // Changed meanwhile: it is not known which of them was opened.
    if (after?.version !== before.version) return undefined
    for (const store of stores) checker.onGroup(db.group(buildRoot(store)), store)
    return { db, version: before.version === 1 ? 1 : 2, declared: least }
  }

  async #transact(
    { db, version, declared }: Opened,
    number: number,
    draw: typeof drawTransaction = drawTransaction,
  ): Promise<void> {
    const { name, checker, random, timeoutMs, coverage, erases } = this.#parts
    const store = this.#pickStore()
    const operation = `${name}.${number}`
    const drawn = [...draw({ random, store, version }, name), ...this.#drawLater(version)]
    const own = random.fork(`purges ${number}`)
    const steps = erases ? withPurges(own, withClearings(own, store, drawn)) : drawn
    const atLeast = this.#readFloor(store)
    let runs = 0
    const work = async (
      tx: Parameters<Parameters<Tables['transaction']>[1]>[0],
    ): Promise<number> => {
      runs += 1
      const own = runs
      if (own > 1) coverage.count('tables: run again')
      const made: TableRun = {
        version,
        declared,
        steps: [...steps, markStep(store, operation, own)],
        results: [],
      }
      const results: unknown[] = []
      for (const step of made.steps) results.push(await performStep(tx, step))
      const asOf = await readMoment(tx, made.steps)
      checker.onRun(operation, store, own, { ...made, results, asOf })
      return own
    }
    const lock = random.chance(200_000) ? { lock: 'shop' } : {}
    const committed = await this.#told(
      () => db.transaction(buildRoot(store), work, { timeoutMs, ...lock }),
      'transaction',
      (code) => this.#onTransactionFailed({ db, version, declared }, store, operation, code),
    )
    if (committed === undefined) return
    coverage.count('tables: committed')
    this.#parts.tell(`is told that ${operation} is committed at ${committed.position}`)
    checker.onCommitted(name, operation, committed, atLeast)
    this.#see(store, committed.timestamp ?? 0)
    // Reads at once: the chosen replica may not have the commit yet.
    if (random.chance(snapshotsAfterCommit))
      await this.#look({ db, version, declared }, store, 'snapshot')
  }

  /** Now and then a transaction asks the local index that came later. */
  #drawLater(version: ShopVersion): readonly TableStep[] {
    const { later, random } = this.#parts
    const isAsked = version === 2 && later !== undefined && random.chance(100_000)
    return isAsked ? [later.drawRead()] : []
  }

  async #onTransactionFailed(
    opened: Opened,
    store: string,
    operation: string,
    code: string,
  ): Promise<void> {
    const { checker, name, coverage } = this.#parts
    this.#parts.tell(`is told ${code} for ${operation}`)
    if (code !== 'unknown-outcome') return checker.onRefused(name, operation, code)
    coverage.count('tables: outcome unknown')
    if (opened.version === 1) this.#parts.onUnknown()
    // A program would look before it retries. The checker judges this read like any other.
    const steps: readonly TableRead[] = [
      { kind: 'get', table: 'Mark', keys: [{ store, mark: operation }] },
    ]
    const own = { store, ...atOnce, isPatient: false }
    await this.#read(opened, { ...own, atLeast: this.#readFloor(store), steps })
  }

  async #look(opened: Opened, store: string, level: TableReading['level']): Promise<void> {
    const { random, historyMs, checker } = this.#parts
    const aboutHistory = Math.min(historyMs * 600, holdMeanMicrosMax)
    const isHeld = random.chance(400_000)
    const steps = drawReads({ random, store, version: opened.version })
    const moments = checker.listMoments(store)
    const back = random.int(1, Math.min(momentsBackMax, Math.max(1, moments.length)))
    const at = Math.max(0, (moments.at(-back) ?? 0) + random.pick([-1, 0, 0, 1]))
    // A moment of the future is read as of now.
    const told = this.#readFloor(store)
    const own = level === 'current' ? told : (this.#seenAt.get(store) ?? 0)
    const atLeast = level === 'at' ? Math.min(at, told) : own
    const pauseMeanMicros = isHeld ? Math.max(aboutHistory, holdMeanMicrosMin) : 0
    const held = { pauseMeanMicros, isPatient: isHeld }
    await this.#read(opened, { store, level, atLeast, steps, at, ...held })
  }

  /** True when it came to its end. */
  async #read({ db, version, declared }: Opened, reading: Reading): Promise<boolean> {
    const { world, random, checker, coverage, name, timeoutMs } = this.#parts
    const { store, level, steps, at, atLeast, pauseMeanMicros, isPatient, what = 'read' } = reading
    const results: unknown[] = []
    const from = level === 'at' ? { at } : level
    const done = await this.#told(
      () =>
        db.read(
          buildRoot(store),
          from,
          async (rows) => {
            for (const step of steps) {
              results.push(await performRead(rows, step))
              if (pauseMeanMicros > 0) await world.sleep(1 + random.exponential(pauseMeanMicros))
            }
          },
          { timeoutMs: isPatient ? patienceMs : timeoutMs },
        ),
      what,
    )
    const run: TableRun = { version, declared, steps, results }
    const asked = { client: name, store, run, level, atLeast }
    const atMost = level === 'at' ? at : Number.MAX_SAFE_INTEGER
    const asOf = done?.view?.asOf
    if (asOf === undefined) {
      // Rows that it was shown before the refusal are of the requested moment.
      if (level === 'at' && at === atLeast) checker.onRead({ ...asked, asOf: at, atMost })
      return false
    }
    coverage.count(`tables: read ${level}`)
    if (pauseMeanMicros > 0) coverage.count('tables: read held open')
    checker.onRead({ ...asked, asOf, atMost })
    if (level !== 'at') this.#see(store, asOf)
    return true
  }

  /**
   * The newest acknowledged timestamp at its beginning. A current read shows that, and all that
   * this session has seen.
   */
  #readFloor(store: string): Timestamp {
    return this.#parts.checker.toldAt(store)
  }

  #see(store: string, at: Timestamp): void {
    this.#seenAt.set(store, Math.max(this.#seenAt.get(store) ?? 0, at))
  }

  #pickStore(): string {
    const { writtenStores, isHot, random } = this.#parts
    const [first = ''] = writtenStores
    return isHot && random.chance(800_000) ? first : random.pick(writtenStores)
  }

  /** Undefined when the world was in the way; what it cannot be the reason of ends the run. */
  #told<Value>(
    call: () => Promise<Value>,
    what: string,
    onFailed: (code: string) => Promise<void> | void = () => undefined,
  ): Promise<Value | undefined> {
    const { coverage, mayBeCorrupt } = this.#parts
    return toldBy(call, {
      ...{ codes: excused, mayBeCorrupt },
      onFailed: (code) => {
        coverage.count(`tables: ${what} ${code}`)
        return onFailed(code)
      },
    })
  }
}
