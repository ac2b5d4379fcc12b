/**
 * A recorder around the real client: what an application asks and is told becomes a history.
 *
 * A shard's log is a list: putting a cell appends the cell to it, and the added id says where. A
 * column is a register whose versions are ref keys. So one operation tells of both, and an answer
 * about a cell must fit the log that it is in. Other calls of the client are not recorded.
 */
import { sha256 } from '../../src/base/bytes.ts'
import { StoreError } from '../../src/base/errors.ts'
import { pageItemsMax } from '../../src/base/limits.ts'
import { canonicalJson } from '../../src/cells/body.ts'
import type { Cell, CellName, NewCell, Written } from '../../src/cells/cell.ts'
import { shardOf } from '../../src/cells/shard.ts'
import type { ClientCells } from '../../src/client/cells.ts'
import type { Client } from '../../src/client/client.ts'
import type { LogPage, ReadOptions, WriteOptions } from '../../src/client/options.ts'
import type { Asked, HistoryLog, OpenOperation } from './history-log.ts'
import type { Level, MicroOperation } from './operation.ts'

/** The calls that an application makes. */
export type CellCalls = Pick<
  ClientCells,
  'put' | 'get' | 'latest' | 'latestAll' | 'versions' | 'shardLog' | 'purgeShard'
>

export interface Sink {
  /** The name of the session: one for each client, which remembers what it has seen. */
  readonly client: string
  readonly log: HistoryLog
  /** False where nothing is promised from one call to the next: each is a session of its own. */
  readonly isSession?: boolean | undefined
  /** Whether a put that found its cell may have found what an earlier try of its own wrote. */
  readonly mayBeItsOwn?: ((written: Written) => boolean) | undefined
  /** Shards that lose cells to purges are no lists: nothing is recorded of them. */
  readonly isPurged?: (shard: number) => boolean
}

export interface RecordedClient {
  cells(datastore: string): CellCalls
}

export function recordClient(client: Client, sink: Sink): RecordedClient {
  return { cells: (datastore) => recordCells(client.cells(datastore), datastore, sink) }
}

/** A page with more bytes than this may have been cut for its size. */
const pageBytesSafe = 1024 * 1024
const hashChars = 8

export function recordCells(cells: CellCalls, datastore: string, sink: Sink): CellCalls {
  const names = namesOf(datastore)
  const { isPurged = () => false, isSession = true, mayBeItsOwn = () => false } = sink
  const begin = (micro: readonly MicroOperation[], shard: number, level: Level): OpenOperation => {
    const client = isSession ? sink.client : `${sink.client}/${sink.log.length}`
    const asked: Asked = { client, micro, level, group: names.list(shard) }
    return sink.log.begin(asked)
  }
  return {
    latestAll: (rowKey, options) => cells.latestAll(rowKey, options),
    versions: (rowKey, column, options) => cells.versions(rowKey, column, options),
    purgeShard: (shard, options) => cells.purgeShard(shard, options),

    async put(cell: NewCell, options?: WriteOptions): Promise<Written> {
      if (isPurged(shardOf(cell.rowKey))) return cells.put(cell, options)
      const asked = names.writes(cell)
      const open = begin(asked, shardOf(cell.rowKey), 'current')
      const written = await recorded(open, () => cells.put(cell, options))
      if (written.buffered || (!written.created && mayBeItsOwn(written))) {
        open.unknown()
        return written
      }
      const told = { ...cell, addedId: written.addedId }
      // A cell that is there already was found in the replica asked, which may be behind in the
      // rest: true, since a cell stays, but no current read of its shard.
      if (written.created) open.ok(names.writes(cell, written.addedId))
      else open.ok(names.found(told), { level: 'any' })
      return written
    },

    async get(name: CellName, options?: ReadOptions): Promise<Cell | undefined> {
      if (isPurged(shardOf(name.rowKey))) return cells.get(name, options)
      const { refKey: version } = name
      const absent = { kind: 'get', key: names.column(name), version, isPresent: false } as const
      const open = begin([], shardOf(name.rowKey), levelOf(options))
      const cell = await recorded(open, () => cells.get(name, options))
      open.ok(cell === undefined ? [absent] : names.found(cell))
      return cell
    },

    async latest(rowKey, column, options): Promise<Cell | undefined> {
      if (isPurged(shardOf(rowKey))) return cells.latest(rowKey, column, options)
      const key = names.column({ rowKey, column })
      const open = begin([], shardOf(rowKey), levelOf(options))
      const cell = await recorded(open, () => cells.latest(rowKey, column, options))
      const version = cell === undefined ? {} : { version: cell.refKey }
      open.ok([{ kind: 'latest', key, ...version }, ...(cell ? names.found(cell) : [])])
      return cell
    },

    async shardLog(shard, options = {}): Promise<LogPage> {
      if (isPurged(shard)) return cells.shardLog(shard, options)
      const open = begin([], shard, levelOf(options))
      const page = await recorded(open, () => cells.shardLog(shard, options))
      open.ok(names.page(page, options))
      return page
    },
  }
}

/** What became of it: a rejection says whether something may have happened. */
async function recorded<T>(open: OpenOperation, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    const isSure = error instanceof StoreError && error.retry !== 'check-first'
    if (isSure && error.code !== 'corrupt') open.fail()
    else open.unknown()
    throw error
  }
}

function levelOf(options: ReadOptions | undefined): Level {
  return options?.read ?? 'current'
}

interface LogPlaceOptions {
  readonly after?: number
  readonly limit?: number
  readonly waitMs?: number
}

interface Names {
  list(shard: number): string
  column(name: { readonly rowKey: string; readonly column: string }): string
  /** Of a put, with the added id once that is known. */
  writes(cell: NewCell, addedId?: number): readonly MicroOperation[]
  /** Of an answer that shows one cell. */
  found(cell: NewCell & { readonly addedId: number }): readonly MicroOperation[]
  page(page: LogPage, options: LogPlaceOptions): readonly MicroOperation[]
}

function namesOf(datastore: string): Names {
  const list = (shard: number): string => `${datastore}/shard ${shard}`
  const column: Names['column'] = (name) =>
    `${datastore}/${name.rowKey.toLowerCase()}/${name.column}`
  const element = (cell: NewCell): string =>
    `${cell.rowKey.toLowerCase()}/${cell.column}/${cell.refKey}#${hashOf(cell)}`
  return {
    list,
    column,
    writes(cell, addedId) {
      const place = addedId === undefined ? {} : { index: addedId - 1 }
      const key = list(shardOf(cell.rowKey))
      const { refKey: version } = cell
      return [
        { kind: 'append', key, element: element(cell), ...place },
        { kind: 'write', key: column(cell), version, value: hashOf(cell) },
      ]
    },
    found(cell) {
      const { refKey: version } = cell
      const key = list(shardOf(cell.rowKey))
      return [
        { kind: 'get', key: column(cell), version, isPresent: true, value: hashOf(cell) },
        { kind: 'read', key, elements: [element(cell)], after: cell.addedId - 1, isEnd: false },
      ]
    },
    page({ shard, cells }, { after, limit = pageItemsMax, waitMs = 0 }) {
      const [first] = cells
      const place = after ?? (first === undefined ? undefined : first.addedId - 1)
      if (place === undefined) return []
      const bytes = cells.reduce((sum, { body }) => sum + JSON.stringify(body).length, 0)
      const isEnd = waitMs === 0 && cells.length < limit && bytes < pageBytesSafe
      return [{ kind: 'read', key: list(shard), elements: cells.map(element), after: place, isEnd }]
    },
  }
}

/** Names the body: equal ones are one element. */
function hashOf({ body }: Pick<NewCell, 'body'>): string {
  const text = canonicalJson(body)
  return sha256(text.kind === 'ok' ? text.text : '')
    .toString('hex')
    .slice(0, hashChars)
}
