/** Overlay and data store as one ordered range of rows: where both have a key, the overlay wins. */
import { compareBytes } from '../base/bytes.ts'
import type { Range } from '../ports/storage.ts'
import { sizeInBytes, type PageRange, type Row, type RowRange } from '../group/replica-port.ts'
import type { OverlayRow } from './overlay.ts'
import {
  afterHistory,
  afterRows,
  afterVersions,
  historyPrefix,
  joined,
  rowsPrefix,
  versionsPrefix,
} from './row-format.ts'

/** The data store's keys for a range of a group's rows. `hidden`: rows the overlay may hide. */
export function storeRange(prefix: Uint8Array, range: RowRange, hidden: number): Range {
  const { lt, reverse, limit } = range
  return {
    lt: lt === undefined ? afterRows(prefix) : joined(rowsPrefix(prefix), lt),
    ...lowerBound(rowsPrefix(prefix), range),
    ...(reverse === undefined ? {} : { reverse }),
    ...(limit === undefined ? {} : { limit: limit + hidden }),
  }
}

/** The keys of the same range in the group's history: all versions of all its rows. */
export function historyRange(prefix: Uint8Array, range: RowRange): Range {
  const { gte, gt, lt, reverse } = range
  const history = historyPrefix(prefix)
  const isAbove = isTighter(range)
  const from = gte === undefined ? history : versionsPrefix(history, gte, false)
  return {
    gte: isAbove && gt !== undefined ? afterVersions(history, gt) : from,
    lt: lt === undefined ? afterHistory(prefix) : versionsPrefix(history, lt, false),
    ...(reverse === undefined ? {} : { reverse }),
  }
}

/** One bound, the tighter one: stores differ in which of two they heed. */
function lowerBound(rows: Uint8Array, range: RowRange): Range {
  const { gte, gt } = range
  if (gt !== undefined && isTighter(range)) return { gt: joined(rows, gt) }
  return { gte: gte === undefined ? rows : joined(rows, gte) }
}

/** Whether `gt` says more than `gte`. */
function isTighter({ gte, gt }: RowRange): boolean {
  return gt !== undefined && (gte === undefined || compareBytes(gt, gte) >= 0)
}

/**
 * Both sides are in the range's order. It asks `stored` for its first rows at once, before it
 * returns, so that both are of the moment of the call.
 */
export async function mergeRows(
  overlay: readonly OverlayRow[],
  stored: AsyncIterable<readonly Row[]>,
  range: PageRange,
): Promise<readonly Row[]> {
  const merge = new Merge(overlay, range)
  for await (const rows of stored) {
    for (const row of rows) merge.add(row)
    if (merge.isFull) break
  }
  merge.end()
  return merge.rows
}

class Merge {
  readonly rows: Row[] = []
  readonly #overlay: readonly OverlayRow[]
  readonly #limit: number
  readonly #bytesMax: number
  readonly #sign: number
  /** Of the overlay, the first row that is not in yet. */
  #next = 0
  #bytes = 0

  constructor(overlay: readonly OverlayRow[], { limit, bytesMax, reverse }: PageRange) {
    this.#overlay = overlay
    this.#limit = limit ?? Number.POSITIVE_INFINITY
    this.#bytesMax = bytesMax ?? Number.POSITIVE_INFINITY
    this.#sign = reverse === true ? -1 : 1
  }

  get isFull(): boolean {
    return this.rows.length >= this.#limit || this.#bytes > this.#bytesMax
  }

  /** A stored row, behind what the overlay has before it; it may be hidden by the overlay's own. */
  add(row: Row): void {
    for (let first = this.#first(); first !== undefined; first = this.#first()) {
      const order = this.#sign * compareBytes(first.key, row.key)
      if (order > 0) break
      this.#take(first)
      if (order === 0) return
    }
    if (!this.isFull) this.#push(row)
  }

  /** There are no more stored rows. */
  end(): void {
    for (let first = this.#first(); first !== undefined; first = this.#first()) this.#take(first)
  }

  #first(): OverlayRow | undefined {
    return this.isFull ? undefined : this.#overlay[this.#next]
  }

  #take({ key, value, timestamp }: OverlayRow): void {
    this.#next += 1
    if (value !== undefined) this.#push({ key, value, timestamp })
  }

  #push(row: Row): void {
    this.rows.push(row)
    this.#bytes += sizeInBytes(row)
  }
}
