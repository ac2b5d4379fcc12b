/** A segment read from front to back, a chunk at a time. Bytes that the disk cannot give back are zeros. */
import { crc32 } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type { SegmentFile } from '../ports/segments.ts'
import type { Part } from './segment-format.ts'

const chunkBytes: number = 256 * 1024
/** Where a chunk cannot be read, its sectors are read one by one. */
const sectorBytes = 4096

/** Told of what is read; the next chunk waits for it. */
export type OnRead = (bytes: number) => Promise<void>

export class SegmentWindow {
  readonly file: SegmentFile
  readonly #onRead: OnRead | undefined
  #bytes: Uint8Array = new Uint8Array()
  #start = 0

  constructor(file: SegmentFile, onRead?: OnRead) {
    this.file = file
    this.#onRead = onRead
  }

  /** Fewer where the file ends. Good until the next call. */
  async at(offset: number, length: number): Promise<Uint8Array> {
    const end = Math.min(offset + length, this.file.length)
    const isThere = offset >= this.#start && end <= this.#start + this.#bytes.length
    if (!isThere && end > offset) {
      this.#bytes = await this.#read(offset, Math.max(length, chunkBytes))
      this.#start = offset
    }
    return this.#bytes.subarray(offset - this.#start, Math.max(0, end - this.#start))
  }

  /** Whether the value of a part is what was written. */
  async isSound({ offset, length, crc }: Part): Promise<boolean> {
    let sum = 0
    for (let at = 0; at < length; at += chunkBytes) {
      const wanted = Math.min(chunkBytes, length - at)
      const bytes = await this.at(offset + at, wanted)
      if (bytes.length < wanted) return false
      sum = crc32(bytes, sum)
    }
    return sum === crc
  }

  /** The value of a part as the disk has it; nothing vouches for it. */
  async valueOf({ offset, length }: Part): Promise<Uint8Array> {
    return Uint8Array.from(await this.at(offset, length))
  }

  async #read(offset: number, length: number): Promise<Uint8Array> {
    const wanted = Math.min(length, this.file.length - offset)
    const bytes = await readOrNothing(this.file, offset, wanted)
    const read = bytes ?? (await this.#readSectors(offset, wanted))
    await this.#onRead?.(read.length)
    return read
  }

  async #readSectors(offset: number, length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length)
    for (let at = 0; at < length; at += sectorBytes) {
      const wanted = Math.min(sectorBytes, length - at)
      bytes.set((await readOrNothing(this.file, offset + at, wanted)) ?? [], at)
    }
    return bytes
  }
}

async function readOrNothing(
  file: SegmentFile,
  offset: number,
  length: number,
): Promise<Uint8Array | undefined> {
  try {
    return await file.read(offset, length)
  } catch (error) {
    if (error instanceof StoreError && error.code === 'corrupt') return undefined
    throw error
  }
}
