/**
 * Cells over HTTP, with the calls that the client library has, so that clients and checkers need
 * not know by which way a cell goes. Keeps the session positions that answers tell, and sends them
 * back.
 */
import { StoreError } from '../../src/base/errors.ts'
import { storeTime } from '../../src/base/given-time.ts'
import { toStoreError, problem, unwrapOutcome, type Outcome } from '../../src/base/problem.ts'
import type { Json } from '../../src/cells/body.ts'
import type { Cell, NewCell, Written } from '../../src/cells/cell.ts'
import type { GetItem } from '../../src/cells/operation.ts'
import type { Page } from '../../src/base/page.ts'
import type {
  GivenPlace,
  LogOptions,
  LogPage,
  PurgedPage,
  ReadOptions,
} from '../../src/client/options.ts'
import { formatIso, parseTimestamp } from '../../src/base/datetime.ts'
import type { CellJson } from '../../src/gateway/render.ts'
import { positionHeader } from '../../src/gateway/session-position.ts'
import type { CellCalls } from '../history/record-client.ts'
import { findHotShard } from './hot-rows.ts'
import {
  errorOfDetails,
  mayBeSentAgain,
  readProblem,
  type HttpCaller,
  type ProblemJson,
  type Told,
} from './http-caller.ts'
import type { HttpRequest } from '../cluster/http-wire.ts'

/** A body as JSON tells it, of the form that the interface describes. */
type WrittenJson =
  | {
      readonly shard: number
      readonly addedId: number
      readonly createdAt: string
      readonly created: boolean
    }
  | { readonly shard: number; readonly buffered: true }

interface PageJson {
  readonly items: readonly CellJson[]
}

interface LogJson extends PageJson {
  readonly shard: number
  readonly cursor: number
}

interface FoundJson {
  readonly cell: CellJson | null
}

interface ItemsJson<Item> {
  readonly items: readonly (Item | { readonly problem: ProblemJson })[]
}

export interface HttpCellsParts {
  readonly caller: HttpCaller
  readonly datastore: string
  /** A put was sent once more, after a try that may have been carried out. */
  onSentAgain(cell: NewCell): void
  /** An answer told its position, to a request that named one of the same shard. */
  onPosition(shard: number, asked: number, told: number): void
}

export class HttpCells implements CellCalls {
  readonly #parts: HttpCellsParts
  /** By shard, the position that the last answer of it told. */
  readonly #seen = new Map<number, number>()
  readonly #sentAgain = new WeakSet<Written>()

  constructor(parts: HttpCellsParts) {
    this.#parts = parts
  }

  async put(cell: NewCell): Promise<Written> {
    const path = `/cells/${cell.rowKey}/${cell.column}/${cell.refKey}`
    const shard = findHotShard(cell.rowKey)
    const told = await this.#ask('PUT', path, { shard, body: cell.body })
    if (told.isRepeated) this.#parts.onSentAgain(cell)
    const written: WrittenJson = JSON.parse(readBody(told))
    return this.#readWritten(told, written)
  }

  /** Whether earlier tries of this put may have been carried out. */
  wasSentAgain(written: Written): boolean {
    return this.#sentAgain.has(written)
  }

  #readWritten({ isRepeated }: Told, json: WrittenJson): Written {
    const written = toWritten(json)
    if (isRepeated) this.#sentAgain.add(written)
    return written
  }

  async get({ rowKey, column, refKey }: GetItem, options?: ReadOptions): Promise<Cell | undefined> {
    const path = `/cells/${rowKey}/${column}`
    return this.#oneCell(rowKey, refKey === undefined ? path : `${path}/${refKey}`, options)
  }

  async latestAll(
    rowKey: string,
    options: Parameters<CellCalls['latestAll']>[1] = {},
  ): Promise<Page<Cell>> {
    const { cursor, limit } = options
    const query = { ...(cursor !== undefined && { cursor }), ...(limit !== undefined && { limit }) }
    const text = await this.#orNothing(rowKey, `/cells/${rowKey}`, options, query)
    return text === undefined ? { items: [] } : parsePage<string>(text)
  }

  async versions(
    rowKey: string,
    column: string,
    options: Parameters<CellCalls['versions']>[2] = {},
  ): Promise<Page<Cell, number>> {
    const { cursor = 0, limit = 1000, reverse = false } = options
    const query = { all: true, cursor, limit, reverse }
    const shard = findHotShard(rowKey)
    const told = await this.#read(`/cells/${rowKey}/${column}`, shard, options, query)
    return parsePage<number>(readBody(told))
  }

  async shardLog(
    shard: number,
    options: Parameters<CellCalls['shardLog']>[1] = {},
  ): Promise<LogPage> {
    const { after = 0, since, limit = 1000 } = options
    const place = since === undefined ? { after } : { since: formatIso(storeTime(since, 'since')) }
    const told = await this.#read(`/shards/${shard}/cells`, shard, options, { ...place, limit })
    const page: LogJson = JSON.parse(readBody(told))
    return toLogPage(page)
  }

  async purgeShard(
    shard: number,
    options: Parameters<CellCalls['purgeShard']>[1],
  ): Promise<PurgedPage> {
    const { before, column, keepLatest = true, after = 0, limit = 1000 } = options
    const common = { before: formatIso(storeTime(before, 'before')), keepLatest, after, limit }
    const body = { ...common, ...(column !== undefined && { column }) }
    const told = await this.#ask('POST', `/shards/${shard}/cells:purge`, { body })
    const page: PurgedPage = JSON.parse(readBody(told))
    return page
  }

  /** Cells that succeed and fail one by one. */
  async putMany(cells: readonly NewCell[]): Promise<readonly Outcome<Written>[]> {
    const asked = cells.map(({ rowKey, column, refKey, body }) => ({
      rowKey,
      column,
      refKey,
      body,
    }))
    const told = await this.#ask('POST', '/cells:batchPut', { body: { cells: asked } })
    if (told.isRepeated) for (const cell of cells) this.#parts.onSentAgain(cell)
    const { items }: ItemsJson<WrittenJson> = JSON.parse(readBody(told))
    return items.map((item) => {
      const outcome = toOutcome(item, (written) => this.#readWritten(told, written))
      return told.isRepeated ? unlessUnsure(outcome) : outcome
    })
  }

  /** One without a ref key is its column's latest. */
  async getMany(
    cells: readonly {
      readonly rowKey: string
      readonly column: string
      readonly refKey?: number
    }[],
    { read = 'current' }: ReadOptions = {},
  ): Promise<readonly Outcome<Cell | undefined>[]> {
    const body = { cells: cells.map((one) => ({ ...one })) }
    const told = await this.#ask('POST', `/cells:batchGet?read=${read}`, { body })
    const { items }: ItemsJson<FoundJson> = JSON.parse(readBody(told))
    return items.map((item) =>
      toOutcome(item, ({ cell }) => (cell === null ? undefined : toCell(cell))),
    )
  }

  async shardLogs(
    places: readonly GivenPlace[],
    { read = 'current', limit = 1000 }: LogOptions = {},
  ): Promise<readonly Outcome<LogPage>[]> {
    const shards = places.map((place) => {
      const { shard } = place
      return place.kind === 'after'
        ? { shard, after: place.addedId }
        : { shard, since: formatIso(storeTime(place.timestamp, 'since')) }
    })
    const told = await this.#ask('POST', `/shards:batchGet?read=${read}`, {
      body: { shards, limit },
    })
    const { items }: ItemsJson<LogJson> = JSON.parse(readBody(told))
    return items.map((item) => toOutcome(item, toLogPage))
  }

  async #oneCell(rowKey: string, path: string, options?: ReadOptions): Promise<Cell | undefined> {
    const text = await this.#orNothing(rowKey, path, options)
    if (text === undefined) return undefined
    const found: CellJson = JSON.parse(text)
    return toCell(found)
  }

  /** The answer, or undefined for a 404. */
  async #orNothing(
    rowKey: string,
    path: string,
    options?: ReadOptions,
    query: Readonly<Record<string, string | number>> = {},
  ): Promise<string | undefined> {
    const told = await this.#read(path, findHotShard(rowKey), options, query)
    return told.answer.status === 404 ? undefined : readBody(told)
  }

  #read(
    path: string,
    shard: number,
    { read = 'current' }: ReadOptions = {},
    query: Readonly<Record<string, string | number | boolean>>,
  ): Promise<Told> {
    const all = Object.entries({ read, ...query }).map(([name, value]) => `${name}=${value}`)
    return this.#ask('GET', `${path}?${all.join('&')}`, { shard })
  }

  /** `shard`: the one that the request and its answer are of. */
  async #ask(
    method: HttpRequest['method'],
    path: string,
    { shard, body }: { readonly shard?: number; readonly body?: Json },
  ): Promise<Told> {
    const { caller, datastore } = this.#parts
    const seen = shard === undefined ? undefined : this.#seen.get(shard)
    const isKnown = seen !== undefined && method === 'GET'
    const position = isKnown ? { [positionHeader]: `${datastore}/${shard}/${seen}` } : {}
    const json = { 'content-type': 'application/json' }
    const text = body === undefined ? {} : { body: JSON.stringify(body) }
    const headers = { ...position, ...(body !== undefined && json) }
    const request = { method, path: `/v1/datastores/${datastore}${path}`, headers, ...text }
    const told = await caller.ask(request, method !== 'GET' && !path.includes(':batchGet'))
    const at = this.#note(told)
    if (isKnown && at !== undefined) this.#parts.onPosition(shard ?? 0, seen, at)
    return told
  }

  #note({ answer }: Told): number | undefined {
    const [, shard, position] = answer.headers[positionHeader]?.split('/').map(Number) ?? []
    if (shard === undefined || position === undefined) return undefined
    this.#seen.set(shard, Math.max(position, this.#seen.get(shard) ?? 0))
    return position
  }
}

/** Of a success. */
function readBody({ answer }: Told): string {
  const wrong = readProblem(answer)
  if (wrong !== undefined) throw wrong
  return answer.body
}

function toOutcome<Item extends object, Value>(
  item: Item | { readonly problem: ProblemJson },
  valueOfItem: (item: Item) => Value,
): Outcome<Value> {
  if (!('problem' in item)) return { kind: 'ok', value: valueOfItem(item) }
  const { code, message, detail } = errorOfDetails(item.problem)
  return { kind: 'problem', problem: { code, message, detail } }
}

/**
 * An item of a batch of which an earlier try may have been carried out: that a gateway stops, or
 * cannot, says nothing of that one. As the caller itself does with answers as a whole.
 */
function unlessUnsure(outcome: Outcome<Written>): Outcome<Written> {
  if (outcome.kind === 'ok' || !mayBeSentAgain(toStoreError(outcome.problem))) return outcome
  return { kind: 'problem', problem: problem('unknown-outcome', 'an earlier answer was lost') }
}

function toWritten(written: WrittenJson): Written {
  if ('buffered' in written) return { shard: written.shard, buffered: true }
  const { shard, addedId, createdAt, created } = written
  return { shard, addedId, createdAt: parseTime(createdAt), created }
}

function toCell({ createdAt, ...cell }: CellJson): Cell {
  return { createdAt: parseTime(createdAt), ...cell }
}

function parsePage<Next>(text: string): Page<Cell, Next> {
  const { items, cursor }: PageJson & { readonly cursor?: Next } = JSON.parse(text)
  return { items: items.map(toCell), ...(cursor !== undefined && { cursor }) }
}

function toLogPage({ shard, cursor, items }: LogJson): LogPage {
  return { shard, cursor, items: items.map(toCell) }
}

function parseTime(text: string): number {
  const time = parseTimestamp(text)
  if (time === undefined) throw new StoreError('invalid', `${text} is no time`)
  return time
}

export function unwrapItem<Value>(outcome: Outcome<Value> | undefined): Value {
  if (outcome === undefined) throw new StoreError('corrupt', 'a batch was answered too short')
  return unwrapOutcome(outcome)
}
