/**
 * Bytes put together field by field, for what is written too often for MessagePack: one buffer, shared by
 * all, that grows; what was written is copied out of it at the end. Not to be used twice at a time.
 */
import { writeCount } from './bytes.ts'

const firstBytes = 64 * 1024
/** A buffer that had to grow beyond this is given up after use. */
const keptBytesMax = 1024 * 1024
const charBytesMax = 3

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

  uint32(value: number): void {
    this.#makeRoom(4)
    this.#at = this.#bytes.writeUInt32BE(value, this.#at)
  }

  /** 8 bytes: a safe integer from 0. */
  count(value: number): void {
    this.#makeRoom(8)
    writeCount(this.#bytes, value, this.#at)
    this.#at += 8
  }

  /** UTF-8 behind its length in 4 bytes. */
  text(text: string): void {
    this.#makeRoom(4 + charBytesMax * text.length)
    const start = this.#at + 4
    const length = writeText(this.#bytes, text, start)
    this.#bytes.writeUInt32BE(length, this.#at)
    this.#at = start + length
  }

  bytes(bytes: Uint8Array): void {
    this.#makeRoom(bytes.length)
    this.#bytes.set(bytes, this.#at)
    this.#at += bytes.length
  }

  /** What was written since the last time. */
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
