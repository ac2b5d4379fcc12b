/**
 * The durable log of one node: the acceptor records of all its groups, one value of the journal for each flush. A
 * value for each record took 2.5 times the processor and gave half the rate.
 *
 * One write is in flight at a time; what arrives meanwhile forms the next. A write starts at the
 * end of a turn, so that one flush takes all that the turn made.
 *
 * PAX-4  A callback that waits for a record is called only when its flush, and every one before it, is
 *        durable; after a failed write none is called any more.
 *
 * LOG-14  The data store takes in no position before the log durably holds it as chosen.
 *
 * DISK-16  Where a scrub finds a file of the log damaged, all that a start would read there is written anew.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, Position } from '../base/ids.ts'
import type { Journal } from '../ports/journal.ts'
import type { LogRecord } from '../replication/effect.ts'
import { encodeFlush } from './flush.ts'
import type { FlushLedger, Written, WrittenSince } from './flush-ledger.ts'
import { FlushReader } from './flush-reader.ts'
import type { PendingFlush } from './pending-flush.ts'
import { FlushQueue } from './flush-queue.ts'
import { copiesOf } from './copies.ts'
import { LogCut } from './log-cut.ts'
import type { GroupPositions, LogIndex, PositionHeader } from './log-index.ts'
import type { Identity, LogMeta } from './log-meta.ts'
import { openLog, type LogStoreOptions, type OpenedLog } from './log-opening.ts'
import { tellDamage, type LogDamage } from './log-mending.ts'
import { LogRecords, type LoneWrite } from './log-records.ts'
import type { LogSettling, Settled } from './log-settling.ts'
import { LogValues } from './log-values.ts'
import type { PeerMemory } from './peer-memory.ts'
import type { OwnPlace } from '../store/row-format.ts'
import { StretchSweep } from './stretch-sweep.ts'
import { nothingSettled, type SettledPositions } from './settled.ts'

export type { PositionHeader } from './log-index.ts'
export type { Identity } from './log-meta.ts'
export type { LogStoreOptions } from './log-opening.ts'

/** Two runs of one incarnation draw the same number once in this many. */
const runsMax = 2 ** 48

/** The largest size of the copies of one group, in full flushes: one value may be larger than a flush. */
const copyFlushesMax = 16

export class LogStore {
  /** The store, cluster and node that the log belongs to, and the incarnation. */
  readonly identity: Identity
  /** Of all leases that this store has given, in any incarnation. */
  readonly longestLeaseMs: number
  /** The memory of which peer votes with which store. */
  readonly memory: PeerMemory
  /** A write failed: nothing more is answered, and the node must stop. Called once. */
  onFailure: (reason: Error) => void = () => undefined
  /** Drawn when it was opened. */
  readonly run: number
  /** The last flush that was there when the log was opened. */
  readonly openedFlush: number
  readonly #journal: Journal
  readonly #options: LogStoreOptions
  readonly #records: LogRecords
  readonly #index: LogIndex
  readonly #ledger: FlushLedger
  readonly #settling: LogSettling
  readonly #values: LogValues
  readonly #sweep: StretchSweep
  readonly #cut: LogCut
  /** Not durable yet, in order; the first one may be in flight. */
  readonly #queue: FlushQueue
  /** Records that were appended or noted since it was opened, counted call by call. */
  #changes = 0
  #durableFlush: number
  #lastCrc: number
  #isScheduled = false
  /** Records are being written, without a flush. */
  #isCheckpointing = false
  #isStopping = false
  #failure: Error | undefined
  #stopped: Promise<void> | undefined
  #onStopped: () => void = () => undefined

  /**
   * Rejects with `invalid` for a folder of another node, cluster or format; with `corrupt` for a
   * log that must not be used any more, or for rows that cannot be read. `rows`: what the data store
   * has of it; absent, all of the log is folded. `claimed`: the folder's record, when it was opened before.
   */
  static async open(
    journal: Journal,
    options: LogStoreOptions,
    rows: SettledPositions = nothingSettled,
    claimed?: LogMeta,
  ): Promise<LogStore> {
    return new LogStore(journal, options, await openLog(journal, options, rows, claimed))
  }

  private constructor(journal: Journal, options: LogStoreOptions, opened: OpenedLog) {
    const { storeId, incarnation, cluster, node, seat, longestLeaseMs } = opened.meta
    this.identity = { storeId, incarnation, cluster, node, seat }
    this.longestLeaseMs = longestLeaseMs
    this.memory = opened.memory
    this.#records = new LogRecords(opened.meta, opened.memory, opened.damages)
    this.run = options.random.int(1, runsMax)
    this.openedFlush = opened.end.number
    this.#journal = journal
    this.#options = options
    this.#index = opened.index
    this.#ledger = opened.ledger
    this.#settling = opened.settling
    const { flushBytesMax } = options
    const queue = new FlushQueue({ ...opened, flushBytesMax }, opened.end.number)
    this.#queue = queue
    this.#values = new LogValues({
      ...{ index: opened.index, rows: opened.rows, reader: new FlushReader(journal) },
      ...{ clock: options.clock, trace: options.trace },
      pending: (place) => queue.valueAt(place),
      pendingGroups: (flush) => queue.groupsOf(flush),
      durableFlush: () => this.#durableFlush,
      firstFlush: () => this.firstFlush,
    })
    opened.settling.copy = (found) => this.#copy(found)
    this.#durableFlush = opened.end.number
    this.#lastCrc = opened.end.crc
    const onFailed = (error: unknown): void => this.#onFailed(error)
    this.#sweep = new StretchSweep({ rows: opened.rows, clock: options.clock, onFailed })
    this.#cut = new LogCut({
      ...{ journal, records: this.#records, ledger: opened.ledger, sweep: this.#sweep },
      ...{ trace: options.trace, previousCrc: (flush) => this.#values.previousCrc(flush) },
      onFailed: (error) => (this.#isStopping ? undefined : this.#onFailed(error)),
    })
  }

  /** The log has given up the flushes before this one; 1: none. */
  get firstFlush(): number {
    return this.#ledger.firstFlush
  }

  /** The highest flush known to be durable. */
  get durableFlush(): number {
    return this.#durableFlush
  }

  /** The flush that records go into now, or went into last. */
  get lastFlush(): number {
    return this.#queue.lastFlush
  }

  /** Whether a start takes the log up: nothing that is not applied is carried over then. */
  set isReplaying(isReplaying: boolean) {
    this.#settling.isReplaying = isReplaying
  }

  /** Called with a group whose open positions, through the one named, keep the log from being settled. */
  set onHeldUp(onHeldUp: (group: GroupId, through: Position) => void) {
    this.#settling.onHeldUp = onHeldUp
  }

  /** Every record in the flushes up to here is in the data store, and is not folded at a start. */
  get settledFlush(): number {
    return this.#settling.settledFlush
  }

  /**
   * The last flush that no start needs, and no reader beside those of old values. The flush that the mark stands on
   * stays, and all of them where rows of an earlier build lead into any flush.
   */
  get dispensableFlush(): number {
    return this.#settling.hasOldRows ? 0 : this.#settling.settledFlush - 1
  }

  /** About how many bytes of the disk the flushes after `after` take, through `through`, or through the last. */
  sizeAfter(after: number, through: number = this.#durableFlush): Promise<number> {
    return this.#journal.sizeOf(Math.max(after + 1, this.firstFlush), through)
  }

  /** The losses found in it, at this start or an earlier one, or while it was open. */
  get damages(): readonly LogDamage[] {
    return this.#records.damages
  }

  /** There is more to settle than one batch took along. */
  get isBehind(): boolean {
    return this.#settling.isBehind
  }

  /** Grows with each write: an earlier read may be out of date now. */
  get changes(): number {
    return this.#changes
  }

  /** Bytes that are not durable yet. */
  get queueBytes(): number {
    return this.#queue.bytes
  }

  /**
   * Makes `records` durable, then calls `after`; calls come in the order of appends. Without
   * records it waits for all that was appended before, and is called at once if that is nothing.
   */
  append(records: readonly LogRecord[], after: () => void): void {
    if (this.#isStopping || this.#failure !== undefined) return
    const flush = records.length === 0 ? this.#queue.lastForced : this.#gather(records)
    if (flush === undefined) return after()
    flush.waiters.push(after)
    flush.isForced = true
    this.#schedule()
  }

  /** Writes `records` along with the next flush, and forces none. */
  note(records: readonly LogRecord[]): void {
    if (this.#isStopping || this.#failure !== undefined) return
    this.#gather(records)
  }

  /** Has the news of peers made durable, along with a flush where one is due. */
  remember(): void {
    if (this.#isStopping || this.#failure !== undefined || !this.memory.isUnsaved) return
    this.#records.remember()
    this.#schedule()
  }

  /**
   * A file of it was found damaged, `what` says where and how. What a start reads there is written
   * anew, in other files: whose it is, what it remembers of peers, and one more flush, which the mark
   * may stand on. `after` is called when that is durable. False: this damage is known.
   */
  renew(what: string, after: () => void): boolean {
    if (this.#isStopping || this.#failure !== undefined) return false
    const damage = { what, lostFlushes: [], isMemoryLost: false, isRenewed: true }
    if (!this.#records.renew(damage)) return false
    tellDamage(damage, this.#options.trace)
    this.#settling.hasten(this.#queue.lastFlush)
    this.#gather([]).waiters.push(after)
    this.force()
    return true
  }

  /**
   * Gives up the flushes before `first`. False: not now, since the flush that is to be the first one cannot be read, or
   * the last call has not ended.
   */
  giveUp(first: number): boolean {
    if (this.#isStopping || this.#failure !== undefined) return false
    assert(first - 1 <= this.dispensableFlush, 'LOG-16: a flush is given up that a start needs')
    const isBegun = this.#cut.begin(first)
    if (isBegun) this.#schedule()
    return isBegun
  }

  /**
   * Begins files of its own for what is written from now on, and has open positions before that carried. Gives the flush
   * that is the first one there: once it is the log's first, no file has what was written before (`erased`).
   */
  separate(): number {
    this.#journal.separate?.()
    this.#settling.hasten(this.#queue.lastFlush)
    const { number } = this.#gather([])
    this.force()
    return number
  }

  /** Writes a flush, also where nothing is to be written. */
  force(): void {
    if (this.#isStopping || this.#failure !== undefined) return
    this.#gather([]).isForced = true
    this.#schedule()
  }

  /** Whether no file has the bytes of the flushes that were given up; the caller forces one flush more, and asks again. */
  async erased(): Promise<boolean> {
    return (await this.#journal.erased?.()) ?? true
  }

  #gather(records: readonly LogRecord[]): PendingFlush {
    this.#changes += 1
    return this.#queue.gather(records)
  }

  /**
   * Notes once more all that is known of the group's open positions, so that no flush before is needed for
   * them. False: it is too much.
   */
  #copy(found: GroupPositions): boolean {
    const { group } = found
    const bytesMax = copyFlushesMax * this.#options.flushBytesMax
    const valueAt = (position: Position): Uint8Array | 'faulty' | undefined =>
      this.#values.value(group, position)
    const copies = copiesOf(group, this.#index.open(found), valueAt, bytesMax)
    if (copies === undefined || this.#isStopping || this.#failure !== undefined) return false
    this.#changes += 1
    this.#queue.gatherCopies(found, copies)
    return true
  }

  #schedule(): void {
    const { first } = this.#queue
    if (this.#isScheduled || this.#isCheckpointing || first?.isClosed === true) return
    if (!this.#isFlushDue && !this.#records.isDue) return
    this.#isScheduled = true
    this.#options.clock.defer(() => this.#write())
  }

  /** Notes alone wait for company, except before a full flush and at the end. */
  get #isFlushDue(): boolean {
    const { first } = this.#queue
    if (first === undefined) return false
    return first.isForced || this.#queue.length > 1 || this.#isStopping
  }

  #write(): void {
    this.#isScheduled = false
    if (this.#failure !== undefined) return
    const move = this.#records.takeMove()
    const flush = this.#queue.first
    if (move !== undefined || !this.#isFlushDue || flush === undefined) {
      return this.#checkpoint(move ?? this.#records.takeMemory())
    }
    assert(!flush.isClosed, 'replica: two flushes in flight')
    assert(flush.number === this.#durableFlush + 1, 'replica: flushes become durable in order')
    flush.isClosed = true
    const { number } = flush
    const stamp = { number, incarnation: this.identity.incarnation, previousCrc: this.#lastCrc }
    this.#options.trace.begin?.('log')
    const { bytes, crc } = encodeFlush(stamp, flush)
    this.#options.trace.end?.()
    this.#lastCrc = crc
    this.#ledger.close({ number, incarnation: this.identity.incarnation, crc }, bytes.length)
    const records = this.#records.takeAlong()
    void this.#journal.append({ number, bytes }, records).then(
      () => this.#onWritten(flush),
      (error: unknown) => this.#onFailed(error),
    )
  }

  /** Writes records without a flush. */
  #checkpoint(write: LoneWrite | undefined): void {
    if (write === undefined) return
    this.#isCheckpointing = true
    void this.#journal.checkpoint(write.records).then(
      () => {
        this.#isCheckpointing = false
        write.onWritten()
        this.#schedule()
        this.#endWhenIdle()
      },
      (error: unknown) => this.#onFailed(error),
    )
  }

  #endWhenIdle(): void {
    if (this.#queue.length === 0 && !this.#isCheckpointing) this.#onStopped()
  }

  #onWritten(flush: PendingFlush): void {
    this.#durableFlush = flush.number
    this.memory.onWritten()
    this.#queue.onDurable()
    const { number, records } = flush
    this.#options.trace.emit({ kind: 'flushed', number, records: records.length })
    // It stays in the queue meanwhile: what a callback appends comes after all of these.
    this.#options.trace.begin?.('answers after a flush')
    for (const after of flush.waiters) {
      assert(flush.number <= this.#durableFlush, 'PAX-4: answered before it was durable')
      after()
    }
    this.#options.trace.end?.()
    this.#queue.shift()
    this.#schedule()
    this.#endWhenIdle()
  }

  #onFailed(error: unknown): void {
    this.#failure = error instanceof Error ? error : new Error('the log cannot be written')
    for (const { onFailed } of this.#queue) for (const reject of onFailed) reject(this.#failure)
    this.#onStopped()
    this.onFailure(this.#failure)
  }

  /** The headers of the group's positions above `above`, ascending; appended ones included. */
  positions(group: GroupId, above: Position): Iterable<PositionHeader> {
    return this.#index.above(group, above)
  }

  /** Whether the data store has once held the group through this position, as far as that is remembered. */
  wasSettled(group: GroupId, position: Position): boolean {
    return this.#index.wasSettled(group, position)
  }

  position(group: GroupId, position: Position): PositionHeader | undefined {
    return this.#index.header(group, position)
  }

  /** The value chosen at a position: see `LogValues.chosen`. */
  chosen(group: GroupId, position: Position): ReturnType<LogValues['chosen']> {
    return this.#values.chosen(group, position)
  }

  /** The decided value where one is known, else the accepted one. `faulty`: the disk damaged it. */
  value(group: GroupId, position: Position): Uint8Array | 'faulty' | undefined {
    return this.#values.value(group, position)
  }

  /** The group's highest position with an accepted, decided or applied value; 0 when there is none. */
  highest(group: GroupId): Position {
    return this.#index.highest(group)
  }

  /** Groups with records that are not settled: recovery has to look at these. */
  groupsWithUnsettled(): Iterable<GroupId> {
    return this.#settling.unsettled()
  }

  /**
   * Resolves when all that was appended or noted before the call is durable; rejects when it cannot be.
   * Notes wait for company otherwise: this forces them out.
   */
  sync(): Promise<void> {
    const failure = this.#failure
    if (failure !== undefined) return Promise.reject(failure)
    const { last } = this.#queue
    if (last === undefined) return Promise.resolve()
    const synced = new Promise<void>((resolve, reject) => {
      last.waiters.push(resolve)
      last.onFailed.push(reject)
    })
    last.isForced = true
    this.#schedule()
    return synced
  }

  /** How far the data store holds the group, durably or with the batch under way. */
  settled(group: GroupId): Position {
    return this.#index.settled(group)
  }

  /** The groups with positions that the data store may not hold durably. */
  heldGroups(): Iterable<GroupId> {
    return this.#index.groups()
  }

  /** The part of a group's state record that is of this node alone, for a batch that writes it. */
  placeOf(group: GroupId): OwnPlace {
    return { flush: this.#index.lastFlush(group), snapshot: this.#index.snapshot(group) }
  }

  /** That batch is about to be written: the log is synced since it was put together. */
  checkLogged(groups: readonly Settled[]): void {
    for (const { group, position, isSnapshot } of groups) {
      if (isSnapshot === true) continue
      const isChosen = this.#index.header(group, position)?.chosen !== undefined
      assert(isChosen, 'LOG-14: the data store takes in what the log does not hold as chosen')
    }
  }

  /** The data store puts a batch together that takes these groups to these positions. */
  onBatch(groups: readonly Settled[]): void {
    this.#settling.onBatch(groups, this.#durableFlush)
  }

  /** That batch is durable. */
  onBatchWritten(): void {
    this.#settling.onWritten()
  }

  /**
   * The groups written in the durable flushes after `after`, with their highest positions: about
   * `limit` of them, in whole flushes; `through` is the last flush covered, `isWhole`: all could be read.
   * A piece of work after the other, each of which yields.
   */
  since(after: number, limit: number): Generator<number, WrittenSince> {
    return this.#ledger.since(after, limit, this.#durableFlush, (number) => this.#writtenIn(number))
  }

  /** Undefined when the disk damaged the flush: no reader can tell which groups it concerned. */
  #writtenIn(number: number): readonly Written[] | undefined {
    const records = this.#values.records(number)
    if (records === undefined) {
      this.#options.trace.mark('damaged_flush_found_by_digest')
      this.#options.trace.emit({ kind: 'unreadable', flush: number })
    }
    return records
      ?.filter(({ kind }) => kind !== 'promise')
      .map(({ group, position }) => [group, position])
  }

  /** Takes nothing more; resolves when all that was given is durable and answered, or has failed. */
  stop(): Promise<void> {
    this.#isStopping = true
    this.#records.stop()
    for (const part of [this.#sweep, this.#values]) part.stop()
    this.#schedule()
    this.#stopped ??= new Promise((resolve) => {
      this.#onStopped = resolve
      if (this.#failure !== undefined) resolve()
      else this.#endWhenIdle()
    })
    return this.#stopped
  }
}
