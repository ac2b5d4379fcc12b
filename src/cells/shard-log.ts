/**
 * A shard's log: its cells in the order in which they were added (SCHEMALESS "Log access"). A place
 * in it is an added id, or a time that is turned into one.
 *
 * CELL-3  Added ids rise without gaps in commit order, and so does the time: who has read up to one
 * never finds a smaller one later.
 */
import { assert } from '../base/assert.ts'
import type { Timestamp } from '../base/ids.ts'
import type { StoredCell } from './cell.ts'
import { logEntry, scanLog } from './cell-table.ts'
import type { LogPlace, StoredLogPage } from './operation.ts'
import { fill, takeCell, type Budget, type ShardView } from './shard-read.ts'

/** The cells behind a place. */
export async function logPage(
  view: ShardView,
  place: LogPlace,
  options: { readonly limit: number; readonly budget: Budget },
): Promise<StoredLogPage> {
  const { of, rows } = view
  const after = place.kind === 'after' ? place.addedId : await before(view, place.timestamp)
  const cellsOf = await scanLog(rows, of, after, options.limit)
  const found = await fill(options.limit, (from, count) => cellsOf(from, from + count))
  const cells: StoredCell[] = []
  for (const cell of found) {
    checkOrder(cell, cells.at(-1))
    if (!takeCell(cells, cell, options.budget)) break
  }
  return { shard: of.shard, cells, next: cells.at(-1)?.addedId ?? after }
}

function checkOrder(cell: StoredCell, previous: StoredCell | undefined): void {
  if (previous === undefined) return
  assert(cell.addedId === previous.addedId + 1, 'CELL-3: there is a gap in the added ids')
  assert(cell.createdAt >= previous.createdAt, 'CELL-3: a later cell has an earlier time')
}

/** The added id before the first cell of `time` or later: found by halving, since both rise. */
async function before({ of, rows }: ShardView, time: Timestamp): Promise<number> {
  const last = await logEntry(rows, of, { after: 0, reverse: true })
  let low = 0
  let high = last?.addedId ?? 0
  // The cell of `low` is earlier than `time` (0 stands before all), the one after `high` is not.
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const entry = await logEntry(rows, of, { after: middle - 1 })
    assert(entry !== undefined, 'CELL-3: the log has lost its end')
    if (entry.createdAt < time) low = middle
    else high = middle - 1
  }
  return low
}
