/**
 * An ordered store on LevelDB (classic-level). Every write is one synced, chained batch.
 *
 * A write that failed fences the store: after a failed fsync nobody knows what the disk holds, so
 * nothing is written to it any more and its owner stops.
 */
import { ClassicLevel } from 'classic-level'
import { assert } from '../base/assert.ts'
import { compareBytes } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type { KeyValue, OrderedStore, Put, Range } from '../ports/storage.ts'

type Level = ClassicLevel<Uint8Array, Uint8Array>
type Rows = ClassicIterator<Uint8Array, Uint8Array>

export interface LevelOptions {
  /** LevelDB's write buffer; a larger one means fewer, larger tables. */
  readonly writeBufferBytes?: number
}

/** Opens the store at `path`, made if it is not there. Rejects with a StoreError that says what to do. */
export async function openLevelStore(
  path: string,
  options: LevelOptions = {},
): Promise<OrderedStore> {
  const level: Level = new ClassicLevel(path, { keyEncoding: 'view', valueEncoding: 'view' })
  try {
    const { writeBufferBytes } = options
    await level.open(writeBufferBytes === undefined ? {} : { writeBufferSize: writeBufferBytes })
  } catch (error) {
    throw openError(path, error)
  }
  return new LevelStore(path, level)
}

class LevelStore implements OrderedStore {
  readonly #path: string
  readonly #level: Level
  #isWriting = false
  #isClosed = false
  #fence: StoreError | undefined

  constructor(path: string, level: Level) {
    this.#path = path
    this.#level = level
  }

  getSync(key: Uint8Array): Uint8Array | undefined {
    try {
      return this.#level.getSync(key)
    } catch (error) {
      throw this.#readError(error)
    }
  }

  write(puts: readonly Put[]): Promise<void> {
    assert(!this.#isWriting, 'DISK: one write at a time')
    if (this.#fence !== undefined) return Promise.reject(this.#fence)
    return this.#write(puts)
  }

  async #write(puts: readonly Put[]): Promise<void> {
    this.#isWriting = true
    try {
      const batch = this.#level.batch()
      for (const { key, value } of puts) {
        if (value === undefined) batch.del(key)
        else batch.put(key, value)
      }
      await batch.write({ sync: true })
    } catch (error) {
      this.#fence = writeError(this.#path, error)
      throw this.#fence
    } finally {
      this.#isWriting = false
    }
  }

  scan(range: Range): AsyncIterable<KeyValue> {
    if (this.#isClosed) return this.#rows(undefined)
    // Made now, not when the first row is asked for: an iterator shows the store as it is here.
    return this.#rows(this.#level.iterator(tightened(range)))
  }

  async *#rows(iterator: Rows | undefined): AsyncIterable<KeyValue> {
    if (iterator === undefined) throw closedError(this.#path)
    try {
      for (;;) {
        const rows = await iterator.nextv(scanChunkRows)
        // A chunk is cut by its bytes as well: only an empty one is the end.
        if (rows.length === 0) return
        for (const [key, value] of rows) yield { key, value }
      }
    } catch (error) {
      throw this.#readError(error)
    } finally {
      await iterator.close()
    }
  }

  #readError(error: unknown): StoreError {
    return this.#isClosed ? closedError(this.#path) : readError(this.#path, error)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#fence ??= closedError(this.#path)
    // Waits for a write that is under way.
    await this.#level.close()
  }
}

/** LevelDB lets `gte` win over `gt`, whichever is the narrower. */
function tightened(range: Range): Range {
  const { gte, gt } = range
  if (gte === undefined || gt === undefined) return range
  const { gte: _, gt: __, ...rest } = range
  return compareBytes(gt, gte) < 0 ? { ...rest, gte } : { ...rest, gt }
}

function closedError(path: string): StoreError {
  return new StoreError('closed', `the store ${path} is closed`)
}

const scanChunkRows = 256

/** LevelDB's own words, with the reasons behind it. */
function textOf(error: unknown): string {
  const parts: string[] = []
  for (let at = error; at instanceof Error && parts.length < 4; at = at.cause) {
    const code = 'code' in at && typeof at.code === 'string' ? `${at.code}: ` : ''
    parts.push(`${code}${at.message}`)
  }
  return parts.join(' / ')
}

function openError(path: string, error: unknown): StoreError {
  const text = textOf(error)
  const options = { cause: error }
  if (/LOCKED|lock /i.test(text)) {
    const message = `the data folder ${path} is in use by another process; stop that process, or name another folder`
    return new StoreError('unavailable', message, {}, options)
  }
  if (/permission denied|read-only file system|EACCES|EROFS/i.test(text)) {
    const message = `the data folder ${path} cannot be written (${text}); make it writable, or name another folder`
    return new StoreError('forbidden', message, {}, options)
  }
  if (isDamage(text)) {
    const message = `the store ${path} is damaged (${text}); keep the folder for inspection`
    return new StoreError('corrupt', message, {}, options)
  }
  return new StoreError('unavailable', `cannot open the store ${path}: ${text}`, {}, options)
}

function isDamage(text: string): boolean {
  return /corrupt|checksum|bad block|not an sstable|missing files|bad magic|truncated/i.test(text)
}

function readError(path: string, error: unknown): StoreError {
  const text = textOf(error)
  const code = isDamage(text) ? 'corrupt' : 'unavailable'
  return new StoreError(code, `cannot read the store ${path}: ${text}`, {}, { cause: error })
}

function writeError(path: string, error: unknown): StoreError {
  const text = textOf(error)
  const isFull = /no space left|ENOSPC/i.test(text)
  const advice = isFull
    ? 'the disk is full: make room and start the node again'
    : 'nothing more is written to it: check the disk and start the node again'
  return new StoreError('unavailable', `a write to ${path} failed (${text}); ${advice}`, {}, {
    cause: error,
  })
}
