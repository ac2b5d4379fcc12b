/**
 * Has the bytes of what was deleted leave every file of this node within `eraseWithinMs`. Deletions gather in a round
 * for a quarter of that time (`../store/erase-book.ts`). Then the round goes three ways: its groups' versions leave
 * history, its flushes leave the log, and last the data store's files are written anew. A pass is made every now and then;
 * each looks at what is there, so a start goes on by beginning again.
 *
 * ERASE-1  A round is erased only when history, the log and the files of the data store hold nothing of it any more.
 *          Other rules say which bytes may go, and when (LOG-16 to LOG-18, MVCC-1): erasing waits for them.
 * ERASE-3  Without deletions nothing is compacted, and no group takes a position.
 *
 * Every node does this for its own files. One of them has a sleeping group take a position; another one, if that does not.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Outcome, Submission } from '../group/replica-port.ts'
import type { LogStore } from '../log/log-store.ts'
import type { LogEnding } from '../peers/log-ending.ts'
import type { Clock } from '../ports/clock.ts'
import type { EraseHeld, KeySpan, OrderedStore } from '../ports/storage.ts'
import type { Trace } from '../ports/trace.ts'
import type { DataStore } from '../store/data-store.ts'
import { DamagedGroup } from '../store/damage.ts'
import type { EraseBook, EraseRound } from '../store/erase-book.ts'
import type { TakenGroup } from '../store/overlay.ts'
import type { Rounds } from '../time/rounds.ts'
import { allOf, groupPrefix, stagedKey } from '../store/row-format.ts'
import { lookAtHistory, timestampOf } from './erase-history.ts'
import {
  describeRound,
  describeWaiting,
  type EraseFigures,
  type EraseRequest,
  type EraseStage,
} from './erase-report.ts'

export interface ErasingParts {
  readonly book: EraseBook
  readonly log: LogStore
  readonly data: DataStore
  readonly store: OrderedStore
  readonly ending: LogEnding
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: Pick<Limits, 'eraseWithinMs' | 'historyMs'>
  /** The time that an entry would get now, in microseconds. */
  stamp(): Timestamp
  /** Whether this node is the first one alive of those that hold the group. */
  isFirst(group: GroupId): boolean
  submit(submission: Submission, timeoutMs: number): Promise<Outcome>
  onFailed(error: unknown): void
}

const gatherParts = 4
const passParts = 64
const passMsMin = 250
const passMsMax = 60_000
const historiesMin = 4
/** Groups whose ranges are compacted one by one; more are compacted with all others. */
const spansMax = 64
const groupsAtOnce = 256
const nudgeMs = 5_000
/** How long a node leaves that to the first one, in passes. */
const othersPasses = 4
/** How long the intent of such a position lives. */
const nudgeLifeMs = 60_000
const microsPerMs = 1_000

export class Erasing {
  readonly #parts: ErasingParts
  /** Of the closed round: the first flush after it, once that is known; a start looks for it anew. */
  #firstFlush = 0
  #separated = 0
  /** Of each group that the round names, or of all together: no deletion of the round is later. */
  #through: ReadonlyMap<GroupId, Timestamp> = new Map()
  #latest = 0
  #stage: EraseStage = 'history'
  #groupsLeft = 0
  #isGroupDamaged = false
  #held: EraseHeld | undefined
  #isErasedLog = false
  #done = 0
  #nudges = 0
  #toldOverdue = 0
  #isPassing = false
  #isStopped = false

  constructor(parts: ErasingParts) {
    this.#parts = parts
  }

  /** How long a round may take, in milliseconds. */
  get withinMs(): number {
    const { eraseWithinMs, historyMs } = this.#parts.limits
    return Math.max(eraseWithinMs, historiesMin * historyMs)
  }

  /** `eraseWithinMs` is 0: files keep the bytes for as long as they happen to. */
  get #isOff(): boolean {
    return this.#parts.limits.eraseWithinMs <= 0
  }

  start(rounds: Rounds): void {
    if (!this.#isOff) rounds.every(this.passMs, () => this.pass())
  }

  /** Between two passes. */
  get passMs(): number {
    return Math.min(Math.max(this.withinMs / passParts, passMsMin), passMsMax)
  }

  get figures(): EraseFigures {
    const { book, clock, ending } = this.#parts
    const nowMs = wallMs(clock)
    const requests = book.rounds.map((round) => this.#describe(round))
    if (!book.isGathering && !this.#isOff) requests.push(...this.#waiting(nowMs))
    const [oldest] = requests
    return {
      isBehind: !ending.restoring.hasTakenUp,
      requests,
      oldestMs: oldest === undefined ? 0 : Math.max(0, nowMs - oldest.since),
      overdue: requests.filter(({ deadline }) => deadline <= nowMs).length,
      done: this.#done,
    }
  }

  /** Deletions that no batch has taken are of no round yet. */
  #waiting(nowMs: number): readonly EraseRequest[] {
    const { book, clock, data } = this.#parts
    const deleting = data.deleting()
    if (deleting === undefined) return []
    const openedAtMs = nowMs - Math.floor(clock.monotonicMs() - deleting.sinceMs)
    const round = { number: book.last + 1, openedAtMs, groups: deleting.groups }
    return [describeWaiting(round, this.withinMs)]
  }

  /** A batch of the data store is put together. */
  onBatch(groups: readonly TakenGroup[]): void {
    const { book, clock } = this.#parts
    if (this.#isOff) return
    book.onBatch(groups, wallMs(clock))
  }

  stop(): void {
    this.#isStopped = true
  }

  /** One pass, unless one is under way. */
  pass(): void {
    if (this.#isPassing || this.#isStopped) return
    this.#tellOverdue()
    const round = this.#closed()
    if (round === undefined) return
    this.#isPassing = true
    this.#pass(round)
      .catch((error: unknown) => this.#onBroken(error))
      .finally(() => (this.#isPassing = false))
  }

  /** A snapshot of a peer is to mend the group first (HEAL-4). */
  #onBroken(error: unknown): void {
    if (this.#isStopped) return
    if (!(error instanceof DamagedGroup)) return this.#parts.onFailed(error)
    this.#stage = 'history'
    this.#isGroupDamaged = true
    this.#parts.trace.mark('erase_waits_for_damaged_group')
  }

  /** The round to be erased; closes the one that gathers when it is its time. */
  #closed(): EraseRound | undefined {
    const { book, clock, data } = this.#parts
    if (book.closed !== undefined) return book.closed
    const [gathering] = book.rounds
    const nowMs = wallMs(clock)
    const isDue = gathering && nowMs - gathering.openedAtMs >= this.withinMs / gatherParts
    if (isDue !== true) return undefined
    const round = book.close(nowMs)
    data.wantBatch()
    return round
  }

  async #pass(round: EraseRound): Promise<void> {
    const { book, data } = this.#parts
    this.#isGroupDamaged = false
    if (this.#separated !== round.number) await this.#separate(round)
    this.#groupsLeft = await this.#lookAtGroups(round)
    const isOutOfLog = await this.#isOutOfLog()
    this.#stage = this.#groupsLeft > 0 ? 'history' : isOutOfLog ? 'data' : 'log'
    if (this.#stage !== 'data' || this.#isStopped) return
    assert(book.closed === round, 'ERASE-3: files are rewritten without a round of deletions')
    this.#held = await this.#parts.store.erase?.(spansOf(round))
    if (this.#held !== undefined || this.#isStopped) return
    this.#check(round)
    book.onErased()
    data.wantBatch()
    this.#done += 1
    this.#parts.trace.mark('round_erased')
    this.#parts.trace.emit({ kind: 'erased', round: round.number, groups: round.groups.size })
  }

  #check(round: EraseRound): void {
    const { log } = this.#parts
    assert(this.#separated === round.number, 'ERASE-1: a round is called erased that was not begun')
    assert(
      log.firstFlush >= this.#firstFlush && this.#groupsLeft === 0,
      'ERASE-1: a round is called erased whose bytes stand in history or in the log',
    )
  }

  /** Every deletion of the round is in a batch that is durable: what the log holds of it is in the flushes so far. */
  async #separate(round: EraseRound): Promise<void> {
    const { data, log, ending } = this.#parts
    await data.drain()
    const through = new Map<GroupId, Timestamp>()
    this.#latest = 0
    for await (const some of this.#groupsOf(round)) {
      for (const group of some) {
        const timestamp = timestampOf(data, group)
        this.#latest = Math.max(this.#latest, timestamp)
        if (!round.isAll) through.set(group, timestamp)
      }
    }
    this.#through = through
    this.#isErasedLog = false
    this.#held = undefined
    this.#firstFlush = log.separate()
    assert(this.#firstFlush > log.durableFlush, 'ERASE-1: a round ends within a durable flush')
    this.#separated = round.number
    ending.erase(this.#firstFlush - 1)
  }

  /** How many groups of the round have versions of before it. */
  async #lookAtGroups(round: EraseRound): Promise<number> {
    const { historyMs } = this.#parts.limits
    assert(this.#separated === round.number, 'ERASE-1: groups of a round that was not begun')
    let left = 0
    let isPending = false
    for await (const some of this.#groupsOf(round)) {
      for (const group of some) {
        if (this.#isStopped) return left + 1
        const through = this.#through.get(group) ?? this.#latest
        const look = await lookAtHistory({ ...this.#parts, historyMs }, group, through)
        if (look.left > 0) left += 1
        isPending ||= look.isPending
        if (look.nudgeAt !== undefined) await this.#nudge(group, look.nudgeAt)
      }
    }
    // Their state records, which the next pass goes by, would wait for a checkpoint.
    if (isPending) await this.#parts.data.drain()
    return left
  }

  async *#groupsOf({ isAll, groups }: EraseRound): AsyncGenerator<readonly GroupId[], void> {
    if (!isAll) {
      yield [...groups]
      return
    }
    let after: GroupId | undefined
    do {
      const page = await this.#parts.data.groups('', after, groupsAtOnce, [])
      yield page
      after = page.length < groupsAtOnce ? undefined : page.at(-1)
    } while (after !== undefined)
  }

  /** The group takes a position once the last one is old enough for the horizon to move there. */
  async #nudge(group: GroupId, at: Timestamp): Promise<void> {
    const { stamp, log, trace, isFirst, submit } = this.#parts
    const nowMicros = stamp()
    // The first node may have nothing left of the group: each node's history is its own.
    const patienceMs = isFirst(group) ? 0 : othersPasses * this.passMs
    if (nowMicros < at + patienceMs * microsPerMs) return
    assert(this.#parts.book.closed !== undefined, 'ERASE-3: a position is taken without a deletion')
    this.#nudges += 1
    trace.mark('position_taken_to_erase')
    const session = `erase-${log.identity.storeId}-${log.run}`
    const expiresAt = nowMicros + nudgeLifeMs * microsPerMs
    const sequence = this.#nudges
    try {
      await submit(
        {
          ...{ group, attempt: 1, readPosition: 0, reads: [], ranges: [] },
          ...{ intent: { session, sequence, floor: sequence, expiresAt } },
          ...{ allocations: [], mutations: [] },
        },
        nudgeMs,
      )
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
    }
  }

  async #isOutOfLog(): Promise<boolean> {
    const { log, data, trace } = this.#parts
    if (this.#isErasedLog) return true
    if (log.firstFlush < this.#firstFlush) {
      if (log.settledFlush < this.#firstFlush) data.wantBatch()
      return false
    }
    this.#isErasedLog = await log.erased().catch(() => {
      // Damage there ends no node (DISK-16), and a write that fails ends it elsewhere.
      trace.mark('erase_cannot_rewrite_log')
      return false
    })
    assert(log.firstFlush >= this.#firstFlush, 'LOG-16: a flush that was given up comes back')
    if (!this.#isErasedLog) log.force()
    return this.#isErasedLog
  }

  #tellOverdue(): void {
    const { book, clock, trace } = this.#parts
    const [oldest] = book.rounds
    if (oldest === undefined || oldest.number <= this.#toldOverdue) return
    const request = this.#describe(oldest)
    if (request.deadline > wallMs(clock)) return
    this.#toldOverdue = oldest.number
    trace.mark('erase_overdue')
    trace.emit({ kind: 'erase-overdue', ...request })
  }

  #describe(round: EraseRound): EraseRequest {
    const { log, ending } = this.#parts
    return describeRound(round, {
      ...{ withinMs: this.withinMs, isNext: this.#parts.book.closed === undefined },
      ...{ stage: this.#stage, groupsLeft: this.#groupsLeft, held: this.#held },
      isGroupDamaged: this.#isGroupDamaged,
      ...{ isErasedLog: this.#isErasedLog, firstFlush: this.#firstFlush, log, ending },
    })
  }
}

/** Of its groups, rows and what is put down beside them. */
function spansOf({ isAll, groups }: EraseRound): readonly KeySpan[] | 'all' {
  if (isAll || groups.size > spansMax) return 'all'
  return [...groups].flatMap((group) => {
    const { gte, lt } = allOf(groupPrefix(group))
    return [
      { gte, lt },
      { gte: stagedKey(gte), lt: stagedKey(lt) },
    ]
  })
}

function wallMs(clock: Clock): number {
  return Math.floor(clock.wallMicros() / microsPerMs)
}
