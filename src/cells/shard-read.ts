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
import type { GroupTables } from '../tables/tables.ts'
import type { GroupReader } from '../tables/types.ts'
import type { View } from '../group/group-port.ts'
import { remainingOrTimeout } from '../time/moments.ts'
import { AnswerRoom, type AnswerShare } from './answer-room.ts'
import { columnWork, readRerunsMax } from './limits.ts'
import type { CellName, ShardName, StoredCell } from './cell.ts'
import { firstColumn, scanColumn, type CellRow } from './cell-table.ts'
import { latestLiving, scanLiving } from './living.ts'
import { findPosition, replicaLevel, type CellPage, type ReadFrom } from './operation.ts'

/** Rows of a shard as of a moment. */
export interface ShardView {
  readonly of: ShardName
  readonly rows: GroupReader
}

export interface ShardReadResult<Value> {
  readonly value: Value
  /** Absent when nothing was read. */
  readonly view: View | undefined
}

/**
 * Reads at one moment. Where history is kept for milliseconds, the replica may forget that moment before the
 * read ends: then the read begins again at a newer one.
 */
export async function readShard<Value>(
  { tables, clock }: { readonly tables: GroupTables; readonly clock: Clock },
  of: ShardName,
  read: ReadFrom,
  deadlineMs: number,
  work: (view: ShardView) => Promise<Value>,
): Promise<ShardReadResult<Value>> {
  const level = replicaLevel(read)
  const atLeast = findPosition(read.atLeast, of.shard) ?? 0
  for (let rerun = 0; ; rerun++) {
    const timeoutMs = remainingOrTimeout(clock, deadlineMs)
    const options = { timeoutMs, atLeast }
    try {
      const { value, view } = await tables.read(level, (rows) => work({ of, rows }), options)
      const isSeen = view === undefined || view.position >= atLeast
      assert(isSeen, 'CELL-5: a replica answers that is behind what was seen')
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
  return (await latestLiving(rows, of, column))?.cell
}

/** Rows read at once when nothing is known of their size, and at most. */
const firstChunkRows = 4
const chunkRowsMax = 256

export interface FilledPage {
  readonly cells: readonly StoredCell[]
  /** The first one that there is no room for. */
  readonly over?: StoredCell
  /** There are no more. */
  readonly isWhole: boolean
}

/**
 * The first `limit` cells; fewer when there are no more, or when the answer is full. `next` gives `count`
 * cells from a place, and fewer at the end.
 */
export async function fill(
  limit: number,
  share: AnswerShare,
  next: (from: number, count: number) => Promise<readonly CellRow[]>,
): Promise<FilledPage> {
  const cells: StoredCell[] = []
  while (cells.length < limit) {
    const most = cells.length === 0 ? firstChunkRows : chunkRowsMax
    const wanted = Math.min(limit - cells.length, most)
    const { asked, found, fitting } = await share.read(wanted, async (count) => {
      const rows = await next(cells.length, count)
      return rows.map(({ cell }) => cell)
    })
    for (const cell of found.slice(0, fitting)) cells.push(cell)
    const over = found[fitting]
    if (over !== undefined) return { cells, over, isWhole: false }
    if (found.length < asked) return { cells, isWhole: true }
    if (asked === 0) break
  }
  return { cells, isWhole: false }
}

export const answerFull: Outcome<never> = {
  kind: 'problem',
  problem: problem('too-large', 'the answer is full; ask for this cell in another batch'),
}

/** Cells as far as an answer has room for them. Each of the others becomes a problem that says so. */
export function fitting(
  found: readonly Outcome<StoredCell | undefined>[],
): Outcome<StoredCell | undefined>[] {
  const share = new AnswerRoom().share()
  return found.map((outcome) => {
    if (outcome.kind === 'problem' || outcome.value === undefined) return outcome
    return share.take(outcome.value) ? outcome : answerFull
  })
}

export async function readVersions(
  { of, rows }: ShardView,
  wanted: {
    readonly rowKey: string
    readonly column: string
    readonly from?: number
    readonly limit: number
    readonly reverse: boolean
  },
  room: AnswerRoom = new AnswerRoom(),
): Promise<CellPage<number>> {
  const { limit, reverse } = wanted
  let cursor: string | undefined
  const { cells, over } = await fill(limit + 1, room.share(), async (_, count) => {
    const options = { reverse, limit: count, ...(cursor !== undefined && { cursor }) }
    const page = await scanLiving(rows, of, wanted, options)
    cursor = page.cursor
    return page.items
  })
  for (const [place, { refKey }] of cells.slice(1).entries()) {
    const isOrdered = refKey > (cells[place]?.refKey ?? refKey) !== reverse
    assert(isOrdered, 'CELL-2: versions are not in the order of their ref keys')
  }
  const next = cells[limit] ?? over
  return next === undefined ? { cells } : { cells: cells.slice(0, limit), next: next.refKey }
}

/** Two scans a column: one finds it, one its latest cell. */
export async function readRow(
  view: ShardView,
  wanted: { readonly rowKey: string; readonly from?: string; readonly limit: number },
  share: AnswerShare = new AnswerRoom().share(),
): Promise<CellPage<string>> {
  const { rowKey, from, limit } = wanted
  const { of, rows } = view
  const cells: StoredCell[] = []
  let column = await firstColumn(rows, of, rowKey, { gte: from ?? '' })
  for (; column !== undefined; column = await firstColumn(rows, of, rowKey, { gt: column })) {
    const name = { rowKey, column }
    if (cells.length >= limit) return { cells, next: column }
    const turn = share.spend(columnWork)
    if (turn !== undefined) await turn
    const cell = await share.readOne(() => latestCell(view, name))
    if (cell === 'full') return { cells, next: column }
    if (cell === undefined) await checkExpired(view, name)
    else cells.push(cell)
  }
  return { cells }
}

/** A column without a latest cell has some all the same, which have expired. */
async function checkExpired(
  { of, rows }: ShardView,
  column: Omit<CellName, 'refKey'>,
): Promise<void> {
  const { items } = await scanColumn(rows, of, column, { limit: 1 })
  assert(items[0]?.ttl !== undefined, 'CELL-2: a column is without its latest')
}
