/** Values in keys, read: the other half of `key-codec.ts`. */
import { assert, unreachable } from '../base/assert.ts'
import { asBuffer, copyBytes, readCount } from '../base/bytes.ts'
import type { PropertyKind } from '../../schema/model.ts'
import type { KeyPart } from './compiled.ts'
import { readUuid, uuidBytes } from '../base/uuid.ts'
import {
  absentByte,
  countBytes,
  int64Shift,
  invert,
  presentByte,
  shiftOfUpper,
  twoTo32,
} from './key-codec.ts'

/** A place in a key; it moves on with each part that is read. */
export class KeyReader {
  readonly #bytes: Buffer
  #at: number

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = asBuffer(bytes)
    this.#at = at
  }

  get at(): number {
    return this.#at
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  /** The number that stands here in two bytes; undefined when they are not there. */
  mark(): number | undefined {
    const end = this.#at + 2
    if (end > this.#bytes.length) return undefined
    const number = this.#bytes.readUInt16BE(this.#at)
    this.#at = end
    return number
  }

  /** The value that begins here; null: it is absent; undefined when there is none of this type. */
  part(part: KeyPart): unknown {
    if (part.direction === 'asc') return this.#ascending(part)
    const rest = new KeyReader(inverted(this.#bytes.subarray(this.#at)), 0)
    const value = rest.#ascending(part)
    this.#at += rest.at
    return value
  }

  #ascending({ kind, mayBeAbsent }: KeyPart): unknown {
    if (mayBeAbsent !== true) return this.#value(kind)
    const presence = this.#bytes[this.#at]
    this.#at += 1
    if (presence === absentByte) return null
    return presence === presentByte ? this.#value(kind) : undefined
  }

  #value(kind: PropertyKind): unknown {
    if (kind === 'string' || kind === 'bytes') return this.#escaped(kind)
    const at = this.#at
    const end = at + sizeInBytes(kind)
    if (end > this.#bytes.length) return undefined
    this.#at = end
    return fixed(kind, this.#bytes, at)
  }

  /** Up to the 0x00 that ends it; mostly there is none before. */
  #escaped(kind: 'string' | 'bytes'): unknown {
    const bytes = this.#bytes
    const at = this.#at
    const zero = bytes.indexOf(0, at)
    const raw =
      zero >= 0 && bytes[zero + 1] === 1
        ? { bytes: bytes.subarray(at, zero), end: zero + 2 }
        : unescaped(bytes, at)
    if (raw === undefined) return undefined
    this.#at = raw.end
    return kind === 'string' ? raw.bytes.toString('utf8') : copyBytes(raw.bytes)
  }
}

function sizeInBytes(kind: PropertyKind): number {
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
      return readUuid(bytes, at)
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
