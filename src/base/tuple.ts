/**
 * Order-preserving tuples: the bytes of two tuples compare as the tuples do, element by element,
 * and the encoding of a prefix is a prefix of the encoding.
 *
 * Element kinds in order: bytes, string (by UTF-8 bytes), integer (safe integers, negative too).
 * Kinds must not be mixed at one place of a key; if they are, they order by kind.
 */
import { assert } from './assert.ts'

export type TupleElement = Uint8Array | string | number

const kindBytes = 0x10
const kindString = 0x20
const kindInteger = 0x30

/** Integers are 1 kind byte and 8 bytes: the safe range shifted to be positive, big-endian. */
const integerBytes = 9
const twoTo32 = 2 ** 32
/** The shift is 2^53; of the upper four bytes that is this. */
const shiftOfUpper = 2 ** 21

const halfPair = /\p{Surrogate}/u

export function encodeTuple(elements: readonly TupleElement[]): Uint8Array {
  const raws = elements.map(encodeRaw)
  const bytes = Buffer.allocUnsafe(raws.reduce((sum: number, raw) => sum + countBytes(raw), 0))
  let at = 0
  for (const [index, raw] of raws.entries()) {
    if (typeof raw === 'number') at = writeInteger(bytes, raw, at)
    else at = writeTerminated(bytes, typeof elements[index] === 'string', raw, at)
  }
  return bytes
}

/** Whether text may stand in a key. */
export function isWholeText(text: string): boolean {
  return !halfPair.test(text)
}

/** A number as it is; anything else as the bytes to be escaped. */
function encodeRaw(element: TupleElement): Uint8Array | number {
  if (typeof element === 'number') {
    assert(Number.isSafeInteger(element), 'tuple: a number in a key is a safe integer')
    return element
  }
  if (typeof element !== 'string') return element
  // Half a surrogate pair has no UTF-8 bytes: two such strings would become one key.
  assert(isWholeText(element), 'tuple: text in a key is whole characters')
  return Buffer.from(element)
}

function countBytes(raw: Uint8Array | number): number {
  if (typeof raw === 'number') return integerBytes
  let length = raw.length + 3
  for (let i = 0; i < raw.length; i++) if (raw[i] === 0) length += 1
  return length
}

function writeInteger(bytes: Buffer, value: number, at: number): number {
  bytes[at] = kindInteger
  // A sum above 2^53 would lose digits, so the two halves are written on their own.
  const upper = Math.floor(value / twoTo32)
  bytes.writeUInt32BE(shiftOfUpper + upper, at + 1)
  bytes.writeUInt32BE(value - upper * twoTo32, at + 5)
  return at + integerBytes
}

/** 0x00 inside becomes 0x00 0xff; a 0x00 0x01 ends it, so that a prefix sorts before what it opens. */
function writeTerminated(bytes: Buffer, isText: boolean, raw: Uint8Array, from: number): number {
  let at = from
  bytes[at++] = isText ? kindString : kindBytes
  for (let i = 0; i < raw.length; i++) {
    const byte = raw[i] ?? 0
    bytes[at++] = byte
    if (byte === 0) bytes[at++] = 0xff
  }
  bytes[at++] = 0
  bytes[at++] = 1
  return at
}

/** The elements, or undefined when the bytes are not a whole tuple. */
export function decodeTuple(bytes: Uint8Array): TupleElement[] | undefined {
  const elements: TupleElement[] = []
  let at = 0
  while (at < bytes.length) {
    const next = decodeElement(bytes, at)
    if (next === undefined) return undefined
    elements.push(next.element)
    at = next.end
  }
  return elements
}

function decodeElement(
  bytes: Uint8Array,
  at: number,
): { readonly element: TupleElement; readonly end: number } | undefined {
  const kind = bytes[at]
  if (kind === kindInteger) {
    const end = at + integerBytes
    if (end > bytes.length) return undefined
    const view = Buffer.from(bytes.buffer, bytes.byteOffset + at + 1, 8)
    const element = (view.readUInt32BE() - shiftOfUpper) * twoTo32 + view.readUInt32BE(4)
    return Number.isSafeInteger(element) ? { element, end } : undefined
  }
  if (kind !== kindBytes && kind !== kindString) return undefined
  const raw: number[] = []
  for (let i = at + 1; i + 1 < bytes.length; i++) {
    const byte = bytes[i] ?? 0
    if (byte !== 0) raw.push(byte)
    else if (bytes[i + 1] === 1) {
      const element = kind === kindBytes ? Buffer.from(raw) : decodeText(raw)
      return element === undefined ? undefined : { element, end: i + 2 }
    } else if (bytes[++i] === 0xff) raw.push(0)
    else return undefined
  }
  return undefined
}

/** The text, or undefined where decoding would mend the bytes and so make two keys equal. */
function decodeText(raw: readonly number[]): string | undefined {
  const bytes = Buffer.from(raw)
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? text : undefined
}

/** The first key after every key that starts with `prefix`; undefined when there is none. */
export function afterPrefix(prefix: Uint8Array): Uint8Array | undefined {
  const end = Buffer.from(prefix)
  for (let i = end.length - 1; i >= 0; i--) {
    const byte = end[i] ?? 0
    if (byte < 0xff) {
      end[i] = byte + 1
      return end.subarray(0, i + 1)
    }
  }
  return undefined
}
