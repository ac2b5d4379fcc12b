/**
 * A shard's log: its cells in the order in which they were added. A place
 * in it is an added id, or a time that is turned into one.
 *
 * CELL-3  Added ids rise in commit order, without gaps but those that purges and expiry leave, and so does the
 * time: a reader that has read up to one never finds a smaller one later.
 * TTL-3   A page passes over cells that have expired, and its end is behind them.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { Timestamp } from '../base/ids.ts'
import type { Outcome } from '../base/problem.ts'
import type { StoredCell } from './cell.ts'
import { logEntry, purgedAddedId, scanLog, type CellRow } from './cell-table.ts'
import { living } from './living.ts'
import type { LogPlace, StoredLogPage } from './operation.ts'
import { AnswerRoom, type AnswerShare } from './answer-room.ts'
import { fill, type ShardView } from './shard-read.ts'

type PlaceAfter = LogPlace & { readonly kind: 'after' }

interface FoundLog {
  readonly page: StoredLogPage
  readonly isWhole: boolean
}

/** The cells behind a place, without those that have expired; `isWhole` when there are no more. */
export async function logPage(
  view: ShardView,
  place: LogPlace,
  { limit, share }: { readonly limit: number; readonly share: AnswerShare },
): Promise<FoundLog> {
  let after = place.kind === 'after' ? place.addedId : await before(view, place.timestamp)
  for (;;) {
    const found = await livingPage(view, after, limit, share)
    const { cells, next } = found.page
    // All that it has looked at have expired: a reader has no use for a page without cells.
    if (cells.length > 0 || found.isWhole || next === after) return found
    after = next
  }
}

async function livingPage(
  view: ShardView,
  after: number,
  limit: number,
  share: AnswerShare,
): Promise<FoundLog> {
  const { of, rows } = view
  const readCells = await scanLog(rows, of, after, limit)
  let looked = 0
  let last: StoredCell | undefined
  const {
    cells,
    over,
    isWhole: isAtEnd,
  } = await fill(limit, share, async (_, count) => {
    const found: CellRow[] = []
    for (let wanted = count; wanted > 0; wanted = count - found.length) {
      const read = await readCells(looked, looked + wanted)
      looked += read.length
      for (const { cell } of read) {
        await checkOrder(view, cell, last)
        last = cell
      }
      for (const row of await living(rows, read)) if (row !== undefined) found.push(row)
      if (read.length < wanted) break
    }
    return found
  })
  const next = over === undefined ? (last?.addedId ?? after) : over.addedId - 1
  // Behind as many places as it has looked at there may be more, though some of them have no cell.
  return { page: { shard: of.shard, cells, next }, isWhole: isAtEnd && looked < limit }
}

/**
 * Throws `invalid` for a place behind the end of the log as a current read sees it: no cell would ever be
 * found there, and a reader that waits there would miss the next cells. A replica that is behind does not
 * refuse a place: its end is not the log's.
 */
export async function checkWithin(view: ShardView, { shard, addedId }: PlaceAfter): Promise<void> {
  const { of, rows } = view
  if (addedId === 0 || (await logEntry(rows, of, { after: addedId - 1 })) !== undefined) return
  const last = await logEntry(rows, of, { after: 0, reverse: true })
  // A purge may have removed the last cells.
  const end = Math.max(last?.addedId ?? 0, await purgedAddedId(rows, of))
  if (addedId <= end) return
  const message = `the log of shard ${shard} of ${of.datastore} ends at added id ${end}, and ${addedId} is behind its end; go on after ${end}`
  throw new StoreError('invalid', message, { actual: addedId })
}

/** Pages of several answers, as far as one has room for their cells: those without go on from where it ended. */
export function fittingPages(pages: readonly Outcome<StoredLogPage>[]): Outcome<StoredLogPage>[] {
  const share = new AnswerRoom().share()
  return pages.map((page) => {
    if (page.kind === 'problem') return page
    const { shard, cells } = page.value
    const over = cells.findIndex((cell) => !share.take(cell))
    const first = cells[over]
    if (first === undefined) return page
    return { kind: 'ok', value: { shard, cells: cells.slice(0, over), next: first.addedId - 1 } }
  })
}

async function checkOrder(
  { of, rows }: ShardView,
  cell: StoredCell,
  previous: StoredCell | undefined,
): Promise<void> {
  if (previous === undefined) return
  assert(cell.addedId > previous.addedId, 'CELL-3: added ids are out of order')
  if (cell.addedId > previous.addedId + 1) {
    const purged = await purgedAddedId(rows, of)
    assert(cell.addedId <= purged + 1, 'CELL-3: there is a gap in the added ids above the purged')
  }
  assert(cell.createdAt >= previous.createdAt, 'CELL-3: a later cell has an earlier time')
}

/** The added id before the first cell of `time` or later: found by halving, since both rise. */
async function before({ of, rows }: ShardView, time: Timestamp): Promise<number> {
  const last = await logEntry(rows, of, { after: 0, reverse: true })
  // Readers ask for the end most: how far the log goes, and the cells from now on.
  if (last === undefined || last.createdAt < time) return last?.addedId ?? 0
  let low = 0
  let high = last.addedId
  // The cell of `low` is earlier than `time` (0 stands before all), those after `high` are not.
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    // The first one from there on: a purge leaves gaps.
    const entry = await logEntry(rows, of, { after: middle - 1 })
    assert(entry !== undefined, 'CELL-3: the log has lost its end')
    if (entry.createdAt < time) low = entry.addedId
    else high = middle - 1
  }
  return low
}
