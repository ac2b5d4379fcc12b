/**
 * Removing cells of a shard that have expired, a batch at a time, each in one transaction. Cells of one TTL fall due
 * in the order in which they were added, so a look finds those that are due first, and reads no others.
 *
 * TTL-4  A cell is removed for its age by a transaction that has read it, at a view by whose timestamp it had
 *        expired. So no clock decides.
 *
 * Its column and the shard's log remember it, as they do a purged one (CELL-7, CELL-3), and what its row has in
 * indexes is made anew (IDX-7).
 */
import { assert, present } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { Timestamp } from '../base/ids.ts'
import type { GroupTables, TransactionCallOptions } from '../tables/tables.ts'
import { takePosition } from '../tables/notes.ts'
import type { GroupTransaction } from '../tables/types.ts'
import { getCells, nextTtl, removeCells, scanTtl } from './cell-table.ts'
import type { CellName, ShardName } from './cell.ts'
import type { ColumnRules } from './index-service.ts'
import { cellExpiryBounds } from './limits.ts'
import { agingOf, expiresAt, isGone } from './living.ts'
import { keepIndexes } from './shard-purge.ts'
import type { ShardView } from './shard-read.ts'

export interface ExpiryPorts {
  readonly tables: GroupTables
  /** The indexes that the cells may have a say in, as they are known now. */
  rules(): ColumnRules | Promise<ColumnRules>
}

/** The end of a look at a shard. */
export interface ShardSwept {
  /** When each cell that was removed had expired. */
  readonly removed: readonly Timestamp[]
  /** When the next cell expires; of those that are due and were left, the first. Absent: none does. */
  readonly next: Timestamp | undefined
}

interface Due extends CellName {
  readonly moment: Timestamp
}

interface Found {
  readonly due: readonly Due[]
  readonly next: Timestamp | undefined
}

/** Removes what is due by `now`, a moment that need not have come by the shard's log. */
export async function sweepShard(
  ports: ExpiryPorts,
  of: ShardName,
  now: Timestamp,
): Promise<ShardSwept> {
  const options = { timeoutMs: cellExpiryBounds.callMs }
  const look = await ports.tables.read('snapshot', (rows) => findDue({ rows, of }, now), options)
  const { due, next } = look.value
  const { cellsAtOnce } = cellExpiryBounds
  const removed: Timestamp[] = []
  for (let from = 0; from < due.length; from += cellsAtOnce) {
    const some = due.slice(from, from + cellsAtOnce)
    let gone = await removeSome(ports, of, some)
    // The log stood still since they expired; by its next entry they have.
    if (gone === 'not-yet') gone = await removeSome(ports, of, some)
    if (gone === 'not-yet') return { removed, next: some[0]?.moment }
    removed.push(...gone)
  }
  return { removed, next }
}

/** Of each TTL the cells that are due, and when the first of the others expires. */
async function findDue({ rows, of }: ShardView, now: Timestamp): Promise<Found> {
  const due: Due[] = []
  let next: Timestamp | undefined
  const see = (moment: Timestamp): void => {
    next = Math.min(moment, next ?? moment)
  }
  const { cellsAtOnce: limit, cellsAtLookMax } = cellExpiryBounds
  let ttl = await nextTtl(rows, of, 0)
  for (; ttl !== undefined; ttl = await nextTtl(rows, of, ttl)) {
    for (let cursor: string | undefined; ;) {
      const page = await scanTtl(rows, of, ttl, { limit, ...(cursor !== undefined && { cursor }) })
      const moments = page.items.map(({ createdAt }) =>
        present(expiresAt({ createdAt, ttl }), 'TTL-4: a cell with a TTL expires'),
      )
      const young = moments.findIndex((moment) => moment > now || due.length >= cellsAtLookMax)
      const old = young < 0 ? page.items : page.items.slice(0, young)
      for (const [place, { rowKey, column, refKey }] of old.entries()) {
        due.push({ rowKey, column, refKey, moment: moments[place] ?? now })
      }
      const first = moments[young]
      if (first !== undefined) see(first)
      cursor = page.cursor
      if (young >= 0 || cursor === undefined) break
    }
  }
  return { due: due.sort((a, b) => a.moment - b.moment), next }
}

/** When each of those had expired that were there and are removed. */
async function removeSome(
  ports: ExpiryPorts,
  of: ShardName,
  due: readonly Due[],
): Promise<readonly Timestamp[] | 'not-yet'> {
  const options: TransactionCallOptions = {
    timeoutMs: cellExpiryBounds.callMs,
    from: 'snapshot',
  }
  try {
    const done = await ports.tables.transaction((tx) => removeDue(tx, ports, of, due), options)
    return done.value
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== 'too-large' || due.length === 1)
      throw error
    const half = Math.ceil(due.length / 2)
    const first = await removeSome(ports, of, due.slice(0, half))
    if (first === 'not-yet') return first
    const second = await removeSome(ports, of, due.slice(half))
    return second === 'not-yet' ? second : [...first, ...second]
  }
}

async function removeDue(
  tx: GroupTransaction,
  ports: ExpiryPorts,
  of: ShardName,
  due: readonly Due[],
): Promise<readonly Timestamp[] | 'not-yet'> {
  const asOf = present(await tx.asOf(), 'TTL-4: cells are removed at a moment')
  if (due.every(({ moment }) => moment > asOf)) {
    takePosition(tx)
    return 'not-yet'
  }
  const rows = await getCells(tx, of, due)
  const gone = rows.flatMap((row) => (row !== undefined && isGone(agingOf(row), asOf) ? row : []))
  for (const row of gone) {
    const moment = expiresAt(agingOf(row))
    assert(moment !== undefined && moment <= asOf, 'TTL-4: a cell is removed before it has expired')
  }
  const cells = gone.map(({ cell }) => cell)
  if (cells.length === 0) return []
  await removeCells(tx, of, cells)
  await keepIndexes(tx, of, cells, (await ports.rules()).indexes)
  return gone.map((row) => expiresAt(agingOf(row)) ?? asOf)
}
