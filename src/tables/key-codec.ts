/**
 * Values in keys: bytes that compare as the values do, each ending by itself, so that no value's bytes
 * begin another's (TAB-1). DESC inverts them. Table in SPEC.md.
 */
import { assert, unreachable } from '../base/assert.ts'
import { bufferOf, readCount, writeCount } from '../base/bytes.ts'
import type { PropertyKind } from '../../schema/model.ts'
import type { KeyPart } from './compile.ts'

const twoTo32 = 2 ** 32
/** 2^53, by which whole numbers are shifted to be positive; of the upper four bytes that is this. */
const shiftOfUpper = 2 ** 21
const int64Shift = 2n ** 63n
export const countBytes = 8
const uuidBytes = 16
/** Most keys are no longer. */
const firstBytes = 64

/** Bytes in the making. */
export class ByteSink {
  #bytes: Buffer = Buffer.allocUnsafe(firstBytes)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** What is written so far; more may follow, this stays. */
  get written(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  /** Room for so many bytes more, in `bytes` from the place that is given. */
  extend(count: number): number {
    const at = this.#length
    this.#length += count
    if (this.#length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(2 * this.#length)
      larger.set(this.#bytes.subarray(0, at))
      this.#bytes = larger
    }
    return at
  }

  get bytes(): Buffer {
    return this.#bytes
  }

  add(bytes: Uint8Array): void {
    const at = this.extend(bytes.length)
    this.#bytes.set(bytes, at)
  }

  /** Gives back what was not needed. */
  cut(length: number): void {
    this.#length = length
  }
}

/** The bytes of a checked value. */
export function encodePart(part: KeyPart, value: unknown): Buffer {
  const sink = new ByteSink()
  writePart(sink, part, value)
  return sink.written
}

/** Writes a checked value behind what is there. */
export function writePart(sink: ByteSink, { kind, direction }: KeyPart, value: unknown): void {
  const from = sink.length
  writeAscending(sink, kind, value)
  if (direction === 'desc') invert(sink.bytes, from, sink.length)
}

function writeAscending(sink: ByteSink, kind: PropertyKind, value: unknown): void {
  switch (typeof value) {
    case 'string':
      if (kind === 'uuid') return writeUuid(sink, value)
      return writeText(sink, value)
    case 'boolean': {
      const at = sink.extend(1)
      sink.bytes[at] = value ? 1 : 0
      return
    }
    case 'bigint': {
      const at = sink.extend(countBytes)
      sink.bytes.writeBigUInt64BE(value + int64Shift, at)
      return
    }
    case 'number':
      return writeNumber(sink, kind, value)
    default:
      assert(value instanceof Uint8Array, 'TAB-1: a key has values of types with an order')
      return writeEscaped(sink, value)
  }
}

function writeUuid(sink: ByteSink, value: string): void {
  const at = sink.extend(uuidBytes)
  sink.bytes.write(value.replaceAll('-', ''), at, 'hex')
}

function writeNumber(sink: ByteSink, kind: PropertyKind, value: number): void {
  const length = kind === 'int32' || kind === 'float' ? 4 : countBytes
  const at = sink.extend(length)
  const { bytes } = sink
  switch (kind) {
    case 'int32':
      bytes.writeUInt32BE(value + 2 ** 31, at)
      return
    case 'sequence':
      return writeCount(bytes, value, at)
    case 'float':
      bytes.writeFloatBE(value, at)
      return turn(bytes, at, length)
    case 'double':
      bytes.writeDoubleBE(value, at)
      return turn(bytes, at, length)
    default: {
      // The sum would lose digits above 2^53, so the two halves are written on their own.
      const upper = Math.floor(value / twoTo32)
      bytes.writeUInt32BE(shiftOfUpper + upper, at)
      bytes.writeUInt32BE(value - upper * twoTo32, at + 4)
    }
  }
}

/** Text seldom has a 0x00: then its bytes stand as they are. */
function writeText(sink: ByteSink, text: string): void {
  const at = sink.extend(3 * text.length + 2)
  const { bytes } = sink
  const end = at + bytes.write(text, at, 'utf8')
  if (bytes.subarray(at, end).includes(0)) {
    sink.cut(at)
    return writeEscaped(sink, Buffer.from(text))
  }
  bytes[end] = 0
  bytes[end + 1] = 1
  sink.cut(end + 2)
}

/** 0x00 becomes 0x00 0xff; 0x00 0x01 ends it, so what is longer comes later. */
function writeEscaped(sink: ByteSink, raw: Uint8Array): void {
  let at = sink.extend(2 * raw.length + 2)
  const { bytes } = sink
  for (const byte of raw) {
    bytes[at++] = byte
    if (byte === 0) bytes[at++] = 0xff
  }
  bytes[at++] = 0
  bytes[at++] = 1
  sink.cut(at)
}

/** IEEE numbers order as their bits do when negative ones are inverted and the sign turned around. */
function turn(bytes: Buffer, at: number, length: number): void {
  const first = bytes[at] ?? 0
  if ((first & 0x80) !== 0) invert(bytes, at, at + length)
  else bytes[at] = first | 0x80
}

function turnedBack(bytes: Buffer): Buffer {
  if (((bytes[0] ?? 0) & 0x80) === 0) return inverted(bytes)
  const back = Buffer.from(bytes)
  back[0] = (back[0] ?? 0) & 0x7f
  return back
}

function inverted(bytes: Uint8Array): Buffer {
  const other = Buffer.from(bytes)
  invert(other, 0, other.length)
  return other
}

function invert(bytes: Buffer, from: number, to: number): void {
  for (let i = from; i < to; i++) bytes[i] = ~(bytes[i] ?? 0) & 0xff
}

/** A value that was read, and where the next one begins. */
export interface DecodedPart {
  readonly value: unknown
  readonly end: number
}

/** The value that starts at `at`, and where it ends; undefined when there is none of this type. */
export function decodePart(
  { kind, direction }: KeyPart,
  bytes: Uint8Array,
  at: number,
): DecodedPart | undefined {
  if (direction === 'asc') return decodeAscending(kind, bufferOf(bytes), at)
  const decoded = decodeAscending(kind, inverted(bytes.subarray(at)), 0)
  return decoded && { value: decoded.value, end: at + decoded.end }
}

function decodeAscending(kind: PropertyKind, bytes: Buffer, at: number): DecodedPart | undefined {
  if (kind === 'string' || kind === 'bytes') return decodeEscaped(kind, bytes, at)
  const end = at + lengthOf(kind)
  return end > bytes.length ? undefined : { value: fixed(kind, bytes, at), end }
}

function lengthOf(kind: PropertyKind): number {
  if (kind === 'bool') return 1
  if (kind === 'uuid') return uuidBytes
  return kind === 'int32' || kind === 'float' ? 4 : countBytes
}

function fixed(
  kind: Exclude<PropertyKind, 'string' | 'bytes'>,
  bytes: Buffer,
  at: number,
): unknown {
  switch (kind) {
    case 'bool':
      return bytes[at] === 1
    case 'int32':
      return bytes.readUInt32BE(at) - 2 ** 31
    case 'int64':
      return bytes.readBigUInt64BE(at) - int64Shift
    case 'float':
      return turnedBack(bytes.subarray(at, at + 4)).readFloatBE()
    case 'double':
      return turnedBack(bytes.subarray(at, at + countBytes)).readDoubleBE()
    case 'sequence':
      return readCount(bytes, at)
    case 'uuid':
      return uuidOf(bytes.toString('hex', at, at + uuidBytes))
    case 'integer':
    case 'timestamp':
      return (bytes.readUInt32BE(at) - shiftOfUpper) * twoTo32 + bytes.readUInt32BE(at + 4)
    case 'json':
    case 'message':
      return assert(false, 'TAB-1: a key has values of types with an order')
    default:
      return unreachable(kind)
  }
}

function uuidOf(hex: string): string {
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)]
  return `${parts.join('-')}-${hex.slice(20)}`
}

/** Up to the 0x00 that ends it; mostly there is none before. */
function decodeEscaped(
  kind: 'string' | 'bytes',
  bytes: Buffer,
  at: number,
): DecodedPart | undefined {
  const zero = bytes.indexOf(0, at)
  const raw =
    zero >= 0 && bytes[zero + 1] === 1
      ? { bytes: bytes.subarray(at, zero), end: zero + 2 }
      : unescaped(bytes, at)
  if (raw === undefined) return undefined
  const value = kind === 'string' ? raw.bytes.toString('utf8') : new Uint8Array(raw.bytes)
  return { value, end: raw.end }
}

function unescaped(
  bytes: Buffer,
  from: number,
): { readonly bytes: Buffer; readonly end: number } | undefined {
  const raw: number[] = []
  for (let i = from; i + 1 < bytes.length; i++) {
    const byte = bytes[i] ?? 0
    raw.push(byte)
    if (byte !== 0) continue
    i += 1
    if (bytes[i] === 1) return { bytes: Buffer.from(raw.slice(0, -1)), end: i + 1 }
    if (bytes[i] !== 0xff) return undefined
  }
  return undefined
}
