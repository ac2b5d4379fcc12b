/**
 * Which hash each group has that is written (`group-hash.ts`), so that a batch need not read the state record for it; and
 * the count of all rows of a group of which an earlier build wrote the state record: its hash is not known.
 *
 * HASH-1  A count is of one moment of the store. The batches from then on add their own writes to it.
 */
import type { GroupId } from '../base/ids.ts'
import type { Put, Range } from '../ports/storage.ts'
import { hashOfNothing, RowsSum, type GroupHash } from './group-hash.ts'
import {
  afterRows,
  encodeState,
  groupPrefix,
  rowsPrefix,
  stateKey,
  type Stored,
} from './row-format.ts'

/** Hashes that are kept, twice as many at most: about 100 bytes each. */
export const hashesKept = 32_768
/** Groups that wait to be counted; one more is counted when it is written again. */
export const countsMax = 10_000

export interface GroupHashesParts {
  read(key: Uint8Array): Stored | undefined
  /** Of the moment of the call. */
  scan(
    range: Range,
  ): AsyncIterable<readonly { readonly key: Uint8Array; readonly stored: Stored }[]>
  /** The group's rows are of no position now. */
  isReplaced(group: GroupId): boolean
  onFailed(error: unknown): void
}

/** The sum that a batch adds to. */
interface Counted {
  readonly sum: RowsSum | undefined
  readonly isHashed: boolean
}

type Generation = Map<GroupId, GroupHash>

export class GroupHashes {
  readonly #parts: GroupHashesParts
  #young: Generation = new Map()
  #old: Generation = new Map()
  readonly #waiting = new Set<GroupId>()
  /** The group that is counted, with the changes of batches since. */
  #counting: { readonly group: GroupId; readonly changes: RowsSum } | undefined
  #underWay: Promise<void> | undefined
  /** Counted, for the next batch. */
  readonly #found = new Map<GroupId, GroupHash>()
  #isStopped = false

  constructor(parts: GroupHashesParts) {
    this.#parts = parts
  }

  /** The state record as it was read, while no batch holds anything of the group. */
  learn(group: GroupId, stored: Stored | undefined): void {
    const hash = hashIn(stored)
    if (hash !== undefined) this.#keep(group, hash)
  }

  /** For a batch that writes the group: `onPut` follows. */
  begin(group: GroupId): Counted {
    const hash = this.#find(group)
    if (hash !== undefined) return { sum: new RowsSum(hash), isHashed: true }
    const counting = this.#counting?.group === group ? this.#counting : undefined
    return { sum: counting?.changes, isHashed: false }
  }

  #find(group: GroupId): GroupHash | undefined {
    const known = this.#young.get(group) ?? this.#old.get(group) ?? this.#found.get(group)
    return known ?? hashIn(this.#parts.read(stateKey(groupPrefix(group))))
  }

  /** The batch has taken the group's rows. */
  onPut(group: GroupId, { sum, isHashed }: Counted): void {
    if (isHashed && sum !== undefined) this.set(group, sum.hash)
    else if (sum === undefined && this.#waiting.size < countsMax) this.#waiting.add(group)
  }

  /** The group's rows as a batch leaves them. */
  set(group: GroupId, hash: GroupHash): void {
    this.#keep(group, hash)
    this.#found.delete(group)
    this.#waiting.delete(group)
    if (this.#counting?.group === group) this.#counting = undefined
  }

  #keep(group: GroupId, hash: GroupHash): void {
    if (this.#young.size >= hashesKept && !this.#young.has(group)) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(group, hash)
  }

  /** A snapshot takes the place of the group's rows. */
  onInstalled(group: GroupId, hash: GroupHash | undefined): void {
    if (hash !== undefined) return this.set(group, hash)
    this.#young.delete(group)
    this.#old.delete(group)
    this.#found.delete(group)
    if (this.#counting?.group === group) this.#counting = undefined
    this.#waiting.add(group)
  }

  /** At the end of a batch: the state records of groups that were counted, and are not in it. */
  putFound(puts: Put[]): void {
    for (const [group, hash] of this.#found) {
      const key = stateKey(groupPrefix(group))
      const stored = this.#parts.read(key)
      // Of an earlier build, which names no flush in it: the next entry of the group does.
      if (stored?.flush === undefined) continue
      const own = { flush: stored.flush, snapshot: stored.snapshot ?? 0 }
      puts.push({ key, value: encodeState(key, stored.stamp, own, stored.payload, hash) })
      this.#keep(group, hash)
    }
    this.#found.clear()
  }

  /** A batch is durable, and the next one is not put together: whether more can be said once a count ends. */
  onWritten(): void {
    if (this.#counting !== undefined || this.#isStopped) return
    for (const group of this.#waiting) {
      this.#waiting.delete(group)
      if (this.#parts.isReplaced(group)) continue
      this.#counting = { group, changes: new RowsSum() }
      this.#underWay = this.#count(group, this.#counting.changes).catch((error: unknown) => {
        this.#counting = undefined
        this.#parts.onFailed(error)
      })
      return
    }
  }

  async #count(group: GroupId, changes: RowsSum): Promise<void> {
    const prefix = groupPrefix(group)
    const span = { gte: rowsPrefix(prefix), lt: afterRows(prefix) }
    const counted = new RowsSum()
    for await (const rows of this.#parts.scan(span)) {
      for (const { key, stored } of rows) {
        counted.add(key.subarray(span.gte.length), stored.stamp, stored.payload)
      }
      // Taken over by a snapshot meanwhile: its hash is known.
      if (this.#counting?.changes !== changes || this.#isStopped) break
    }
    if (this.#counting?.changes !== changes || this.#isStopped) return
    this.#counting = undefined
    counted.addAll(changes.hash)
    this.#found.set(group, counted.hash)
  }

  /** Resolves when nothing is being read any more. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#underWay
  }
}

/** A group that has no state record has no rows. */
function hashIn(stored: Stored | undefined): GroupHash | undefined {
  return stored === undefined ? hashOfNothing : stored.hash
}
