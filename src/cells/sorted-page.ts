/**
 * Pages of entries that are sorted anew for each of them. A cursor says what the last entry of its page is, not
 * how many came before it: entries that come and go between two pages are seen or not, and all others once.
 */
import { compareBytes, compareText, equalBytes } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type { FieldValues } from './index-row.ts'
import { compareValues, sortBytes, type IndexType } from './index-values.ts'

export interface SortedEntry {
  readonly rowKey: string
  readonly values: FieldValues
}

/** By the field at this place, of this type; entries of one value by their rows. */
export interface Sorting {
  readonly place: number
  readonly type: IndexType
  readonly reverse: boolean
}

/** Of a long value as much as `sortBytes` has. */
interface Cursor {
  readonly rowKey: string
  readonly sort: Uint8Array
}

const rowKeyPattern = /^[0-9a-f-]{36}/

export function makeOrder({ place, reverse }: Sorting): (a: SortedEntry, b: SortedEntry) => number {
  const order = (a: SortedEntry, b: SortedEntry): number =>
    compareValues(a.values[place] ?? null, b.values[place] ?? null) ||
    compareText(a.rowKey, b.rowKey)
  return reverse ? (a, b) => order(b, a) : order
}

export function cursorAt(entry: SortedEntry, sorting: Sorting): string {
  return `${entry.rowKey}${Buffer.from(encodeSort(entry, sorting)).toString('base64url')}`
}

/** How many of the sorted entries come before the page. Throws `invalid` for what is no cursor of such pages. */
export function startAt(
  sorted: readonly SortedEntry[],
  text: string | undefined,
  sorting: Sorting,
): number {
  if (text === undefined) return 0
  const cursor = parseCursor(text)
  const last = sorted.findIndex(
    (entry) =>
      entry.rowKey === cursor.rowKey && equalBytes(encodeSort(entry, sorting), cursor.sort),
  )
  if (last >= 0) return last + 1
  const next = sorted.findIndex((entry) => isBehind(entry, cursor, sorting))
  return next < 0 ? sorted.length : next
}

function isBehind(entry: SortedEntry, { rowKey, sort }: Cursor, sorting: Sorting): boolean {
  const order = compareBytes(encodeSort(entry, sorting), sort) || compareText(entry.rowKey, rowKey)
  return sorting.reverse ? order < 0 : order > 0
}

function encodeSort({ values }: SortedEntry, { place, type }: Sorting): Uint8Array {
  return sortBytes(type, values[place] ?? null)
}

function parseCursor(text: string): Cursor {
  const [rowKey] = rowKeyPattern.exec(text) ?? []
  const sort = Buffer.from(text.slice(rowKey?.length), 'base64url')
  if (rowKey !== undefined && sort.length > 0) return { rowKey, sort }
  const message = 'this cursor is of another query; give the one that the page before came with'
  throw new StoreError('invalid', message)
}
