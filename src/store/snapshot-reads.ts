/**
 * Rows as of a timestamp: of each the version in the overlay that is old enough, else the newest
 * stored one if it is, else the one in history that was seen then.
 *
 * MVCC-1  Exactly the commits up to the timestamp. All that a read needs is begun in one call, newest
 *         rows before history: a batch that becomes visible in between moves a version from one to the
 *         other, and so shows it twice, never not at all; and what is collected later does not count.
 */
import { compareBytes, latin1 } from '../base/bytes.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import { isSeenAt } from './collection.ts'
import type { KeyValue, Range } from '../ports/storage.ts'
import type { PageRange, Row } from '../group/replica-port.ts'
import { historyRange, mergeRows, storeRange } from './merge-rows.ts'
import type { Overlay } from './overlay.ts'
import {
  afterVersions,
  decodeVersionKey,
  groupPrefix,
  historyPrefix,
  joined,
  rowsPrefix,
  versionKey,
  type Stored,
} from './row-format.ts'

export interface SnapshotReadsParts {
  readonly overlay: Overlay
  read(key: Uint8Array): Stored | undefined
  scan(
    range: Range,
    read: (rows: readonly KeyValue[]) => readonly Row[],
  ): AsyncIterable<readonly Row[]>
  /** The decoded value; throws when it is damaged. */
  checked(key: Uint8Array, value: Uint8Array): Stored
}

export class SnapshotReads {
  readonly #parts: SnapshotReadsParts

  constructor(parts: SnapshotReadsParts) {
    this.#parts = parts
  }

  /** In the order of `keys`, all as of the call. */
  getAll(
    group: GroupId,
    keys: readonly Uint8Array[],
    at: Timestamp,
  ): Promise<readonly (Row | undefined)[]> {
    const prefix = groupPrefix(group)
    return Promise.all(keys.map((key) => this.#get(group, prefix, key, at)))
  }

  async #get(
    group: GroupId,
    prefix: Uint8Array,
    key: Uint8Array,
    at: Timestamp,
  ): Promise<Row | undefined> {
    const { overlay, read } = this.#parts
    const pending = overlay.get(group, latin1(key), at)
    if (pending !== undefined) {
      const { value, timestamp } = pending
      return value === undefined ? undefined : { key, value, timestamp }
    }
    const stored = read(joined(rowsPrefix(prefix), key))
    if (stored !== undefined && stored.stamp <= at) {
      return { key, value: stored.payload, timestamp: stored.stamp }
    }
    const history = historyPrefix(prefix)
    const gte = versionKey(history, key, at)
    // The first one is the last that began by then.
    const range = { gte, lt: afterVersions(history, key), limit: 1 }
    for await (const [row] of this.#history(range, history.length, at)) return row
    return undefined
  }

  /** The rows of a range, as of the call. */
  scan(group: GroupId, range: PageRange, at: Timestamp): Promise<readonly Row[]> {
    const prefix = groupPrefix(group)
    const pending = this.#parts.overlay.range(group, range, at)
    // How many stored rows are passed over cannot be known.
    const { limit: _, ...whole } = range
    const prefixBytes = prefix.length + 1
    const newest = this.#newest(storeRange(prefix, whole, 0), prefixBytes, at)
    const history = this.#history(historyRange(prefix, whole), prefixBytes, at)
    const sign = range.reverse === true ? -1 : 1
    return mergeRows(pending, oneOfEach(newest, history, sign), range)
  }

  #newest(range: Range, prefixBytes: number, at: Timestamp): AsyncIterable<readonly Row[]> {
    return this.#parts.scan(range, (rows) =>
      rows.flatMap(({ key, value }) => {
        const { stamp: timestamp, payload } = this.#parts.checked(key, value)
        return timestamp <= at ? { key: key.subarray(prefixBytes), value: payload, timestamp } : []
      }),
    )
  }

  /** At most one version of each row: the times at which they are seen do not overlap. */
  #history(range: Range, prefixBytes: number, at: Timestamp): AsyncIterable<readonly Row[]> {
    return this.#parts.scan(range, (versions) =>
      versions.flatMap((one) => {
        const { stamp: end, payload } = this.#parts.checked(one.key, one.value)
        const { key, start } = decodeVersionKey(one.key.subarray(prefixBytes))
        return isSeenAt(at, start, end) ? { key, value: payload, timestamp: start } : []
      }),
    )
  }
}

/** Two ranges in the same order as one. Asks both for their first rows at once. */
async function* oneOfEach(
  newest: AsyncIterable<readonly Row[]>,
  history: AsyncIterable<readonly Row[]>,
  sign: number,
): AsyncIterable<readonly Row[]> {
  const one = new Cursor(newest)
  const other = new Cursor(history)
  try {
    for (;;) {
      await Promise.all([one.fill(), other.fill()])
      if (one.row === undefined && other.row === undefined) return
      const merged: Row[] = []
      while (one.isReady && other.isReady) {
        const order = compareRows(one.row, other.row, sign)
        const next = order <= 0 ? one.row : other.row
        if (next === undefined) break
        merged.push(next)
        if (order <= 0) one.step()
        if (order >= 0) other.step()
      }
      yield merged
    }
  } finally {
    await one.close()
    await other.close()
  }
}

/** A place in rows that come some at a time. */
class Cursor {
  readonly #chunks: AsyncIterator<readonly Row[]>
  #rows: readonly Row[] = []
  #at = 0
  #isAtEnd = false

  constructor(chunks: AsyncIterable<readonly Row[]>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** Whether `row` is known; otherwise `fill` comes first. */
  get isReady(): boolean {
    return this.#isAtEnd || this.#at < this.#rows.length
  }

  /** The row of this place; undefined at the end. */
  get row(): Row | undefined {
    return this.#rows[this.#at]
  }

  step(): void {
    this.#at += 1
  }

  async fill(): Promise<void> {
    while (!this.isReady) {
      const { done, value } = await this.#chunks.next()
      this.#isAtEnd = done === true
      this.#rows = done === true ? [] : value
      this.#at = 0
    }
  }

  async close(): Promise<void> {
    await this.#chunks.return?.()
  }
}

/** Which of the two comes first; a source at its end comes last. */
function compareRows(a: Row | undefined, b: Row | undefined, sign: number): number {
  if (a === undefined) return 1
  return b === undefined ? -1 : sign * compareBytes(a.key, b.key)
}
