/**
 * Purging one cell, whatever its age and whether or not it is its column's latest.
 *
 * CELL-7   It is gone for good, and neither it nor an absent earlier ref key of its column is written again.
 * PURGE-1  No read of a moment before is answered in its shard: no version of the row is shown.
 * HOLD-1   A cell that is held stays.
 */
import { assert } from '../base/assert.ts'
import type { Clock } from '../ports/clock.ts'
import { notePurge } from '../tables/notes.ts'
import type { GroupTables } from '../tables/tables.ts'
import type { GroupTransaction } from '../tables/types.ts'
import { remainingOrTimeout } from '../time/moments.ts'
import { checkHeldCell } from './cell-holds.ts'
import { getCells, purgedRefKey, removeCells } from './cell-table.ts'
import type { CellName, ShardName } from './cell.ts'
import type { ColumnRules } from './index-service.ts'
import { inWords } from './put.ts'
import { keepIndexes, type PurgedPage } from './shard-purge.ts'

export interface CellPurgePorts {
  readonly tables: GroupTables
  readonly clock: Clock
  rules(): ColumnRules | Promise<ColumnRules>
}

export interface CellPurgeTask {
  readonly of: ShardName
  readonly cell: CellName
  readonly deadlineMs: number
}

/** Sent again, it purges nothing more. Of a cell that is gone already its past goes. */
export async function purgeCell(ports: CellPurgePorts, task: CellPurgeTask): Promise<PurgedPage> {
  const { tables, clock } = ports
  const timeoutMs = remainingOrTimeout(clock, task.deadlineMs)
  const done = await tables
    .transaction((tx) => remove(tx, ports, task), { timeoutMs })
    .catch((error: unknown) => {
      throw inWords(error, tables.group)
    })
  return { purged: done.value, position: done.position }
}

async function remove(
  tx: GroupTransaction,
  ports: CellPurgePorts,
  { of, cell: name }: CellPurgeTask,
): Promise<number> {
  const { rowKey, column, refKey } = name
  const said = `cell ${rowKey} ${column} ${refKey} of datastore ${of.datastore}`
  await checkHeldCell(tx, of, rowKey, said)
  const [row] = await getCells(tx, of, [name])
  if (row === undefined) {
    // It may have been here, and moments at which it was may still be read.
    if (((await purgedRefKey(tx, of, name)) ?? -1) >= refKey) notePurge(tx, said)
    return 0
  }
  const { cell } = row
  await removeCells(tx, of, [cell])
  const mark = await purgedRefKey(tx, of, cell)
  assert(mark !== undefined && mark >= refKey, 'CELL-7: a column does not know what it lost')
  await keepIndexes(tx, of, [cell], (await ports.rules()).indexes)
  notePurge(tx, said)
  return 1
}
