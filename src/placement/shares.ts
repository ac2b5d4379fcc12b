/**
 * Buckets that go from one replica set to another, as one node of a set knows them (`SPEC.md`, "Buckets that move"). The groups
 * of tables whose names have no place are *shared out* by their bucket; no other group is.
 *
 * MOVE-14  A node takes no part in the beginning of a group in a bucket that its set has given away. The exceptions are the groups
 *          that the set may have begun before.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, NodeId } from '../base/ids.ts'
import { isSharedOut } from '../base/placed-group.ts'
import { hashToBucket } from './placement.ts'

/**
 * `leaving`: this set gives the buckets away, and groups begin in it still. `closed`: from the epoch of the share on no group
 * begins here. `settled`: the groups are known that may have begun before. `gone`: the other set has all of them. `here`: the other
 * set has given the buckets to this one.
 */
export type SharePhase = 'leaving' | 'closed' | 'settled' | 'gone' | 'here'

/** Buckets of one set, given to another set or got from it. */
export interface Share {
  readonly phase: SharePhase
  /** The name of the other set. */
  readonly set: string
  /** How often these buckets have gone from set to set, this time included: more than at any time before. */
  readonly term: number
  readonly buckets: readonly number[]
  /** The epoch of this set in which no group of the buckets begins any more. 0: there is none. */
  readonly epoch: number
  /** The groups without an entry that this set may have begun: it alone ends what it has begun. */
  readonly began: readonly GroupId[]
  /** The nodes whose lists are in `began`, of buckets that are closed. Absent: no node has told its list, or enough nodes have. */
  readonly told?: readonly NodeId[]
}

/** The shares of a set; each bucket is in one of them at most. */
export type SharesRow = readonly Share[]

/** A set's share of a bucket as a node sees it. */
export class OwnShares {
  /** Rises with each change. An answer of before may be wrong then. */
  version = 0
  readonly #byBucket = new Map<number, Share>()
  readonly #began = new Map<Share, ReadonlySet<GroupId>>()
  #row: SharesRow = []
  /** The epochs of the set's row as it is applied here, and of this node. The node may know of a later epoch by its log. */
  #rowEpoch = 0
  #ownEpoch = 1

  get row(): SharesRow {
    return this.#row
  }

  /** The rows of the set's own group as they are applied here. */
  take(row: SharesRow, rowEpoch: number): void {
    if (row === this.#row && rowEpoch === this.#rowEpoch) return
    this.version += 1
    this.#rowEpoch = rowEpoch
    this.#row = row
    this.#byBucket.clear()
    this.#began.clear()
    for (const share of row) {
      this.#began.set(share, new Set(share.began))
      for (const bucket of share.buckets) {
        assert(!this.#byBucket.has(bucket), 'MOVE-14: a set has two shares of a bucket')
        this.#byBucket.set(bucket, share)
      }
    }
  }

  /** The node acts in this epoch from now on. */
  enter(epoch: number): void {
    if (epoch === this.#ownEpoch) return
    this.version += 1
    this.#ownEpoch = epoch
  }

  /** Undefined: the group is in no bucket that has gone or come. */
  of(group: GroupId): Share | undefined {
    if (this.#byBucket.size === 0 || !isSharedOut(group)) return undefined
    return this.#byBucket.get(hashToBucket(group))
  }

  /** Whether the group, of which this node has nothing, begins in this set. `isOfName`: its name puts it here. */
  begins(group: GroupId, isOfName: boolean): boolean {
    if (!isSharedOut(group)) return isOfName
    // The entry that closed a bucket began an epoch. So a node may have sealed for it, and have lost the entry by a restart.
    if (this.#rowEpoch < this.#ownEpoch) return false
    const share = this.of(group)
    return share === undefined ? isOfName : this.#beginsIn(share, group)
  }

  #beginsIn(share: Share, group: GroupId): boolean {
    switch (share.phase) {
      case 'here':
      case 'leaving':
        return true
      case 'closed':
        return this.#ownEpoch < share.epoch
      case 'settled':
      case 'gone':
        return this.#ownEpoch < share.epoch || this.#began.get(share)?.has(group) === true
    }
  }
}
