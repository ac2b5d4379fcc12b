/**
 * A folder of segment files on a real disk. Files are opened with O_DSYNC, so a write is durable when it returns; its
 * length does not change, so nothing but its bytes has to reach the disk.
 */
import { readSync, writevSync } from 'node:fs'
import { constants, open, readdir, rename, rm, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { SegmentEntry, SegmentFile, SegmentFolder } from '../ports/segments.ts'
import { fileFailure, isFileFailure } from './file-failure.ts'
import { refuseOtherKind } from './journal-kind.ts'
import { makeFolder } from './make-folder.ts'
import { WriteTimes } from './write-times.ts'

/** The most zeros that one call writes. */
const zeroBytes: number = 1024 * 1024

/** The folder at `path`, made if it is not there. Rejects with `invalid` for a folder that holds LevelDB. */
export async function openSegmentFolder(path: string): Promise<SegmentFolder> {
  await refuseOtherKind(path, 'files')
  try {
    await makeFolder(path)
    await syncFolder(dirname(path))
  } catch (error) {
    throw folderError(path, error)
  }
  return new RealFolder(path)
}

class RealFolder implements SegmentFolder {
  readonly path: string
  /** One disk, whichever file is written to. */
  readonly #times = new WriteTimes()

  constructor(path: string) {
    this.path = path
  }

  async list(): Promise<readonly SegmentEntry[]> {
    const entries = await this.#try(() => readdir(this.path, { withFileTypes: true }))
    return entries.map((entry) => ({ name: entry.name, isFile: entry.isFile() }))
  }

  async create(name: string, length: number): Promise<SegmentFile> {
    const path = join(this.path, name)
    return this.#try(async () => {
      const flags = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY
      const handle = await open(path, flags)
      try {
        await fill(handle, length)
      } catch (error) {
        await rm(path, { force: true })
        throw error
      } finally {
        await handle.close()
      }
      await syncFolder(this.path)
      return this.#open(name)
    })
  }

  open(name: string): Promise<SegmentFile> {
    return this.#try(() => this.#open(name))
  }

  async #open(name: string): Promise<RealFile> {
    const flags = constants.O_RDWR | constants.O_DSYNC | constants.O_NOFOLLOW | constants.O_NONBLOCK
    const handle = await open(join(this.path, name), flags)
    const { size } = await handle.stat()
    return new RealFile(this.path, { name, length: size, handle }, this.#times)
  }

  async rename(file: SegmentFile, name: string): Promise<SegmentFile> {
    assert(file instanceof RealFile, 'JRN: a file of this folder is renamed')
    await this.#try(async () => {
      await rename(join(this.path, file.name), join(this.path, name))
      await syncFolder(this.path)
    })
    file.name = name
    return file
  }

  remove(name: string): Promise<void> {
    return this.#try(() => rm(join(this.path, name), { force: true }))
  }

  async pause(ms: number): Promise<void> {
    await delay(ms)
  }

  async #try<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw folderError(this.path, error)
    }
  }
}

interface OpenFile {
  readonly name: string
  readonly length: number
  readonly handle: FileHandle
}

class RealFile implements SegmentFile {
  name: string
  readonly length: number
  readonly #folder: string
  readonly #handle: FileHandle
  readonly #times: WriteTimes
  #isClosed = false

  constructor(folder: string, { name, length, handle }: OpenFile, times: WriteTimes) {
    this.#folder = folder
    this.name = name
    this.length = length
    this.#handle = handle
    this.#times = times
  }

  readSync(offset: number, length: number): Uint8Array {
    this.#checkOpen()
    const bytes = Buffer.allocUnsafeSlow(Math.max(0, Math.min(length, this.length - offset)))
    try {
      for (let filled = 0; filled < bytes.length;) {
        const read = readSync(
          this.#handle.fd,
          bytes,
          filled,
          bytes.length - filled,
          offset + filled,
        )
        if (read === 0) return bytes.subarray(0, filled)
        filled += read
      }
    } catch (error) {
      throw this.#readError(error, offset)
    }
    return bytes
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    this.#checkOpen()
    const bytes = Buffer.allocUnsafeSlow(Math.max(0, Math.min(length, this.length - offset)))
    try {
      for (let filled = 0; filled < bytes.length;) {
        const left = bytes.length - filled
        const { bytesRead } = await this.#handle.read(bytes, filled, left, offset + filled)
        if (bytesRead === 0) return bytes.subarray(0, filled)
        filled += bytesRead
      }
    } catch (error) {
      throw this.#readError(error, offset)
    }
    return bytes
  }

  async write(parts: readonly Uint8Array[], offset: number): Promise<void> {
    this.#checkOpen()
    const bytes = parts.reduce((sum, part) => sum + part.length, 0)
    assert(offset + bytes <= this.length, 'JRN-2: a write goes beyond the end of its file')
    const startMicros = nowMicros()
    const isSync = this.#times.isSync(bytes, startMicros)
    try {
      const written = isSync
        ? writevSync(this.#handle.fd, [...parts], offset)
        : (await this.#handle.writev([...parts], offset)).bytesWritten
      if (written < bytes) await this.#writeRest(parts, offset, written)
    } catch (error) {
      throw writeError(join(this.#folder, this.name), error)
    }
    this.#times.took(startMicros, nowMicros(), isSync)
  }

  /** A system may write less than it was given, as when a signal comes in between. */
  async #writeRest(parts: readonly Uint8Array[], offset: number, written: number): Promise<void> {
    const bytes = Buffer.concat(parts)
    for (let done = written; done < bytes.length;) {
      const left = bytes.length - done
      const { bytesWritten } = await this.#handle.write(bytes, done, left, offset + done)
      done += bytesWritten
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#handle.close()
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new StoreError('closed', `the journal ${this.#folder} is closed`)
  }

  #readError(error: unknown, offset: number): StoreError {
    if (this.#isClosed) return new StoreError('closed', `the journal ${this.#folder} is closed`)
    const where = `${join(this.#folder, this.name)} at byte ${offset}`
    const isDamage = isFileFailure(error) && error.code === 'EIO'
    const message = `cannot read ${where}: ${fileFailure(error)}`
    return new StoreError(isDamage ? 'corrupt' : 'unavailable', message, {}, { cause: error })
  }
}

function nowMicros(): number {
  return performance.now() * 1000
}

async function fill(handle: FileHandle, length: number): Promise<void> {
  const zeros = Buffer.alloc(Math.min(zeroBytes, length))
  for (let at = 0; at < length;) {
    const { bytesWritten } = await handle.write(zeros, 0, Math.min(zeros.length, length - at), at)
    at += bytesWritten
  }
  await handle.sync()
}

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function writeError(path: string, error: unknown): StoreError {
  const isFull = isFileFailure(error) && /ENOSPC|EDQUOT/.test(error.code ?? '')
  const advice = isFull
    ? 'make room and start the node again'
    : 'nothing more is written to it: check the disk and start the node again'
  const message = `a write to ${path} failed (${fileFailure(error)}); ${advice}`
  return new StoreError('unavailable', message, {}, { cause: error })
}

function folderError(path: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const options = { cause: error }
  const code = isFileFailure(error) ? error.code : undefined
  if (/^(?:EACCES|EPERM|EROFS)$/.test(code ?? '')) {
    const message = `the journal ${path} cannot be written (${fileFailure(error)}); make it writable, or name another folder`
    return new StoreError('forbidden', message, {}, options)
  }
  if (/^(?:EEXIST|ENOTDIR|ELOOP)$/.test(code ?? '')) {
    const message = `the journal ${path} is a file, or lies below one; name another folder`
    return new StoreError('invalid', message, {}, options)
  }
  const advice = code === 'ENOSPC' ? 'make room' : 'check the disk'
  const message = `the journal ${path} cannot be used (${fileFailure(error)}); ${advice}, and start the node again`
  return new StoreError('unavailable', message, {}, options)
}
