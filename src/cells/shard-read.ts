/**
 * Reading a shard as of one position: whole entries up to it, nothing of later ones, although rows
 * of these may be in the replica already. Rows carry the timestamp of their entry, and a cell's
 * rows never change, so leaving out the newer ones gives exactly the state at that position.
 *
 * CELL-2  The latest cell of a column is the one with the highest ref key.
 * CELL-5  What a session has seen it sees again, whichever replica answers.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import type { ReadPoint, Row, RowRange } from '../replica/local-replica.ts'
import { answerBytesMax } from '../txn/bounds.ts'
import type { CellName, StoredCell } from './cell.ts'
import {
  bodyBytesOf,
  cellKey,
  cellOfRow,
  columnPrefix,
  nameOfKey,
  prefixRange,
  rowPrefix,
} from './layout.ts'
import { positionOf, type CellPage, type ReadFrom } from './operation.ts'
import type { CellPorts } from './put.ts'
import { shardGroup } from './shard.ts'
import { remainingMs } from '../txn/time.ts'

/** A shard as of a position. */
export interface ShardView {
  readonly shard: number
  readonly group: GroupId
  readonly point: ReadPoint
}

/** Bytes of bodies that an answer may still hold. */
export interface Budget {
  bytesLeft: number
}

export function fullBudget(): Budget {
  return { bytesLeft: answerBytesMax }
}

export async function viewShard(
  ports: CellPorts,
  place: { readonly datastore: string; readonly shard: number },
  read: ReadFrom,
  deadlineMs: number,
): Promise<ShardView> {
  const { replica, clock } = ports
  const { shard } = place
  const group = shardGroup(place.datastore, shard)
  const atLeast = positionOf(read.atLeast, shard) ?? 0
  const first = await replica.read(group, read.level, remainingMs(clock, deadlineMs))
  if (first.position >= atLeast) return { shard, group, point: first }
  // Whatever was shown anywhere, a current read sees. The replica is not told to wait for the
  // position itself: it comes from outside, and nothing may ever be written there.
  const point = await replica.read(group, 'current', remainingMs(clock, deadlineMs))
  assert(point.position >= first.position, 'CELL-5: a replica went back')
  if (point.position < atLeast) {
    const message = `the log of shard ${shard} has never reached position ${atLeast}`
    throw new StoreError('invalid', message, { group })
  }
  return { shard, group, point }
}

export function cellAt(ports: CellPorts, view: ShardView, name: CellName): StoredCell | undefined {
  const row = ports.replica.get(view.group, cellKey(name))
  return row === undefined || row.timestamp > view.point.timestamp ? undefined : cellOfRow(row)
}

export async function latestCell(
  ports: CellPorts,
  view: ShardView,
  column: { readonly rowKey: string; readonly column: string },
): Promise<StoredCell | undefined> {
  const range = prefixRange(columnPrefix(column.rowKey, column.column))
  const [row] = await rowsOf(ports, view, { ...range, reverse: true }, 1)
  return row === undefined ? undefined : cellOfRow(row)
}

/** Rows read at once when nothing is known of their size, and at most. */
const firstChunkRows = 4
const chunkRowsMax = 256

/**
 * The first `limit` cell rows of a range, as of the view; fewer when there are no more, or when
 * the bodies are more than an answer holds.
 */
async function rowsOf(
  ports: CellPorts,
  view: ShardView,
  range: RowRange,
  limit: number,
): Promise<Row[]> {
  const rows: Row[] = []
  let bytes = 0
  let rest = range
  while (rows.length < limit && bytes <= answerBytesMax) {
    const count = Math.min(limit - rows.length, chunkRows(rows.length, bytes))
    const chunk = await ports.replica.scan(view.group, { ...rest, limit: count })
    for (const row of chunk) {
      if (row.timestamp > view.point.timestamp) continue
      rows.push(row)
      bytes += bodyBytesOf(row)
    }
    const last = chunk.at(-1)
    if (last === undefined || chunk.length < count) break
    rest = beyond(range, last.key)
  }
  return rows
}

/** As many as should just fill the answer, going by the rows so far. */
function chunkRows(rows: number, bytes: number): number {
  if (rows === 0) return firstChunkRows
  const expected = Math.ceil(((answerBytesMax - bytes) / bytes) * rows) + 1
  return Math.min(expected, chunkRowsMax)
}

function beyond(range: RowRange, key: Uint8Array): RowRange {
  const { gte, lt, reverse } = range
  if (reverse === true) return { ...(gte && { gte }), lt: key, reverse }
  return { gt: key, ...(lt && { lt }) }
}

/** Takes a cell into an answer when it fits; in an empty one it does. */
export function takeCell(cells: StoredCell[], cell: StoredCell, budget: Budget): boolean {
  if (cell.body.length > budget.bytesLeft) return false
  budget.bytesLeft -= cell.body.length
  cells.push(cell)
  return true
}

export async function versionsOf(
  ports: CellPorts,
  view: ShardView,
  wanted: {
    readonly rowKey: string
    readonly column: string
    readonly from?: number
    readonly limit: number
    readonly reverse: boolean
  },
): Promise<CellPage<number>> {
  const { rowKey, column, from, limit, reverse } = wanted
  const whole = prefixRange(columnPrefix(rowKey, column))
  const first = from === undefined ? undefined : cellKey({ rowKey, column, refKey: from })
  // Going down, the first is included: its successor's key is what the range ends before.
  const begin = first && (reverse ? { lt: prefixRange(first).lt } : { gte: first })
  const rows = await rowsOf(ports, view, { ...whole, ...begin, reverse }, limit + 1)
  const cells: StoredCell[] = []
  const budget = fullBudget()
  for (const row of rows) {
    const cell = cellOfRow(row)
    const previous = cells.at(-1)
    const isOrdered = previous === undefined || cell.refKey > previous.refKey !== reverse
    assert(isOrdered, 'CELL-2: versions are not in the order of their ref keys')
    if (cells.length >= limit || !takeCell(cells, cell, budget)) return { cells, next: cell.refKey }
  }
  return { cells }
}

/** Two scans a column: one finds it, one its latest cell. */
export async function rowOf(
  ports: CellPorts,
  view: ShardView,
  wanted: { readonly rowKey: string; readonly from?: string; readonly limit: number },
): Promise<CellPage<string>> {
  const { rowKey, from, limit } = wanted
  const { lt } = prefixRange(rowPrefix(rowKey))
  let gte = from === undefined ? rowPrefix(rowKey) : columnPrefix(rowKey, from)
  const cells: StoredCell[] = []
  const budget = fullBudget()
  for (;;) {
    const [row] = await rowsOf(ports, view, { gte, lt }, 1)
    if (row === undefined) return { cells }
    const { column, refKey } = nameOfKey(row.key)
    const cell = await latestCell(ports, view, { rowKey, column })
    assert(cell !== undefined && cell.refKey >= refKey, 'CELL-2: a column is without its latest')
    if (cells.length >= limit || !takeCell(cells, cell, budget)) return { cells, next: column }
    gte = prefixRange(columnPrefix(rowKey, column)).lt
  }
}
