/**
 * Replicas in memory for the tests of what stands above them: one log for all of them, applied with
 * the real `applyEntry`, so that numbers are drawn and intents remembered as they are in a cluster.
 * A replica can be held back; a submission can be made to go wrong once.
 */
import { worklistPrefix, topicOf, topicTextOf } from '../../src/group/worklist-key.ts'
import { compareBytes, compareText, fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { StoreError } from '../../src/base/errors.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import {
  nodeId,
  type GroupId,
  type NodeId,
  type Position,
  type Timestamp,
} from '../../src/base/ids.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { recordedOf } from '../../src/replica/intent-outcome.ts'
import type {
  IntentName,
  IntentOutcome,
  ListedGroup,
  LocalWorklists,
  LocalReplica,
  Outcome,
  PageRange,
  ReplicaReadLevel,
  ReadPoint,
  Row,
  RowsAtPoint,
  Submission,
} from '../../src/group/replica-port.ts'
import { excessOf, transactionOf } from '../../src/replica/submission-size.ts'
import { applyEntry } from '../../src/replication/apply.ts'
import type { Entry } from '../../src/replication/entry.ts'
import type { KeyRange } from '../../src/group/outcome.ts'
import { emptyState, type GroupState } from '../../src/replication/state.ts'
import {
  decodeTransaction,
  encodeTransaction,
  type Transaction,
} from '../../src/group/transaction.ts'
import { pageOf } from '../store/rows.ts'

/** What a submission comes to instead of its outcome, once. */
export type Mishap =
  /** Committed, but the node never hears of it. */
  | 'answer-lost'
  /** Never committed, and the node does not know. */
  | 'request-lost'
  | 'overloaded'
  | 'expired'

interface GroupLog {
  readonly entries: Entry[]
  readonly state: GroupState
  readonly lastWrite: Map<string, Position>
}

/** The log all replicas of a test apply. */
export class MemoryLog {
  readonly #groups = new Map<GroupId, GroupLog>()
  readonly replicas: MemoryReplica[] = []
  /** Entries that older reads are validated against, as in a real proposer. */
  windowMax = 64

  group(group: GroupId): GroupLog {
    const known = this.#groups.get(group)
    if (known !== undefined) return known
    const made = { entries: [], state: emptyState(), lastWrite: new Map<string, Position>() }
    this.#groups.set(group, made)
    return made
  }

  entryCount(): number {
    return [...this.#groups.values()].reduce((sum, { entries }) => sum + entries.length, 0)
  }

  commit(submission: Submission, wallMicros: number): Outcome {
    const { group, intent, readPosition, reads, ranges } = submission
    const log = this.group(group)
    const session = log.state.sessions.get(intent.session)
    if (session !== undefined && intent.sequence < session.floor) return { kind: 'expired' }
    const known = session?.outcomes.get(intent.sequence)
    if (known !== undefined) return known
    const inRange = [...log.lastWrite.keys()].map(fromLatin1).filter((key) => isIn(key, ranges))
    const hasRead = reads.length > 0 || ranges.length > 0
    const conflict = this.#conflict(log, readPosition, [...reads, ...inRange], hasRead)
    if (conflict !== undefined) return { kind: 'conflict', position: conflict }
    return this.#append(log, group, throughBytes(submission), wallMicros)
  }

  #conflict(
    log: GroupLog,
    readPosition: Position,
    reads: readonly Uint8Array[],
    hasRead: boolean,
  ): Position | undefined {
    const through = log.state.position
    // A transaction that read nothing conflicts with no other.
    if (hasRead && readPosition < through - this.windowMax) return through
    const written = reads.map((key) => log.lastWrite.get(latin1(key)) ?? 0)
    const last = Math.max(0, ...written)
    return last > readPosition ? last : undefined
  }

  #append(log: GroupLog, group: GroupId, transaction: Transaction, wallMicros: number): Outcome {
    const position = log.state.position + 1
    const entry: Entry = {
      position,
      timestamp: Math.max(log.state.timestamp + 1, wallMicros),
      horizon: 0,
      nextLeader: { node: nodeId('n1'), incarnation: 1 },
      transactions: [transaction],
    }
    const { outcomes } = applyEntry(log.state, entry)
    log.entries.push(entry)
    for (const { key } of transaction.mutations) log.lastWrite.set(latin1(key), position)
    for (const replica of this.replicas) if (!replica.isBehind) replica.catchUp(group)
    const [outcome] = outcomes
    if (outcome === undefined) throw new Error('an entry has an outcome for its transaction')
    return outcome
  }
}

function isIn(key: Uint8Array, ranges: readonly KeyRange[]): boolean {
  return ranges.some(({ gte, lt }) => compareBytes(key, gte) >= 0 && compareBytes(key, lt) < 0)
}

function throughBytes(submission: Submission): Transaction {
  const transaction = decodeTransaction(encodeTransaction(transactionOf(submission)))
  if (transaction === undefined) throw new Error('a transaction does not decode')
  return transaction
}

interface Applied {
  readonly state: GroupState
  readonly rows: Map<string, Row>
  /** Every version of every row, deleted ones without a value, in the order of their times. */
  readonly versions: Version[]
}

interface Version {
  readonly key: Uint8Array
  readonly value: Uint8Array | undefined
  readonly timestamp: Timestamp
}

interface Watch {
  readonly group: GroupId
  readonly position: Position
  readonly wake: () => void
}

interface TopicWatch {
  readonly topic: string
  readonly wake: (listed: ListedGroup) => void
}

export class MemoryReplica implements LocalReplica {
  readonly worklist: LocalWorklists = {
    counts: () => ({}),
    topics: (limit) => Promise.resolve(this.#topics(limit)),
    list: (topic, after, limit) => Promise.resolve(this.#listed(topic, after, limit)),
    unlist: () => undefined,
    isOurs: () => true,
    watch: (topic, wake) => {
      const watch = { topic: latin1(worklistPrefix(topic)), wake }
      this.#topicWatches.add(watch)
      return () => this.#topicWatches.delete(watch)
    },
  }
  /** Applies nothing by itself while true; current reads still bring it up. */
  isBehind = false
  /** No peer answers this replica: it refuses reads, and submissions end as unknown. */
  isCutOff = false
  /** Answers at once what it can, current reads too: it is not behind then. */
  isAtOnce = false
  readonly mishaps: Mishap[] = []
  /** What happens once, between a read or a scan and its being heard of. */
  readonly afterRead: (() => Promise<unknown>)[] = []
  readonly afterScan: (() => Promise<unknown>)[] = []
  /** How many current reads were made, each of which asks a majority. */
  currentReads = 0
  submissions = 0
  /** The node that it names as the leader of all groups. */
  leader: NodeId | undefined
  readonly #log: MemoryLog
  readonly #clock: Clock
  readonly #delayMs: number
  readonly #groups = new Map<GroupId, Applied>()
  readonly #watches = new Set<Watch>()
  readonly #topicWatches = new Set<TopicWatch>()

  constructor(log: MemoryLog, clock: Clock, delayMs = 1) {
    this.#log = log
    this.#clock = clock
    this.#delayMs = delayMs
    log.replicas.push(this)
  }

  positionHere(group: GroupId): Position | undefined {
    return this.#groups.get(group)?.state.position
  }

  #applied(group: GroupId): Applied {
    const known = this.#groups.get(group)
    if (known !== undefined) return known
    const made = { state: emptyState(), rows: new Map<string, Row>(), versions: [] }
    this.#groups.set(group, made)
    return made
  }

  holds(): boolean {
    return true
  }

  catchUp(group: GroupId): void {
    const { state, rows, versions } = this.#applied(group)
    for (const entry of this.#log.group(group).entries.slice(state.position)) {
      const { timestamp } = entry
      for (const { key, value } of applyEntry(state, entry).writes) {
        versions.push({ key, value, timestamp })
        if (value === undefined) rows.delete(latin1(key))
        else rows.set(latin1(key), { key, value, timestamp })
        this.#tellTopic(latin1(key), { group, position: state.position })
      }
    }
    for (const watch of [...this.#watches]) {
      if (watch.group !== group || state.position <= watch.position) continue
      this.#watches.delete(watch)
      watch.wake()
    }
  }

  #topics(limit: number): readonly string[] {
    const found = new Set<string>()
    for (const { rows } of this.#groups.values()) {
      for (const key of rows.keys()) {
        const topic = topicOf(topicTextOf(key) ?? '')
        if (topic !== undefined) found.add(topic)
      }
    }
    return [...found].sort(compareText).slice(0, limit)
  }

  #listed(topic: string, after: GroupId | undefined, limit: number): ListedGroup[] {
    const prefix = latin1(worklistPrefix(topic))
    return [...this.#groups]
      .filter(([group]) => after === undefined || group > after)
      .filter(([, { rows }]) => [...rows.keys()].some((key) => key.startsWith(prefix)))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, limit)
      .map(([group, { state }]) => ({ group, position: state.position }))
  }

  #tellTopic(key: string, listed: ListedGroup): void {
    for (const { topic, wake } of this.#topicWatches) {
      if (key.startsWith(topic)) this.#clock.defer(() => wake(listed))
    }
  }

  async submit(submission: Submission, timeoutMs: number): Promise<Outcome> {
    this.submissions += 1
    const mishap = this.mishaps.shift()
    if (this.isCutOff || mishap === 'request-lost') {
      await this.#pause(timeoutMs)
      return { kind: 'unknown' }
    }
    if (mishap === 'overloaded' || mishap === 'expired') return { kind: mishap }
    const bytes = encodeTransaction(transactionOf(submission))
    const excess = excessOf(submission, bytes, defaultLimits)
    if (excess !== undefined) throw excess
    await this.#pause(this.#delayMs)
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
    return recordedOf(this.#applied(group).state, intent)
  }

  leaderElsewhere(): NodeId | undefined {
    return this.leader
  }

  async read(
    group: GroupId,
    level: ReplicaReadLevel,
    timeoutMs: number,
    atLeast: Position = 0,
  ): Promise<ReadPoint> {
    const isWaiting = level === 'current' || this.#applied(group).state.position < atLeast
    if (isWaiting) this.currentReads += 1
    if (isWaiting && this.isCutOff) {
      await this.#pause(timeoutMs)
      throw new StoreError('unavailable', 'no majority answered')
    }
    if (isWaiting) {
      await this.#pause(this.#delayMs)
      this.catchUp(group)
    }
    const { position, timestamp } = this.#applied(group).state
    if (position < atLeast) throw new StoreError('invalid', 'the group has no such position yet')
    await this.afterRead.shift()?.()
    return { position, timestamp }
  }

  rowsNow(
    group: GroupId,
    from: ReplicaReadLevel | Timestamp,
    atLeast: Position,
    keys: readonly Uint8Array[],
  ): RowsAtPoint | undefined {
    const { position, timestamp } = this.#applied(group).state
    const isHere = typeof from === 'string' || from === timestamp
    if (!this.isAtOnce || !isHere || position < atLeast) return undefined
    return { point: { position, timestamp }, rows: keys.map((key) => this.get(group, key)) }
  }

  get(group: GroupId, key: Uint8Array): Row | undefined {
    return this.#applied(group).rows.get(latin1(key))
  }

  async readAt(group: GroupId, at: Timestamp, timeoutMs: number): Promise<ReadPoint> {
    const isHere = at <= this.#applied(group).state.timestamp
    const { position, timestamp } = await this.read(
      group,
      isHere ? 'snapshot' : 'current',
      timeoutMs,
    )
    return { position, timestamp: Math.min(at, timestamp) }
  }

  getAt(
    group: GroupId,
    keys: readonly Uint8Array[],
    at: Timestamp,
  ): Promise<readonly (Row | undefined)[]> {
    const rows = this.#rowsAt(group, at)
    return Promise.resolve(keys.map((key) => rows.get(latin1(key))))
  }

  #rowsAt(group: GroupId, at: Timestamp): ReadonlyMap<string, Row> {
    const rows = new Map<string, Row>()
    for (const { key, value, timestamp } of this.#applied(group).versions) {
      if (timestamp > at) break
      if (value === undefined) rows.delete(latin1(key))
      else rows.set(latin1(key), { key, value, timestamp })
    }
    return rows
  }

  async scan(group: GroupId, range: PageRange, at?: Timestamp): Promise<readonly Row[]> {
    const { gte, gt, lt, reverse } = range
    const all = at === undefined ? this.#applied(group).rows : this.#rowsAt(group, at)
    const rows = [...all.values()]
      .filter(({ key }) => gte === undefined || compareBytes(key, gte) >= 0)
      .filter(({ key }) => gt === undefined || compareBytes(key, gt) > 0)
      .filter(({ key }) => lt === undefined || compareBytes(key, lt) < 0)
      .sort((a, b) => compareBytes(a.key, b.key))
    await this.afterScan.shift()?.()
    return pageOf(reverse === true ? rows.reverse() : rows, range)
  }

  async groups(prefix: string, after: GroupId | undefined, limit: number): Promise<GroupId[]> {
    const names = [...this.#groups].flatMap(([name, { state }]) =>
      state.position > 0 ? [name] : [],
    )
    const asked = names.filter((name) => name.startsWith(prefix) && name > (after ?? ''))
    return asked.sort((a, b) => (a < b ? -1 : 1)).slice(0, limit)
  }

  watch(group: GroupId, position: Position, wake: () => void): () => void {
    const watch = { group, position, wake }
    this.#watches.add(watch)
    return () => this.#watches.delete(watch)
  }

  get watches(): number {
    return this.#watches.size
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.#clock.setTimer(delayMs, resolve))
  }
}
