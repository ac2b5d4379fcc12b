/**
 * The cells of one datastore, as applications use them: plain data in, plain data out, StoreError
 * when something is wrong. Every call may be made again: putting a cell that is there with an equal
 * body changes nothing.
 */
import { StoreError } from '../base/errors.ts'
import { checkOptions, wrongArgument, readGiven } from '../base/arguments.ts'
import { asPromise } from '../base/as-promise.ts'
import { storeTime } from '../base/given-time.ts'
import { checkSignal, signalled } from '../txn/signalled.ts'
import { isWrite } from '../wire/client/client-message.ts'
import { pageItemsMax } from '../base/limits.ts'
import { missingItem, withRefused } from '../cells/batch.ts'
import { unpackBody } from '../cells/body.ts'
import {
  nameProblem,
  type Cell,
  type CellName,
  type NewCell,
  type StoredCell,
  type Written,
} from '../cells/cell.ts'
import { purgeItemsMax } from '../cells/limits.ts'
import { itemsLimit, placesLimit } from '../cells/operation-check.ts'
import { packCell, packCells } from '../cells/new-cells.ts'
import type {
  Answer,
  Answered,
  CellOperation,
  CellPage,
  CellService,
  GetItem,
  LogPlace,
  ReadFrom,
  StoredLogPage,
} from '../cells/operation.ts'
import { toStoreError, outcomeNow, problem, unwrapOutcome, type Outcome } from '../base/problem.ts'
import { shardOf } from '../cells/shard.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { notAnAnswer } from './call.ts'
import { CellIndex, type CellIndexAdmin } from './cell-indexes.ts'
import type { ColumnTtls } from './column-ttls.ts'
import type { Groups } from './groups.ts'
import { listShardsWithCells } from './listed-shards.ts'
import type { SeenPositions } from './seen-positions.ts'
import type { Page } from '../base/page.ts'
import type {
  GivenPlace,
  LogOptions,
  LogPage,
  PageOptions,
  PurgedPage,
  PurgeOptions,
  PurgePageOptions,
  PurgeShardsOptions,
  ReadOptions,
  ShardLogOptions,
  VersionOptions,
  WriteOptions,
} from './options.ts'
import {
  checkBatch,
  columnPageRules,
  logRules,
  checkPlace,
  purgePageRules,
  purgeShardsRules,
  readCell,
  readRules,
  shardLogRules,
  versionRules,
  writeRules,
} from './rules.ts'
import { tail, type LoggedCell, type TailOptions } from './tail.ts'

export interface CellsParts {
  readonly service: CellService
  readonly groups: Pick<Groups, 'list'>
  readonly seen: SeenPositions
  readonly clock: Clock
  readonly random: Random
  readonly timeoutMs: number
  /** Throws when the client is closed. */
  readonly checkOpen?: () => void
  /** Makes what looks after the indexes of the datastore. */
  indexes(): CellIndexAdmin
  /** Makes what says how long cells live. */
  ttls(): ColumnTtls
}

export class Cells {
  readonly datastore: string
  readonly #parts: CellsParts

  constructor(parts: CellsParts, datastore: string) {
    this.#parts = parts
    this.datastore = datastore
  }

  /** Writes a cell, if it is absent. Rejects with `immutable` when it exists with another body. */
  async put(cell: NewCell, options: WriteOptions = {}): Promise<Written> {
    checkOptions('cells.put', options, writeRules)
    const items = [packCell(readCell(cell, 'needed'))]
    const answer = await this.#ask({ kind: 'put', datastore: this.datastore, items }, options)
    return unwrapOutcome(expected(answer, 'put').items[0] ?? missingItem)
  }

  /** Cells that succeed and fail one by one; the outcomes are in the order of the cells. */
  async putMany(
    cells: readonly NewCell[],
    options: WriteOptions = {},
  ): Promise<readonly Outcome<Written>[]> {
    const given = checkBatch('cells.putMany', 'the cells', cells, itemsLimit)
    checkOptions('cells.putMany', options, writeRules)
    const packed = packCells(given, (cell) => readCell(cell, 'needed'))
    const { items } = packed
    // An empty batch is sent too, for its problem.
    if (items.length === 0 && given.length > 0) return packed.outcomes([])
    const { datastore } = this
    const answer = await this.#ask({ kind: 'put', datastore, items }, options)
    return packed.outcomes(expected(answer, 'put').items)
  }

  /** A cell; without a ref key, the one with the highest ref key of its column. */
  get(name: GetItem, options: ReadOptions = {}): Promise<Cell | undefined> {
    return asPromise(() => {
      checkOptions('cells.get', options, readRules)
      return this.#getOne(name, options)
    })
  }

  /** The result of a batch of one; by two promises, and not by one of each step. */
  #getOne(given: GetItem, options: ReadOptions): Promise<Cell | undefined> {
    const { datastore } = this
    const { service, timeoutMs } = this.#parts
    const items = [readCell(given, 'optional')]
    const read = this.#readFrom(options, items)
    const operation = { kind: 'get', datastore, read, items } as const
    const { signal } = options
    const limit = { timeoutMs: options.timeoutMs ?? timeoutMs, signal }
    if (signal === undefined) return service.execute(operation, limit).then(onlyCell)
    return signalled(signal, () => service.execute(operation, limit).then(onlyCell))
  }

  /** Several cells; one without a ref key is its column's latest. */
  async getMany(
    given: readonly GetItem[],
    options: ReadOptions = {},
  ): Promise<readonly Outcome<Cell | undefined>[]> {
    const items = checkBatch('cells.getMany', 'the items', given, itemsLimit)
    checkOptions('cells.getMany', options, readRules)
    const { datastore } = this
    return oneByOne(items, readItem, async (good) => {
      const read = this.#readFrom(options, good)
      const answer = await this.#ask({ kind: 'get', datastore, read, items: good }, options)
      return expected(answer, 'get').items.map(cellOutcome)
    })
  }

  /** The latest cell of each column of a row, by column name. */
  async latestAll(rowKey: string, options: PageOptions<string> = {}): Promise<Page<Cell>> {
    checkOptions('cells.latestAll', options, columnPageRules)
    checkName({ rowKey })
    const { cursor: from, limit = pageItemsMax } = options
    const { datastore } = this
    const read = this.#readFrom(options, [{ rowKey }])
    const first = from === undefined ? {} : { from }
    const operation = { kind: 'row', datastore, read, rowKey, limit, ...first } as const
    const answer = await this.#ask(operation, options)
    return toPage(expected(answer, 'row').page)
  }

  /** Versions of a column by ref key; `from` is the first one, in either direction. */
  async versions(
    rowKey: string,
    column: string,
    options: VersionOptions = {},
  ): Promise<Page<Cell, number>> {
    checkOptions('cells.versions', options, versionRules)
    checkName({ rowKey, column })
    const { cursor: from, limit = pageItemsMax, reverse = false } = options
    const { datastore } = this
    const read = this.#readFrom(options, [{ rowKey }])
    const range = { limit, reverse, ...(from !== undefined && { from }) }
    const operation = { kind: 'versions', datastore, read, rowKey, column, ...range } as const
    const answer = await this.#ask(operation, options)
    return toPage(expected(answer, 'versions').page)
  }

  /** Cells of a shard in the order in which they were added: those after an id, or since a time. */
  async shardLog(shard: number, options: ShardLogOptions = {}): Promise<LogPage> {
    checkOptions('cells.shardLog', options, shardLogRules)
    const { after, since, ...rest } = options
    if (after !== undefined && since !== undefined) {
      throw new StoreError(
        'invalid',
        'a place in a log is after an added id or since a time, not both',
      )
    }
    const place: LogPlace =
      since === undefined
        ? { kind: 'after', shard, addedId: after ?? 0 }
        : { kind: 'since', shard, timestamp: storeTime(since, 'cells.shardLog: since') }
    const [outcome] = await this.#log([checkPlace('cells.shardLog', this.datastore, place)], rest)
    return unwrapOutcome(outcome ?? missingItem)
  }

  /** Logs of several shards; waits, when asked to, until there is a cell in one of them. */
  async shardLogs(
    places: readonly GivenPlace[],
    options: LogOptions = {},
  ): Promise<readonly Outcome<LogPage>[]> {
    const items = checkBatch('cells.shardLogs', 'the places', places, placesLimit)
    checkOptions('cells.shardLogs', options, logRules)
    const read = (place: GivenPlace): LogPlace =>
      checkPlace('cells.shardLogs', this.datastore, place)
    return oneByOne(items, read, (good) => this.#log(good, options))
  }

  async #log(
    places: readonly LogPlace[],
    options: LogOptions,
  ): Promise<readonly Outcome<LogPage>[]> {
    const { limit = pageItemsMax, waitMs = 0 } = options
    const { datastore } = this
    const shards = places.map(({ shard }) => shard)
    const read = this.#readShards(options, shards)
    const operation = { kind: 'log', datastore, read, items: places, limit, waitMs } as const
    // The time-out is for getting an answer at all; the wait comes on top.
    const timeoutMs = (options.timeoutMs ?? this.#parts.timeoutMs) + waitMs
    const { signal } = options
    const answer = await this.#ask(operation, { timeoutMs, ...(signal && { signal }) })
    return expected(answer, 'log').items.map(logPageOutcome)
  }

  /** The indexes over these cells, to be declared, built, compared and dropped. */
  get indexes(): CellIndexAdmin {
    return this.#parts.indexes()
  }

  /** How long the cells of columns live, to be set, cleared and listed. */
  get ttls(): ColumnTtls {
    return this.#parts.ttls()
  }

  /** An index over these cells, to be asked. */
  index(name: string): CellIndex {
    const { service, timeoutMs } = this.#parts
    return new CellIndex({ service, timeoutMs }, this.datastore, name)
  }

  /** All cells of the shards (default: all shards) from a place on, and new ones as they come. */
  tail(options: TailOptions = {}): AsyncGenerator<LoggedCell, never, undefined> {
    return tail(this, this.#parts, options)
  }

  /**
   * Takes old cells of a shard out for good: of a page of its log, behind `after`. A removed cell is not
   * written again: a put of it, or of an earlier ref key of its column, is `immutable`.
   */
  async purgeShard(shard: number, options: PurgePageOptions): Promise<PurgedPage> {
    const call = 'cells.purgeShard'
    checkOptions(call, needed(call, options), purgePageRules)
    checkColumn(call, options)
    const { column, keepLatest = true, after = 0, limit = purgeItemsMax } = options
    const before = storeTime(options.before, `${call}: before`)
    const { datastore } = this
    const range = { after, limit, ...(column !== undefined && { column }) }
    const operation = { kind: 'purge', datastore, shard, before, keepLatest, ...range } as const
    const { purged, next } = expected(await this.#ask(operation, options), 'purge')
    return next === undefined ? { purged } : { purged, cursor: next }
  }

  /** The same for all shards, or some, to their ends; gives what was removed of each that lost cells. */
  async *purge(
    options: PurgeShardsOptions,
  ): AsyncGenerator<{ readonly shard: number; readonly purged: number }, void, undefined> {
    const call = 'cells.purge'
    checkOptions(call, needed(call, options), purgeShardsRules)
    checkColumn(call, options)
    this.#parts.checkOpen?.()
    const { shards: given, ...rest } = options
    const { signal, timeoutMs = this.#parts.timeoutMs } = options
    const { groups } = this.#parts
    const shards =
      given ?? (await listShardsWithCells(groups, this, timeoutMs, { ...(signal && { signal }) }))
    for (const shard of shards) {
      let purged = 0
      let after: number | undefined = 0
      while (after !== undefined) {
        const page: PurgedPage = await this.purgeShard(shard, { ...rest, after })
        purged += page.purged
        after = page.cursor
      }
      if (purged > 0) yield { shard, purged }
    }
  }

  /**
   * Takes one cell out for good, whatever its age; resolves with whether it was there. It is not written again, nor is
   * an earlier ref key of its column that is not there: a put is `immutable`. Rejects with `invalid` where it is held.
   */
  async purgeCell(cell: CellName, options: WriteOptions = {}): Promise<boolean> {
    checkOptions('cells.purgeCell', options, writeRules)
    const { rowKey, column, refKey } = readCell(cell, 'optional')
    if (refKey === undefined) {
      throw new StoreError('invalid', 'cells.purgeCell: name the refKey of the cell')
    }
    const { datastore } = this
    const shard = shardOf(datastore, rowKey)
    const page = { before: 0, keepLatest: false, after: 0, limit: 1 }
    const one = { rowKey: rowKey.toLowerCase(), column, refKey }
    const operation = { kind: 'purge', datastore, shard, ...page, cell: one } as const
    return expected(await this.#ask(operation, options), 'purge').purged > 0
  }

  #readFrom(options: ReadOptions, rows: readonly { readonly rowKey: string }[]): ReadFrom {
    // A current read sees all: which shards these are need not be known.
    const isAny = levelOf(options).level === 'snapshot'
    return this.#readShards(options, isAny ? rowShards(this.datastore, rows) : [])
  }

  #readShards(options: ReadOptions, shards: readonly number[]): ReadFrom {
    return this.#parts.seen.readFrom(this.datastore, levelOf(options), shards)
  }

  async #ask(operation: CellOperation, options: WriteOptions): Promise<Answer> {
    const { service, timeoutMs } = this.#parts
    const { signal } = options
    const limit = { timeoutMs: options.timeoutMs ?? timeoutMs, signal }
    checkSignal(signal)
    const { answer } = await service.execute(operation, limit)
    if (!isWrite(operation)) checkSignal(signal)
    return answer
  }
}

function readItem(item: GetItem): GetItem {
  return readCell(item, 'optional')
}

/**
 * An error that `read` throws for one item is that item's outcome, and the node gets the others; in their
 * order.
 */
async function oneByOne<Given, Item, Value>(
  given: readonly Given[],
  read: (one: Given) => Item,
  ask: (items: readonly Item[]) => Promise<readonly Outcome<Value>[]>,
): Promise<readonly Outcome<Value>[]> {
  const items = given.map((one) => outcomeNow(() => read(one)))
  const good = items.flatMap((one) => (one.kind === 'ok' ? [one.value] : []))
  // An empty batch is sent too, for its problem.
  const asked = good.length > 0 || given.length === 0 ? await ask(good) : []
  return withRefused(
    items.map((one) => (one.kind === 'ok' ? undefined : one)),
    asked,
  )
}

/** A column that is undefined would purge every column. */
function checkColumn(call: string, options: PurgeOptions): void {
  if (!readGiven(call, () => 'column' in options && options.column === undefined)) return
  throw new StoreError('invalid', `${call}: column is undefined; leave it out for all columns`)
}

/** Options that a call cannot do without. */
function needed<Options>(call: string, options: Options | undefined): Options {
  if (options !== undefined) return options
  throw wrongArgument(call, 'the options', options, 'an object with before')
}

/** Throws `invalid` for what names no row or column. */
function checkName(name: { readonly rowKey: string; readonly column?: string }): void {
  readCell({ column: '_', ...name }, 'optional')
}

function onlyCell({ answer }: Answered): Cell | undefined {
  const stored = unwrapOutcome(expected(answer, 'get').items[0] ?? missingItem)
  return stored && unwrapOutcome(toCell(stored))
}

/** The answer to this kind of operation; throws the problem when it is one. */
function expected<Kind extends Answer['kind']>(
  answer: Answer,
  kind: Kind,
): Answer & { readonly kind: Kind } {
  if (answer.kind === 'problem') throw toStoreError(answer.problem)
  if (isKind(answer, kind)) return answer
  throw toStoreError(notAnAnswer)
}

function isKind<Kind extends Answer['kind']>(
  answer: Answer,
  kind: Kind,
): answer is Answer & { readonly kind: Kind } {
  return answer.kind === kind
}

/** Throws `invalid` for a current read with a bound. */
function levelOf({ read, maxStalenessMs }: ReadOptions): Omit<ReadFrom, 'atLeast'> {
  if (maxStalenessMs === undefined) return { level: read ?? 'current' }
  if (read !== 'current') return { level: 'snapshot', maxStalenessMs }
  throw new StoreError('invalid', "maxStalenessMs goes with read: 'snapshot', not with 'current'")
}

/** The shards of rows; none for a row key that is not one, which is refused later. */
function rowShards(datastore: string, rows: readonly { readonly rowKey: string }[]): number[] {
  return rows.flatMap(({ rowKey }) => (nameProblem({ rowKey }) ? [] : [shardOf(datastore, rowKey)]))
}

function toCell(stored: StoredCell): Outcome<Cell> {
  const { rowKey, column, refKey, addedId, createdAt } = stored
  const body = unpackBody(stored.body)
  if (body !== undefined) {
    return { kind: 'ok', value: { rowKey, column, refKey, addedId, createdAt, body } }
  }
  return { kind: 'problem', problem: problem('corrupt', "the bytes of a cell's body are damaged") }
}

function cellOutcome(outcome: Outcome<StoredCell | undefined>): Outcome<Cell | undefined> {
  if (outcome.kind === 'problem') return outcome
  return outcome.value === undefined ? { kind: 'ok', value: undefined } : toCell(outcome.value)
}

function toPage<Next>(page: CellPage<Next>): Page<Cell, Next> {
  const items = page.cells.map((cell) => unwrapOutcome(toCell(cell)))
  return page.next === undefined ? { items } : { items, cursor: page.next }
}

function logPageOutcome(outcome: Outcome<StoredLogPage>): Outcome<LogPage> {
  if (outcome.kind === 'problem') return outcome
  const { shard, cells, next, asOf } = outcome.value
  const items = cells.map((cell) => unwrapOutcome(toCell(cell)))
  const page = { shard, items, cursor: next }
  return { kind: 'ok', value: asOf === undefined ? page : { ...page, asOf } }
}
