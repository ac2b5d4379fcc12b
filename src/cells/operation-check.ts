/** Whether an operation from outside can be carried out as a whole; items are checked one by one. */
import { batchItemsMax, pageItemsMax, tailWaitSecondsMax } from '../base/limits.ts'
import type { StoreErrorDetail } from '../base/errors.ts'
import { unpackedBytes } from './body-bytes.ts'
import {
  batchBytesMax,
  graceMsMax,
  purgeItemsMax,
  queryCursorCharsMax,
  queryFiltersMax,
  queryNameCharsMax,
} from './limits.ts'
import { datastoreProblem, nameProblem, type CellName, type ShardName } from './cell.ts'
import {
  isIndexOperation,
  type CellOperation,
  type IndexOperation,
  type LogPlace,
  type QueryIndex,
  type PurgeCells,
  type PutCells,
} from './operation.ts'
import { problem, type Problem } from '../base/problem.ts'
import { stalenessProblem } from '../txn/staleness.ts'
import { wordsFor } from '../base/words.ts'
import { shardCountMax } from './datastore-form.ts'
import { isShardOf, shardOf, shardWords } from './shard.ts'

export function operationProblem(operation: CellOperation): Problem | undefined {
  const wrong = datastoreProblem(operation.datastore) ?? boundProblem(operation)
  return wrong ?? kindProblem(operation)
}

function boundProblem(operation: CellOperation): Problem | undefined {
  if (!('read' in operation)) return undefined
  const { maxStalenessMs, level } = operation.read
  if (maxStalenessMs === undefined) return undefined
  // An entry and its row are of two groups, each as old as it may be.
  if (operation.kind === 'index') return problem('invalid', 'a query has no bound of staleness')
  if (level === 'snapshot') return stalenessProblem(maxStalenessMs)
  return problem('invalid', 'a bound of staleness goes with snapshot reads')
}

function kindProblem(operation: CellOperation): Problem | undefined {
  if (isIndexOperation(operation)) return indexProblem(operation)
  switch (operation.kind) {
    case 'put':
      return putProblem(operation)
    case 'get':
      return batchProblem(operation.items.length, itemsLimit)
    case 'row': {
      const { rowKey, from, limit } = operation
      return (
        nameProblem({ rowKey, ...(from !== undefined && { column: from }) }) ?? pageProblem(limit)
      )
    }
    case 'versions': {
      const { rowKey, column, from, limit } = operation
      const name = { rowKey, column, ...(from !== undefined && { refKey: from }) }
      return nameProblem(name) ?? pageProblem(limit)
    }
    case 'log':
      return (
        batchProblem(operation.items.length, placesLimit) ??
        pageProblem(operation.limit) ??
        waitProblem(operation.waitMs)
      )
    case 'purge':
      return purgeProblem(operation)
  }
}

function indexProblem(operation: IndexOperation): Problem | undefined {
  if (operation.kind === 'index') return queryProblem(operation) ?? pageProblem(operation.limit)
  return operation.kind === 'drop-index' ? graceProblem(operation.graceMs) : undefined
}

/** A query that no node would read of another one. */
function queryProblem({ name, where, order, columns, cursor }: QueryIndex): Problem | undefined {
  const names = [name, ...where.map(({ field }) => field), ...(order === undefined ? [] : [order])]
  const long = names.find(({ length }) => length > queryNameCharsMax)
  if (long !== undefined) {
    const message = `the name of an index or a field has at most ${queryNameCharsMax} characters`
    return outside(message, 'queryNameCharsMax', queryNameCharsMax, long.length)
  }
  if (where.length > queryFiltersMax) {
    const message = `a query has at most ${queryFiltersMax} filters`
    return outside(message, 'queryFiltersMax', queryFiltersMax, where.length)
  }
  if ((cursor?.length ?? 0) > queryCursorCharsMax) {
    return problem('invalid', 'this cursor is of no query: give the one that the page before has')
  }
  if (columns === undefined || columns === 'all') return undefined
  if (columns.length > batchItemsMax) {
    const message = `a query shows at most ${batchItemsMax} columns`
    return outside(message, 'batchItemsMax', batchItemsMax, columns.length)
  }
  const wrong = columns.map((column) => nameProblem({ column }))
  return wrong.find((one) => one !== undefined)
}

function putProblem({ items }: PutCells): Problem | undefined {
  const tooMany = batchProblem(items.length, itemsLimit)
  const bytes = items.reduce((sum, { body }) => sum + unpackedBytes(body), 0)
  if (tooMany !== undefined || bytes <= batchBytesMax) return tooMany
  const detail = { limit: 'batchBytesMax', limitValue: batchBytesMax, actual: bytes }
  return problem('too-large', 'the bodies of the batch are too large together; split it', detail)
}

function purgeProblem(operation: PurgeCells): Problem | undefined {
  const { datastore, shard, after, before, column, limit, cell } = operation
  const place = placeProblem(datastore, { kind: 'after', shard, addedId: after })
  if (place !== undefined) return place
  const time = placeProblem(datastore, { kind: 'since', shard, timestamp: before })
  if (time !== undefined) return time
  const name = column === undefined ? undefined : nameProblem({ column })
  if (name !== undefined) return name
  const wrong = cell && (nameProblem(cell) ?? shardProblem(operation, cell))
  if (wrong !== undefined) return wrong
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= purgeItemsMax) return undefined
  const message = `limit is a whole number from 1 to ${purgeItemsMax}`
  return outside(message, 'purgeItemsMax', purgeItemsMax, limit)
}

function shardProblem({ datastore, shard }: ShardName, { rowKey }: CellName): Problem | undefined {
  const own = shardOf(datastore, rowKey)
  if (own === shard) return undefined
  return problem('invalid', `row key ${rowKey} is of shard ${own}, not of shard ${shard}`)
}

/** The limit of a batch's items, by its name. */
export interface BatchLimit {
  readonly limit: string
  readonly limitValue: number
}

export const itemsLimit: BatchLimit = { limit: 'batchItemsMax', limitValue: batchItemsMax }
export const placesLimit: BatchLimit = { limit: 'shardCount', limitValue: shardCountMax }

/** Why a batch has not this many items. */
export function batchProblem(
  actual: number,
  { limit, limitValue }: BatchLimit,
): Problem | undefined {
  if (actual === 0) return problem('invalid', 'a batch holds at least one item')
  if (actual <= limitValue) return undefined
  const detail = { limit, limitValue, actual }
  return problem('too-large', `a batch holds at most ${limitValue} items; split it`, detail)
}

function pageProblem(limit: number): Problem | undefined {
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= pageItemsMax) return undefined
  return outside(
    `limit is a whole number from 1 to ${pageItemsMax}`,
    'pageItemsMax',
    pageItemsMax,
    limit,
  )
}

function waitProblem(waitMs: number): Problem | undefined {
  const longestMs = tailWaitSecondsMax * 1000
  if (Number.isSafeInteger(waitMs) && waitMs >= 0 && waitMs <= longestMs) return undefined
  const message = `a wait is from 0 to ${tailWaitSecondsMax} seconds, in whole milliseconds`
  return outside(message, 'tailWaitSecondsMax', tailWaitSecondsMax, waitMs / 1000)
}

function graceProblem(graceMs = 0): Problem | undefined {
  if (Number.isSafeInteger(graceMs) && graceMs >= 0 && graceMs <= graceMsMax) return undefined
  const message = `a grace is from 0 to ${graceMsMax / 1000} seconds, in whole milliseconds`
  return outside(message, 'graceMsMax', graceMsMax, graceMs)
}

function outside(message: string, limit: string, limitValue: number, actual: number): Problem {
  const detail: StoreErrorDetail = Number.isFinite(actual) ? { limit, limitValue, actual } : {}
  return problem('invalid', message, detail)
}

/** Why a place is in no shard's log. */
export function placeProblem(datastore: string, place: LogPlace): Problem | undefined {
  if (!isShardOf(datastore, place.shard)) {
    const message = `there is no shard ${wordsFor(place.shard)}; ${shardWords(datastore)}`
    const isNumber = typeof place.shard === 'number' && Number.isFinite(place.shard)
    return problem('invalid', message, isNumber ? { actual: place.shard } : {})
  }
  const number = place.kind === 'after' ? place.addedId : place.timestamp
  if (Number.isSafeInteger(number) && number >= 0) return undefined
  const what = place.kind === 'after' ? 'an added id' : 'a time in microseconds'
  return problem('invalid', `${what} is a whole number from 0; ${wordsFor(number)} is not`)
}
