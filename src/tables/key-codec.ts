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

/** The bytes of a checked value. */
export function encodePart({ kind, direction }: KeyPart, value: unknown): Buffer {
  const bytes = ascending(kind, value)
  return direction === 'asc' ? bytes : inverted(bytes)
}

function ascending(kind: PropertyKind, value: unknown): Buffer {
  switch (typeof value) {
    case 'string':
      return kind === 'uuid'
        ? Buffer.from(value.replaceAll('-', ''), 'hex')
        : escaped(Buffer.from(value))
    case 'boolean':
      return Buffer.from([value ? 1 : 0])
    case 'bigint': {
      const bytes = Buffer.alloc(countBytes)
      bytes.writeBigUInt64BE(value + int64Shift)
      return bytes
    }
    case 'number':
      return number(kind, value)
    default:
      assert(value instanceof Uint8Array, 'TAB-1: a key has values of types with an order')
      return escaped(value)
  }
}

function number(kind: PropertyKind, value: number): Buffer {
  const bytes = Buffer.alloc(kind === 'int32' || kind === 'float' ? 4 : countBytes)
  switch (kind) {
    case 'int32':
      bytes.writeUInt32BE(value + 2 ** 31)
      return bytes
    case 'sequence':
      writeCount(bytes, value, 0)
      return bytes
    case 'float':
      bytes.writeFloatBE(value)
      return turned(bytes)
    case 'double':
      bytes.writeDoubleBE(value)
      return turned(bytes)
    default: {
      // The sum would lose digits above 2^53, so the two halves are written on their own.
      const upper = Math.floor(value / twoTo32)
      bytes.writeUInt32BE(shiftOfUpper + upper, 0)
      bytes.writeUInt32BE(value - upper * twoTo32, 4)
      return bytes
    }
  }
}

/** 0x00 becomes 0x00 0xff; 0x00 0x01 ends it, so what is longer comes later. */
function escaped(raw: Uint8Array): Buffer {
  const bytes: number[] = []
  for (const byte of raw) {
    bytes.push(byte)
    if (byte === 0) bytes.push(0xff)
  }
  return Buffer.from([...bytes, 0, 1])
}

/** IEEE numbers order as their bits do when negative ones are inverted and the sign turned around. */
function turned(bytes: Buffer): Buffer {
  if (((bytes[0] ?? 0) & 0x80) !== 0) return inverted(bytes)
  bytes[0] = (bytes[0] ?? 0) | 0x80
  return bytes
}

function turnedBack(bytes: Buffer): Buffer {
  if (((bytes[0] ?? 0) & 0x80) === 0) return inverted(bytes)
  const back = Buffer.from(bytes)
  back[0] = (back[0] ?? 0) & 0x7f
  return back
}

function inverted(bytes: Uint8Array): Buffer {
  const other = Buffer.alloc(bytes.length)
  for (let i = 0; i < bytes.length; i++) other[i] = ~(bytes[i] ?? 0) & 0xff
  return other
}

/** The value that starts at `at`, and where it ends; undefined when there is none of this type. */
export function decodePart(
  { kind, direction }: KeyPart,
  bytes: Uint8Array,
  at: number,
): { readonly value: unknown; readonly end: number } | undefined {
  const rest = bytes.subarray(at)
  const here = direction === 'asc' ? bufferOf(rest) : inverted(rest)
  if (kind === 'string' || kind === 'bytes') {
    const raw = unescaped(here)
    if (raw === undefined) return undefined
    const value = kind === 'string' ? raw.bytes.toString('utf8') : new Uint8Array(raw.bytes)
    return { value, end: at + raw.length }
  }
  const length = lengthOf(kind)
  if (here.length < length) return undefined
  return { value: fixed(kind, here.subarray(0, length)), end: at + length }
}

function lengthOf(kind: PropertyKind): number {
  if (kind === 'bool') return 1
  if (kind === 'uuid') return 16
  return kind === 'int32' || kind === 'float' ? 4 : countBytes
}

function fixed(kind: Exclude<PropertyKind, 'string' | 'bytes'>, bytes: Buffer): unknown {
  switch (kind) {
    case 'bool':
      return bytes[0] === 1
    case 'int32':
      return bytes.readUInt32BE() - 2 ** 31
    case 'int64':
      return bytes.readBigUInt64BE() - int64Shift
    case 'float':
      return turnedBack(bytes).readFloatBE()
    case 'double':
      return turnedBack(bytes).readDoubleBE()
    case 'sequence':
      return readCount(bytes, 0)
    case 'uuid':
      return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
    case 'integer':
    case 'timestamp':
      return (bytes.readUInt32BE() - shiftOfUpper) * twoTo32 + bytes.readUInt32BE(4)
    case 'json':
    case 'message':
      return assert(false, 'TAB-1: a key has values of types with an order')
    default:
      return unreachable(kind)
  }
}

function unescaped(bytes: Buffer): { readonly bytes: Buffer; readonly length: number } | undefined {
  const raw: number[] = []
  for (let i = 0; i + 1 < bytes.length; i++) {
    const byte = bytes[i] ?? 0
    raw.push(byte)
    if (byte !== 0) continue
    i += 1
    if (bytes[i] === 1) return { bytes: Buffer.from(raw.slice(0, -1)), length: i + 1 }
    if (bytes[i] !== 0xff) return undefined
  }
  return undefined
}
