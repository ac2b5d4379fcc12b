/**
 * Takes buckets that a replica set gives to another one from phase to phase (`../placement/SPEC.md`, "Buckets that move"): moves their
 * groups, closes them when few are left, moves the rest, and has the other set open them. Any node of the old set may go on with it at
 * any time, over restarts; the first one that is alive does.
 *
 * MOVE-15  A node asks the other set to open the buckets only after its own sweep over all groups of this set, behind the gate of the epoch
 *          that closed them, has found each group of the buckets with a majority of the other set.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import type { Share } from '../placement/shares.ts'
import type { SharesPort } from '../members/share-requests.ts'
import { isGoing } from '../members/shares-row.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import { pause } from '../time/moments.ts'

/** Where a group of the buckets is. */
export type Whereabouts =
  /** In this set. */
  | 'here'
  /** A majority of the other set has it. */
  | 'there'
  /** It has left, and the other set may not have it yet. */
  | 'on-its-way'
  /** Nowhere: this set has begun nothing of it, and begins nothing of it any more. A peer may name it for an acceptance that lost. */
  | 'void'

/** Asked of this node, of its set and of the other one (`bucket-moves.ts`). */
export interface Moves {
  /** Whether this node is the one to go on. */
  isFirst(): boolean
  shareOf(group: GroupId): Share | undefined
  /** Names of this set's groups of tables, behind `after`: all of them, or it rejects. */
  list(after: GroupId | undefined, limit: number): Promise<readonly GroupId[]>
  where(group: GroupId, share: Share): Promise<Whereabouts>
  /** Resolves when a majority of the other set has the group. */
  move(group: GroupId, to: string): Promise<void>
  /** Rejects where the other set takes no groups now. */
  admit(share: Share): Promise<void>
  /** The other set opens the buckets. */
  open(share: Share): Promise<void>
}

export interface BucketMoverParts {
  readonly clock: Clock
  readonly shares: SharesPort
  readonly moves: Moves
  /** Of groups that leave by this node, a second. */
  readonly groupsPerSecond: number
  onFailed(error: unknown): void
}

/** Buckets on their way, and how far this node has come with them. */
export interface BucketProgress {
  readonly phase: Share['phase']
  readonly to: string
  readonly buckets: number
  /** Groups that this node has moved since it began. */
  readonly moved: number
  /** Groups that its last sweep left behind; absent: it has made none. */
  readonly left?: number
  /** Why it does not get on; absent: it does. */
  readonly waitsFor?: string
}

const tickMs = 1_000
const pageSize = 500
/** Groups that are moved at once. */
const together = 16
/** Buckets are closed when a sweep has found fewer groups to move: those that come to them wait for about as long as it took. */
const fewGroups = 50
/** Or after as many sweeps: groups may begin as fast as they are moved. */
const sweepsMax = 20

/** The groups of one sweep. */
interface Sweep {
  readonly moved: number
  readonly left: number
}

export class BucketMover {
  readonly #parts: BucketMoverParts
  #timer: Timer | undefined
  #underWay: Promise<void> = Promise.resolve()
  #isStopped = false
  #sweeps = 0
  #moved = 0
  #left: number | undefined
  #waitsFor: string | undefined

  constructor(parts: BucketMoverParts) {
    this.#parts = parts
  }

  /** Undefined: no buckets of this set are on their way. */
  get progress(): BucketProgress | undefined {
    const share = this.#going
    if (share === undefined) return undefined
    const [left, waitsFor] = [this.#left, this.#waitsFor]
    return {
      ...{ phase: share.phase, to: share.set, buckets: share.buckets.length, moved: this.#moved },
      ...(left !== undefined && { left }),
      ...(waitsFor !== undefined && { waitsFor }),
    }
  }

  start(): void {
    if (this.#isStopped) return
    this.#timer = this.#parts.clock.setTimer(tickMs, () => {
      this.#underWay = this.#look()
    })
  }

  /** Begins nothing more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    await this.#underWay
  }

  get #going(): Share | undefined {
    return this.#parts.shares.row.find(isGoing)
  }

  async #look(): Promise<void> {
    try {
      const share = this.#going
      if (share === undefined) [this.#sweeps, this.#moved, this.#left] = [0, 0, undefined]
      else await this.#go(share)
      this.#waitsFor = undefined
    } catch (error) {
      // The next look tries again.
      if (error instanceof StoreError) this.#waitsFor = error.message
      else this.#parts.onFailed(error)
    }
    this.start()
  }

  async #go(share: Share): Promise<void> {
    const { shares, moves } = this.#parts
    // A majority of the nodes has to list the groups that may have begun.
    if (share.phase !== 'closed' && !moves.isFirst()) return
    switch (share.phase) {
      case 'leaving': {
        await moves.admit(share)
        const { moved, left } = await this.#sweep(share)
        if (this.#isStopped || left > 0) return
        this.#sweeps += 1
        if (moved <= fewGroups || this.#sweeps >= sweepsMax) await shares.close()
        return
      }
      case 'closed':
        return shares.settle()
      case 'settled': {
        if (!shares.isBehindGate(share.epoch)) return
        // The groups that may have begun, and have no entry yet: the entry that moves each of them is its first one.
        const begun = await this.#moveSome(share, share.began)
        const { moved, left } = await this.#sweep(share)
        if (this.#isStopped || moved + left + begun.moved + begun.left > 0) return
        assert(shares.isBehindGate(share.epoch), 'MOVE-15: a sweep counts at a node without a vote')
        await moves.open(share)
        return shares.finish()
      }
      case 'gone':
      case 'here':
        return
    }
  }

  /** Over all groups of the set: each one of the buckets is moved. */
  async #sweep(share: Share): Promise<Sweep> {
    const { moves } = this.#parts
    let [moved, left] = [0, 0]
    for (let after: GroupId | undefined; !this.#isStopped;) {
      const names = await moves.list(after, pageSize)
      const ofShare = names.filter((group) => moves.shareOf(group)?.term === share.term)
      if (ofShare.length > 0) await moves.admit(share)
      const page = await this.#moveSome(share, ofShare)
      moved += page.moved
      left += page.left
      after = names.at(-1)
      if (after === undefined || names.length < pageSize) break
    }
    this.#left = left
    return { moved, left }
  }

  async #moveSome(share: Share, groups: readonly GroupId[]): Promise<Sweep> {
    const { clock, groupsPerSecond } = this.#parts
    let [moved, left] = [0, 0]
    for (let at = 0; at < groups.length && !this.#isStopped; at += together) {
      const sinceMs = clock.monotonicMs()
      const some = groups.slice(at, at + together)
      const ends = await Promise.all(some.map((group) => this.#moveOne(share, group)))
      const now = ends.filter((end) => end === 'moved').length
      moved += now
      left += ends.filter((end) => end === 'left').length
      this.#moved += now
      const restMs = (now * 1_000) / groupsPerSecond - (clock.monotonicMs() - sinceMs)
      if (restMs > 0) await pause({ clock }, restMs)
    }
    return { moved, left }
  }

  async #moveOne(share: Share, group: GroupId): Promise<'moved' | 'there' | 'left'> {
    const { moves } = this.#parts
    try {
      const where = await moves.where(group, share)
      if (where === 'there' || where === 'void') return 'there'
      await moves.move(group, share.set)
      return 'moved'
    } catch (error) {
      // A group that cannot be moved now keeps no other one from it.
      if (!(error instanceof StoreError)) throw error
      this.#waitsFor = error.message
      return 'left'
    }
  }
}
