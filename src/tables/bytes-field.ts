/**
 * One property of a stored row that is bytes, without unpacking the others: for who reads a single property of
 * many rows. Reads the few forms in which rows of bytes alone are written (`row-value.ts`); of others it
 * says nothing, and the row is unpacked as usual.
 */
import { countBytes } from './key-codec.ts'

const plainFormat = 1
const numberedFormat = 2
/** MessagePack: lists up to 15, and bytes with a length of one, two or four bytes. */
const shortList = 0x90
const shortListMax = 15
const shortBytes = 0xc4
const longBytes = 0xc6
/** Numbers below stand for themselves. */
const plainNumberMax = 0x7f

/** Whether the row has no more properties than three that are bytes: what a cell without a TTL has. */
export function bytesOnly(row: Uint8Array): boolean {
  return ((row[listAt(row)] ?? 0) - shortList) / 2 === 3
}

/** A view of the bytes behind the property's number; undefined: unpack the row to know. */
export function bytesField(row: Uint8Array, number: number): Uint8Array | undefined {
  let at = listAt(row)
  const count = (row[at] ?? 0) - shortList
  if (at === 0 || count > shortListMax) return undefined
  at += 1
  for (let place = 0; place < count; place += 2) {
    const found = row[at] ?? Infinity
    const from = contentAt(row, at + 1)
    const end = from + lengthBefore(row, at + 2, from)
    if (found > plainNumberMax || from === 0 || end > row.length) return undefined
    if (found === number) return row.subarray(from, end)
    at = end
  }
  return undefined
}

/** Where the list of fields begins; 0 for what is no row. */
function listAt(row: Uint8Array): number {
  if (row[0] === numberedFormat) return 1 + countBytes
  return row[0] === plainFormat ? 1 : 0
}

/** Where the content of the bytes begins whose mark is at this place; 0 when no bytes are there. */
function contentAt(row: Uint8Array, at: number): number {
  const mark = row[at] ?? 0
  return mark < shortBytes || mark > longBytes ? 0 : at + 1 + 2 ** (mark - shortBytes)
}

/** The length that stands between two places. */
function lengthBefore(row: Uint8Array, from: number, end: number): number {
  let length = 0
  for (let at = from; at < end; at++) length = length * 256 + (row[at] ?? 0)
  return length
}
