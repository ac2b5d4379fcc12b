/** Reading back what a `ByteWriter` wrote, or what is said to be that: bytes may come from outside. */
import { bufferOf, readCount, readVar, varBytes } from './bytes.ts'

/** Thrown inside decoders only, which make `undefined` of it. */
class UnreadableError extends Error {
  override readonly name = 'UnreadableError'
}

/** What `read` makes of all bytes; undefined when they are not what it looks for. */
export function readAll<Value>(
  bytes: Uint8Array,
  read: (reader: ByteReader) => Value | undefined,
): Value | undefined {
  const reader = new ByteReader(bufferOf(bytes))
  try {
    const value = read(reader)
    return reader.isAtEnd ? value : undefined
  } catch (error) {
    if (error instanceof UnreadableError) return undefined
    throw error
  }
}

export class ByteReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  #take(length: number): number {
    const start = this.#at
    if (start + length > this.#bytes.length) throw new UnreadableError()
    this.#at = start + length
    return start
  }

  uint8(): number {
    const at = this.#take(1)
    return this.#bytes[at] ?? 0
  }

  count(): number {
    const value = readVar(this.#bytes, this.#at)
    if (value === undefined) throw new UnreadableError()
    this.#at += varBytes(value)
    return value
  }

  wide(): number {
    const value = readCount(this.#bytes, this.#take(8))
    if (!Number.isSafeInteger(value)) throw new UnreadableError()
    return value
  }

  text(): string {
    const length = this.count()
    const start = this.#take(length)
    return this.#bytes.toString('utf8', start, start + length)
  }

  /** A view. */
  bytes(length: number): Buffer {
    const start = this.#take(length)
    return this.#bytes.subarray(start, start + length)
  }

  /** How many follow: so many bytes at least are left for each. */
  length(bytesMin: number): number {
    const length = this.count()
    if (length * bytesMin > this.#bytes.length - this.#at) throw new UnreadableError()
    return length
  }

  /** They are not what they should be. */
  refuse(): never {
    throw new UnreadableError()
  }
}
