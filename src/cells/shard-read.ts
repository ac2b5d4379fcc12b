/**
 * Reading cells of a shard, at one moment of it: by name, the latest of a column, the versions of a
 * column, the columns of a row.
 *
 * CELL-2  The latest cell of a column is the one with the highest ref key.
 * CELL-5  What a session has seen it sees again, whichever replica answers.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { problem, type Outcome } from '../base/problem.ts'
import type { Clock } from '../ports/clock.ts'
import type { GroupTables } from '../tables/open.ts'
import type { GroupReader } from '../tables/types.ts'
import { answerBytesMax } from '../txn/bounds.ts'
import type { View } from '../txn/group-port.ts'
import { remainingOrTimeout } from '../txn/time.ts'
import { unpackedBytes } from './body-bytes.ts'
import { readRerunsMax } from './bounds.ts'
import type { CellName, ShardName, StoredCell } from './cell.ts'
import { firstColumn, scanColumn, type CellRow } from './cell-table.ts'
import { positionOf, type CellPage, type ReadFrom } from './operation.ts'

/** Rows of a shard as of a moment. */
export interface ShardView {
  readonly of: ShardName
  readonly rows: GroupReader
}

/** Bytes of bodies that an answer may still hold. */
export interface Budget {
  bytesLeft: number
}

export function fullBudget(): Budget {
  return { bytesLeft: answerBytesMax }
}

/**
 * Reads at one moment. What was read may be forgotten before it was read to the end, where history is
 * kept for milliseconds: then it is read again at a newer moment.
 */
export async function readShard<Value>(
  { tables, clock }: { readonly tables: GroupTables; readonly clock: Clock },
  of: ShardName,
  read: ReadFrom,
  deadlineMs: number,
  work: (view: ShardView) => Promise<Value>,
): Promise<{ readonly value: Value; readonly view: View }> {
  const level = read.level === 'any' ? 'snapshot' : 'current'
  const atLeast = positionOf(read.atLeast, of.shard) ?? 0
  for (let rerun = 0; ; rerun++) {
    const timeoutMs = remainingOrTimeout(clock, deadlineMs)
    const options = { timeoutMs, atLeast }
    try {
      const { value, view } = await tables.read(level, (rows) => work({ of, rows }), options)
      assert(view !== undefined && view.position >= atLeast, 'CELL-5: a shard is read at a view')
      return { value, view }
    } catch (error) {
      const isTooOld = error instanceof StoreError && error.code === 'snapshot-too-old'
      if (!isTooOld || rerun === readRerunsMax) throw error
    }
  }
}

export async function latestCell(
  { of, rows }: ShardView,
  column: Omit<CellName, 'refKey'>,
): Promise<StoredCell | undefined> {
  const { items } = await scanColumn(rows, of, column, { reverse: true, limit: 1 })
  return items[0]?.cell
}

/** Rows read at once when nothing is known of their size, and at most. */
const firstChunkRows = 4
const chunkRowsMax = 256

/**
 * The first `limit` cells; fewer when there are no more, or when the bodies are more than an answer
 * holds. `next` gives so many from a place, and fewer at the end.
 */
export async function fill(
  limit: number,
  next: (from: number, count: number) => Promise<readonly CellRow[]>,
): Promise<readonly StoredCell[]> {
  const cells: StoredCell[] = []
  let bytes = 0
  while (cells.length < limit && bytes <= answerBytesMax) {
    const count = Math.min(limit - cells.length, chunkRows(cells.length, bytes))
    const rows = await next(cells.length, count)
    for (const { cell } of rows) {
      cells.push(cell)
      bytes += unpackedBytes(cell.body)
    }
    if (rows.length < count) break
  }
  return cells
}

/** As many as should just fill the answer, going by the rows so far. */
function chunkRows(rows: number, bytes: number): number {
  if (rows === 0) return firstChunkRows
  const expected = Math.ceil(((answerBytesMax - bytes) / Math.max(1, bytes)) * rows) + 1
  return Math.min(expected, chunkRowsMax)
}

/** Takes a cell's room, when there is so much: by what its body unpacks to, wherever that is done. */
function hasRoom(budget: Budget, { body }: StoredCell): boolean {
  const bytes = unpackedBytes(body)
  if (bytes > budget.bytesLeft) return false
  budget.bytesLeft -= bytes
  assert(budget.bytesLeft >= 0, 'CELL-6: an answer unpacks to more than it may')
  return true
}

/** Takes a cell into an answer when it fits; in an empty one it does. */
export function takeCell(cells: StoredCell[], cell: StoredCell, budget: Budget): boolean {
  if (!hasRoom(budget, cell)) return false
  cells.push(cell)
  return true
}

export const answerFull: Outcome<never> = {
  kind: 'problem',
  problem: problem('too-large', 'the answer is full; ask for this cell in another batch'),
}

/** Cells as far as an answer has room for them; those that it has none for are told so. */
export function fitting(
  found: readonly Outcome<StoredCell | undefined>[],
): Outcome<StoredCell | undefined>[] {
  const budget = fullBudget()
  return found.map((outcome) => {
    if (outcome.kind === 'problem' || outcome.value === undefined) return outcome
    return hasRoom(budget, outcome.value) ? outcome : answerFull
  })
}

export async function versionsOf(
  { of, rows }: ShardView,
  wanted: {
    readonly rowKey: string
    readonly column: string
    readonly from?: number
    readonly limit: number
    readonly reverse: boolean
  },
): Promise<CellPage<number>> {
  const { limit, reverse } = wanted
  let cursor: string | undefined
  const found = await fill(limit + 1, async (_, count) => {
    const options = { reverse, limit: count, ...(cursor !== undefined && { cursor }) }
    const page = await scanColumn(rows, of, wanted, options)
    cursor = page.cursor
    return page.items
  })
  const cells: StoredCell[] = []
  const budget = fullBudget()
  for (const cell of found) {
    const previous = cells.at(-1)
    const isOrdered = previous === undefined || cell.refKey > previous.refKey !== reverse
    assert(isOrdered, 'CELL-2: versions are not in the order of their ref keys')
    if (cells.length >= limit || !takeCell(cells, cell, budget)) return { cells, next: cell.refKey }
  }
  return { cells }
}

/** Two scans a column: one finds it, one its latest cell. */
export async function rowOf(
  view: ShardView,
  wanted: { readonly rowKey: string; readonly from?: string; readonly limit: number },
): Promise<CellPage<string>> {
  const { rowKey, from, limit } = wanted
  const { of, rows } = view
  const cells: StoredCell[] = []
  const budget = fullBudget()
  let column = await firstColumn(rows, of, rowKey, { gte: from ?? '' })
  for (; column !== undefined; column = await firstColumn(rows, of, rowKey, { gt: column })) {
    const cell = await latestCell(view, { rowKey, column })
    assert(cell !== undefined, 'CELL-2: a column is without its latest')
    if (cells.length >= limit || !takeCell(cells, cell, budget)) return { cells, next: column }
  }
  return { cells }
}
