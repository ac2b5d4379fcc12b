/**
 * Compares this node's groups with its peers', and mends those whose rows are wrong here: the parts of that, and their
 * looks at the stores.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, NodeId } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import { CompareAsks } from '../peers/compare-asks.ts'
import { Comparison, judgeMarks, type GroupsPage } from '../peers/comparison.ts'
import type { ComparisonFigures } from '../peers/comparison.ts'
import { Differences, type Recount } from '../peers/differences.ts'
import type { PeerWork } from '../peers/peer-work.ts'
import type { Peers } from '../peers/peers.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import type { GroupEvent } from '../replication/group.ts'
import type { CompareMessage, ToldMark } from '../replication/message.ts'
import { comparedBucket, type GroupMark } from '../store/bucket-sums.ts'
import type { DataStore } from '../store/data-store.ts'
import { corruptData, DamagedGroup } from '../store/damage.ts'
import { nameInState } from '../store/group-names.ts'
import { CountPace, recount } from '../store/recount.ts'
import { allStates, groupPrefix, stateKey } from '../store/row-format.ts'
import { Healing } from './healing.ts'
import { RowScrub } from './row-scrub.ts'
import type { Replica } from './replica.ts'

export interface ComparingParts {
  readonly node: NodeId
  /** All nodes of the replica set but this one. */
  readonly others: readonly NodeId[]
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: Limits
  readonly data: DataStore
  readonly replica: Replica
  readonly peers: Pick<Peers, 'compares' | 'send'>
  readonly work: Pick<PeerWork, 'taking' | 'replies'>
  epochOf(group: GroupId): number
  /** Whether the group's log goes on in another set. */
  hasLeft(group: GroupId): boolean
  step(group: GroupId, event: GroupEvent): void
  onFailed(error: unknown): void
}

/** Figures of the comparison of this node's groups with its peers'. Counted since the start, or as of the call. */
export interface CompareFigures extends ComparisonFigures {
  /** A round is under way. */
  readonly isUnderWay: boolean
  /** The node counts its groups, for the first time since its start: until then its rounds come to no end. */
  readonly isCounting: boolean
  /** Groups that this count has come to, or came to. */
  readonly countedGroups: number
  /** Groups that are put aside here until a snapshot has mended them. */
  readonly aside: number
  /** Groups that a snapshot has mended here. */
  readonly mended: number
  /** Differences that are looked at. */
  readonly open: number
  /** Groups that take no write, since no hash has a majority. */
  readonly undecided: number
}

/** State records that are looked at for a page of groups. */
const pageRecords = 1_024

export class Comparing {
  readonly healing: Healing
  readonly comparison: Comparison
  readonly differences: Differences
  readonly rows: RowScrub
  readonly #parts: ComparingParts
  readonly #asks: CompareAsks
  readonly #pace: CountPace

  constructor(parts: ComparingParts) {
    this.#parts = parts
    const { node, others, clock, trace, limits, data, peers, work, onFailed } = parts
    assert(!others.includes(node), 'HEAL-3: a node compares its groups with itself')
    this.#pace = new CountPace(clock, limits)
    const find = (group: GroupId): GroupMark | undefined => this.#find(group)
    const compares = (peer: NodeId): boolean => peers.compares(peer)
    const sums = (): Uint8Array | undefined => this.#sums()
    const common = { clock, trace, limits, others, compares, find, onFailed }
    this.#asks = new CompareAsks({
      ...{ clock, limits, find, sums },
      drawNumber: () => parts.replica.drawNumber(),
      send: (to, message) => peers.send(to, message),
      onTold: (from, mark) => this.#onTold(from, mark),
    })
    const asks = this.#asks
    this.healing = new Healing({
      ...{ trace, data, others, replica: parts.replica },
      epochOf: parts.epochOf.bind(parts),
      step: parts.step.bind(parts),
      answer: (question) => work.replies.ask(question),
      offer: (...offered) => work.taking.offer(...offered),
      isComing: (group) => work.taking.isComing(group),
    })
    this.differences = new Differences({
      ...{ ...common, node, asks },
      recount: (group) => this.#recount(group),
      isAside: (group) => this.healing.isAside(group),
      putAside: (...found) => this.healing.putAside(...found),
    })
    this.comparison = new Comparison({
      ...{ ...common, asks, sums },
      groupsIn: (buckets, after) => this.#groups(after, buckets),
      onDiffers: (group) => this.differences.look(group),
      onBehind: (group, position, informer) => {
        parts.step(group, { kind: 'exists', position, informer })
      },
    })
    this.rows = new RowScrub({
      ...{ clock, trace, limits, onFailed },
      groups: (after) => this.#groups(after),
      recount: (group) => this.#recount(group),
      isAside: (group) => this.healing.isAside(group),
      onDamaged: (group) => this.#onWrong(group),
    })
  }

  get figures(): CompareFigures {
    const { comparison, healing, differences } = this
    const { buckets } = this.#parts.data.hashes
    return {
      ...comparison.figures,
      isUnderWay: comparison.isUnderWay,
      isCounting: buckets.isCounting,
      countedGroups: buckets.counted,
      aside: healing.asides.length,
      mended: healing.mended,
      open: differences.open,
      undecided: differences.undecided.length,
    }
  }

  /** Rows that are wrong are as good as unknown, and so are those of a group that has left: some nodes have cleared them. */
  #find(group: GroupId): GroupMark | undefined {
    if (this.healing.isAside(group)) return undefined
    const mark = this.#parts.data.hashes.find(group)
    if (mark === undefined || !this.#parts.hasLeft(group)) return mark
    return undefined
  }

  #sums(): Uint8Array | undefined {
    const { data } = this.#parts
    if (data.hashes.buckets.want()) data.wantBatch()
    return data.hashes.buckets.all
  }

  /** A peer compares a group: it may have found what this node has not. */
  #onTold(_: NodeId, [group, position, hash]: ToldMark): void {
    const verdict = judgeMarks(this.#find(group), position, hash)
    if (verdict === 'differs') this.differences.look(group)
  }

  async #groups(after: GroupId | undefined, buckets?: ReadonlySet<number>): Promise<GroupsPage> {
    const from = after === undefined ? { gte: allStates.gte } : { gt: stateKey(groupPrefix(after)) }
    const groups: GroupId[] = []
    let records = 0
    let last: GroupId | undefined
    const range = { ...from, lt: allStates.lt, limit: pageRecords }
    for await (const rows of this.#parts.data.scanStored(range)) {
      for (const { key } of rows) {
        last = nameInState(key)
        records += 1
        if (buckets?.has(comparedBucket(last)) !== false) groups.push(last)
      }
    }
    assert(records <= pageRecords, 'HEAL-7: a page has more groups than it may')
    return { groups, next: records < pageRecords ? undefined : last }
  }

  #recount(group: GroupId): Promise<Recount> {
    const { data, limits } = this.#parts
    assert(limits.snapshotPartBytesMax > 0, 'LIVE-6: a part of a count has no end')
    return recount(() => data.openSnapshot(group), limits.snapshotPartBytesMax, this.#pace)
  }

  /**
   * The rows of the group here are wrong; that is certain without any peer. False: this node has no peer that could mend
   * the group.
   */
  onDamaged(group: GroupId): boolean {
    const { others: sources, node } = this.#parts
    assert(!sources.includes(node), 'HEAL-3: a node is to mend itself')
    if (sources.length > 0) this.healing.putAside(group, { cause: 'rows', sources })
    return sources.length > 0
  }

  #onWrong(group: GroupId): void {
    if (this.onDamaged(group)) return
    this.#parts.onFailed(corruptData('rows of a group are not those that were written'))
  }

  /** Why the group takes no transaction here; undefined: it does. */
  findRefusal(group: GroupId): StoreError | undefined {
    if (this.healing.isAside(group)) return new DamagedGroup(group)
    if (!this.differences.isUndecided(group)) return undefined
    const message =
      'the replicas have different rows of this group, and no majority has the same ones; start the nodes that are down'
    return new StoreError('unavailable', message, { group })
  }

  onMessage(from: NodeId, message: CompareMessage): void {
    this.#asks.onMessage(from, message)
  }

  /** Now and then. */
  go(): void {
    this.healing.go()
    this.differences.go()
  }

  start(): void {
    this.comparison.start()
    this.rows.start()
  }

  stop(): void {
    this.comparison.stop()
    this.rows.stop()
    this.differences.stop()
    this.#asks.stop()
  }
}
