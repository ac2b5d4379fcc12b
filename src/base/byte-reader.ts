/** Reading back what a `ByteWriter` wrote, or what is said to be that: bytes may come from outside. */
import { asBuffer, readCount, readVar, varBytes } from './bytes.ts'

/** Thrown inside decoders only, which answer with `undefined` or with its message as the reason. */
export class MalformedError extends Error {
  override readonly name = 'MalformedError'
}

/** The value that `read` makes of all bytes; undefined when they are not what it looks for. */
export function readAll<Value>(
  bytes: Uint8Array,
  read: (reader: ByteReader) => Value | undefined,
): Value | undefined {
  const reader = new ByteReader(asBuffer(bytes))
  try {
    const value = read(reader)
    return reader.isAtEnd ? value : undefined
  } catch (error) {
    if (error instanceof MalformedError) return undefined
    throw error
  }
}

export class ByteReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer, at = 0) {
    this.#bytes = bytes
    this.#at = at
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  #take(length: number): number {
    const start = this.#at
    if (start + length > this.#bytes.length) throw new MalformedError('the bytes are cut')
    this.#at = start + length
    return start
  }

  uint8(): number {
    const at = this.#take(1)
    return this.#bytes[at] ?? 0
  }

  uint16(): number {
    return this.#bytes.readUInt16BE(this.#take(2))
  }

  uint32(): number {
    return this.#bytes.readUInt32BE(this.#take(4))
  }

  /** The number that `writeVar` wrote. */
  count(): number {
    const value = readVar(this.#bytes, this.#at)
    if (value === undefined) throw new MalformedError('a number is cut')
    this.#at += varBytes(value)
    return value
  }

  wide(): number {
    const value = readCount(this.#bytes, this.#take(8))
    if (!Number.isSafeInteger(value)) throw new MalformedError('a number is too large')
    return value
  }

  text(): string {
    const length = this.count()
    const start = this.#take(length)
    return this.#bytes.toString('utf8', start, start + length)
  }

  /** One character a byte. */
  latin1(length: number): string {
    const start = this.#take(length)
    return this.#bytes.toString('latin1', start, start + length)
  }

  /** A view. */
  bytes(length: number): Buffer {
    const start = this.#take(length)
    return this.#bytes.subarray(start, start + length)
  }

  /** Reads how many elements follow; throws unless `bytesMin` bytes are left for each. */
  length(bytesMin: number): number {
    const length = this.count()
    if (length * bytesMin > this.#bytes.length - this.#at) {
      throw new MalformedError('a list is cut')
    }
    return length
  }

  /** They are not what they should be. */
  refuse(): never {
    throw new MalformedError('the bytes are not what they should be')
  }
}
