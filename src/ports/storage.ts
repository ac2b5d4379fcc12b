/**
 * An ordered store of bytes: LevelDB, or the simulator's disk. Both pass `test/contracts/storage.ts`.
 *
 * There is no unsynced write: LevelDB switches its own log file without syncing the old one, so an
 * unsynced batch may vanish while a later one survives.
 */

export interface Put {
  readonly key: Uint8Array
  /** Absent: the key is deleted. */
  readonly value?: Uint8Array
}

/** Bounds of a scan, in byte order. Absent bounds are open. */
export interface Range {
  readonly gte?: Uint8Array
  readonly gt?: Uint8Array
  readonly lt?: Uint8Array
  readonly reverse?: boolean
  /** The most rows to read; absent: all of them. */
  readonly limit?: number
}

export interface KeyValue {
  readonly key: Uint8Array
  readonly value: Uint8Array
}

/**
 * The rest of batches that were durable. The store was found damaged at its opening, and may have passed over
 * some of them. The owner of the store, which knows its values, puts back the sound ones.
 */
export interface JournalDamage {
  /** Which files, where and how, in words. */
  readonly what: string
  /** From a place before the damage to the end, in order. Undefined: one or more that cannot be made out. */
  readonly batches: readonly (readonly Put[] | undefined)[]
  /** The batches to put back are durable: no open reports the damage again. Until then every open does. */
  done(): Promise<void>
}

/** Keys from `gte` on, before `lt`. */
export interface KeySpan {
  readonly gte: Uint8Array
  readonly lt: Uint8Array
}

/** How a check goes on beside the work of others. Absent: as fast as the disk. */
export interface CheckPace {
  /** As of the call. */
  bytesPerSecond(): number
  /** The caller does not want the result any more: it rejects with `closed`. */
  isOver(): boolean
  /** The bytes read so far in this check, and their part of all that are to be read, 0 to 1. */
  onProgress(bytesRead: number, part: number): void
  /** Told of each damaged file, which one, where and how, in words: the check goes on. Absent: it rejects. */
  onDamage?(what: string): void
}

/**
 * Why files may still have bytes of what is gone: LevelDB has not let go of files that were rewritten, or a check has not
 * read tables that are kept for it.
 */
export type EraseHeld = 'files-in-use' | 'unchecked'

export interface OrderedStore {
  /** Absent: nothing of that kind was found. Nothing vouches for the bytes in it. */
  readonly damage?: JournalDamage | undefined
  /** The value as it was last written, by a write that has resolved or is under way. */
  getSync(key: Uint8Array): Uint8Array | undefined
  /**
   * Writes all of `puts` or none, in order, and resolves when they are durable (synced).
   * Rejects when the disk refuses: nothing may be assumed of the batch then, and the caller stops.
   * One write at a time: a second call before the first has resolved is a bug of the caller.
   */
  write(puts: readonly Put[]): Promise<void>
  /**
   * The rows of a range as of the call, in key order, as many at a time as are at hand, never none.
   * Not one by one: waiting for each row costs more than reading it.
   */
  scan(range: Range): AsyncIterable<readonly KeyValue[]>
  /**
   * Resolves when what may hold keys of these spans was read and is what was written; rejects with
   * `corrupt` when it is not: a record there may be damaged, an older one, or not shown at all. `all`:
   * everything. Absent: the store can tell no such damage.
   */
  check?(spans: readonly KeySpan[] | 'all', pace?: CheckPace): Promise<void>
  /**
   * About how many bytes of the disk the rows of the span take; rows that were written lately may be left out.
   * Absent: only a scan can tell.
   */
  sizeOf?(span: KeySpan): Promise<number>
  /**
   * Rewrites the files that may have rows of these spans: none has the bytes of a row that was overwritten or deleted
   * there before the call. Writes and reads go on meanwhile. One call at a time. Waits for scans that began before.
   * Gives what still stands against that, and undefined when it is done. Absent: no file has bytes of such a row.
   */
  erase?(spans: readonly KeySpan[] | 'all'): Promise<EraseHeld | undefined>
  /** Gives the store back; later calls reject. Idempotent. */
  close(): Promise<void>
}
