/**
 * The parts of LevelDB's files as bytes: numbers, blocks, a table's footer. Nothing here trusts what it
 * reads: bytes that do not decode give `undefined`.
 *
 * Written from LevelDB's documents of its formats (table_format, log_format) and Snappy's.
 */

/** Where a block lies in a table, without the five bytes behind it. */
export interface Handle {
  readonly offset: number
  readonly size: number
}

export interface Footer {
  readonly metaIndex: Handle
  readonly index: Handle
}

export const footerBytes = 48
/** Behind a block: a byte that says how it is compressed, and a checksum of both. */
export const blockTrailerBytes = 5
export const compressions = { none: 0, snappy: 1 } as const

const magic = Buffer.from('57fb808b247547db', 'hex')
const varintBytesMax = 10
/** The blocks decoded here list other blocks: a large table has some ten thousand bytes of them. */
export const decodedBytesMax: number = 64 * 1024 * 1024

/** Reads numbers and strings one after another; `undefined` from the first that is not there. */
export class Cursor {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  /** Exact up to 2^53; LevelDB counts files, bytes and writes with it. */
  varint(): number | undefined {
    let value = 0
    for (let i = 0, scale = 1; i < varintBytesMax; i++, scale *= 128) {
      const byte = this.#bytes[this.#at]
      if (byte === undefined) return undefined
      this.#at += 1
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
    return undefined
  }

  handle(): Handle | undefined {
    const offset = this.varint()
    const size = this.varint()
    return offset === undefined || size === undefined ? undefined : { offset, size }
  }

  bytes(length: number): Uint8Array | undefined {
    if (this.#at + length > this.#bytes.length) return undefined
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }

  /** Bytes behind their length. */
  string(): Uint8Array | undefined {
    const length = this.varint()
    return length === undefined ? undefined : this.bytes(length)
  }
}

function encodeVarint(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  return [...bytes, rest]
}

/** No checksum covers a footer: it must be, byte for byte, what these two handles are written as. */
export function decodeFooter(bytes: Uint8Array): Footer | undefined {
  const cursor = new Cursor(bytes)
  const metaIndex = cursor.handle()
  const index = cursor.handle()
  if (metaIndex === undefined || index === undefined) return undefined
  const expected = Buffer.alloc(footerBytes)
  const numbers = [metaIndex.offset, metaIndex.size, index.offset, index.size]
  expected.set(numbers.flatMap(encodeVarint))
  expected.set(magic, footerBytes - magic.length)
  return expected.equals(bytes) ? { metaIndex, index } : undefined
}

/** An index's line for a block: no key in the block comes behind `key`. */
export interface IndexEntry {
  readonly key: Uint8Array
  readonly handle: Handle
}

/** An entry of any block. */
export interface BlockEntry {
  readonly key: Uint8Array
  readonly value: Uint8Array
}

/** The entries of any block, in its order. */
export function decodeEntries(block: Uint8Array): readonly BlockEntry[] | undefined {
  const entriesBytes = lengthOfEntries(block)
  if (entriesBytes === undefined) return undefined
  const cursor = new Cursor(block.subarray(0, entriesBytes))
  const entries: BlockEntry[] = []
  while (!cursor.isAtEnd) {
    const entry = nextEntry(cursor, entries.at(-1)?.key)
    if (entry === undefined) return undefined
    entries.push(entry)
  }
  return entries
}

/** The entries of an index or meta index, in its order. */
export function decodeIndex(block: Uint8Array): readonly IndexEntry[] | undefined {
  const listed = decodeEntries(block)
  if (listed === undefined) return undefined
  const entries: IndexEntry[] = []
  for (const { key, value } of listed) {
    const handle = new Cursor(value).handle()
    if (handle === undefined) return undefined
    entries.push({ key, handle })
  }
  return entries
}

/** A block ends with the places it can be entered at, and their count. */
function lengthOfEntries(block: Uint8Array): number | undefined {
  if (block.length < 4) return undefined
  const view = new DataView(block.buffer, block.byteOffset, block.byteLength)
  const length = block.length - 4 - 4 * view.getUint32(block.length - 4, true)
  return length < 0 ? undefined : length
}

/** An entry: how much of its key is the last one's, lengths of key and value, key, value. */
function nextEntry(cursor: Cursor, before: Uint8Array = new Uint8Array()): BlockEntry | undefined {
  const shared = cursor.varint()
  const keyBytes = cursor.varint()
  const valueBytes = cursor.varint()
  if (shared === undefined || keyBytes === undefined || valueBytes === undefined) return undefined
  const rest = cursor.bytes(keyBytes)
  const value = cursor.bytes(valueBytes)
  if (rest === undefined || value === undefined || shared > before.length) return undefined
  return { key: Buffer.concat([before.subarray(0, shared), rest]), value }
}

/** The bytes that a block held before Snappy. */
export function decompress(bytes: Uint8Array): Uint8Array | undefined {
  const cursor = new Cursor(bytes)
  const length = cursor.varint()
  if (length === undefined || length > decodedBytesMax) return undefined
  const out = Buffer.alloc(length)
  let at = 0
  while (!cursor.isAtEnd) {
    const end = nextElement(cursor, out, at)
    if (end === undefined) return undefined
    at = end
  }
  return at === length ? out : undefined
}

/** Puts the next literal or copy at `at`; gives where it ends. */
function nextElement(cursor: Cursor, out: Buffer, at: number): number | undefined {
  const tag = cursor.bytes(1)?.[0] ?? 0
  if ((tag & 3) !== 0) return nextCopy(cursor, tag, out, at)
  const length = literalLength(cursor, tag >>> 2)
  const literal = length === undefined ? undefined : cursor.bytes(length)
  if (literal === undefined || at + literal.length > out.length) return undefined
  out.set(literal, at)
  return at + literal.length
}

function nextCopy(cursor: Cursor, tag: number, out: Buffer, at: number): number | undefined {
  const kind = tag & 3
  const low = cursor.bytes(kind === 3 ? 4 : kind)
  if (low === undefined) return undefined
  const length = kind === 1 ? 4 + ((tag >>> 2) & 7) : 1 + (tag >>> 2)
  const back = littleEndian(low) + (kind === 1 ? (tag >>> 5) * 256 : 0)
  if (back === 0 || back > at || at + length > out.length) return undefined
  // Byte by byte: a copy may reach into what it has just written.
  for (let i = 0; i < length; i++) out[at + i] = out[at + i - back] ?? 0
  return at + length
}

function literalLength(cursor: Cursor, code: number): number | undefined {
  if (code < 60) return code + 1
  const bytes = cursor.bytes(code - 59)
  return bytes === undefined ? undefined : littleEndian(bytes) + 1
}

function littleEndian(bytes: Uint8Array): number {
  return bytes.reduceRight((value, byte) => value * 256 + byte, 0)
}
