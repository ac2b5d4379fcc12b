/** The answer to a query of an index: its entries, and the cells of their rows where they are asked for. */
import { errorOf, problem } from '../base/problem.ts'
import { pageItemsMax } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { Tables } from '../tables/open.ts'
import { remainingOrTimeout } from '../txn/time.ts'
import { batchConcurrencyMax } from './bounds.ts'
import type { StoredCell } from './cell.ts'
import { queryIndex, type FoundEntry } from './index-query.ts'
import type { IndexService } from './index-service.ts'
import type { Answer, IndexedCells, QueryIndex } from './operation.ts'
import { mapBounded } from './pool.ts'
import { fullBudget, latestCell, rowOf } from './shard-read.ts'
import type { Call, ShardReader } from './shard-reader.ts'
import { shardOf } from './shard.ts'

export interface IndexAnswerParts {
  readonly tables: Tables
  readonly indexes: IndexService
  readonly clock: Clock
  readonly reader: ShardReader
}

export async function answerQuery(
  { tables, indexes, clock, reader }: IndexAnswerParts,
  operation: QueryIndex,
  call: Call,
): Promise<Answer> {
  const { datastore, name, read, columns } = operation
  const { definition } = await indexes.toAsk(datastore, name)
  const leftMs = (): number => remainingOrTimeout(clock, call.deadlineMs)
  const level = read.level === 'any' ? 'snapshot' : 'current'
  const { entries, cursor } = await queryIndex({ tables, definition, level, leftMs }, operation)
  const withCells = async (entry: FoundEntry): Promise<IndexedCells> => {
    if (columns === undefined) return entry
    return { ...entry, cells: await cellsOf(reader, operation, entry.rowKey, columns, call) }
  }
  const found = await mapBounded(entries, batchConcurrencyMax, withCells)
  checkFits(found)
  const fields = definition.fields.map(({ field }) => field)
  const types = definition.fields.map(({ type }) => type)
  return { kind: 'index', fields, types, entries: found, ...(cursor !== undefined && { cursor }) }
}

function cellsOf(
  reader: ShardReader,
  operation: QueryIndex,
  rowKey: string,
  columns: readonly string[] | 'all',
  call: Call,
): Promise<readonly StoredCell[]> {
  return reader.read(operation, shardOf(rowKey), call, async (view) => {
    if (columns === 'all') return (await rowOf(view, { rowKey, limit: pageItemsMax })).cells
    const cells = await mapBounded(columns, batchConcurrencyMax, (column) =>
      latestCell(view, { rowKey, column }),
    )
    return cells.flatMap((cell) => cell ?? [])
  })
}

function checkFits(found: readonly IndexedCells[]): void {
  let { bytesLeft } = fullBudget()
  for (const { cells = [] } of found) for (const { body } of cells) bytesLeft -= body.length
  if (bytesLeft >= 0) return
  const message = 'the cells of these rows do not fit one answer; ask for fewer entries'
  throw errorOf(problem('too-large', message))
}
