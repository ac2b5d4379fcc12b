/**
 * UUIDs as text and as 16 bytes. By tables and not by `toString('hex')` and slices: each row key goes
 * this way twice, and a text put together from pieces is kept by V8 as a tree of them.
 */
import { assert } from './assert.ts'

export const uuidBytes = 16
const textChars = 36

/** Where the two digits of each byte stand in the text. */
const places: readonly number[] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]

const digits: Uint8Array = Buffer.from('0123456789abcdef', 'latin1')

/** By character code: the digit, or 255. */
const values: Uint8Array = new Uint8Array(128).fill(255)
for (const [value, code] of digits.entries()) {
  values[code] = value
  values[String.fromCharCode(code).toUpperCase().charCodeAt(0)] = value
}

const text: Buffer = Buffer.alloc(textChars, '-')

/** In lower case. */
export function readUuid(bytes: Uint8Array, at: number): string {
  assert(at + uuidBytes <= bytes.length, 'uuid: its bytes are not all there')
  let from = at
  for (const place of places) {
    const byte = bytes[from++] ?? 0
    text[place] = digits[byte >> 4] ?? 0
    text[place + 1] = digits[byte & 15] ?? 0
  }
  return text.toString('latin1')
}

/** Of a text that has been checked. */
export function writeUuid(bytes: Uint8Array, uuid: string, at: number): void {
  assert(uuid.length === textChars, 'uuid: a text was not checked')
  let to = at
  for (const place of places) {
    const upper = values[uuid.charCodeAt(place)] ?? 255
    const lower = values[uuid.charCodeAt(place + 1)] ?? 255
    assert(upper + lower < 32, 'uuid: a text was not checked')
    bytes[to++] = (upper << 4) | lower
  }
}
