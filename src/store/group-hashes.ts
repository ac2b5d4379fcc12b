/**
 * Which hash each group has that is written (`group-hash.ts`), so that a batch need not read the state record for it; and
 * the count of all rows of a group of which an earlier build wrote the state record: its hash is not known.
 *
 * HASH-1  A count is of one moment of the store. The batches from then on add their own writes to it.
 */
import type { GroupId, Position } from '../base/ids.ts'
import type { Put, Range } from '../ports/storage.ts'
import { BucketSums, type GroupMark } from './bucket-sums.ts'
import { hashOfNothing, RowsSum, type GroupHash } from './group-hash.ts'
import { nameInState } from './group-names.ts'
import {
  afterRows,
  allStates,
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
  /** The group before the batch, where its hash is known, and stands in a state record. */
  readonly before: GroupMark | undefined
}

type Generation = Map<GroupId, GroupMark>

export class GroupHashes {
  /** One sum for all groups of a bucket. */
  readonly buckets: BucketSums
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
    this.buckets = new BucketSums(() => this.#marks(), parts.onFailed)
  }

  /** The state record as it was read, while no batch holds anything of the group. */
  learn(group: GroupId, stored: Stored | undefined): void {
    const mark = markIn(stored)
    if (mark !== undefined) this.#keep(group, mark)
  }

  /** The group as the last batch left it, durable or not; undefined: its hash is not known. */
  find(group: GroupId): GroupMark | undefined {
    return (
      this.#young.get(group) ??
      this.#old.get(group) ??
      markIn(this.#parts.read(stateKey(groupPrefix(group))))
    )
  }

  async *#marks(): AsyncGenerator<readonly (readonly [GroupId, GroupMark])[]> {
    for await (const rows of this.#parts.scan(allStates)) {
      yield rows.flatMap(({ key, stored }) => {
        const mark = markIn(stored)
        return mark === undefined ? [] : [[nameInState(key), mark] as const]
      })
    }
  }

  /** For a batch that writes the group: `onPut` follows. */
  begin(group: GroupId): Counted {
    const before = this.find(group)
    const hash = before?.hash ?? this.#found.get(group)
    if (hash !== undefined) return { sum: new RowsSum(hash), isHashed: true, before }
    const counting = this.#counting?.group === group ? this.#counting : undefined
    return { sum: counting?.changes, isHashed: false, before }
  }

  /** The batch has taken the group's rows, and takes it to the position. */
  onPut(group: GroupId, position: Position, { sum, isHashed, before }: Counted): void {
    if (isHashed && sum !== undefined) this.#set(group, before, { position, hash: sum.hash })
    else if (sum === undefined && this.#waiting.size < countsMax) this.#waiting.add(group)
  }

  /** The group's rows as a batch leaves them. */
  #set(group: GroupId, before: GroupMark | undefined, mark: GroupMark): void {
    this.#keep(group, mark)
    this.buckets.move(group, before, mark)
    this.#found.delete(group)
    this.#waiting.delete(group)
    if (this.#counting?.group === group) this.#counting = undefined
  }

  #keep(group: GroupId, mark: GroupMark): void {
    if (this.#young.size >= hashesKept && !this.#young.has(group)) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(group, mark)
  }

  /** A snapshot takes the place of the group's rows. */
  onInstalled(group: GroupId, position: Position, hash: GroupHash | undefined): void {
    const before = this.find(group)
    if (hash !== undefined) return this.#set(group, before, { position, hash })
    this.buckets.move(group, before, undefined)
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
      const mark = { position: stored.stamp, hash }
      this.#keep(group, mark)
      this.buckets.move(group, undefined, mark)
    }
    this.#found.clear()
  }

  /** A batch is durable, and the next one is not put together: whether more can be said once a count ends. */
  onWritten(): void {
    this.buckets.onWritten()
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
    await this.buckets.stop()
  }
}

/** A group that has no state record has no rows. */
function markIn(stored: Stored | undefined): GroupMark | undefined {
  if (stored === undefined) return { position: 0, hash: hashOfNothing }
  const { stamp: position, hash } = stored
  return hash === undefined ? undefined : { position, hash }
}
