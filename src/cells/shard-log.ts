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
import { addedIdOfLogKey, cellOfRow, logRange } from './layout.ts'
import type { LogPlace, StoredLogPage } from './operation.ts'
import type { CellPorts } from './put.ts'
import { takeCell, type Budget, type ShardView } from './shard-read.ts'

/** The cells behind a place. */
export async function logPage(
  ports: CellPorts,
  view: ShardView,
  place: LogPlace,
  options: { readonly limit: number; readonly budget: Budget },
): Promise<StoredLogPage> {
  const { shard } = view
  const after = place.kind === 'after' ? place.addedId : await before(ports, view, place.timestamp)
  const { replica } = ports
  const rows = await replica.scan(view.group, { ...logRange(after), limit: options.limit })
  const cells: StoredCell[] = []
  for (const row of rows) {
    if (row.timestamp > view.point.timestamp) break
    const cellRow = replica.get(view.group, row.value)
    assert(cellRow !== undefined, 'CELL-3: the log names a cell that is not there')
    const cell = cellOfRow(cellRow)
    checkOrder(cell, addedIdOfLogKey(row.key), cells.at(-1))
    if (!takeCell(cells, cell, options.budget)) break
  }
  return { shard, cells, next: cells.at(-1)?.addedId ?? after }
}

function checkOrder(cell: StoredCell, addedId: number, previous: StoredCell | undefined): void {
  assert(cell.addedId === addedId, 'CELL-3: the log names a cell by another added id')
  if (previous === undefined) return
  assert(cell.addedId === previous.addedId + 1, 'CELL-3: there is a gap in the added ids')
  assert(cell.createdAt >= previous.createdAt, 'CELL-3: a later cell has an earlier time')
}

/** The added id before the first cell of `time` or later: found by halving, since both rise. */
async function before(ports: CellPorts, view: ShardView, time: Timestamp): Promise<number> {
  const [last] = await ports.replica.scan(view.group, { ...logRange(0), reverse: true, limit: 1 })
  let low = 0
  let high = last === undefined ? 0 : addedIdOfLogKey(last.key)
  // The cell of `low` is earlier than `time` (0 stands before all), the one after `high` is not.
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const [row] = await ports.replica.scan(view.group, { ...logRange(middle - 1), limit: 1 })
    assert(row !== undefined, 'CELL-3: the log has lost its end')
    if (row.timestamp < time) low = middle
    else high = middle - 1
  }
  return low
}
