/**
 * When cells expire: each with the TTL that its put gave it, counted from the entry that wrote it. A shard's
 * reads are of a timestamp of its log, and that decides: so all replicas agree, and it does not matter how soon
 * an expired cell is removed (`shard-expiry.ts`).
 *
 * TTL-3  A read shows a cell that expires iff it had not expired by the read's own timestamp.
 */
import type { Page } from '../base/page.ts'
import { present } from '../base/assert.ts'
import type { Timestamp } from '../base/ids.ts'
import type { ScanOptions } from '../tables/read-rows.ts'
import type { GroupReader } from '../tables/types.ts'
import { getCells, scanColumn, type CellRow } from './cell-table.ts'
import type { CellName, ShardName } from './cell.ts'

const microsPerSecond = 1_000_000
/** Rows read at once behind those that have expired. */
const furtherRows = 16

/** A cell's moment and its TTL, in seconds. */
export interface Aging {
  readonly createdAt: Timestamp
  readonly ttl: number | undefined
}

/** The first moment at which the cell is not there any more; undefined: it stays. */
export function expiresAt({ createdAt, ttl }: Aging): Timestamp | undefined {
  return ttl === undefined ? undefined : createdAt + ttl * microsPerSecond
}

/** TTL-3: is the cell in no read at this timestamp? */
export function isGone(cell: Aging, asOf: Timestamp): boolean {
  const moment = expiresAt(cell)
  return moment !== undefined && moment <= asOf
}

export function agingOf({ cell: { createdAt }, ttl }: Pick<CellRow, 'cell' | 'ttl'>): Aging {
  return { createdAt, ttl }
}

/** Of these rows those that the view shows, in their order; undefined in the place of others. */
export async function living<Found extends CellRow | undefined>(
  rows: GroupReader,
  found: readonly Found[],
): Promise<readonly (Found | undefined)[]> {
  if (found.every((row) => row?.ttl === undefined)) return found
  const asOf = present(await rows.asOf(), 'TTL-3: cells are read at a moment')
  return found.map((row) => (row === undefined || isGone(agingOf(row), asOf) ? undefined : row))
}

/** In the order of `names`; undefined where there is none, or it has expired. */
export async function getLiving(
  rows: GroupReader,
  of: ShardName,
  names: readonly CellName[],
): Promise<readonly (CellRow | undefined)[]> {
  return living(rows, await getCells(rows, of, names))
}

/** A page of a column's versions that the view shows. */
export async function scanLiving(
  rows: GroupReader,
  of: ShardName,
  column: Omit<CellName, 'refKey'> & { readonly from?: number },
  options: ScanOptions & { readonly limit: number },
): Promise<Page<CellRow>> {
  const items: CellRow[] = []
  for (let { cursor } = options; ;) {
    const rest = { ...options, limit: options.limit - items.length }
    const page = await scanColumn(rows, of, column, {
      ...rest,
      ...(cursor !== undefined && { cursor }),
    })
    for (const row of await living(rows, page.items)) if (row !== undefined) items.push(row)
    cursor = page.cursor
    if (items.length >= options.limit || cursor === undefined) return { items, cursor }
  }
}

/** CELL-2: the one with the highest ref key, of those that the view shows. */
export async function latestLiving(
  rows: GroupReader,
  of: ShardName,
  column: Omit<CellName, 'refKey'>,
): Promise<CellRow | undefined> {
  let limit = 1
  for (let cursor: string | undefined; ;) {
    const options = { reverse: true, limit, ...(cursor !== undefined && { cursor }) }
    const page = await scanColumn(rows, of, column, options)
    const latest = (await living(rows, page.items)).find((row) => row !== undefined)
    if (latest !== undefined || page.cursor === undefined) return latest
    cursor = page.cursor
    limit = furtherRows
  }
}
