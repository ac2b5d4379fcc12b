/** A folder of segment files on a real disk. */
import { constants, open, readdir, rename, rm, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { SegmentEntry, SegmentFile, SegmentFolder } from '../ports/segments.ts'
import { fileFailure, isFileFailure } from './file-failure.ts'
import { refuseOtherKind } from './journal-kind.ts'
import { makeFolder } from './make-folder.ts'
import { syncFolder } from './sync-folder.ts'
import { OpenSegments, RealSegment } from './segment-file.ts'

/** The most zeros that one call writes. */
const zeroBytes: number = 1024 * 1024

export interface SegmentFolderOptions {
  /** Files that it keeps open; older ones are opened for each read. Default: 1,000. */
  readonly openFilesMax?: number
}

const openFilesDefault = 1_000

/** The folder at `path`, made if it is not there. Rejects with `invalid` for a folder that holds LevelDB. */
export async function openSegmentFolder(
  path: string,
  { openFilesMax = openFilesDefault }: SegmentFolderOptions = {},
): Promise<SegmentFolder> {
  await refuseOtherKind(path, 'files')
  try {
    await makeFolder(path)
    await syncFolder(dirname(path))
  } catch (error) {
    throw folderError(path, error)
  }
  return new RealFolder(path, openFilesMax)
}

class RealFolder implements SegmentFolder {
  readonly path: string
  readonly #open: OpenSegments

  constructor(path: string, openFilesMax: number) {
    this.path = path
    this.#open = new OpenSegments(path, openFilesMax)
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
      return RealSegment.open(name, this.#open)
    })
  }

  open(name: string): Promise<SegmentFile> {
    return this.#try(() => RealSegment.open(name, this.#open))
  }

  async rename(file: SegmentFile, name: string): Promise<SegmentFile> {
    assert(file instanceof RealSegment, 'JRN: a file of this folder is renamed')
    await this.#try(async () => {
      await rename(join(this.path, file.name), join(this.path, name))
      await syncFolder(this.path)
    })
    file.name = name
    return file
  }

  remove(name: string): Promise<void> {
    return this.#try(async () => {
      await rm(join(this.path, name), { force: true })
      await syncFolder(this.path)
    })
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

async function fill(handle: FileHandle, length: number): Promise<void> {
  const zeros = Buffer.alloc(Math.min(zeroBytes, length))
  for (let at = 0; at < length;) {
    const { bytesWritten } = await handle.write(zeros, 0, Math.min(zeros.length, length - at), at)
    at += bytesWritten
  }
  await handle.sync()
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
