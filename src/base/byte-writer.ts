/**
 * Bytes put together field by field, for what is written too often for MessagePack: one buffer, shared by
 * all, that grows. The written bytes are copied out of it at the end. Not to be used twice at a time.
 */
import { varBytesMax, writeCount, writeVar } from './bytes.ts'

const firstBytes = 64 * 1024
/** A buffer that had to grow beyond this is given up after use. */
const keptBytesMax = 1024 * 1024
const charBytesMax = 3
/** Fewer have a length of one byte. */
const shortTextBytes = 0x80

export class ByteWriter {
  #bytes: Buffer = Buffer.allocUnsafeSlow(firstBytes)
  #at = 0

  /** Anew: what an encoding that failed has left is dropped. */
  begin(format: number): void {
    this.#at = 0
    this.uint8(format)
  }

  uint8(value: number): void {
    this.#makeRoom(1)
    this.#bytes[this.#at++] = value
  }

  /** A safe integer from 0 that is mostly small: 7 bits a byte, the lowest first (`base/bytes.ts`). */
  count(value: number): void {
    this.#makeRoom(varBytesMax)
    this.#at = writeVar(this.#bytes, value, this.#at)
  }

  /** 8 bytes: a safe integer from 0 that is mostly large, such as a time. */
  wide(value: number): void {
    this.#makeRoom(8)
    writeCount(this.#bytes, value, this.#at)
    this.#at += 8
  }

  /** UTF-8 behind its length, a count. */
  text(text: string): void {
    const { length } = text
    if (charBytesMax * length >= shortTextBytes) return this.#longText(text)
    this.#makeRoom(1 + charBytesMax * length)
    const written = writeText(this.#bytes, text, this.#at + 1)
    this.#bytes[this.#at] = written
    this.#at += 1 + written
  }

  #longText(text: string): void {
    const bytes = Buffer.from(text, 'utf8')
    this.count(bytes.length)
    this.bytes(bytes)
  }

  bytes(bytes: Uint8Array): void {
    this.#makeRoom(bytes.length)
    this.#bytes.set(bytes, this.#at)
    this.#at += bytes.length
  }

  /** The bytes that were written since the last call. */
  take(): Buffer {
    const taken = Buffer.allocUnsafe(this.#at)
    this.#bytes.copy(taken, 0, 0, this.#at)
    this.#at = 0
    if (this.#bytes.length > keptBytesMax) this.#bytes = Buffer.allocUnsafeSlow(firstBytes)
    return taken
  }

  #makeRoom(more: number): void {
    const { length } = this.#bytes
    if (this.#at + more <= length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * length, this.#at + more))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}

/** Short text that is all ASCII is written here: most is, and a call into Node costs more. */
function writeText(bytes: Buffer, text: string, start: number): number {
  const { length } = text
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    if (code > 0x7f) return bytes.write(text, start, 'utf8')
    bytes[start + i] = code
  }
  return length
}
