/**
 * Compares this node's groups with those of its peers, in the background: round after round, one peer after the other.
 *
 * HEAL-2  Two nodes have the same of a group only where positions and hashes are equal. Unequal positions are counted, and
 *         looked at again; a round that ends before they are equal says so.
 *
 * A round begins with the sums of all buckets (`../store/bucket-sums.ts`). In a store that is written, the sums of some
 * buckets differ since one node is a moment ahead. So the node looks some times: a bucket that was equal once is done
 * with. Only the groups of the others are compared one by one. A node lists its own groups alone, since its peers do the same.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import { differingBuckets, type GroupMark } from '../store/bucket-sums.ts'
import type { ToldMark } from '../replication/message.ts'
import type { CompareAsks } from './compare-asks.ts'

export interface ComparisonParts {
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: Pick<Limits, 'compareMs' | 'compareAgainMs'>
  readonly others: readonly NodeId[]
  readonly asks: Pick<CompareAsks, 'sums' | 'marks'>
  /** Whether the peer can be asked now. */
  compares(peer: NodeId): boolean
  /** Of this node; undefined: the groups are not counted yet. */
  sums(): Uint8Array | undefined
  /** The group as this node has it; undefined: it is not known, or not to be relied on. */
  find(group: GroupId): GroupMark | undefined
  /** Some groups of these buckets, in their order, behind `after`. */
  groupsIn(buckets: ReadonlySet<number>, after: GroupId | undefined): Promise<GroupsPage>
  /** At one position the peer has another hash. */
  onDiffers(group: GroupId): void
  /** The peer has the group at a higher position, and has had it there for a while. */
  onBehind(group: GroupId, position: Position, informer: NodeId): void
  onFailed(error: unknown): void
}

export interface GroupsPage {
  readonly groups: readonly GroupId[]
  /** The next page begins behind this group; undefined: there is none. */
  readonly next: GroupId | undefined
}

/** Since the start, but for `unequal`. */
export interface ComparisonFigures {
  /** Rounds with a peer that came to their end. */
  readonly rounds: number
  /** Groups that were compared one by one. */
  readonly groups: number
  /** Of these, those with another hash at an equal position. */
  readonly differences: number
  /** Groups whose positions were still unequal at the end of the last round with each peer. */
  readonly unequal: number
  /** Peers with which the last round came to no end: they did not answer, or have not counted their groups. */
  readonly uncompared: number
}

/** Looks at the sums of buckets, and at groups whose positions are unequal. */
const looksMax = 4

type Verdict = 'equal' | 'differs' | 'unequal'

export class Comparison {
  readonly #parts: ComparisonParts
  /** By peer, what its last round left unequal; undefined: it came to no end. */
  readonly #left = new Map<NodeId, number | undefined>()
  #rounds = 0
  #groups = 0
  #differences = 0
  #timer: Timer | undefined
  #underWay: Promise<void> | undefined
  #isStopped = false

  constructor(parts: ComparisonParts) {
    this.#parts = parts
  }

  get figures(): ComparisonFigures {
    const left = [...this.#left.values()]
    return {
      rounds: this.#rounds,
      groups: this.#groups,
      differences: this.#differences,
      unequal: left.reduce<number>((sum, count) => sum + (count ?? 0), 0),
      uncompared: left.filter((count) => count === undefined).length,
    }
  }

  get isUnderWay(): boolean {
    return this.#underWay !== undefined
  }

  start(): void {
    this.#wait()
  }

  #wait(): void {
    if (this.#isStopped) return
    const { clock, limits } = this.#parts
    this.#timer = clock.setTimer(limits.compareMs, () => void this.now())
  }

  /** A round with each peer now, or the one under way. Resolves at its end. */
  now(): Promise<void> {
    this.#timer?.cancel()
    this.#underWay ??= this.#roundOfAll()
      .catch((error: unknown) => {
        if (!this.#isStopped) this.#parts.onFailed(error)
      })
      .then(() => {
        this.#underWay = undefined
        this.#wait()
      })
    return this.#underWay
  }

  async #roundOfAll(): Promise<void> {
    for (const peer of this.#parts.others) {
      if (this.#isStopped) return
      const left = await this.#round(peer)
      this.#left.set(peer, left)
      if (left === undefined) continue
      this.#rounds += 1
      this.#parts.trace.mark('comparison_done')
    }
  }

  /** Groups whose positions stayed unequal; undefined: the peer does not answer, or one of the two has not counted. */
  async #round(peer: NodeId): Promise<number | undefined> {
    const buckets = await this.#differing(peer)
    if (buckets === undefined) return undefined
    let unequal = 0
    let after: GroupId | undefined
    while (buckets.size > 0) {
      const { groups, next } = await this.#parts.groupsIn(buckets, after)
      const left = await this.#compare(peer, groups)
      if (left === undefined) return undefined
      unequal += left
      if (next === undefined) break
      after = next
      await this.#rest()
    }
    return unequal
  }

  /** Buckets that differed at each look. */
  async #differing(peer: NodeId): Promise<ReadonlySet<number> | undefined> {
    let found: ReadonlySet<number> | undefined
    for (let look = 0; look < looksMax; look++) {
      if (look > 0) await this.#rest()
      if (this.#isStopped || !this.#parts.compares(peer)) return undefined
      const theirs = await this.#parts.asks.sums(peer)
      const own = this.#parts.sums()
      if (theirs === undefined || theirs.length !== own?.length) return undefined
      const differing = differingBuckets(own, theirs)
      const before = found
      found =
        before === undefined ? differing : new Set([...before].filter((n) => differing.has(n)))
      if (found.size === 0) break
    }
    return found
  }

  #rest(): Promise<void> {
    const { clock, limits } = this.#parts
    return new Promise((resolve) => clock.setTimer(limits.compareAgainMs, resolve))
  }

  /** How many stayed unequal; undefined: the peer does not answer. */
  async #compare(peer: NodeId, groups: readonly GroupId[]): Promise<number | undefined> {
    let left = groups
    this.#groups += groups.length
    for (let look = 0; look < looksMax && left.length > 0; look++) {
      if (look > 0) await this.#rest()
      if (this.#isStopped || !this.#parts.compares(peer)) return undefined
      const sent = left.map((group) => this.#parts.find(group))
      const told = await this.#parts.asks.marks(peer, left)
      if (told === undefined) return undefined
      const verdicts = told.map((theirs, at) => this.#judge(theirs, sent[at]))
      const isLast = look === looksMax - 1
      if (isLast) for (const theirs of told) this.#tellBehind(peer, theirs)
      left = left.filter((_, at) => verdicts[at] === 'unequal')
    }
    if (left.length > 0) this.#parts.trace.mark('comparison_left_unequal')
    return left.length
  }

  /** `sent`: what this node had as it asked. */
  #judge([group, position, hash]: ToldMark, sent: GroupMark | undefined): Verdict {
    const own = [sent, this.#parts.find(group)].find((mark) => mark?.position === position)
    const verdict = judgeMarks(own, position, hash)
    if (verdict !== 'differs') return verdict
    this.#differences += 1
    this.#parts.trace.mark('comparison_found_difference')
    this.#parts.onDiffers(group)
    return verdict
  }

  #tellBehind(peer: NodeId, [group, position]: ToldMark): void {
    const own = this.#parts.find(group)
    if (own !== undefined && own.position < position) this.#parts.onBehind(group, position, peer)
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }
}

/** Compares a group as a node has it with what another one tells. A hash that is not known is equal to none, and differs from none. */
export function judgeMarks(
  own: GroupMark | undefined,
  position: Position,
  hash: Uint8Array,
): Verdict {
  if (own?.position !== position || hash.length === 0) return 'unequal'
  assert(own.position === position, 'HEAL-2: what two nodes have at two positions is compared')
  return own.hash === Buffer.from(hash).toString('latin1') ? 'equal' : 'differs'
}
