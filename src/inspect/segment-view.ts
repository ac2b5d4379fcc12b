/**
 * A log in segment files as it lies in its folder, for reading alone. The journal of segment files writes as it opens: it
 * begins a segment. Here that one is in memory, and nothing in the folder changes. A flush that is damaged is reported
 * and left out; the journal itself would refuse it.
 */
import { readdir } from 'node:fs/promises'
import { openToRead } from '../adapters/segment-file.ts'
import { systemClock } from '../adapters/system-clock.ts'
import { systemRandom } from '../adapters/system-random.ts'
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { openSegmentJournal } from '../journal/segment-journal.ts'
import { spareNumber } from '../journal/segment-stock.ts'
import type { Journal, JournalFlush } from '../ports/journal.ts'
import type { SegmentEntry, SegmentFile, SegmentFolder } from '../ports/segments.ts'
import type { CheckPace } from '../ports/storage.ts'

export interface LogView {
  readonly log: Pick<Journal, 'record' | 'recordNames' | 'read' | 'scan' | 'last'>
  /** False: the journal cannot be opened. It then shows nothing. */
  readonly isReadable: boolean
  /** Reads every file, and tells of each damaged place. */
  checkFiles(pace: CheckPace): Promise<void>
  close(): Promise<void>
}

/** `onDamage` hears of damage when a read meets it, or the opening refuses the journal over it. */
export async function viewSegments(
  path: string,
  onDamage: (what: string) => void,
): Promise<LogView> {
  try {
    const folder = new ViewedFolder(path)
    return new SegmentView(await openSegmentJournal({ folder, random: systemRandom }), onDamage)
  } catch (error) {
    if (!isDamage(error)) throw error
    onDamage(error.message)
    return unreadable
  }
}

const unreadable: LogView = {
  log: {
    record: () => undefined,
    recordNames: () => Promise.resolve([]),
    read: () => undefined,
    async *scan() {
      // There is nothing to show.
    },
    last: () => Promise.resolve(0),
  },
  isReadable: false,
  checkFiles: () => Promise.resolve(),
  close: () => Promise.resolve(),
}

function isDamage(error: unknown): error is StoreError {
  return error instanceof StoreError && error.code === 'corrupt'
}

class SegmentView implements LogView {
  readonly isReadable = true
  readonly #journal: Journal
  readonly #onDamage: (what: string) => void

  constructor(journal: Journal, onDamage: (what: string) => void) {
    this.#journal = journal
    this.#onDamage = onDamage
  }

  get log(): LogView['log'] {
    const journal = this.#journal
    return {
      record: (name) => journal.record(name),
      recordNames: () => journal.recordNames(),
      read: (number) => this.#read(number),
      scan: (number) => this.#scan(number),
      last: () => journal.last(),
    }
  }

  checkFiles(pace: CheckPace): Promise<void> {
    return this.#journal.check(pace)
  }

  close(): Promise<void> {
    return this.#journal.close()
  }

  /** Undefined also for a flush that is damaged. */
  #read(number: number): Uint8Array | undefined {
    try {
      return this.#journal.read(number)
    } catch (error) {
      if (!isDamage(error)) throw error
      this.#onDamage(`flush ${number} is damaged, or lost`)
      return undefined
    }
  }

  async *#scan(number: number): AsyncGenerator<readonly JournalFlush[], undefined> {
    const last = await this.#journal.last()
    let next = number
    while (next <= last) {
      try {
        for await (const flushes of this.#journal.scan(next)) {
          yield flushes
          next = (flushes.at(-1)?.number ?? next) + 1
        }
        return undefined
      } catch (error) {
        if (!isDamage(error)) throw error
      }
      // One of those that the scan would have given next is damaged: up to that one each is read by itself.
      for (let isSound = true; isSound && next <= last; next++) {
        const bytes = this.#read(next)
        isSound = bytes !== undefined
        if (bytes !== undefined) yield [{ number: next, bytes }]
        await new Promise<void>((resolve) => systemClock.defer(resolve))
      }
    }
    return undefined
  }
}

class ViewedFolder implements SegmentFolder {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /** Without spare files: the journal would write to one. */
  async list(): Promise<readonly SegmentEntry[]> {
    const entries = await readdir(this.path, { withFileTypes: true })
    return entries
      .filter(({ name }) => spareNumber(name) === undefined)
      .map((entry) => ({ name: entry.name, isFile: entry.isFile() }))
  }

  create(name: string, length: number): Promise<SegmentFile> {
    return Promise.resolve(new MemoryFile(name, length))
  }

  open(name: string): Promise<SegmentFile> {
    return openToRead(this.path, name)
  }

  rename(file: SegmentFile, name: string): Promise<SegmentFile> {
    assert(file instanceof MemoryFile, 'a segment that is only looked at is renamed')
    file.name = name
    return Promise.resolve(file)
  }

  remove(): Promise<void> {
    return Promise.resolve()
  }

  pause(): Promise<void> {
    return Promise.resolve()
  }
}

/** The segment that the opening begins. */
class MemoryFile implements SegmentFile {
  name: string
  readonly length: number
  /** The rest of the file is zeros. */
  #bytes = Buffer.alloc(0)

  constructor(name: string, length: number) {
    this.name = name
    this.length = length
  }

  readSync(offset: number, length: number): Uint8Array {
    const bytes = Buffer.alloc(Math.max(0, Math.min(length, this.length - offset)))
    this.#bytes.copy(bytes, 0, offset)
    return bytes
  }

  read(offset: number, length: number): Promise<Uint8Array> {
    return Promise.resolve(this.readSync(offset, length))
  }

  write(parts: readonly Uint8Array[], offset: number): Promise<void> {
    const gap = Buffer.alloc(Math.max(0, offset - this.#bytes.length))
    this.#bytes = Buffer.concat([this.#bytes.subarray(0, offset), gap, ...parts])
    return Promise.resolve()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
