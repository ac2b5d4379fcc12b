/**
 * A client of the world: an application on the real client library. It puts cells, also where other
 * clients put theirs, reads on every path, and reports every answer to the checker.
 */
import type { Json } from '../../src/cells/body.ts'
import type { CellName } from '../../src/cells/cell.ts'
import { assert } from '../../src/base/assert.ts'
import { retryByCode, StoreError } from '../../src/base/errors.ts'
import { findHotShard as shardOf } from './hot-rows.ts'
import { drawRead, drawReadBack } from './cell-read-draw.ts'
import { CellReads, encodeBody, type Asked } from './cell-reads.ts'
import type { CellChecker } from '../checkers/cell-checker.ts'
import type { Coverage } from '../coverage.ts'
import type { PurgedPage } from '../../src/client/options.ts'
import type { CellCalls } from '../history/record-client.ts'
import type { Load } from './load.ts'
import type { SeededRandom } from '../world/random.ts'
import type { CellOperation } from '../scenarios/scenario-operation.ts'
import type { WorkloadOptions } from '../swarm.ts'
import type { World } from '../world/world.ts'

/** The state that the clients of a run share: how far each column has been written. */
export class Frontier {
  readonly #highestByColumn = new Map<string, number>()

  highest(row: string, column: string): number {
    return this.#highestByColumn.get(`${row}/${column}`) ?? -1
  }

  advance(row: string, column: string): number {
    const next = this.highest(row, column) + 1
    this.#highestByColumn.set(`${row}/${column}`, next)
    return next
  }
}

export interface CellClientParts {
  readonly name: string
  readonly world: World
  readonly random: SeededRandom
  readonly options: WorkloadOptions
  readonly cells: CellCalls
  readonly checker: CellChecker
  readonly coverage: Coverage
  readonly frontier: Frontier
  readonly load: Load
  readonly rows: readonly string[]
  /** The shard that loses cells to purges, in runs that have any. */
  readonly purgedShard: number | undefined
  /** Whether a node may have a damaged data disk now, and say so. */
  mayBeCorrupt(): boolean
  /** A put of this client was acknowledged. */
  onAcknowledged(name: CellName): void
  /** An operation begins. */
  onOperation(operation: CellOperation): void
  /** Receives the client's answers, in words. */
  tell(what: string): void
}

type PurgeAsked = Extract<Asked, { readonly kind: 'purge' }>

const columns = ['BASE', 'STATUS'] as const
/** The column whose cells expire, of rows in the last shard, in runs that have any. */
export const briefColumn = 'BRIEF'
/** Parts per million of operations, in those runs. */
const briefs = 400_000
/** Cells looked at by one call of a purge. */
const purgePageCells = 20
/** Tries of one put. After each of them the library has said that the application may retry. */
const putTriesMax = 3
const pageLimits = [1, 3, 20, 1000] as const
/** Parts per million of reads: pages one after another, batches, logs since a time. */
const rareReads = 350_000
const half = 500_000
/** Parts per million of bodies, while there are huge ones. */
const hugeBodies = 50_000

export class CellClient {
  readonly #parts: CellClientParts
  readonly #reads: CellReads
  #operation = 0
  #left = 0
  #isEnding = false

  constructor(parts: CellClientParts) {
    this.#parts = parts
    this.#reads = new CellReads(parts, (error) => this.#readCode(error, 'read'))
  }

  /** The operations of `run` that remain. */
  get left(): number {
    return this.#left
  }

  /** All operations, one after another. */
  async run(operations: number = this.#parts.options.operationsPerClient): Promise<void> {
    const { options, random } = this.#parts
    for (this.#left = operations; this.#left > 0 && !this.#isEnding; this.#left--) {
      await this.#rest()
      if (this.#isEnding) return
      if (this.#isTimeToPurge()) await this.#purgeSomething()
      if (options.cellTtl !== undefined) await this.#doBriefly()
      if (random.chance(options.writes)) await this.#putSomewhere()
      else await this.#readSomewhere()
    }
  }

  /** A cell that is to expire, or a look for some; draws of its own, as purges have. */
  async #doBriefly(): Promise<void> {
    const { random, rows, purgedShard, frontier, checker, coverage } = this.#parts
    const own = random.fork(`brief ${this.#left}`)
    const some = rows.filter((one) => shardOf(one) === purgedShard)
    if (some.length === 0 || !own.chance(briefs)) return
    coverage.count('brief')
    const row = own.pick(some)
    const column = briefColumn
    const highest = frontier.highest(row, column)
    if (own.chance(half)) {
      const refKey = own.chance(300_000) ? Math.max(0, highest) : frontier.advance(row, column)
      const body = { by: this.#parts.name, brief: this.#left }
      await this.#do({ kind: 'put', row, column, refKey, body })
      return
    }
    const isCurrent = !own.chance(200_000)
    const refKey = own.int(0, Math.max(0, highest))
    const shard = shardOf(row)
    const after = own.int(0, checker.highestAddedId(shard))
    const range = { limit: own.pick(pageLimits), reverse: own.chance(half) }
    const reads: readonly Asked[] = [
      { kind: 'get', isCurrent, row, column, refKey },
      { kind: 'latest', isCurrent, row, column },
      { kind: 'row', isCurrent, row },
      { kind: 'versions', isCurrent, row, column, from: refKey, ...range },
      { kind: 'log', isCurrent, shard, after, limit: range.limit },
    ]
    await this.#do(own.pick(reads))
  }

  /** Draws of its own: runs without purges are not changed by those that have some. */
  #isTimeToPurge(): boolean {
    const { options, random } = this.#parts
    const { purges = 0 } = options
    return purges > 0 && random.fork(`purge ${this.#left}`).chance(purges)
  }

  #purgeSomething(): Promise<boolean> {
    const { random, purgedShard, checker, coverage } = this.#parts
    assert(purgedShard !== undefined, 'cell-client: a shard is purged')
    const own = random.fork(`purge what ${this.#left}`)
    const highest = checker.highestAddedId(purgedShard)
    const upTo = own.int(own.chance(half) ? Math.floor(highest / 2) : 0, highest)
    const keepsLatest = own.chance(700_000)
    coverage.count(keepsLatest ? 'purge' : 'purge of all versions')
    const column = own.chance(300_000) ? { column: own.pick(columns) } : {}
    return this.#do({ kind: 'purge', shard: purgedShard, upTo, keepsLatest, ...column })
  }

  /** Until the next operation: a moment, unless all are idle, or in a hurry. */
  async #rest(): Promise<void> {
    const { options, world, random, load } = this.#parts
    const thinkMicros = random.exponential(options.thinkMeanMicros)
    await world.sleep(1 + (load.isStorm ? 0 : thinkMicros))
    while (load.idleMicros > 0 && !this.#isEnding) await load.passIdle()
  }

  /** These instead of `run`: each at its moment, whether or not the one before has ended. */
  async perform(operations: readonly CellOperation[]): Promise<void> {
    const { world } = this.#parts
    const work = operations.map(async (operation) => {
      await world.sleep(operation.atMicros - world.nowMicros)
      if (!this.#isEnding) await this.#do(operation)
    })
    await Promise.all(work)
  }

  /** Begins nothing more of `run`. */
  end(): void {
    this.#isEnding = true
  }

  /** After the world has healed: writes to every shard and reads all of it, until that works. */
  async finish(shards: readonly number[]): Promise<void> {
    const { rows, frontier } = this.#parts
    for (const shard of shards) {
      const row = rows.find((one) => shardOf(one) === shard)
      assert(row !== undefined, 'cell-client: a shard has a row')
      const refKey = frontier.advance(row, columns[0])
      await this.#untilDone(() => this.#put({ rowKey: row, column: columns[0], refKey }))
      const all = { kind: 'log', shard, after: 0, limit: 1000, isCurrent: true } as const
      await this.#untilDone(() => this.#reads.do(all))
    }
  }

  /** Looks for a cell whose put has just been acknowledged: the cell must be there. */
  async lookFor(name: CellName): Promise<void> {
    await this.#do({ kind: 'get', isCurrent: true, row: name.rowKey, ...pickPart(name) })
  }

  async #untilDone(operation: () => Promise<boolean>): Promise<void> {
    const { world, random } = this.#parts
    while (!(await operation())) await world.sleep(10_000 + random.exponential(100_000))
  }

  async #putSomewhere(): Promise<void> {
    const { random, options, frontier, rows, world, load } = this.#parts
    const row = random.pick(load.isStorm ? rows.slice(0, 1) : rows)
    const column = random.pick(columns)
    const highest = frontier.highest(row, column)
    const isContended = highest >= 0 && random.chance(options.contended)
    const lowest = random.chance(700_000) ? Math.max(0, highest - 2) : 0
    const refKey = isContended ? random.int(lowest, highest) : frontier.advance(row, column)
    const body = this.#drawBody(refKey)
    // A client that gives up at once leaves its first answer as the last word on its cell.
    const givesUp = random.fork(`gives up ${this.#left}`).chance(half)
    for (let tries = 0; tries < (givesUp ? 1 : putTriesMax); tries++) {
      if (await this.#do({ kind: 'put', row, column, refKey, body })) {
        return this.#readBack({ rowKey: row, column, refKey })
      }
      await world.sleep(1 + random.exponential(20_000))
      if (this.#isEnding) return
      this.#parts.coverage.count('put again')
    }
  }

  /** Any replica will do: the session has been told of the cell, and is not shown less (CELL-5). */
  async #readBack(name: CellName): Promise<void> {
    const { random, options } = this.#parts
    const { readBack = 0 } = options
    const own = random.fork(`read back ${this.#left}`)
    if (own.chance(readBack)) await this.#do(drawReadBack({ ...this.#parts, random: own }, name))
  }

  /** Mostly a body of its own; now and then one that others would write as well. */
  #drawBody(refKey: number): Json {
    const { name, random, load } = this.#parts
    this.#operation += 1
    if (random.chance(300_000)) return { agreed: refKey }
    if (load.isHuge && random.chance(hugeBodies)) return this.#hugeBody()
    const pad = random.chance(50_000) ? 'x'.repeat(random.int(100, 3_000)) : ''
    return { by: name, operation: this.#operation, pad }
  }

  #hugeBody(): Json {
    const { name, random, coverage } = this.#parts
    coverage.count('huge body')
    return { by: name, operation: this.#operation, pad: 'x'.repeat(random.int(50_000, 400_000)) }
  }

  /** True when the outcome is final. */
  async #put(name: CellName, body: Json = this.#drawBody(name.refKey)): Promise<boolean> {
    const { cells, checker, options } = this.#parts
    const { rowKey: row, column, refKey } = name
    const shard = shardOf(row)
    const text = encodeBody(body)
    const startTick = checker.begin()
    checker.onPutSent({ shard, row, column, refKey }, text)
    try {
      const { timeoutMs } = options
      const written = await cells.put({ body, ...name }, { timeoutMs })
      if (written.buffered) {
        this.#parts.tell(`is told that ${column}/${refKey} is buffered`)
        this.#parts.coverage.count('put buffered')
        checker.onPutBuffered({ shard, row, column, refKey }, text)
        return true
      }
      const { addedId, createdAt, created } = written
      const seen = { shard, row, column, refKey, addedId, createdAt: String(createdAt), body: text }
      this.#parts.tell(`is told that ${column}/${refKey} is written, as added id ${addedId}`)
      checker.onPutAcknowledged(seen, startTick, created)
      this.#parts.onAcknowledged(name)
      return true
    } catch (error) {
      const code = this.#readCode(error, 'put')
      this.#parts.tell(`is told ${code} for its put of ${column}/${refKey}`)
      if (retryByCode[code] === 'safe') {
        checker.onPutFailed({ shard, row, column, refKey }, text)
      }
      if (code !== 'immutable') return false
      checker.onPutRefused({ shard, row, column, refKey }, text)
      return true
    }
  }

  /** Rare reads draw from a stream of their own, so that they change no other draw of the seed. */
  #readSomewhere(): Promise<boolean> {
    const { random, rows, options, frontier } = this.#parts
    const own = random.fork(`read what ${this.#left}`)
    if (own.chance(rareReads)) return this.#readRarely(own)
    const row = random.pick(rows)
    const column = random.pick(columns)
    const isCurrent = !random.chance(options.anyReads)
    const highest = Math.max(0, frontier.highest(row, column))
    const refKey = random.int(Math.max(0, highest - 4), highest + 1)
    switch (random.int(0, 4)) {
      case 0:
        return this.#do({ kind: 'get', isCurrent, row, column, refKey })
      case 1:
        return this.#do({ kind: 'latest', isCurrent, row, column })
      case 2:
        return this.#do({ kind: 'row', isCurrent, row })
      case 3: {
        const range = { from: refKey, limit: random.pick(pageLimits), reverse: random.chance(half) }
        return this.#do({ kind: 'versions', isCurrent, row, column, ...range })
      }
      default: {
        const range = { after: this.#drawPlace(row), limit: random.pick(pageLimits) }
        return this.#do({ kind: 'log', isCurrent, shard: shardOf(row), ...range })
      }
    }
  }

  /**
   * After half of the batches the client reads the same rows again, from any replica: no row may go
   * back.
   */
  async #readRarely(random: SeededRandom): Promise<boolean> {
    const asked = drawRead({ ...this.#parts, random })
    const isRead = await this.#do(asked)
    if (isRead && asked.kind === 'gets' && random.chance(half)) {
      await this.#do({ ...asked, isCurrent: false })
    }
    return isRead
  }

  /** True when there is nothing left to try. */
  #do(asked: Asked): Promise<boolean> {
    const { name: client, world, onOperation } = this.#parts
    onOperation({ client, atMicros: world.nowMicros, ...asked })
    switch (asked.kind) {
      case 'put': {
        const { row: rowKey, column, refKey, body } = asked
        return this.#put({ rowKey, column, refKey }, body)
      }
      case 'purge':
        return this.#purge(asked)
      default:
        return this.#reads.do(asked)
    }
  }

  /** Purges to the end of the log, page by page. After a failure another purge takes the rest. */
  async #purge({ shard, upTo, column, keepsLatest }: PurgeAsked): Promise<boolean> {
    const { cells, checker, options, coverage } = this.#parts
    const before = checker.timeAfter(shard, upTo)
    if (before === undefined) return true
    const named = column === undefined ? {} : { column }
    const purge = checker.onPurgeSent({ shard, before, keepsLatest, ...named })
    const { timeoutMs } = options
    const asked = { before, keepLatest: keepsLatest, timeoutMs, limit: purgePageCells, ...named }
    try {
      let purged = 0
      for (let after: number | undefined = 0; after !== undefined;) {
        const page: PurgedPage = await cells.purgeShard(shard, { after, ...asked })
        purged += page.purged
        after = page.cursor
      }
      if (purged > 0) coverage.count('cells purged')
      this.#parts.tell(`is told that ${purged} cells of shard ${shard} are purged`)
      checker.onPurgeAcknowledged(purge)
      return true
    } catch (error) {
      this.#parts.tell(`is told ${this.#readCode(error, 'purge')} for its purge`)
      return false
    }
  }

  /** A place in the log of the row's shard: near its end as far as is known, or anywhere. */
  #drawPlace(row: string): number {
    const { random, checker } = this.#parts
    const highest = checker.highestAddedId(shardOf(row))
    return random.int(random.chance(800_000) ? Math.max(0, highest - 5) : 0, highest)
  }

  /** The code of a StoreError, which the world may cause; anything else is a bug and ends the run. */
  #readCode(error: unknown, what: string): StoreError['code'] {
    if (!(error instanceof StoreError)) throw error
    this.#parts.coverage.count(`${what} ${error.code}`)
    const isExpected =
      error.retry !== 'never' ||
      error.code === 'immutable' ||
      error.code === 'closed' ||
      // A purge is under an intent of its node, which may stand still for longer than that lives.
      (what === 'purge' && error.code === 'expired') ||
      (error.code === 'corrupt' && this.#parts.mayBeCorrupt())
    if (!isExpected) throw error
    return error.code
  }
}

function pickPart({ column, refKey }: Pick<CellName, 'column' | 'refKey'>): {
  readonly column: string
  readonly refKey: number
} {
  return { column, refKey }
}
