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
const shortBytes = 0xc4
const longBytes = 0xc6
/** Numbers below stand for themselves. */
const plainNumberMax = 0x7f

/** A view of the bytes behind the property's number; undefined: unpack the row to know. */
export function bytesField(row: Uint8Array, number: number): Uint8Array | undefined {
  if (row[0] !== plainFormat && row[0] !== numberedFormat) return undefined
  let at = row[0] === plainFormat ? 1 : 1 + countBytes
  const count = (row[at++] ?? 0) - shortList
  for (let pair = 0; 2 * pair < count && count <= 15; pair++) {
    const found = row[at++] ?? Infinity
    const mark = row[at++] ?? 0
    if (found > plainNumberMax || mark < shortBytes || mark > longBytes) return undefined
    let length = 0
    const lengthEnd = at + 2 ** (mark - shortBytes)
    while (at < lengthEnd) length = length * 256 + (row[at++] ?? 0)
    if (at + length > row.length) return undefined
    if (found === number) return row.subarray(at, at + length)
    at += length
  }
  return undefined
}
