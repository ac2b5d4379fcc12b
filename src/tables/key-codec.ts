/**
 * Values in keys, written (`key-reader.ts` reads them): bytes that compare as the values do, each ending by itself, so that no value's bytes
 * begin another's (TAB-1). DESC inverts them. Table in SPEC.md.
 */
import { assert } from '../base/assert.ts'
import { writeCount } from '../base/bytes.ts'
import { uuidBytes, writeUuid } from '../base/uuid.ts'
import type { PropertyKind } from '../../schema/model.ts'
import type { KeyPart } from './compiled.ts'

export const twoTo32: number = 2 ** 32
/** 2^53, by which whole numbers are shifted to be positive; of the upper four bytes that is this. */
export const shiftOfUpper: number = 2 ** 21
export const int64Shift: bigint = 2n ** 63n
export const countBytes = 8
/** Most keys are no longer. */
const firstBytes = 64

/** Bytes in the making. */
export class ByteSink {
  #bytes: Buffer = Buffer.allocUnsafe(firstBytes)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** The bytes written so far; more may follow, these stay. */
  get written(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  /** Makes room for `count` bytes more, in `bytes` from the returned place. */
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

/** Before a value that may be absent: absent ones stand first. */
export const absentByte = 0
export const presentByte = 1

/** Writes a checked value behind what is there; undefined: that it is absent. */
export function writePart(sink: ByteSink, part: KeyPart, value: unknown): void {
  const { kind, direction, mayBeAbsent } = part
  const from = sink.length
  if (mayBeAbsent === true) writePresence(sink, value !== undefined)
  if (value !== undefined || mayBeAbsent !== true) writeAscending(sink, kind, value)
  if (direction === 'desc') invert(sink.bytes, from, sink.length)
}

export function writePresence(sink: ByteSink, isPresent: boolean): void {
  const at = sink.extend(1)
  sink.bytes[at] = isPresent ? presentByte : absentByte
}

function writeAscending(sink: ByteSink, kind: PropertyKind, value: unknown): void {
  switch (typeof value) {
    case 'string': {
      if (kind !== 'uuid') return writeText(sink, value)
      const at = sink.extend(uuidBytes)
      return writeUuid(sink.bytes, value, at)
    }
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

export function invert(bytes: Buffer, from: number, to: number): void {
  for (let i = from; i < to; i++) bytes[i] = ~(bytes[i] ?? 0) & 0xff
}
