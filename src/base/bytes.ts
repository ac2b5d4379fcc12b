/** Small helpers over bytes; all compare and copy as LevelDB does, unsigned and lexicographic. */
import { crc32 as zlibCrc32 } from 'node:zlib'
import { hash } from 'node:crypto'
import { assert } from './assert.ts'

/** A Buffer over the same memory: faster methods, no copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Typed arrays up to here are made on V8's own heap. */
const heapBytesMax = 64

/**
 * A copy of the bytes in memory of its own, or beside other small copies. For a typed array above
 * `heapBytesMax` V8 calls the system's allocator, which takes five times as long as copying.
 */
export function copyBytes(bytes: Uint8Array): Uint8Array {
  if (bytes.length <= heapBytesMax) return new Uint8Array(bytes)
  const { buffer, byteOffset, length } = Buffer.from(bytes)
  return new Uint8Array(buffer, byteOffset, length)
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a === b || (a.length === b.length && asBuffer(a).equals(b))
}

export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  return Buffer.compare(a, b)
}

/** One byte a character: a key for a Map that orders as the bytes do. */
export function latin1(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('latin1')
}

export function fromLatin1(text: string): Uint8Array {
  return Buffer.from(text, 'latin1')
}

/** Strings compare by UTF-16 unit: for latin1 strings that is byte order. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** As their UTF-8 bytes compare: by code point. */
export function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  let i = 0
  while (i < length && a.charCodeAt(i) === b.charCodeAt(i)) i += 1
  if (i === length) return a.length - b.length
  return rankUnit(a.charCodeAt(i)) - rankUnit(b.charCodeAt(i))
}

/** A half of a pair stands for a code point above all that are one unit. */
function rankUnit(unit: number): number {
  const isHalf = unit >= 0xd800 && unit <= 0xdfff
  return isHalf ? unit + 0x1_0000 : unit
}

const twoTo32 = 2 ** 32

/** Writes a whole number from 0 to 2^53 - 1 as 8 bytes, big-endian; without a BigInt on the way. */
export function writeCount(bytes: Buffer, value: number, at: number): void {
  assert(Number.isSafeInteger(value) && value >= 0, 'bytes: a stored number is a safe integer')
  bytes.writeUInt32BE(Math.floor(value / twoTo32), at)
  bytes.writeUInt32BE(value >>> 0, at + 4)
}

export function readCount(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) * twoTo32 + bytes.readUInt32BE(at + 4)
}

/** The most bytes that `writeVar` writes: 53 bits. */
export const varBytesMax = 8
const varBits = 0x80

/** A safe integer from 0 by 7 bits a byte, the lowest first (LEB128); gives where the next field begins. */
export function writeVar(bytes: Buffer, value: number, at: number): number {
  if (value < varBits) {
    bytes[at] = value
    return at + 1
  }
  assert(Number.isSafeInteger(value), 'bytes: a stored number is a safe integer')
  let [rest, next] = [value, at]
  for (; rest >= varBits; rest = Math.floor(rest / varBits))
    bytes[next++] = (rest % varBits) + varBits
  bytes[next] = rest
  return next + 1
}

/** The number at a place, or undefined when what is there is none, or not as `writeVar` writes it. */
export function readVar(bytes: Uint8Array, at: number): number | undefined {
  const first = bytes[at]
  if (first === undefined || first < varBits) return first
  let [value, factor] = [first - varBits, varBits]
  for (let next = at + 1; next < at + varBytesMax; next++) {
    const byte = bytes[next] ?? 0
    value += (byte % varBits) * factor
    if (byte < varBits) return byte > 0 && Number.isSafeInteger(value) ? value : undefined
    factor *= varBits
  }
  return undefined
}

/** How long a number is as `writeVar` writes it. */
export function varBytes(value: number): number {
  let length = 1
  for (let rest = value; rest >= varBits; rest = Math.floor(rest / varBits)) length += 1
  return length
}

/** CRC-32 of `bytes`, going on from `from`. */
export function crc32(bytes: Uint8Array, from = 0): number {
  return zlibCrc32(bytes, from)
}

/** The first 16 bits of the SHA-256 of `bytes`. */
export function sha256Start(bytes: Uint8Array): number {
  const digest = hash('sha256', bytes, 'binary')
  return digest.charCodeAt(0) * 256 + digest.charCodeAt(1)
}

/** SHA-256 of `bytes`, 32 bytes. */
export function sha256(bytes: Uint8Array | string): Buffer {
  // Text is handed over in a third of the time that a buffer of memory of its own takes.
  return Buffer.from(hash('sha256', bytes, 'binary'), 'binary')
}

/** SHA-1 of `bytes`, 20 characters of latin1 text: against damage, not against a forger. */
export function sha1Text(bytes: Uint8Array): string {
  return hash('sha1', bytes, 'binary')
}
