/**
 * A file read from front to back in chunks, all files of one check through one buffer and at one pace. Every
 * chunk is a turn of the event loop, so a reader holds the loop for one chunk at most.
 */
import { open, type FileHandle } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { CheckPace } from '../ports/storage.ts'

/** About half a millisecond of checksums. */
export const chunkBytes: number = 512 * 1024

export interface PaceOptions {
  /** The most bytes read in a second, on average from the start. */
  readonly bytesPerSecond?: number
  /** Ends a wait. */
  readonly signal?: AbortSignal
  /** The same as the user of a store asks for it. */
  readonly pace?: CheckPace
}

/** How fast, and into which memory, the files of one check are read. */
export class Pace {
  readonly buffer: Buffer = Buffer.allocUnsafeSlow(chunkBytes)
  readonly #options: PaceOptions
  readonly #startMs = performance.now()
  #bytesRead = 0
  /** When the last chunk was paid for with a wait. */
  #paidMs = performance.now()

  constructor(options: PaceOptions) {
    const { bytesPerSecond = 1 } = options
    assert(bytesPerSecond > 0, 'DISK: a check reads more than nothing in a second')
    this.#options = options
  }

  get bytesRead(): number {
    return this.#bytesRead
  }

  get elapsedMs(): number {
    return performance.now() - this.#startMs
  }

  /** Waits until `bytes` more may have been read; rejects with the signal's reason once it is set. */
  async took(bytes: number): Promise<void> {
    this.#bytesRead += bytes
    const { bytesPerSecond, signal } = this.#options
    if (bytesPerSecond !== undefined) {
      const waitMs = (this.#bytesRead * 1000) / bytesPerSecond - this.elapsedMs
      const options = signal === undefined ? {} : { signal }
      // The reason itself is thrown below; what the timer throws only wraps it.
      if (waitMs >= 1) await delay(waitMs, undefined, options).catch(() => undefined)
    }
    signal?.throwIfAborted()
    await this.#wait(bytes)
  }

  async #wait(bytes: number): Promise<void> {
    const { pace } = this.#options
    if (pace === undefined) return
    const waitMs = (bytes * 1000) / pace.bytesPerSecond() - (performance.now() - this.#paidMs)
    if (waitMs >= 1) await delay(waitMs)
    this.#paidMs = performance.now()
    this.checkWanted()
  }

  /** Throws `closed` when the caller does not want the check any more. */
  checkWanted(): void {
    if (this.#options.pace?.isOver() !== true) return
    throw new StoreError('closed', 'nobody waits for this check any more')
  }
}

export class PacedFile {
  /** The size when the file was opened: bytes appended later are not read. */
  readonly size: number
  readonly #handle: FileHandle
  readonly #pace: Pace
  #start = 0
  #end = 0

  /** Gives `undefined` if there is no such file. */
  static async open(path: string, pace: Pace): Promise<PacedFile | undefined> {
    const handle = await open(path, 'r').catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
      throw error
    })
    if (handle === undefined) return undefined
    try {
      return new PacedFile(handle, (await handle.stat()).size, pace)
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  private constructor(handle: FileHandle, size: number, pace: Pace) {
    this.#handle = handle
    this.size = size
    this.#pace = pace
  }

  /** Up to where it was read last. */
  get position(): number {
    return this.#end
  }

  /** The bytes from `offset`, `length` of them unless the file ends before; good until the next call. */
  async at(offset: number, length: number): Promise<Uint8Array> {
    assert(length <= chunkBytes, 'DISK: no more than a chunk is read at once')
    const isThere = offset >= this.#start && offset + length <= this.#end
    if (!isThere) await this.#read(offset)
    return this.#taken(offset, length)
  }

  /** Like `at`, but only as much as one chunk gives: at least a byte, unless the file ends. */
  async some(offset: number, lengthMax: number): Promise<Uint8Array> {
    const isThere = offset >= this.#start && offset < this.#end
    if (!isThere) await this.#read(offset)
    return this.#taken(offset, lengthMax)
  }

  #taken(offset: number, length: number): Uint8Array {
    const from = offset - this.#start
    return this.#pace.buffer.subarray(from, Math.min(from + length, this.#end - this.#start))
  }

  async #read(offset: number): Promise<void> {
    this.#start = offset
    this.#end = offset
    const endMax = Math.min(this.size, offset + chunkBytes)
    while (this.#end < endMax) {
      const filled = this.#end - offset
      const wanted = endMax - this.#end
      const { buffer } = this.#pace
      const { bytesRead } = await this.#handle.read(buffer, filled, wanted, this.#end)
      if (bytesRead === 0) return
      this.#end += bytesRead
      await this.#pace.took(bytesRead)
    }
  }

  close(): Promise<void> {
    return this.#handle.close()
  }
}
