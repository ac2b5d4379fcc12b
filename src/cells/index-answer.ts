/** The answer to a query of an index: its entries, and the cells of their rows where the query names columns. */
import { StoreError } from '../base/errors.ts'
import { pageItemsMax } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { Pace } from '../ports/pace.ts'
import type { Tables } from '../tables/tables.ts'
import { answerBytesMax } from '../txn/limits.ts'
import { remainingOrTimeout } from '../time/moments.ts'
import { AnswerRoom, type AnswerShare } from './answer-room.ts'
import { batchConcurrencyMax, cellReadWork, shardReadWork } from './limits.ts'
import type { StoredCell } from './cell.ts'
import { storedName } from './index-definition.ts'
import { buildIndexRows } from './index-maintenance.ts'
import { queryIndex, type FoundEntry, type FoundPage } from './index-query.ts'
import type { IndexRow } from './index-row.ts'
import type { IndexService } from './index-service.ts'
import type { Answer, IndexedCells, QueryIndex } from './operation.ts'
import { mapPaced } from './pool.ts'
import { latestCell, readRow, type ShardView } from './shard-read.ts'
import type { Call, ShardReader } from './shard-reader.ts'
import { shardOf } from './shard.ts'

/** A number, or what says that there is none. */
const numberBytes = 9

export interface IndexAnswerParts {
  /** Of a datastore. */
  tablesOf(datastore: string): Tables
  readonly indexes: IndexService
  readonly clock: Clock
  readonly reader: ShardReader
}

export async function answerQuery(
  { tablesOf, indexes, clock, reader }: IndexAnswerParts,
  operation: QueryIndex,
  call: Call,
): Promise<Answer> {
  const { datastore, name, read, columns } = operation
  const { definition } = await indexes.toAsk(datastore, name)
  const leftMs = (): number => remainingOrTimeout(clock, call.deadlineMs)
  const level = read.level === 'snapshot' ? 'snapshot' : 'current'
  const { pace } = call
  const tables = tablesOf(datastore)
  const reread = (rowKey: string): Promise<IndexRow | undefined> =>
    reader.read(operation, shardOf(operation.datastore, rowKey), call, async ({ rows, of }) => {
      const found = await buildIndexRows(rows, of, rowKey, [definition])
      return found.get(storedName(definition))
    })
  const query = (limit: number): Promise<FoundPage> =>
    queryIndex({ tables, definition, level, leftMs, pace, reread }, { ...operation, limit })
  const { entries, cursor } =
    columns === undefined
      ? await query(operation.limit)
      : await pageWithCells({ reader, operation, columns, call }, query)
  const fields = definition.fields.map(({ field }) => field)
  const types = definition.fields.map(({ type }) => type)
  return { kind: 'index', fields, types, entries, ...(cursor !== undefined && { cursor }) }
}

/** Whose cells are read. */
interface Asked {
  readonly reader: ShardReader
  readonly operation: QueryIndex
  readonly columns: readonly string[] | 'all'
  readonly call: Call
}

interface CellsPage {
  readonly entries: readonly IndexedCells[]
  readonly cursor?: string
}

/**
 * A page of as many entries as their cells have room for. Where not one entry finds room, it
 * reads fewer: each page has a cursor behind its own last entry only.
 */
async function pageWithCells(
  asked: Asked,
  query: (limit: number) => Promise<FoundPage>,
): Promise<CellsPage> {
  for (let { limit } = asked.operation; ;) {
    const { entries, cursor } = await query(limit)
    const { pace } = asked.call
    const room = new AnswerRoom(pace)
    const paid = { most: batchConcurrencyMax, pace, computeCost: () => shardReadWork }
    const found = await mapPaced(entries, paid, async (entry) => {
      const cells = room.take(entryBytes(entry)) && (await readCells(asked, entry.rowKey, room))
      return cells ? { ...entry, cells } : undefined
    })
    const whole = found.flatMap((one) => one ?? [])
    if (whole.length === entries.length) {
      return cursor === undefined ? { entries: whole } : { entries: whole, cursor }
    }
    if (entries.length === 1) throw tooLarge()
    limit = Math.max(1, whole.length)
  }
}

/** Undefined: the answer is full. */
function readCells(
  { reader, operation, columns, call }: Asked,
  rowKey: string,
  room: AnswerRoom,
): Promise<readonly StoredCell[] | undefined> {
  return reader.read(operation, shardOf(operation.datastore, rowKey), call, (view) =>
    room.attempt((share) =>
      columns === 'all'
        ? readAll(view, rowKey, share)
        : readSome(view, { rowKey, columns, pace: call.pace }, share),
    ),
  )
}

async function readAll(
  view: ShardView,
  rowKey: string,
  share: AnswerShare,
): Promise<readonly StoredCell[] | undefined> {
  const { cells, next } = await readRow(view, { rowKey, limit: pageItemsMax }, share)
  if (next === undefined) return cells
  if (cells.length < pageItemsMax) return undefined
  const message = `row ${rowKey} has more than ${pageItemsMax} columns; name those that you want`
  const detail = { limit: 'pageItemsMax', limitValue: pageItemsMax }
  throw new StoreError('too-large', message, detail)
}

async function readSome(
  view: ShardView,
  asked: {
    readonly rowKey: string
    readonly columns: readonly string[]
    readonly pace: Pace | undefined
  },
  share: AnswerShare,
): Promise<readonly StoredCell[] | undefined> {
  const { rowKey, columns, pace } = asked
  let isFull = false
  const paid = { most: batchConcurrencyMax, pace, computeCost: () => cellReadWork }
  const cells = await mapPaced(columns, paid, async (column) => {
    const cell = await share.readOne(() => latestCell(view, { rowKey, column }))
    if (cell !== 'full') return cell
    isFull = true
    return undefined
  })
  return isFull ? undefined : cells.flatMap((cell) => cell ?? [])
}

function entryBytes({ values }: FoundEntry): number {
  return values.reduce<number>((sum, value) => {
    return sum + (typeof value === 'string' ? Buffer.byteLength(value) : numberBytes)
  }, 0)
}

function tooLarge(): StoreError {
  const message = 'the cells of this row do not fit one answer; ask for fewer columns'
  const detail = { limit: 'answerBytesMax', limitValue: answerBytesMax }
  return new StoreError('too-large', message, detail)
}
