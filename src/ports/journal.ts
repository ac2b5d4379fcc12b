/**
 * The journal of a node: numbered flushes, in order and without a gap, and a few small records beside them,
 * each under a name. LevelDB, segment files and the simulator's disk have one; all pass
 * one contract suite.
 *
 * The journal knows nothing of what stands in a flush or a record: their own checksums are the log's matter
 * (`../log/flush.ts`). Errors: a part that the disk cannot give back as it was written is `corrupt`;
 * a write that the disk refuses rejects with `unavailable`, and all later ones with it; after `close` calls
 * reject with `closed`.
 */
import type { CheckPace } from './storage.ts'

export interface JournalFlush {
  /** From 1; each is one more than the flush before it. */
  readonly number: number
  readonly bytes: Uint8Array
}

/** The newest value under a name is what counts; there are a handful of names. */
export interface JournalRecord {
  readonly name: string
  readonly value: Uint8Array
}

/** Flushes and records that become durable together, or not at all. */
export interface JournalWrite {
  readonly flushes: readonly JournalFlush[]
  readonly records: readonly JournalRecord[]
}

/**
 * The rest of writes that were durable. The opening found the journal damaged, and may have passed over some of them.
 * The log knows its flushes and records by their own checksums, and puts back the sound ones.
 */
export interface LostWrites {
  /** Which files, where and how, in words. */
  readonly what: string
  /**
   * The values of each write from a place before the damage to the end, in order; nothing vouches for the bytes in
   * them. Undefined: one write or more that cannot be made out.
   */
  readonly writes: readonly (readonly Uint8Array[] | undefined)[]
  /** Makes `found` durable: no later opening reports the damage. Until then each one does. */
  putBack(found: JournalWrite): Promise<void>
}

export interface Journal {
  /** Absent: the opening found no damage. */
  readonly lost?: LostWrites | undefined
  /** The record as it was last written, by a write that has resolved or is under way. */
  record(name: string): Uint8Array | undefined
  /** The names of all records, in no order. */
  recordNames(): Promise<readonly string[]>
  /** The bytes of a flush, that of a write under way included; undefined: there is none of this number. */
  read(number: number): Uint8Array | undefined
  /** The flushes from `number` on as of the call, in order, some at a time and never none. */
  scan(number: number): AsyncIterable<readonly JournalFlush[]>
  /** The number of the last flush; 0 when there is none. */
  last(): Promise<number>
  /**
   * Writes the next flush, and `records` along with it: all of it or nothing. Resolves when it is durable
   * (synced). One write at a time: a second call before the first has resolved is a bug of the caller.
   */
  append(flush: JournalFlush, records?: readonly JournalRecord[]): Promise<void>
  /** Writes records without a flush, in the same way. */
  checkpoint(records: readonly JournalRecord[]): Promise<void>
  /** Writes the next flushes, in their order, and records, in the same way: a thousand of both at most. */
  write(write: JournalWrite): Promise<void>
  /**
   * Gives up the flushes below `first`: their room is used again, some time. The caller has made durable that it needs
   * them no more, and says so again after each opening: a crash may bring them back.
   */
  drop(first: number): Promise<void>
  /**
   * The next write, and all after it, go into files that have no bytes of a flush before. So files need not be rewritten
   * for `erased`. Absent: that is of no use here.
   */
  separate?(): void
  /**
   * Whether no file has bytes of the flushes that were given up. Gives up no flush, and may have done a part of it when
   * it resolves with false: the caller writes, and asks again. Called after `separate`, and after all flushes before the
   * write that followed are given up. Absent: none has.
   */
  erased?(): Promise<boolean>
  /**
   * About how many bytes of the disk the flushes from `first` through `last` take. It is counted there at each call.
   * Flushes that were written lately may be left out.
   */
  sizeOf(first: number, last: number): Promise<number>
  /**
   * Resolves when all that is kept was read and is what was written; rejects with `corrupt` when it is not, or
   * tells `pace.onDamage` and goes on. A journal that can tell no such damage resolves at once.
   */
  check(pace?: CheckPace): Promise<void>
  /** Waits for a write under way and gives the files back. Idempotent. */
  close(): Promise<void>
}
