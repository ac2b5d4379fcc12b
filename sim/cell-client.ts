/**
 * A client of the world: an application on the real client library. It puts cells, also where
 * others put theirs, reads on every path, and tells the checker what it was told.
 */
import { canonicalJson, type Json } from '../src/cells/body.ts'
import type { Cell, CellName } from '../src/cells/cell.ts'
import type { ClientCells } from '../src/client/cells.ts'
import { assert } from '../src/base/assert.ts'
import { StoreError } from '../src/base/errors.ts'
import { hotShardOf as shardOf } from './hot-rows.ts'
import type { CellChecker, ReadInfo, SeenCell } from './checkers/cell-checker.ts'
import type { Coverage } from './coverage.ts'
import type { SeededRandom } from './random.ts'
import type { WorkloadOptions } from './swarm.ts'
import type { World } from './world.ts'

/** What the clients of a run share: how far each column has been written. */
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
  readonly cells: ClientCells
  readonly checker: CellChecker
  readonly coverage: Coverage
  readonly frontier: Frontier
  readonly rows: readonly string[]
  /** A put of this client was acknowledged. */
  onAcknowledged(name: CellName): void
}

const columns = ['BASE', 'STATUS'] as const
/** Tries of one put, after each of which the application is told that it may try again. */
const putTriesMax = 3
const pageLimits = [1, 3, 20, 1000] as const

export class CellClient {
  readonly #parts: CellClientParts
  #operation = 0
  #isEnding = false

  constructor(parts: CellClientParts) {
    this.#parts = parts
  }

  /** All operations, one after another. */
  async run(): Promise<void> {
    const { options, world, random } = this.#parts
    for (let i = 0; i < options.operationsPerClient && !this.#isEnding; i++) {
      await world.sleep(1 + random.exponential(options.thinkMeanMicros))
      if (random.chance(options.writes)) await this.#putSomewhere()
      else await this.#readSomewhere()
    }
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
      await this.#untilDone(() => this.#readLog(shard, 0, 1000, true))
    }
  }

  /** Looks for a cell that somebody has just been told is written: it must be there. */
  async lookFor(name: CellName): Promise<void> {
    await this.#readCell(name, true)
  }

  async #untilDone(operation: () => Promise<boolean>): Promise<void> {
    const { world, random } = this.#parts
    while (!(await operation())) await world.sleep(10_000 + random.exponential(100_000))
  }

  async #putSomewhere(): Promise<void> {
    const { random, options, frontier, rows, world } = this.#parts
    const rowKey = random.pick(rows)
    const column = random.pick(columns)
    const highest = frontier.highest(rowKey, column)
    const isContended = highest >= 0 && random.chance(options.contended)
    const lowest = random.chance(700_000) ? Math.max(0, highest - 2) : 0
    const refKey = isContended ? random.int(lowest, highest) : frontier.advance(rowKey, column)
    const body = this.#drawBody(refKey)
    for (let tries = 0; tries < putTriesMax; tries++) {
      if (await this.#put({ rowKey, column, refKey }, body)) return
      await world.sleep(1 + random.exponential(20_000))
    }
  }

  /** Mostly a body of its own; now and then one that others would write as well. */
  #drawBody(refKey: number): Json {
    const { name, random } = this.#parts
    this.#operation += 1
    if (random.chance(300_000)) return { agreed: refKey }
    const pad = random.chance(50_000) ? 'x'.repeat(random.int(100, 3_000)) : ''
    return { by: name, operation: this.#operation, pad }
  }

  /** True when the outcome is final. */
  async #put(name: CellName, body: Json = this.#drawBody(name.refKey)): Promise<boolean> {
    const { cells, checker, options } = this.#parts
    const { rowKey: row, column, refKey } = name
    const shard = shardOf(row)
    const text = textOf(body)
    const startTick = checker.begin()
    checker.onPutSent({ shard, row, column, refKey }, text)
    try {
      const { timeoutMs } = options
      const written = await cells.put({ ...name, body }, { timeoutMs })
      const { addedId, createdAt, created } = written
      const seen = { shard, row, column, refKey, addedId, createdAt: String(createdAt), body: text }
      checker.onPutAcknowledged(seen, startTick, created)
      this.#parts.onAcknowledged(name)
      return true
    } catch (error) {
      const code = this.#codeOf(error, 'put')
      if (code !== 'conflict') return false
      checker.onPutRefused({ shard, row, column, refKey }, text)
      return true
    }
  }

  async #readSomewhere(): Promise<boolean> {
    const { random, rows, options, frontier } = this.#parts
    const row = random.pick(rows)
    const column = random.pick(columns)
    const isCurrent = !random.chance(options.anyReads)
    const highest = Math.max(0, frontier.highest(row, column))
    const refKey = random.int(Math.max(0, highest - 4), highest + 1)
    switch (random.int(0, 4)) {
      case 0:
        return this.#readCell({ rowKey: row, column, refKey }, isCurrent)
      case 1:
        return this.#readLatest(row, column, isCurrent)
      case 2:
        return this.#readRow(row, isCurrent)
      case 3:
        return this.#readVersions(row, column, refKey, isCurrent)
      default:
        return this.#readLog(shardOf(row), this.#drawPlace(row), random.pick(pageLimits), isCurrent)
    }
  }

  /** A place in the log of the row's shard: near its end as far as is known, or anywhere. */
  #drawPlace(row: string): number {
    const { random, checker } = this.#parts
    const highest = checker.highestAddedId(shardOf(row))
    return random.int(random.chance(800_000) ? Math.max(0, highest - 5) : 0, highest)
  }

  #readCell(name: CellName, isCurrent: boolean): Promise<boolean> {
    const { cells, checker } = this.#parts
    const { rowKey: row, column, refKey } = name
    return this.#read(isCurrent, async (options, info) => {
      const found = await cells.get(name, options)
      const asked = { shard: shardOf(row), row, column, refKey }
      checker.onGot(asked, found && seenOf(found), info)
    })
  }

  #readLatest(row: string, column: string, isCurrent: boolean): Promise<boolean> {
    const { cells, checker } = this.#parts
    return this.#read(isCurrent, async (options, info) => {
      const found = await cells.latest(row, column, options)
      checker.onLatest(row, column, shardOf(row), found && seenOf(found), info)
    })
  }

  #readRow(row: string, isCurrent: boolean): Promise<boolean> {
    const { cells, checker } = this.#parts
    return this.#read(isCurrent, async (options, info) => {
      const { cells: found } = await cells.latestAll(row, options)
      for (const column of columns) {
        const latest = found.find((cell) => cell.column === column)
        checker.onLatest(row, column, shardOf(row), latest && seenOf(latest), info)
      }
    })
  }

  #readVersions(row: string, column: string, from: number, isCurrent: boolean): Promise<boolean> {
    const { cells, checker, random } = this.#parts
    const range = { from, limit: random.pick(pageLimits), reverse: random.chance(500_000) }
    return this.#read(isCurrent, async (options, info) => {
      const page = await cells.versions(row, column, { ...options, ...range })
      checker.onVersions({ shard: shardOf(row), row, column }, range, page.cells.map(seenOf), info)
    })
  }

  #readLog(shard: number, after: number, limit: number, isCurrent: boolean): Promise<boolean> {
    const { cells, checker } = this.#parts
    return this.#read(isCurrent, async (options, info) => {
      const page = await cells.shardLog(shard, { ...options, after, limit })
      checker.onShardRead(shard, { after, limit }, page.cells.map(seenOf), info)
    })
  }

  /** True when an answer came. */
  async #read(
    isCurrent: boolean,
    work: (
      options: { readonly read: 'current' | 'any'; readonly timeoutMs: number },
      info: ReadInfo,
    ) => Promise<void>,
  ): Promise<boolean> {
    const { checker, name: client, options } = this.#parts
    const info: ReadInfo = { client, startTick: checker.begin(), isCurrent }
    try {
      await work({ read: isCurrent ? 'current' : 'any', timeoutMs: options.timeoutMs }, info)
      return true
    } catch (error) {
      this.#codeOf(error, 'read')
      return false
    }
  }

  /** What the world may do is a StoreError; anything else is a bug and ends the run. */
  #codeOf(error: unknown, what: string): StoreError['code'] {
    if (!(error instanceof StoreError)) throw error
    this.#parts.coverage.count(`${what} ${error.code}`)
    const isExpected =
      error.retry !== 'never' || error.code === 'conflict' || error.code === 'closed'
    if (!isExpected) throw error
    return error.code
  }
}

export function seenOf(cell: Cell): SeenCell {
  const { rowKey: row, column, refKey, addedId, createdAt, body } = cell
  const shard = shardOf(row)
  return { shard, row, column, refKey, addedId, createdAt: String(createdAt), body: textOf(body) }
}

function textOf(body: Json): string {
  const text = canonicalJson(body)
  assert(text.kind === 'ok', 'cell-client: a body is JSON')
  return text.text
}
