/**
 * Replicas in memory for the tests of what stands above them: one log for all of them
 * (`memory-log.ts`), read by the real `Reads` out of the real `Overlay`, listed by the real `Listing`.
 * The contract of the port holds for them too (`../contracts/replica-port.ts`). A test can hold a replica
 * back, cut it off, and make a submission go wrong once.
 */
import { compareText, latin1 } from '../../src/base/bytes.ts'
import { StoreError } from '../../src/base/errors.ts'
import type { GroupId, NodeId, Position, Timestamp } from '../../src/base/ids.ts'
import type {
  IntentName,
  IntentOutcome,
  LocalWorklists,
  LocalReplica,
  Outcome,
  PageRange,
  ReplicaReadLevel,
  ReadPoint,
  Row,
  Submission,
} from '../../src/group/replica-port.ts'
import { encodeTransaction } from '../../src/group/transaction.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { findRecorded } from '../../src/replica/intent-outcome.ts'
import { Reads } from '../../src/replica/reads.ts'
import type { Applied } from '../../src/replica/replica.ts'
import { Requests } from '../../src/replica/requests.ts'
import { findExcess, toTransaction } from '../../src/replica/submission-size.ts'
import { applyEntry } from '../../src/replication/apply.ts'
import { emptyState, encodeState, type GroupState } from '../../src/replication/state.ts'
import { Overlay, type Commit, type OverlayRow } from '../../src/store/overlay.ts'
import { Pins } from '../../src/store/pins.ts'
import { LocalWorklist } from '../../src/store/worklist.ts'
import { WorklistIndex } from '../../src/store/worklist-index.ts'
import { pageOf } from '../store/rows.ts'
import type { MemoryLog } from './memory-log.ts'

/** The end of a submission that comes instead of its outcome, once. */
export type Mishap =
  /** Committed, but the node never hears of it. */
  | 'answer-lost'
  /** Never committed, and the node does not know. */
  | 'request-lost'
  | 'overloaded'
  | 'expired'

export class MemoryReplica implements LocalReplica {
  readonly worklist: LocalWorklists
  /** Applies nothing by itself while true; current reads still bring it up. */
  isBehind = false
  /** No peer answers this replica: it refuses reads, and submissions end as unknown. */
  isCutOff = false
  /**
   * Whether it takes itself for the first one alive of those that hold each group. Where several do, they are as
   * nodes that hear nothing of one another: each serves what is listed.
   */
  isFirst = true
  /** Has a lease of every group: it answers current reads at once. It is not behind then. */
  isAtOnce = false
  /** How old what it has may be, as far as it knows: a read of a smaller bound has to ask. */
  ageMs: number = Number.POSITIVE_INFINITY
  readonly mishaps: Mishap[] = []
  /** Functions that run once, between a read or a scan and the answer to it. */
  readonly afterRead: (() => Promise<unknown>)[] = []
  readonly afterScan: (() => Promise<unknown>)[] = []
  /** How many reads asked a majority. */
  currentReads = 0
  submissions = 0
  /** The node that it names as the leader of all groups. */
  leader: NodeId | undefined
  /** Those that were not woken yet. */
  watches = 0
  readonly #log: MemoryLog
  readonly #clock: Clock
  readonly #delayMs: number
  readonly #states = new Map<GroupId, GroupState>()
  /** Every version of every row: no batch ever takes one. */
  readonly #overlay = new Overlay({ nowMs: () => 0, groupBytesMax: Number.POSITIVE_INFINITY })
  readonly #listing = new WorklistIndex({
    read: () => undefined,
    scan: async function* () {},
    checked: () => {
      throw new Error('nothing is stored')
    },
    isUnwritten: () => false,
  })
  readonly #requests: Requests
  readonly #reads: Reads
  readonly #pauses = new Set<() => void>()
  #isStopped = false

  /** An answer of the others takes `delayMs`; with 0 it comes without a timer. */
  constructor(log: MemoryLog, clock: Clock, delayMs = 1) {
    this.#log = log
    this.#clock = clock
    this.#delayMs = delayMs
    const { limits } = log
    this.#requests = new Requests(clock, () => undefined)
    this.#reads = new Reads({
      ...{ clock, limits, trace: silentTrace, isRestored: () => true, isAside: () => false },
      replica: {
        applied: (group) => this.#applied(group),
        appliedInMemory: (group) => (this.#states.has(group) ? this.#applied(group) : undefined),
        leased: (group) => (this.isAtOnce ? this.#applied(group) : undefined),
        isStillLeased: () => true,
        isQuiet: () => true,
      },
      mayHaveCome: () => false,
      isFresh: ({ maxStalenessMs }) => maxStalenessMs >= this.ageMs,
      data: {
        get: (group, key) => rowOf(this.#overlay.get(group, latin1(key))),
        getAll: (group, keys) => keys.map((key) => rowOf(this.#overlay.get(group, latin1(key)))),
        getAllAt: async (group, keys, at) =>
          keys.map((key) => rowOf(this.#overlay.get(group, latin1(key), at))),
        scan: async (group, range) => this.#page(group, range),
        scanAt: async (group, range, at) => this.#page(group, range, at),
        ordering: () => undefined,
        pins: new Pins(limits.snapshotHoldMs),
      },
      requests: { count: 0, read: (group, timeoutMs) => this.#askOthers(group, timeoutMs) },
      ...{ isOver: () => this.#isStopped, wake: () => undefined, begin: () => undefined },
      whenBack: () => undefined,
    })
    log.readers.push({
      onCommitted: (group) => {
        if (!this.isBehind) this.catchUp(group)
      },
    })
    this.worklist = new LocalWorklist(this.#listing, clock, { isOurs: () => this.isFirst })
  }

  positionHere(group: GroupId): Position | undefined {
    return this.#isStopped ? undefined : this.#states.get(group)?.position
  }

  #stateOf(group: GroupId): GroupState {
    const known = this.#states.get(group)
    if (known !== undefined) return known
    const made = emptyState()
    this.#states.set(group, made)
    return made
  }

  #applied(group: GroupId): Applied {
    const { position, timestamp, horizon } = this.#stateOf(group)
    return { position, timestamp, horizon }
  }

  holds(): boolean {
    return true
  }

  catchUp(group: GroupId): void {
    const state = this.#stateOf(group)
    for (const entry of this.#log.entriesAfter(group, state.position)) {
      const { position, timestamp } = entry
      const { horizon: horizonBefore } = state
      const { writes } = applyEntry(state, entry)
      for (const { text, isNew } of writes) {
        const isThere = this.#overlay.get(group, text)?.value !== undefined
        if (isNew && isThere) throw new Error(`a row that is said to be new is there: ${text}`)
      }
      const { horizon } = state
      const encodeStateHere = (): Uint8Array => encodeState(state)
      const of = { group, position, timestamp }
      const commit: Commit = {
        ...of,
        ...{ horizonBefore, horizon, writes, encodeState: encodeStateHere },
      }
      this.#overlay.commit(commit)
      this.#listing.commit(commit)
    }
    this.#requests.applied(group, state.position)
  }

  async submit(submission: Submission, timeoutMs: number): Promise<Outcome> {
    if (this.#isStopped) return { kind: 'unknown' }
    this.submissions += 1
    const mishap = this.mishaps.shift()
    if (this.isCutOff || mishap === 'request-lost') {
      await this.#pause(timeoutMs)
      return { kind: 'unknown' }
    }
    if (mishap === 'overloaded' || mishap === 'expired') return { kind: mishap }
    const bytes = encodeTransaction(toTransaction(submission))
    const excess = findExcess(submission, bytes, this.#log.limits)
    if (excess !== undefined) throw excess
    await this.#pause(this.#delayMs)
    if (this.#isStopped) return { kind: 'unknown' }
    const outcome = this.#log.commit(submission, this.#clock.wallMicros())
    if (mishap === 'answer-lost') {
      await this.#pause(timeoutMs)
      return { kind: 'unknown' }
    }
    // A caller that hears of a commit finds it applied at the node it asked.
    if (outcome.kind === 'committed') this.catchUp(submission.group)
    return outcome
  }

  async outcome(group: GroupId, intent: IntentName, timeoutMs: number): Promise<IntentOutcome> {
    await this.read(group, 'current', timeoutMs)
    return findRecorded(this.#stateOf(group), intent)
  }

  leaderElsewhere(): NodeId | undefined {
    return this.leader
  }

  async read(
    group: GroupId,
    level: ReplicaReadLevel,
    timeoutMs: number,
    atLeast?: Position,
  ): Promise<ReadPoint> {
    const point = await this.#reads.read(group, level, timeoutMs, atLeast)
    await this.afterRead.shift()?.()
    return point
  }

  async #askOthers(group: GroupId, timeoutMs: number): Promise<ReadPoint> {
    this.currentReads += 1
    await this.#pause(this.isCutOff ? timeoutMs : this.#delayMs)
    if (this.#isStopped) throw new StoreError('closed', 'this node is stopping; ask another one')
    if (this.isCutOff) throw new StoreError('unavailable', 'no majority answered')
    this.catchUp(group)
    const { position, timestamp } = this.#stateOf(group)
    return { position, timestamp }
  }

  rowsNow(...asked: Parameters<LocalReplica['rowsNow']>): ReturnType<LocalReplica['rowsNow']> {
    return this.#reads.rowsNow(...asked)
  }

  get(group: GroupId, key: Uint8Array): Row | undefined {
    return this.#reads.get(group, key)
  }

  async readAt(group: GroupId, at: Timestamp, timeoutMs: number): Promise<ReadPoint> {
    const point = await this.#reads.readAt(group, at, timeoutMs)
    await this.afterRead.shift()?.()
    return point
  }

  getAt(...asked: Parameters<LocalReplica['getAt']>): ReturnType<LocalReplica['getAt']> {
    return this.#reads.getAt(...asked)
  }

  async scan(group: GroupId, range: PageRange, at?: Timestamp): Promise<readonly Row[]> {
    const rows = await this.#reads.scan(group, range, at)
    await this.afterScan.shift()?.()
    return rows
  }

  /** All newest rows, in key order. */
  rowsOf(group: GroupId): readonly Row[] {
    return this.#page(group, {})
  }

  #page(group: GroupId, range: PageRange, at?: Timestamp): readonly Row[] {
    const rows = this.#overlay.range(group, range, at).flatMap((row) => rowOf(row) ?? [])
    return pageOf(rows, range)
  }

  async groups(
    prefix: string,
    after: GroupId | undefined,
    limit: number,
    timeoutMs: number,
  ): Promise<readonly GroupId[]> {
    await this.#pause(this.isCutOff ? timeoutMs : this.#delayMs)
    if (this.#isStopped) throw new StoreError('closed', 'this node is stopping; ask another one')
    if (this.isCutOff) throw new StoreError('unavailable', 'no majority answered')
    const names = this.#log.groups().filter((name) => name.startsWith(prefix))
    const behind = names.filter((name) => after === undefined || compareText(name, after) > 0)
    return behind.sort(compareText).slice(0, limit)
  }

  watch(group: GroupId, position: Position, wake: () => void): () => void {
    let isWaiting = true
    const end = (): void => {
      if (isWaiting) this.watches -= 1
      isWaiting = false
    }
    this.watches += 1
    const cancel = this.#requests.watch(group, position, () => {
      end()
      wake()
    })
    return () => {
      end()
      cancel()
    }
  }

  /** Answers nothing any more, nor lets anything wait. */
  stop(): void {
    this.#isStopped = true
    this.#requests.stop()
    for (const end of this.#pauses) end()
  }

  async #pause(delayMs: number): Promise<void> {
    if (delayMs === 0 || this.#isStopped) return
    await new Promise<void>((resolve) => {
      this.#pauses.add(resolve)
      this.#clock.setTimer(delayMs, () => {
        this.#pauses.delete(resolve)
        resolve()
      })
    })
  }
}

function rowOf(row: OverlayRow | undefined): Row | undefined {
  if (row?.value === undefined) return undefined
  const { key, value, timestamp } = row
  return { key, value, timestamp }
}
