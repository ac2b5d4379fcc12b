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
const shift = 2n ** 53n

const halfPair = /\p{Surrogate}/u

export function encodeTuple(elements: readonly TupleElement[]): Uint8Array {
  return Buffer.concat(elements.map(encodeElement))
}

function encodeElement(element: TupleElement): Uint8Array {
  if (typeof element === 'number') {
    assert(Number.isSafeInteger(element), 'tuple: a number in a key is a safe integer')
    const bytes = Buffer.allocUnsafe(integerBytes)
    bytes[0] = kindInteger
    bytes.writeBigUInt64BE(BigInt(element) + shift, 1)
    return bytes
  }
  if (typeof element !== 'string') return terminated(kindBytes, element)
  // Half a surrogate pair has no UTF-8 bytes: two such strings would become one key.
  assert(!halfPair.test(element), 'tuple: text in a key is whole characters')
  return terminated(kindString, Buffer.from(element))
}

/** 0x00 inside becomes 0x00 0xff; a 0x00 0x01 ends it, so that a prefix sorts before what it opens. */
function terminated(kind: number, raw: Uint8Array): Uint8Array {
  const out: number[] = [kind]
  for (const byte of raw) {
    out.push(byte)
    if (byte === 0) out.push(0xff)
  }
  out.push(0, 1)
  return Uint8Array.from(out)
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
    const element = Number(view.readBigUInt64BE() - shift)
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
