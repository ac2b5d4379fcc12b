/**
 * The reads of a simulated client of cells: one cell, the latest of a column, a row, versions and
 * logs, page by page or in batches. The client hands each page, and each item of a batch, to the
 * checker.
 */
import { assert, unreachable } from '../../src/base/assert.ts'
import { StoreError } from '../../src/base/errors.ts'
import type { Outcome } from '../../src/base/problem.ts'
import { canonicalJson, type Json } from '../../src/cells/body.ts'
import type { Cell, CellName } from '../../src/cells/cell.ts'
import type { LogPage } from '../../src/client/options.ts'
import type { CellChecker, ReadInfo, SeenCell } from '../checkers/cell-checker.ts'
import type { Coverage } from '../coverage.ts'
import type { CellCalls } from '../history/record-client.ts'
import { findHotShard as shardOf } from './hot-rows.ts'
import type { CellOperation } from '../scenarios/scenario-operation.ts'
import type { WorkloadOptions } from '../swarm.ts'

/** An operation of a scenario without its client and its time. */
export type Asked = CellOperation extends infer O
  ? O extends CellOperation
    ? Omit<O, 'client' | 'atMicros'>
    : never
  : never

type ReadAsked = Exclude<Asked, { readonly kind: 'put' | 'purge' }>
type Read<Kind extends ReadAsked['kind']> = Extract<ReadAsked, { readonly kind: Kind }>

export interface CellReadsParts {
  readonly name: string
  readonly options: WorkloadOptions
  readonly cells: CellCalls
  readonly checker: CellChecker
  readonly coverage: Coverage
  /** Receives the client's answers, in words. */
  tell(what: string): void
}

interface CallOptions {
  readonly read: 'current' | 'snapshot'
  readonly timeoutMs: number
}

const columns = ['BASE', 'STATUS'] as const
/** Of one operation. */
const pagesMax = 6

export class CellReads {
  readonly #parts: CellReadsParts
  readonly #readCode: (error: unknown) => StoreError['code']

  /** `readCode`: the code of an error that faults of the run explain; throws any other error. */
  constructor(parts: CellReadsParts, readCode: (error: unknown) => StoreError['code']) {
    this.#parts = parts
    this.#readCode = readCode
  }

  /** True when an answer came. */
  do(asked: ReadAsked): Promise<boolean> {
    if (!asked.isCurrent) this.#parts.coverage.count(`cells: any ${asked.kind}`)
    switch (asked.kind) {
      case 'get':
        return this.#readCell(asked)
      case 'latest':
        return this.#readLatest(asked)
      case 'row':
        return this.#readRow(asked)
      case 'versions':
        return this.#readVersions(asked)
      case 'log':
        return this.#readLog(asked)
      case 'since':
        return this.#readSince(asked)
      case 'gets':
        return this.#readCells(asked)
      case 'logs':
        return this.#readLogs(asked)
      default:
        return unreachable(asked)
    }
  }

  #readCell({ row, column, refKey, isCurrent }: Read<'get'>): Promise<boolean> {
    const { cells, checker } = this.#parts
    return this.#read(isCurrent, async (options, info) => {
      const found = await cells.get({ rowKey: row, column, refKey }, options)
      const asked = { shard: shardOf(row), row, column, refKey }
      this.#tellCells(found === undefined ? [] : [found])
      checker.onGot(asked, found && toSeen(found), info)
    })
  }

  #readLatest({ row, column, isCurrent }: Read<'latest'>): Promise<boolean> {
    const { cells } = this.#parts
    return this.#read(isCurrent, async (options, info) => {
      const found = await cells.get({ rowKey: row, column }, options)
      this.#tellCells(found === undefined ? [] : [found])
      this.#onLatest(row, column, found, info)
    })
  }

  #onLatest(row: string, column: string, found: Cell | undefined, info: ReadInfo): void {
    this.#parts.checker.onLatest(row, column, shardOf(row), found && toSeen(found), info)
  }

  /**
   * A page says something only of the columns from where it begins to where the next one begins.
   */
  #readRow({ row, limit, isCurrent }: Read<'row'>): Promise<boolean> {
    const { cells } = this.#parts
    const sized = limit === undefined ? {} : { limit }
    return this.#pages<string>(isCurrent, async (from, options, info) => {
      const place = from === undefined ? {} : { cursor: from }
      const { items: found, cursor: next } = await cells.latestAll(row, {
        ...place,
        ...sized,
        ...options,
      })
      this.#tellCells(found)
      for (const column of columns) {
        if (column < (from ?? '') || (next !== undefined && column >= next)) continue
        const latest = found.find((cell) => cell.column === column)
        this.#onLatest(row, column, latest, info)
      }
      this.#checkNext(next, found, limit)
      return next
    })
  }

  /** One page, or, with `isWhole`, all of them. */
  #readVersions(asked: Read<'versions'>): Promise<boolean> {
    const { cells, checker } = this.#parts
    const { row, column, limit, reverse, isWhole = false } = asked
    return this.#pages<number>(asked.isCurrent, async (next, options, info) => {
      const from = next ?? asked.from
      const page = await cells.versions(row, column, { cursor: from, limit, reverse, ...options })
      this.#tellCells(page.items)
      const name = { shard: shardOf(row), row, column }
      checker.onVersions(name, { from, limit, reverse }, page.items.map(toSeen), info)
      this.#checkNext(page.cursor, page.items, limit)
      return isWhole ? page.cursor : undefined
    })
  }

  /** A cursor must lead on: a page that has one shows something, and not the place it names. */
  #checkNext(
    next: string | number | undefined,
    found: readonly Cell[],
    limit: number | undefined,
  ): void {
    if (next === undefined || limit === undefined) return
    this.#parts.checker.onCursor(next, found.map(toSeen), limit)
  }

  #readLog(asked: Read<'log'>): Promise<boolean> {
    const { cells } = this.#parts
    const { shard, limit, isWhole = false } = asked
    return this.#pages<number>(asked.isCurrent, async (next, options, info) => {
      const after = next ?? asked.after
      const page = await cells.shardLog(shard, { after, limit, ...options })
      this.#onLogPage(page, { after, limit }, info)
      return isWhole && page.items.length > 0 ? page.cursor : undefined
    })
  }

  #onLogPage(
    page: LogPage,
    range: { readonly after: number; readonly limit: number },
    info: ReadInfo,
  ): void {
    this.#tellCells(page.items)
    const { cursor: next, shard } = page
    this.#parts.checker.onShardRead(shard, { ...range, next }, page.items.map(toSeen), info)
  }

  /** Reads the first cell at or after the time, and the cells behind it. */
  #readSince({ shard, time, limit, isCurrent }: Read<'since'>): Promise<boolean> {
    const { cells, checker, coverage } = this.#parts
    return this.#read(isCurrent, async (options, info) => {
      const page = await cells.shardLog(shard, { since: time, limit, ...options })
      coverage.count('cells: log since a time')
      const [first] = page.items
      checker.onLogSince(shard, time, { next: page.cursor, first: first && toSeen(first) }, info)
      // From its first cell on, the checker treats the page as one read by position.
      const after = first === undefined ? page.cursor : first.addedId - 1
      this.#onLogPage(page, { after, limit }, info)
    })
  }

  /** A batch that gets the latest cell of a column in several rows. */
  #readCells({ rows, column, isCurrent }: Read<'gets'>): Promise<boolean> {
    const { cells, coverage } = this.#parts
    return this.#read(isCurrent, async (options, info) => {
      const items = rows.map((rowKey): Omit<CellName, 'refKey'> => ({ rowKey, column }))
      const outcomes = await cells.getMany(items, options)
      coverage.count('cells: batch of gets')
      for (const [i, row] of rows.entries()) {
        const outcome = this.#answered(outcomes[i])
        if (outcome !== undefined) this.#onLatest(row, column, outcome.value, info)
      }
    })
  }

  #readLogs({ shards, after, limit, isCurrent }: Read<'logs'>): Promise<boolean> {
    const { cells, coverage } = this.#parts
    return this.#read(isCurrent, async (options, info) => {
      const places = shards.map(
        (shard, i) => ({ kind: 'after', shard, addedId: after[i] ?? 0 }) as const,
      )
      const outcomes = await cells.shardLogs(places, { limit, ...options })
      coverage.count('cells: batch of logs')
      for (const [i, { addedId }] of places.entries()) {
        const outcome = this.#answered(outcomes[i])
        // The answer has room for all of them together, so a page may be shorter than its limit.
        if (outcome === undefined) continue
        const size = Math.min(limit, Math.max(1, outcome.value.items.length))
        this.#onLogPage(outcome.value, { after: addedId, limit: size }, info)
      }
    })
  }

  /** Undefined for an item that failed for a fault of the run. */
  #answered<Value>(outcome: Outcome<Value> | undefined): { readonly value: Value } | undefined {
    assert(outcome !== undefined, 'cell-reads: each item of a batch is answered')
    if (outcome.kind === 'ok') return outcome
    const { code, message, detail } = outcome.problem
    this.#readCode(new StoreError(code, message, detail))
    return undefined
  }

  #tellCells(found: readonly Cell[]): void {
    const shown = found.slice(0, 5).map(({ column, refKey, addedId }) => {
      return `${column}/${refKey} (added id ${addedId})`
    })
    const more = found.length > shown.length ? ` and ${found.length - shown.length} more` : ''
    this.#parts.tell(`is shown ${shown.length === 0 ? 'nothing' : shown.join(', ')}${more}`)
  }

  /** One page after another, each a read by itself; the work gives where the next one begins. */
  async #pages<Place>(
    isCurrent: boolean,
    work: (
      from: Place | undefined,
      options: CallOptions,
      info: ReadInfo,
    ) => Promise<Place | undefined>,
  ): Promise<boolean> {
    let from: Place | undefined
    for (let page = 1; page <= pagesMax; page++) {
      let next: Place | undefined
      const isRead = await this.#read(isCurrent, async (options, info) => {
        next = await work(from, options, info)
      })
      if (!isRead) return false
      if (next === undefined) return true
      this.#parts.coverage.count('cells: another page')
      from = next
    }
    return true
  }

  /** True when an answer came. */
  async #read(
    isCurrent: boolean,
    work: (options: CallOptions, info: ReadInfo) => Promise<void>,
  ): Promise<boolean> {
    const { checker, name: client, options } = this.#parts
    const info: ReadInfo = { client, startTick: checker.begin(), isCurrent }
    try {
      await work({ read: isCurrent ? 'current' : 'snapshot', timeoutMs: options.timeoutMs }, info)
      return true
    } catch (error) {
      this.#parts.tell(`is told ${this.#readCode(error)} for its read`)
      return false
    }
  }
}

export function toSeen(cell: Cell): SeenCell {
  const { rowKey: row, column, refKey, addedId, createdAt, body } = cell
  const shard = shardOf(row)
  return {
    shard,
    row,
    column,
    refKey,
    addedId,
    createdAt: String(createdAt),
    body: encodeBody(body),
  }
}

export function encodeBody(body: Json): string {
  const text = canonicalJson(body)
  assert(text.kind === 'ok', 'cell-reads: a body is JSON')
  return text.text
}
