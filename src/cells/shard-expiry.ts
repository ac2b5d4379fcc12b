/**
 * Removing cells of a shard that have expired, a batch at a time, each in one transaction. Cells of one TTL fall due
 * in the order in which they were added, so a look finds those that are due first, and reads no others.
 *
 * TTL-4  A cell is removed for its age by a transaction that has read it, at a view by whose timestamp it had
 *        expired. So no clock decides.
 *
 * HOLD-1 A cell that is held stays, though no read shows it.
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
import { heldRows } from './cell-holds.ts'
import { getCells, nextTtl, removeCells, scanTtl, type CellRow } from './cell-table.ts'
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
  /** Cells that are due and stay, since they are held. */
  readonly held: number
}

/** Of one batch. */
interface Removed {
  readonly gone: readonly Timestamp[]
  readonly held: number
}

interface Due extends CellName {
  readonly moment: Timestamp
}

interface Found {
  readonly due: readonly Due[]
  readonly next: Timestamp | undefined
}

/** Removes the cells that expire by `now`. The shard's log may not have reached that moment. */
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
  let held = 0
  let first = next
  for (let from = 0; from < due.length; from += cellsAtOnce) {
    const some = due.slice(from, from + cellsAtOnce)
    let gone = await removeSome(ports, of, some)
    // The log stood still since they expired; by its next entry they have.
    if (gone === 'not-yet') gone = await removeSome(ports, of, some)
    if (gone === 'not-yet') return { removed, next: some[0]?.moment, held }
    removed.push(...gone.gone)
    held += gone.held
    if (gone.held > 0) first = Math.min(first ?? now, some[0]?.moment ?? now)
  }
  return { removed, next: first, held }
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
): Promise<Removed | 'not-yet'> {
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
    if (second === 'not-yet') return second
    return { gone: [...first.gone, ...second.gone], held: first.held + second.held }
  }
}

async function removeDue(
  tx: GroupTransaction,
  ports: ExpiryPorts,
  of: ShardName,
  due: readonly Due[],
): Promise<Removed | 'not-yet'> {
  const asOf = present(await tx.asOf(), 'TTL-4: cells are removed at a moment')
  if (due.every(({ moment }) => moment > asOf)) {
    takePosition(tx)
    return 'not-yet'
  }
  const rows = await getCells(tx, of, due)
  const old = rows.flatMap((row) => (row !== undefined && isGone(agingOf(row), asOf) ? row : []))
  const held = await heldAmong(tx, of, old)
  const gone = old.filter(({ cell }) => held !== 'all' && !held.has(cell.rowKey))
  for (const row of gone) {
    const moment = expiresAt(agingOf(row))
    assert(moment !== undefined && moment <= asOf, 'TTL-4: a cell is removed before it has expired')
  }
  const cells = gone.map(({ cell }) => cell)
  if (cells.length === 0) return { gone: [], held: old.length }
  await removeCells(tx, of, cells)
  await keepIndexes(tx, of, cells, (await ports.rules()).indexes)
  const moments = gone.map((row) => expiresAt(agingOf(row)) ?? asOf)
  return { gone: moments, held: old.length - gone.length }
}

/** HOLD-1: the row keys among these that are held, or all of them. */
async function heldAmong(
  tx: GroupTransaction,
  of: ShardName,
  rows: readonly CellRow[],
): Promise<ReadonlySet<string> | 'all'> {
  try {
    return await heldRows(
      tx,
      of,
      rows.map(({ cell }) => cell.rowKey),
    )
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== 'invalid') throw error
    return 'all'
  }
}
