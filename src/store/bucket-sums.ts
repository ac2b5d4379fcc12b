/**
 * A few sums over all groups of this node, which nodes compare: each group is in one of 4,096 buckets, by its name,
 * and a bucket's sum is that of a hash of each group in it with its position and the hash of its rows. A batch changes
 * the sums of its groups alone, so that two nodes find out what differs without looking at groups that are equal.
 *
 * HEAL-1  A bucket's sum counts each of its groups once, as the last batch left it.
 *
 * A scan of the state records counts the groups that were there before, in the background. Groups whose hash is
 * not known do not count.
 */
import { assert } from '../base/assert.ts'
import { crc32 } from '../base/bytes.ts'
import { bytesOfGroup, type GroupId, type Position } from '../base/ids.ts'
import { hashBytes, RowsSum, type GroupHash } from './group-hash.ts'

export const comparedBuckets = 4_096

/** A group as a batch left it. */
export interface GroupMark {
  readonly position: Position
  readonly hash: GroupHash
}

/** The number of the group's bucket, from 0: the same at all nodes. */
export function comparedBucket(group: GroupId): number {
  return crc32(bytesOfGroup(group)) % comparedBuckets
}

/** Gives what a scan of one moment finds, some groups at a time. */
type ScanMarks = () => AsyncIterable<readonly (readonly [GroupId, GroupMark])[]>

export class BucketSums {
  readonly #sums: RowsSum[] = []
  #stage: 'none' | 'wanted' | 'counting' | 'counted' = 'none'
  #counted = 0
  #underWay: Promise<void> | undefined
  #isStopped = false
  readonly #scan: ScanMarks
  readonly #onFailed: (error: unknown) => void

  constructor(scan: ScanMarks, onFailed: (error: unknown) => void) {
    this.#scan = scan
    this.#onFailed = onFailed
  }

  /** All of them, 16 bytes each in the order of the buckets; undefined: the groups are not counted yet. */
  get all(): Uint8Array | undefined {
    if (this.#stage !== 'counted') return undefined
    const bytes = Buffer.alloc(hashBytes * comparedBuckets)
    for (const [bucket, sum] of this.#sums.entries()) {
      bytes.write(sum.hash, hashBytes * bucket, 'latin1')
    }
    return bytes
  }

  /** Whether the count of the groups that were there before has been asked for, and is not over. */
  get isCounting(): boolean {
    return this.#stage === 'wanted' || this.#stage === 'counting'
  }

  /** The groups that the count has come to. */
  get counted(): number {
    return this.#counted
  }

  /** They are needed: the count begins after the next batch. False: it has begun before. */
  want(): boolean {
    if (this.#stage !== 'none') return false
    this.#stage = 'wanted'
    return true
  }

  /** A batch takes the group from what it was to what it is. Undefined: it does not count. */
  move(group: GroupId, before: GroupMark | undefined, after: GroupMark | undefined): void {
    if (this.#stage !== 'counting' && this.#stage !== 'counted') return
    const isForward = (after?.position ?? 0) >= (before?.position ?? 0)
    assert(after === undefined || isForward, 'HEAL-1: a batch takes a group back')
    const sum = this.#sums[comparedBucket(group)]
    if (before !== undefined && before.position > 0) sum?.subtract(...fieldsOf(group, before))
    if (after !== undefined) sum?.add(...fieldsOf(group, after))
  }

  /** A batch is durable, and the next one is not put together: what a scan finds now, batches change from now on. */
  onWritten(): void {
    if (this.#stage !== 'wanted' || this.#isStopped) return
    this.#stage = 'counting'
    for (let bucket = 0; bucket < comparedBuckets; bucket++) this.#sums.push(new RowsSum())
    this.#underWay = this.#count().catch((error: unknown) => {
      if (!this.#isStopped) this.#onFailed(error)
    })
  }

  async #count(): Promise<void> {
    for await (const marks of this.#scan()) {
      if (this.#isStopped) return
      this.#counted += marks.length
      for (const [group, mark] of marks) {
        this.#sums[comparedBucket(group)]?.add(...fieldsOf(group, mark))
      }
    }
    this.#stage = 'counted'
  }

  /** Resolves when nothing is being read any more. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#underWay
  }
}

function fieldsOf(
  group: GroupId,
  { position, hash }: GroupMark,
): [key: Uint8Array, position: number, hash: Uint8Array] {
  return [bytesOfGroup(group), position, Buffer.from(hash, 'latin1')]
}

/** The buckets whose sums differ. Each of the two has `comparedBuckets` of them. */
export function differingBuckets(own: Uint8Array, others: Uint8Array): ReadonlySet<number> {
  const [one, other] = [Buffer.from(own), Buffer.from(others)]
  const found = new Set<number>()
  for (let bucket = 0; bucket < comparedBuckets; bucket++) {
    const [at, end] = [hashBytes * bucket, hashBytes * (bucket + 1)]
    if (one.compare(other, at, end, at, end) !== 0) found.add(bucket)
  }
  return found
}
