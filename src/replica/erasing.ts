/**
 * Has the bytes of what was deleted leave every file of this node within `eraseWithinMs`. Deletions gather in a round
 * for a quarter of that time (`../store/erase-book.ts`). Then the round goes three ways: its groups' versions leave
 * history, its flushes leave the log, and last the data store's files are written anew. A pass is made every now and then;
 * each looks at what is there, so a start goes on by beginning again.
 *
 * ERASE-1  A round is erased only when history, the log and the files of the data store hold nothing of it any more.
 *          What may go, and when, other rules say (LOG-16 to LOG-18, MVCC-1): erasing waits for them.
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
import type { EraseBook, EraseRound } from '../store/erase-book.ts'
import type { TakenGroup } from '../store/overlay.ts'
import type { Rounds } from '../time/rounds.ts'
import { allOf, groupPrefix, stagedKey } from '../store/row-format.ts'
import { lookAtHistory, timestampOf } from './erase-history.ts'

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

/** Where a round is: it gathers deletions, or its bytes stand in history, in the log, in files of the data store. */
export type EraseStage = 'gathering' | 'history' | 'log' | 'data'

/** A round, as status has it. Moments are milliseconds since 1970. */
export interface EraseRequest {
  readonly round: number
  readonly stage: EraseStage
  /** When its first deletion was taken in here. */
  readonly since: number
  /** When it is to be done. */
  readonly deadline: number
  /** How many groups it is of; absent: of all, since they are too many to be named. */
  readonly groups?: number
  /** Why its bytes are still there, in words. */
  readonly why: readonly string[]
}

export interface EraseFigures {
  /** The older one first. */
  readonly requests: readonly EraseRequest[]
  /** How old the oldest one is, in milliseconds; 0: there is none. */
  readonly oldestMs: number
  /** Those behind their deadline. */
  readonly overdue: number
  /** Rounds that were erased since the start. */
  readonly done: number
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
/** LevelDB compacts once it is told to: what holds it up is looked at again with a pass. */
const heldWords: Readonly<Record<EraseHeld, string>> = {
  'files-in-use': 'data/: a scan still reads files that are rewritten',
  unchecked: 'data/unchecked: the scrub has not read all tables of before the start',
}

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
    const { book, clock } = this.#parts
    const nowMs = wallMs(clock)
    const requests = book.rounds.map((round) => this.#describe(round))
    const [oldest] = requests
    return {
      requests,
      oldestMs: oldest === undefined ? 0 : Math.max(0, nowMs - oldest.since),
      overdue: requests.filter(({ deadline }) => deadline <= nowMs).length,
      done: this.#done,
    }
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
      .catch((error: unknown) => {
        if (!this.#isStopped) this.#parts.onFailed(error)
      })
      .finally(() => (this.#isPassing = false))
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
    if (this.#separated !== round.number) await this.#separate(round)
    this.#groupsLeft = await this.#lookAtGroups(round)
    const isOutOfLog = await this.#isOutOfLog()
    this.#stage = this.#groupsLeft > 0 ? 'history' : isOutOfLog ? 'data' : 'log'
    if (this.#stage !== 'data' || this.#isStopped) return
    this.#held = await this.#parts.store.erase?.(spansOf(round))
    if (this.#held !== undefined || this.#isStopped) return
    this.#check()
    book.onErased()
    data.wantBatch()
    this.#done += 1
    this.#parts.trace.mark('round_erased')
    this.#parts.trace.emit({ kind: 'erased', round: round.number, groups: round.groups.size })
  }

  #check(): void {
    const { log } = this.#parts
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
    this.#separated = round.number
    ending.erase(this.#firstFlush - 1)
  }

  /** How many groups of the round have versions of before it. */
  async #lookAtGroups(round: EraseRound): Promise<number> {
    const { historyMs } = this.#parts.limits
    let left = 0
    for await (const some of this.#groupsOf(round)) {
      for (const group of some) {
        if (this.#isStopped) return left + 1
        const through = this.#through.get(group) ?? this.#latest
        const look = await lookAtHistory({ ...this.#parts, historyMs }, group, through)
        if (look.left > 0) left += 1
        if (look.nudgeAt !== undefined) await this.#nudge(group, look.nudgeAt)
      }
    }
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
    const { number, openedAtMs: since, closedAtMs, isAll, groups } = round
    const stage = closedAtMs === 0 ? 'gathering' : this.#stage
    return {
      ...{ round: number, stage, since, deadline: since + this.withinMs },
      ...(isAll ? {} : { groups: groups.size }),
      why: stage === 'gathering' ? [this.#gatheringWords] : this.#reasons(stage),
    }
  }

  get #gatheringWords(): string {
    return this.#parts.book.closed === undefined
      ? 'deletions gather for a quarter of erase_within_ms, and are erased together'
      : 'deletions gather until those before are erased'
  }

  #reasons(stage: Exclude<EraseStage, 'gathering'>): readonly string[] {
    if (stage === 'data') {
      return [this.#held === undefined ? 'data/: files are rewritten' : heldWords[this.#held]]
    }
    const left = this.#groupsLeft
    const versions = left === 1 ? '1 group keeps versions' : `${left} groups keep versions`
    const history = left > 0 ? [`history: ${versions} that readers may see`] : []
    return [...history, ...this.#logReasons()]
  }

  #logReasons(): readonly string[] {
    const { log, ending } = this.#parts
    const through = this.#firstFlush - 1
    if (this.#isErasedLog) return []
    if (log.firstFlush > through) return ['log/: files are rewritten']
    const peers = [...ending.peers()]
      .filter(([, { mark = 0 }]) => mark < through)
      .map(([peer, { mark }]) =>
        mark === undefined
          ? `log/: node ${peer} has not told its mark`
          : `log/: node ${peer} needs the flushes after ${mark}; those through ${through} are to go`,
      )
    const isOwn = log.settledFlush <= through
    return [
      ...(isOwn ? ['log/: this node has not applied all that these flushes name'] : []),
      ...peers,
    ]
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
