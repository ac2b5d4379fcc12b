/**
 * A segment file on a real disk. It is opened with O_DSYNC, so a write is durable when it returns; its length does not
 * change, so nothing but its bytes has to reach the disk.
 *
 * A folder keeps a bounded number of files open: those that were opened or written to last. A read of any other one opens
 * it and closes it again, which costs some 20 µs. So a log may have more segments than the process may open files.
 */
import { closeSync, openSync, readSync, writevSync } from 'node:fs'
import { constants, open, stat, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { SegmentFile } from '../ports/segments.ts'
import { fileFailure, isFileFailure } from './file-failure.ts'
import { WriteTimes } from './write-times.ts'

/** A link leads elsewhere, and the open of a pipe would wait for another process. */
const safely: number = constants.O_NOFOLLOW | constants.O_NONBLOCK
const readFlags: number = constants.O_RDONLY | safely
const writeFlags: number = constants.O_RDWR | constants.O_DSYNC | safely

/** The files of a folder that are open, the longest unused first. */
export class OpenSegments {
  readonly folder: string
  /** One disk, whichever file is written to. */
  readonly times: WriteTimes = new WriteTimes()
  readonly #filesMax: number
  readonly #files = new Set<RealSegment>()

  constructor(folder: string, filesMax: number) {
    this.folder = folder
    this.#filesMax = filesMax
  }

  used(file: RealSegment): void {
    this.#files.delete(file)
    this.#files.add(file)
    if (this.#files.size <= this.#filesMax) return
    const [oldest] = this.#files
    if (oldest === undefined || oldest === file) return
    this.forget(oldest)
    oldest.rest()
  }

  forget(file: RealSegment): void {
    this.#files.delete(file)
  }
}

/** An open file, which closes when its last user has done. */
class Descriptor {
  readonly handle: FileHandle
  #users = 0
  #isDropped = false
  #closed: Promise<void> | undefined

  constructor(handle: FileHandle) {
    this.handle = handle
  }

  async use<T>(work: (handle: FileHandle) => Promise<T>): Promise<T> {
    this.#users += 1
    try {
      return await work(this.handle)
    } finally {
      this.#users -= 1
      if (this.#isDropped && this.#users === 0) await this.#close()
    }
  }

  async drop(): Promise<void> {
    this.#isDropped = true
    if (this.#users === 0) await this.#close()
  }

  #close(): Promise<void> {
    this.#closed ??= this.handle.close()
    return this.#closed
  }
}

export class RealSegment implements SegmentFile {
  name: string
  readonly length: number
  readonly #open: OpenSegments
  /** Undefined: the file rests, and is opened for each read. */
  #descriptor: Descriptor | undefined
  #isClosed = false

  /** Rejects with the error of the system. */
  static async open(name: string, files: OpenSegments): Promise<RealSegment> {
    const handle = await open(join(files.folder, name), writeFlags)
    try {
      const { size } = await handle.stat()
      const file = new RealSegment({ name, length: size }, files, new Descriptor(handle))
      files.used(file)
      return file
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  /** The same without a descriptor of its own. */
  static async rest(name: string, files: OpenSegments): Promise<RealSegment> {
    const { size } = await stat(join(files.folder, name))
    return new RealSegment({ name, length: size }, files, undefined)
  }

  private constructor(
    { name, length }: Pick<SegmentFile, 'name' | 'length'>,
    files: OpenSegments,
    descriptor: Descriptor | undefined,
  ) {
    this.name = name
    this.length = length
    this.#open = files
    this.#descriptor = descriptor
  }

  get #path(): string {
    return join(this.#open.folder, this.name)
  }

  /** Another file needs the descriptor. */
  rest(): void {
    const descriptor = this.#descriptor
    this.#descriptor = undefined
    // All writes to it are durable: a failure of the close loses nothing.
    void descriptor?.drop().catch(() => undefined)
  }

  readSync(offset: number, length: number): Uint8Array {
    this.#checkOpen()
    const bytes = Buffer.allocUnsafeSlow(Math.max(0, Math.min(length, this.length - offset)))
    try {
      const fd = this.#descriptor?.handle.fd
      if (fd !== undefined) return readWhole(fd, bytes, offset)
      const own = openSync(this.#path, readFlags)
      try {
        return readWhole(own, bytes, offset)
      } finally {
        closeSync(own)
      }
    } catch (error) {
      throw this.#readError(error, offset)
    }
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    this.#checkOpen()
    const bytes = Buffer.allocUnsafeSlow(Math.max(0, Math.min(length, this.length - offset)))
    try {
      return await this.#reading(async (handle) => {
        for (let filled = 0; filled < bytes.length;) {
          const left = bytes.length - filled
          const { bytesRead } = await handle.read(bytes, filled, left, offset + filled)
          if (bytesRead === 0) return bytes.subarray(0, filled)
          filled += bytesRead
        }
        return bytes
      })
    } catch (error) {
      throw this.#readError(error, offset)
    }
  }

  async #reading<T>(work: (handle: FileHandle) => Promise<T>): Promise<T> {
    if (this.#descriptor !== undefined) return this.#descriptor.use(work)
    const own = new Descriptor(await open(this.#path, readFlags))
    try {
      return await own.use(work)
    } finally {
      await own.drop()
    }
  }

  async write(parts: readonly Uint8Array[], offset: number): Promise<void> {
    this.#checkOpen()
    const bytes = parts.reduce((sum, part) => sum + part.length, 0)
    assert(offset + bytes <= this.length, 'JRN-2: a write goes beyond the end of its file')
    const { times } = this.#open
    const startMicros = nowMicros()
    const isSync = times.isSync(bytes, startMicros)
    try {
      this.#descriptor ??= new Descriptor(await open(this.#path, writeFlags))
      this.#open.used(this)
      const { handle } = this.#descriptor
      const written = isSync
        ? writevSync(handle.fd, [...parts], offset)
        : (await this.#descriptor.use(() => handle.writev([...parts], offset))).bytesWritten
      if (written < bytes) await this.#writeRest(parts, offset, written)
    } catch (error) {
      throw writeError(this.#path, error)
    }
    times.took(startMicros, nowMicros(), isSync)
  }

  /** A system may write less than it was given, as when a signal comes in between. */
  async #writeRest(parts: readonly Uint8Array[], offset: number, written: number): Promise<void> {
    const bytes = Buffer.concat(parts)
    this.#descriptor ??= new Descriptor(await open(this.#path, writeFlags))
    await this.#descriptor.use(async (handle) => {
      for (let done = written; done < bytes.length;) {
        const left = bytes.length - done
        const { bytesWritten } = await handle.write(bytes, done, left, offset + done)
        done += bytesWritten
      }
    })
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#open.forget(this)
    await this.#descriptor?.drop()
  }

  #checkOpen(): void {
    if (this.#isClosed) throw this.#closedError()
  }

  #closedError(): StoreError {
    return new StoreError('closed', `the journal ${this.#open.folder} is closed`)
  }

  #readError(error: unknown, offset: number): StoreError {
    if (this.#isClosed) return this.#closedError()
    const where = `${this.#path} at byte ${offset}`
    const isDamage = isFileFailure(error) && error.code === 'EIO'
    const message = `cannot read ${where}: ${fileFailure(error)}`
    return new StoreError(isDamage ? 'corrupt' : 'unavailable', message, {}, { cause: error })
  }
}

/** A file that is only looked at: each read opens it. Rejects with `unavailable` where it is not there. */
export async function openToRead(folder: string, name: string): Promise<SegmentFile> {
  try {
    return await RealSegment.rest(name, new OpenSegments(folder, 0))
  } catch (error) {
    const message = `cannot read ${join(folder, name)}: ${fileFailure(error)}`
    throw new StoreError('unavailable', message, {}, { cause: error })
  }
}

/** Fewer bytes where the file ends. */
function readWhole(fd: number, bytes: Buffer, offset: number): Buffer {
  for (let filled = 0; filled < bytes.length;) {
    const read = readSync(fd, bytes, filled, bytes.length - filled, offset + filled)
    if (read === 0) return bytes.subarray(0, filled)
    filled += read
  }
  return bytes
}

function nowMicros(): number {
  return performance.now() * 1000
}

function writeError(path: string, error: unknown): StoreError {
  const isFull = isFileFailure(error) && /ENOSPC|EDQUOT/.test(error.code ?? '')
  const advice = isFull
    ? 'make room and start the node again'
    : 'nothing more is written to it: check the disk and start the node again'
  const message = `a write to ${path} failed (${fileFailure(error)}); ${advice}`
  return new StoreError('unavailable', message, {}, { cause: error })
}
