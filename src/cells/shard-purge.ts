/**
 * Purging: taking old cells of a shard out, a page of its log at a time, each in one transaction.
 *
 * A current read, outside of any transaction, looks at a page. It finds the cells that are older than a time,
 * of a column if one is named, and superseded, unless the latest cells are to go too. The transaction reads
 * those cells again, with the cells that supersede them, and removes those for which it still holds. So a
 * purge is in conflict with no writer elsewhere, and one that is sent again removes the rest.
 *
 * CELL-7  A purged cell is gone for good: current reads from the answer on do not see it, and neither it
 *         nor an earlier ref key of its column is written again.
 * Where the latest cells go, what their rows have in indexes is made anew in the same transaction (IDX-7).
 *
 * HOLD-1  Cells of a row that is held stay; in a shard that is held the purge is refused.
 * CELL-8  A purge removes nothing else: a cell stays that is not older, of another column, or the latest of
 *         its column.
 */
import { assert, present } from '../base/assert.ts'
import type { Timestamp } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { GroupTables } from '../tables/tables.ts'
import type { GroupTransaction } from '../tables/types.ts'
import { remainingOrTimeout } from '../time/moments.ts'
import { AnswerRoom } from './answer-room.ts'
import { heldRows } from './cell-holds.ts'
import { getCells, removeCells, scanLog, type CellRow } from './cell-table.ts'
import type { CellName, ShardName, StoredCell } from './cell.ts'
import { isOverColumn, type NumberedIndex } from './index-definition.ts'
import { buildIndexRows, putIndexRows } from './index-maintenance.ts'
import type { ColumnRules } from './index-service.ts'
import { inWords } from './put.ts'
import { fill, latestCell, readShard, type ShardView } from './shard-read.ts'

export interface PurgeTask {
  readonly of: ShardName
  readonly before: Timestamp
  readonly column?: string
  readonly keepLatest: boolean
  readonly after: number
  readonly limit: number
  readonly deadlineMs: number
}

export interface PurgedPage {
  readonly purged: number
  /** Where the next page begins; absent at the end. */
  readonly next?: number
  readonly position: number
}

export interface PurgePorts {
  readonly tables: GroupTables
  readonly clock: Clock
  /** The indexes that the cells may have a say in, as they are known now. */
  rules(): ColumnRules | Promise<ColumnRules>
}

/** A cell to be removed, and the later one of its column, where the purge needs one. */
interface Doomed {
  readonly cell: StoredCell
  readonly later: CellName | undefined
}

export async function purgePage(ports: PurgePorts, task: PurgeTask): Promise<PurgedPage> {
  const current = { level: 'current', atLeast: [] } as const
  const { of, deadlineMs } = task
  const looked = await readShard(ports, of, current, deadlineMs, (view) => lookAt(view, task))
  const { doomed, next } = looked.value
  const { position } = present(looked.view, 'CELL-5: a shard is read at a view')
  const rest = next === undefined ? {} : { next }
  if (doomed.length === 0) return { purged: 0, position, ...rest }
  const timeoutMs = remainingOrTimeout(ports.clock, deadlineMs)
  const options = { timeoutMs, atLeast: position, from: 'snapshot' } as const
  const removed = await ports.tables
    .transaction((tx) => remove(tx, task, doomed, ports.rules), options)
    .catch((error: unknown) => {
      throw inWords(error, ports.tables.group)
    })
  return { purged: removed.value, position: removed.position, ...rest }
}

/** Finds the cells of a page that are to go, and where the next page begins. */
async function lookAt(
  view: ShardView,
  task: PurgeTask,
): Promise<{ readonly doomed: readonly Doomed[]; readonly next: number | undefined }> {
  const readCells = await scanLog(view.rows, view.of, task.after, task.limit)
  const share = new AnswerRoom().share()
  const { cells: found } = await fill(task.limit, share, (from, count) =>
    readCells(from, from + count),
  )
  const old = found.filter(({ createdAt }) => createdAt < task.before)
  const doomed: Doomed[] = []
  for (const cell of old) {
    if (task.column !== undefined && task.column !== cell.column) continue
    const later = task.keepLatest ? await latestCell(view, cell) : undefined
    if (!task.keepLatest || (later !== undefined && later.refKey > cell.refKey)) {
      doomed.push({ cell, later })
    }
  }
  // Times rise with the added ids: nothing older comes behind a newer one.
  const isEnd = old.length < found.length || found.length === 0
  return { doomed, next: isEnd ? undefined : found.at(-1)?.addedId }
}

async function remove(
  tx: GroupTransaction,
  { of, before, column, keepLatest }: PurgeTask,
  doomed: readonly Doomed[],
  rules: PurgePorts['rules'],
): Promise<number> {
  const rows = await getCells(
    tx,
    of,
    doomed.map(({ cell }) => cell),
  )
  const later = await findLaters(tx, of, doomed)
  const held = await heldRows(
    tx,
    of,
    doomed.map(({ cell }) => cell.rowKey),
  )
  const still = doomed.flatMap(({ cell, later: name }, i) => {
    const row = rows[i]
    const isKept = held.has(cell.rowKey) || (name !== undefined && !later.has(formatName(name)))
    return row === undefined || isKept ? [] : [checked(cell, row)]
  })
  for (const { createdAt, column: own } of still) {
    const isAsked = createdAt < before && (column === undefined || column === own)
    assert(isAsked, 'CELL-8: a purge removes what it does not name')
  }
  assert(
    !keepLatest || still.every((cell) => later.has(latestName(doomed, cell))),
    'CELL-8: a purge removes the latest of a column',
  )
  if (still.length > 0) await removeCells(tx, of, still)
  // The latest cells stay: so do the entries that are made of them.
  if (!keepLatest) await keepIndexes(tx, of, still, (await rules()).indexes)
  return still.length
}

/** After cells were removed: computes from the remaining cells what their rows have in indexes. */
export async function keepIndexes(
  tx: GroupTransaction,
  of: ShardName,
  removed: readonly StoredCell[],
  indexes: readonly NumberedIndex[],
): Promise<void> {
  const columnsByRow = new Map<string, string[]>()
  for (const { rowKey, column } of removed) {
    const columns = columnsByRow.get(rowKey)
    if (columns === undefined) columnsByRow.set(rowKey, [column])
    else columns.push(column)
  }
  for (const [rowKey, columns] of columnsByRow) {
    const concerned = indexes.filter((one) => columns.some((column) => isOverColumn(one, column)))
    if (concerned.length === 0) continue
    await putIndexRows(tx, of, rowKey, await buildIndexRows(tx, of, rowKey, concerned))
  }
}

function checked(cell: StoredCell, row: CellRow): StoredCell {
  assert(row.cell.addedId === cell.addedId, 'CELL-7: a purged cell was written again')
  return cell
}

/** The later cells that are still there, each read once. */
async function findLaters(
  tx: GroupTransaction,
  of: ShardName,
  doomed: readonly Doomed[],
): Promise<ReadonlySet<string>> {
  const names = new Map(
    doomed.flatMap(({ later }) =>
      later === undefined ? [] : [[formatName(later), later] as const],
    ),
  )
  const rows = await getCells(tx, of, [...names.values()])
  return new Set([...names.keys()].filter((_, i) => rows[i] !== undefined))
}

function latestName(doomed: readonly Doomed[], cell: StoredCell): string {
  const { later } = doomed.find((one) => one.cell === cell) ?? {}
  return later === undefined ? '' : formatName(later)
}

function formatName({ rowKey, column, refKey }: CellName): string {
  return `${rowKey}/${column}/${refKey}`
}
