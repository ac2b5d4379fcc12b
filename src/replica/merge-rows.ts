/** Overlay and data store as one ordered range of rows: where both have a key, the overlay wins. */
import { compareBytes } from '../base/bytes.ts'
import type { Range } from '../ports/storage.ts'
import type { Row, RowRange } from './local-replica.ts'
import type { OverlayRow } from './overlay.ts'
import {
  afterHistory,
  afterRows,
  afterVersions,
  historyPrefix,
  joined,
  rowsPrefix,
  versionsPrefix,
} from './row-format.ts'

/** The data store's keys for a range of a group's rows. `hidden`: rows the overlay may hide. */
export function storeRange(prefix: Uint8Array, range: RowRange, hidden: number): Range {
  const { lt, reverse, limit } = range
  return {
    ...lowerBound(rowsPrefix(prefix), range),
    lt: lt === undefined ? afterRows(prefix) : joined(rowsPrefix(prefix), lt),
    ...(reverse === undefined ? {} : { reverse }),
    ...(limit === undefined ? {} : { limit: limit + hidden }),
  }
}

/** The keys of the same range in the group's history: all versions of all its rows. */
export function historyRange(prefix: Uint8Array, range: RowRange): Range {
  const { gte, gt, lt, reverse } = range
  const history = historyPrefix(prefix)
  const isAbove = isTighter(range)
  const from = gte === undefined ? history : versionsPrefix(history, gte, false)
  return {
    gte: isAbove && gt !== undefined ? afterVersions(history, gt) : from,
    lt: lt === undefined ? afterHistory(prefix) : versionsPrefix(history, lt, false),
    ...(reverse === undefined ? {} : { reverse }),
  }
}

/** One bound, the tighter one: stores differ in which of two they heed. */
function lowerBound(rows: Uint8Array, range: RowRange): Range {
  const { gte, gt } = range
  if (gt !== undefined && isTighter(range)) return { gt: joined(rows, gt) }
  return { gte: gte === undefined ? rows : joined(rows, gte) }
}

/** Whether `gt` says more than `gte`. */
function isTighter({ gte, gt }: RowRange): boolean {
  return gt !== undefined && (gte === undefined || compareBytes(gt, gte) >= 0)
}

/**
 * Both sides are in the range's order. It asks `stored` for its first row at once, before it
 * returns, so that both are of the moment of the call.
 */
export async function mergeRows(
  overlay: readonly OverlayRow[],
  stored: AsyncIterable<Row>,
  range: RowRange,
): Promise<readonly Row[]> {
  const merged: Row[] = []
  const limit = range.limit ?? Number.POSITIVE_INFINITY
  const sign = range.reverse === true ? -1 : 1
  let next = 0
  const take = (row: OverlayRow): void => {
    next += 1
    const { key, value, timestamp } = row
    if (value !== undefined) merged.push({ key, value, timestamp })
  }
  for await (const row of stored) {
    let order = -1
    for (let first = overlay[next]; first !== undefined; first = overlay[next]) {
      order = sign * compareBytes(first.key, row.key)
      if (order > 0 || merged.length >= limit) break
      take(first)
      if (order === 0) break
    }
    if (merged.length >= limit) return merged
    if (order !== 0) merged.push(row)
  }
  for (let first = overlay[next]; first !== undefined; first = overlay[next]) {
    if (merged.length >= limit) break
    take(first)
  }
  return merged
}
