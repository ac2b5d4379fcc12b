/**
 * An ordered store on LevelDB (classic-level). Every write is one synced, chained batch.
 *
 * A write that failed fences the store: after a failed fsync the contents of the disk are unknown, so nothing
 * is written to it any more and its owner stops.
 */
import { readdir } from 'node:fs/promises'
import { ClassicLevel, type Iterator } from 'classic-level'
import { assert } from '../base/assert.ts'
import { compareBytes } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import {
  closedError,
  damageError,
  openError,
  readError,
  rootlessError,
  writeError,
} from './level-errors.ts'
import { refuseOtherKind } from './journal-kind.ts'
import { eraseSpans } from './level-erase.ts'
import { makeFolder } from './make-folder.ts'
import { damageBefore, keepDamaged } from './level-salvage.ts'
import {
  checkSpans,
  checkTables,
  damagedJournals,
  keepUnchecked,
  type CheckProgress,
} from './level-tables.ts'
import type {
  CheckPace,
  EraseHeld,
  JournalDamage,
  KeySpan,
  KeyValue,
  OrderedStore,
  Put,
  Range,
} from '../ports/storage.ts'

type Level = ClassicLevel<Uint8Array, Uint8Array>
type Rows = Iterator<Level, Uint8Array, Uint8Array>

export interface LevelOptions {
  /** LevelDB's write buffer; a larger one means fewer, larger tables. Default: 16 MiB. */
  readonly writeBufferBytes?: number
  /** Of table blocks, uncompressed. Default: 64 MiB. */
  readonly blockCacheBytes?: number
  /** Tables that it keeps open; LevelDB's own default is 1,000. */
  readonly openTablesMax?: number
  /** Takes less of the disk, and a few microseconds for each block that is read. Absent: it does. */
  readonly compresses?: boolean
  /** Reads all of the store first and refuses it when a checksum does not match. Absent: it does. */
  readonly checkTables?: boolean
  /**
   * Where all of the store is not read first: reports damage of its journals as `damage`. Absent: it does
   * not.
   */
  readonly tellsDamage?: boolean
  /** Of the tables it then reads only what may hold such keys, and how long the others are. */
  readonly checkedSpans?: readonly KeySpan[]
  /** All of them all the same. Absent: no. */
  readonly readsAll?: boolean
  /** How far that is, after each table. */
  readonly onCheckProgress?: (progress: CheckProgress) => void
}

/** At LevelDB's own 4 MiB, compaction of rows under random keys takes a tenth of a busy node's CPU. */
const writeBufferBytesDefault: number = 16 * 1024 * 1024
/** At LevelDB's own 8 MiB, reads of random rows among a million cost a node a fifth more CPU. */
const blockCacheBytesDefault: number = 64 * 1024 * 1024

/**
 * At LevelDB's own 2 MiB, a table is compacted anew after a hundred reads that looked into it in vain:
 * with random reads of a million rows that takes half as much CPU again as the reads.
 */
const tableBytesMax: number = 16 * 1024 * 1024

/**
 * Blocks that are not compressed are read where the system has them, only the pages that are looked
 * at. The index that each look goes through first is a quarter as long as with LevelDB's own 4 KiB: for
 * a node that overwrites rows among a million some 8 % less CPU a commit. Larger ones still gain little,
 * and a look touches more pages, which may have to come from the disk.
 */
const plainBlockBytes: number = 16 * 1024

/** Opens the store at `path`, made if it is not there. Rejects with a StoreError that says what to do. */
export async function openLevelStore(
  path: string,
  options: LevelOptions = {},
): Promise<OrderedStore> {
  // Before LevelDB hears of the folder: it opens what it is made for by itself, a turn later.
  if (await hasLostItsRoot(path)) throw rootlessError(path)
  await refuseStrangers(path)
  await refuseOtherKind(path, 'leveldb')
  if (options.checkTables !== false) await checkBefore(path, options)
  const damage = options.tellsDamage === true ? await journalDamage(path) : undefined
  // Its own way of making one tries without end below `/proc`. Nothing is awaited between the next two calls: it
  // opens by itself a turn after it was made, without the options below.
  await makeFolder(path).catch((error: unknown) => {
    throw openError(path, error)
  })
  const level: Level = new ClassicLevel(path, { keyEncoding: 'view', valueEncoding: 'view' })
  try {
    await level.open({
      writeBufferSize: options.writeBufferBytes ?? writeBufferBytesDefault,
      cacheSize: options.blockCacheBytes ?? blockCacheBytesDefault,
      maxFileSize: tableBytesMax,
      // Of them it takes ten for its other files.
      ...(options.openTablesMax === undefined ? {} : { maxOpenFiles: options.openTablesMax }),
      compression: options.compresses !== false,
      ...(options.compresses === false ? { blockSize: plainBlockBytes } : {}),
    })
  } catch (error) {
    throw openError(path, error)
  }
  return new LevelStore(path, level, { damage, checkedSpans: options.checkedSpans })
}

/** Reads the parts of the store that its owner must not rely on unread. */
async function checkBefore(path: string, options: LevelOptions): Promise<void> {
  const { onCheckProgress, checkedSpans, readsAll } = options
  const isKept = checkedSpans !== undefined && (await keepUnchecked(path))
  const spans = (isKept && readsAll !== true ? checkedSpans : undefined) ?? 'all'
  const isAll = spans === 'all'
  assert(
    isAll || readsAll !== true,
    'DISK-17: a start checks only a part of tables that it has to check whole',
  )
  const progress = onCheckProgress === undefined ? {} : { onProgress: onCheckProgress }
  await checkTables(path, { spans, ...progress })
}

/** Records that LevelDB is about to pass over, or has, and that the owner has not put back. */
async function journalDamage(path: string): Promise<JournalDamage | undefined> {
  const before = await damageBefore(path)
  if (before !== undefined) return before
  const damaged = await damagedJournals(path)
  if (damaged === undefined) return undefined
  await keepDamaged(path, damaged)
  return damageBefore(path)
}

/**
 * LevelDB takes a folder without its file CURRENT for a new store, and forgets everything in it.
 * Tables and logs come after CURRENT, so a creation that was cut short does not look like this.
 */
async function hasLostItsRoot(path: string): Promise<boolean> {
  const names = await readdir(path).catch((): string[] => [])
  return !names.includes('CURRENT') && names.some((name) => /^\d+\.(?:ldb|log)$/.test(name))
}

/** LevelDB would wait without end for what a pipe of one of its names gives. */
async function refuseStrangers(path: string): Promise<void> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  const strange = entries.find((entry) => entry.isFIFO() || entry.isSocket())
  if (strange !== undefined) throw damageError(path, `${strange.name} in it is a pipe or a socket`)
}

/** The findings of checks that ran before the store was opened. */
interface Found {
  readonly damage: JournalDamage | undefined
  readonly checkedSpans: readonly KeySpan[] | undefined
}

class LevelStore implements OrderedStore {
  readonly damage: JournalDamage | undefined
  readonly #path: string
  readonly #level: Level
  /** Checked before LevelDB saw them: a compaction may have written them anew since. */
  readonly #checkedSpans: readonly KeySpan[] | undefined
  #isWriting = false
  #isClosed = false
  /** The owner's write under way, or the last one. */
  #writing: Promise<void> | undefined
  /** Rows that are written anew, as they are; the owner's next write waits. */
  #rewriting: Promise<void> | undefined
  readonly #scans = new Set<LevelScan>()
  #fence: StoreError | undefined

  constructor(path: string, level: Level, found: Found) {
    this.#path = path
    this.#level = level
    this.damage = found.damage
    this.#checkedSpans = found.checkedSpans
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
    this.#writing = this.#write(puts)
    return this.#writing
  }

  async #write(puts: readonly Put[]): Promise<void> {
    this.#isWriting = true
    try {
      const batch = this.#level.batch()
      for (const { key, value } of puts) {
        if (value === undefined) batch.del(key)
        else batch.put(key, value)
      }
      if (this.#rewriting !== undefined) await this.#rewriting
      await batch.write({ sync: true })
    } catch (error) {
      this.#fence = writeError(this.#path, error)
      throw this.#fence
    } finally {
      this.#isWriting = false
    }
  }

  scan(range: Range): AsyncIterable<readonly KeyValue[]> {
    // Made now, not at the first read of a row: an iterator shows the store as it is here.
    const iterator = this.#isClosed
      ? undefined
      : this.#level.iterator({ ...tightened(range), highWaterMarkBytes })
    const scan: LevelScan = new LevelScan(iterator, {
      toError: (error) => this.#readError(error),
      onEnd: () => this.#scans.delete(scan),
    })
    if (iterator !== undefined) this.#scans.add(scan)
    return scan
  }

  async check(spans: readonly KeySpan[] | 'all', pace?: CheckPace): Promise<void> {
    if (this.#isClosed) throw closedError(this.#path)
    if (spans !== this.#checkedSpans) await checkSpans(this.#path, spans, pace)
  }

  async sizeOf({ gte, lt }: KeySpan): Promise<number> {
    try {
      return await this.#level.approximateSize(gte, lt)
    } catch (error) {
      throw this.#readError(error)
    }
  }

  async erase(spans: readonly KeySpan[] | 'all'): Promise<EraseHeld | undefined> {
    await Promise.all([...this.#scans].map(({ ended }) => ended))
    const compacting = {
      compactRange: (from: Uint8Array, to: Uint8Array) => this.#level.compactRange(from, to),
      rewrite: (keys: readonly Uint8Array[]) => this.#rewrite(keys),
    }
    try {
      return await eraseSpans(this.#path, compacting, spans)
    } catch (error) {
      throw error instanceof StoreError ? error : this.#readError(error)
    }
  }

  /** Between two writes of the owner: else a row would be put back that a write has just changed. */
  async #rewrite(keys: readonly Uint8Array[]): Promise<void> {
    this.#rewriting = this.#rewriteNow(keys)
    try {
      await this.#rewriting
    } finally {
      this.#rewriting = undefined
    }
  }

  async #rewriteNow(keys: readonly Uint8Array[]): Promise<void> {
    await this.#writing?.catch(() => undefined)
    const batch = this.#level.batch()
    for (const key of keys) {
      const value = this.#level.getSync(key)
      if (value === undefined) batch.del(key)
      else batch.put(key, value)
    }
    await batch.write({ sync: true })
  }

  #readError(error: unknown): StoreError {
    return this.#isClosed ? closedError(this.#path) : readError(this.#path, error)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#fence ??= closedError(this.#path)
    for (const scan of this.#scans) scan.onClosed()
    // Waits for a write that is under way.
    await this.#level.close()
  }
}

interface ScanParts {
  toError(error: unknown): StoreError
  onEnd(): void
}

/** The rows of an iterator; of none, when the store was closed. */
class LevelScan implements AsyncIterableIterator<readonly KeyValue[]> {
  /** Resolves when LevelDB keeps nothing for it any more. */
  readonly ended: Promise<void>
  /** The store was closed under it. */
  onClosed: () => void = () => undefined
  readonly #iterator: Rows | undefined
  readonly #parts: ScanParts

  constructor(iterator: Rows | undefined, parts: ScanParts) {
    this.#iterator = iterator
    this.#parts = parts
    this.ended = new Promise((resolve) => {
      this.onClosed = resolve
    })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<readonly KeyValue[], undefined>> {
    if (this.#iterator === undefined) throw this.#parts.toError(undefined)
    try {
      const rows = await this.#iterator.nextv(scanChunkRows)
      // A chunk is cut by its bytes as well: only an empty one is the end.
      if (rows.length === 0) return await this.return()
      return { done: false, value: rows.map(([key, value]) => ({ key, value })) }
    } catch (error) {
      await this.return()
      throw this.#parts.toError(error)
    }
  }

  async return(): Promise<IteratorResult<readonly KeyValue[], undefined>> {
    await this.#iterator?.close()
    this.onClosed()
    this.#parts.onEnd()
    return { done: true, value: undefined }
  }
}

/** LevelDB lets `gte` win over `gt`, whichever is the narrower. */
function tightened(range: Range): Range {
  const { gte, gt } = range
  if (gte === undefined || gt === undefined) return range
  const { gte: _, gt: __, ...rest } = range
  return compareBytes(gt, gte) < 0 ? { ...rest, gte } : { ...rest, gt }
}

const scanChunkRows = 256
/** The most bytes of a chunk; each chunk costs a turn of a thread. */
const highWaterMarkBytes: number = 128 * 1024
