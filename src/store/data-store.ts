/**
 * The rows and state records of all groups at one node: an overlay of what was committed lately
 * over an ordered store, and what the applier moves from the one into the other.
 *
 * All of it is derived from the log: when it is damaged, it can be deleted and rebuilt.
 *
 * LOG-6   A group's rows and the state record of their position reach the disk in one batch.
 * MVCC-1  A read at a timestamp sees exactly what was committed up to it.
 * HASH-1  The hash in a state record counts exactly the newest rows of its position.
 *
 * Left out: whether a timestamp may still be read at; `../replica/reads.ts` knows.
 */
import { assert } from '../base/assert.ts'
import { latin1 } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import { oldestReadable } from './collection.ts'
import { Pins } from './pins.ts'
import type { Clock } from '../ports/clock.ts'
import type { KeyValue, OrderedStore, Put, Range } from '../ports/storage.ts'
import type { Trace } from '../ports/trace.ts'
import { AlongsideQueue, type Alongside, type Installed } from './alongside.ts'
import { Applier } from './applier.ts'
import type { Batch, Durable, PlainRow } from './batch.ts'
import { BatchNotes } from './batch-notes.ts'
import { lastBatch, encodeMarker } from './batch-marker.ts'
import { corruptData, DamagedGroup, dataFailure, unknownFormat, unlessDamaged } from './damage.ts'
import { putGroup } from './group-batch.ts'
import { GroupSnapshot, toSnapshotRow } from './group-snapshot.ts'
import { GroupHashes } from './group-hashes.ts'
import { groupNames, nameInState } from './group-names.ts'
import { HistorySweep } from './history-sweep.ts'
import { WorklistIndex } from './worklist-index.ts'
import type { PageRange, Row } from '../group/replica-port.ts'
import { mergeRows, storeRange } from './merge-rows.ts'
import { Overlay, toRow, type Commit, type Deleting, type TakenGroup } from './overlay.ts'
import { getChecked, scanAs } from './read-store.ts'
import {
  allOf,
  decodeStored,
  encodeState,
  groupPrefix,
  isOfRows,
  nameKey,
  rowStoreKey,
  stateKey,
  type OwnPlace,
  type Stored,
} from './row-format.ts'
import { RowCache } from './row-cache.ts'
import { SnapshotReads } from './snapshot-reads.ts'

export interface DataStoreOptions {
  readonly trace: Trace
  readonly clock: Clock
  readonly limits: Limits
}

export class DataStore {
  /** Called as a batch is put together, with its groups: entries that the call sets by name go along. */
  onBatch: (groups: readonly TakenGroup[]) => void = () => undefined
  /** Gives the part of the group's state record that is of this node alone, as a batch is put together. */
  placeOf: (group: GroupId) => OwnPlace = () => ({ flush: 0, snapshot: 0 })
  /** Awaited between the two: the batch is written when this resolves. */
  beforeWrite: (groups: readonly TakenGroup[]) => Promise<void> = () => Promise.resolve()
  /** Called after a batch is durable, with each of its groups and the position it holds now. */
  onApplied: (applied: readonly (readonly [GroupId, Position])[]) => void = () => undefined
  /** Rows of the group are damaged. False: no peer can mend it, so that the whole store has to be made anew. */
  onGroupDamaged: (group: GroupId) => boolean = () => false
  /** The store cannot be read or written as it should be: the node must stop. Called once. */
  onFailure: (reason: Error) => void = () => undefined
  readonly #store: OrderedStore
  readonly #options: DataStoreOptions
  readonly #overlay: Overlay
  readonly #cache: RowCache
  /** Snapshots that are open at this node. */
  readonly pins: Pins
  readonly #sweep: HistorySweep
  readonly hashes: GroupHashes
  readonly #snapshots: SnapshotReads
  /** Deletions that no batch has taken. */
  readonly deleting = (): Deleting | undefined => this.#overlay.deleting
  /** Groups with something on their worklist. */
  readonly listing: WorklistIndex
  readonly #notes = new BatchNotes()
  readonly #alongside = new AlongsideQueue()
  /** Groups whose rows a snapshot is replacing: their stored rows are of no position. */
  readonly #replaced = new Set<GroupId>()
  #lastBatch: number
  #durableBatch: number
  readonly #applier: Applier<Batch>
  #failure: Error | undefined

  /** Rejects with `corrupt` when a batch is missing, `invalid` for a format unknown here. */
  static async open(store: OrderedStore, options: DataStoreOptions): Promise<DataStore> {
    return new DataStore(store, options, await lastBatch(store))
  }

  private constructor(store: OrderedStore, options: DataStoreOptions, batch: number) {
    this.#store = store
    this.#options = options
    this.#lastBatch = batch
    this.#durableBatch = batch
    const { clock, limits } = options
    const { historyMs, snapshotHoldMs, checkpointGroupBytesMax: groupBytesMax } = limits
    this.#overlay = new Overlay({ nowMs: () => clock.monotonicMs(), groupBytesMax })
    this.#applier = new Applier({
      ...{ clock, limits, overlay: this.#overlay },
      compose: (untilMs) => {
        options.trace.begin?.('applier')
        try {
          return this.#nextBatch(untilMs)
        } finally {
          options.trace.end?.()
        }
      },
      write: async ({ groups, puts }) => {
        await this.beforeWrite(groups)
        await store.write(puts)
      },
      onWritten: (batch) => this.#onWritten(batch),
      onFailed: (error) => this.#failed(dataFailure(error)),
    })
    this.#cache = new RowCache(limits.rowCacheBytesMax)
    this.pins = new Pins(snapshotHoldMs)
    this.#sweep = new HistorySweep({
      historyMs,
      oldest: (group, horizon) => this.#oldest(group, horizon),
      scan: (range) => this.#scan(range, (rows) => rows),
      findEnd: ({ key, value }) => this.#checked(key, value).stamp,
      onFailed: (error) => this.#failed(dataFailure(error)),
    })
    this.hashes = new GroupHashes({
      read: (key) => this.#read(key),
      scan: (range) => this.scanStored(range),
      isReplaced: (group) => this.#replaced.has(group),
      onFailed: (error) => this.#failed(dataFailure(error)),
    })
    this.listing = new WorklistIndex({
      read: (key) => this.#read(key),
      scan: (range) => this.#scan(range, (rows) => rows),
      checked: (key, value) => this.#checked(key, value),
      isUnwritten: (group) => this.#overlay.has(group),
    })
    this.#snapshots = new SnapshotReads({
      overlay: this.#overlay,
      read: (key) => this.#read(key),
      scan: (range, read) => this.#scan(range, read),
      checked: (key, value) => this.#checked(key, value),
    })
  }

  /** The number of the last batch that was put together, and of the last one that is durable. */
  get lastBatch(): number {
    return this.#lastBatch
  }

  get durableBatch(): number {
    return this.#durableBatch
  }

  /** Bytes committed and not durable here yet, about. */
  get overlayBytes(): number {
    return this.#overlay.bytes
  }

  /** Whether something of the group is not durable here yet. */
  hasPending(group: GroupId): boolean {
    return this.#overlay.has(group) || this.#alongside.isInstalling(group)
  }

  /** Whether entries of the group wait for a batch, which is to come within `checkpointMs`. */
  isWaiting(group: GroupId): boolean {
    return this.#overlay.isWaiting(group)
  }

  /** The group's state record, without what the overlay holds: its position may be behind. */
  state(group: GroupId): Uint8Array | undefined {
    const stored = this.#read(stateKey(groupPrefix(group)))
    // Else a batch that is not durable has taken the group further.
    if (!this.hasPending(group)) this.hashes.learn(group, stored)
    return stored?.payload
  }

  /**
   * The position of the state record, the last flush that named the group then, as the batch that wrote them
   * knew it, and the position of the last snapshot that was taken in. Position 0: there is none. Flush 0: an
   * earlier build wrote it.
   */
  applied(group: GroupId): Durable {
    const { stamp = 0, flush = 0, snapshot = 0 } = this.#read(stateKey(groupPrefix(group))) ?? {}
    return { position: stamp, lastFlush: flush, snapshot }
  }

  /**
   * All that is durable here of the group, for a peer that takes it in. Undefined: nothing is, or it is not of one
   * position at this moment.
   */
  openSnapshot(group: GroupId): GroupSnapshot | undefined {
    const prefix = groupPrefix(group)
    const read = (): Stored | undefined => this.#read(stateKey(prefix))
    const before = read()
    if (before === undefined || this.#replaced.has(group)) return undefined
    const rows = this.#scan(allOf(prefix), (some) =>
      some.map(({ key, value }) => toSnapshotRow(prefix.length, key, this.#checked(key, value))),
    )
    // A batch may become durable between the two: then the rows may be of either position.
    if (read()?.stamp === before.stamp) return new GroupSnapshot(before, rows)
    void rows[Symbol.asyncIterator]().return?.()
    return undefined
  }

  /** Puts that go along with the next batch, which comes soon; resolves when they are durable. */
  writeAlong(puts: readonly Put[]): Promise<void> {
    const written = this.#alongside.add(puts)
    this.#applier.hasten()
    return written
  }

  /** The same of the last puts of a snapshot: from then on the group is at its position. */
  install(installed: Installed, puts: readonly Put[]): Promise<void> {
    const written = this.#alongside.add(puts, installed)
    this.#applier.hasten()
    return written
  }

  /** A snapshot takes the place of the group's rows from now on, until `switching` ends. */
  async replace(group: GroupId, switching: () => Promise<void>): Promise<void> {
    assert(!this.#replaced.has(group), 'SNAP-3: two snapshots take a group over at once')
    this.#replaced.add(group)
    await switching()
    this.#replaced.delete(group)
  }

  /** Keys and values of a range as of the call. A value is checked when it is looked at. */
  scanStored(
    range: Range,
  ): AsyncIterable<readonly { readonly key: Uint8Array; readonly stored: Stored }[]> {
    const checked = this.#checked.bind(this)
    return this.#scan(range, (rows) =>
      rows.map(({ key, value }) => ({
        key,
        get stored() {
          return checked(key, value)
        },
      })),
    )
  }

  get(group: GroupId, key: Uint8Array): Row | undefined {
    const text = latin1(key)
    const pending = this.#overlay.get(group, text)
    if (pending !== undefined) return toRow(pending)
    const stored = this.#durable(group, key, text)
    return stored && { key, value: stored.payload, timestamp: stored.stamp }
  }

  /** The row as the store has it, where the overlay has nothing. */
  #durable(group: GroupId, key: Uint8Array, text: string): Stored | undefined {
    const cached = this.#cache.get(group, text)
    if (cached !== undefined) return cached
    const stored = this.#read(rowStoreKey(group, key))
    if (stored !== undefined) this.#cache.put(group, text, stored)
    return stored
  }

  /** In the order of `keys`. */
  getAll(group: GroupId, keys: readonly Uint8Array[]): readonly (Row | undefined)[] {
    return keys.map((key) => this.get(group, key))
  }

  /** The rows of a range as of the call: every entry committed so far, whole. */
  scan(group: GroupId, range: PageRange): Promise<readonly Row[]> {
    const prefix = groupPrefix(group)
    const pending = this.#overlay.range(group, range)
    const stored = this.#rows(storeRange(prefix, range, pending.length), prefix.length + 1)
    return mergeRows(pending, stored, range)
  }

  /**
   * Work in pieces, after which a scan of the group takes no longer than its findings take; undefined: none
   * is needed.
   */
  ordering(group: GroupId): Generator<undefined, void> | undefined {
    return this.#overlay.ordering(group)
  }

  /** Rows as of a timestamp that is applied here, as far back as their versions are kept. */
  getAllAt(
    group: GroupId,
    keys: readonly Uint8Array[],
    at: Timestamp,
  ): Promise<readonly (Row | undefined)[]> {
    return this.#snapshots.getAll(group, keys, at)
  }

  scanAt(group: GroupId, range: PageRange, at: Timestamp): Promise<readonly Row[]> {
    return this.#snapshots.scan(group, range, at)
  }

  #scan<To>(
    range: Range,
    read: (rows: readonly KeyValue[]) => readonly To[],
  ): AsyncIterable<readonly To[]> {
    const corrupt = (what: string, cause?: unknown): Error => this.#failed(corruptData(what, cause))
    return scanAs(this.#store, range, corrupt, read)
  }

  #rows(range: Range, prefixBytes: number): AsyncIterable<readonly Row[]> {
    return this.#scan(range, (rows) =>
      rows.map(({ key, value }) => {
        const { stamp, payload } = this.#checked(key, value)
        return { key: key.subarray(prefixBytes), value: payload, timestamp: stamp }
      }),
    )
  }

  #read(key: Uint8Array): Stored | undefined {
    const value = getChecked(this.#store, key)
    if (value === 'damaged') throw this.#failed(corruptData('a value cannot be read'))
    return value === undefined ? undefined : this.#checked(key, value)
  }

  #checked(key: Uint8Array, value: Uint8Array): Stored {
    const stored = decodeStored(key, value)
    if (stored === 'unknown format') throw this.#failed(unknownFormat('data store', value[4]))
    if (stored !== 'damaged') return stored
    this.#options.trace.mark('damaged_row_found')
    const group = isOfRows(key) ? nameInState(key) : undefined
    const isMended = group !== undefined && this.onGroupDamaged(group)
    if (isMended) throw new DamagedGroup(group)
    throw this.#failed(corruptData('a value does not match its checksum'))
  }

  /** Names of groups that begin so, in order; `known`: groups that may have nothing here yet. */
  groups(
    prefix: string,
    after: GroupId | undefined,
    limit: number,
    known: readonly GroupId[],
  ): Promise<readonly GroupId[]> {
    const scan = (range: Range): AsyncIterable<readonly KeyValue[]> =>
      this.#scan(range, (rows) => rows)
    const pending = (): GroupId[] => [...known, ...this.#overlay.groups()]
    return groupNames({ scan, pending }, prefix, after, limit)
  }

  /** Takes in what the entry at a position wrote; visible to reads from now on. */
  commit(commit: Commit): void {
    this.#overlay.commit(commit)
    for (const { text } of commit.writes) this.#cache.drop(commit.group, text)
    this.listing.commit(commit)
    this.#applier.onCommit()
  }

  /** A small value by its name. */
  meta(name: string): Uint8Array | undefined {
    return this.#notes.get(name) ?? this.#read(nameKey(name))?.payload
  }

  /** Becomes durable along with the next batch, and forces none. */
  setMeta(name: string, value: Uint8Array): void {
    this.#notes.set(name, value)
  }

  row(key: Uint8Array): Uint8Array | undefined {
    return this.#read(key)?.payload
  }

  setRow(key: Uint8Array, payload: Uint8Array): void {
    this.#notes.setRow(key, payload)
  }

  dropRow(key: Uint8Array): void {
    this.#notes.dropRow(key)
  }

  async rows(range: Range): Promise<readonly PlainRow[]> {
    const found: PlainRow[] = []
    for await (const rows of this.scanStored(range)) {
      for (const { key, stored } of rows) found.push({ key, payload: stored.payload })
    }
    return found
  }

  /** Has a batch written in a while, though nothing is committed meanwhile. */
  wantBatch(): void {
    this.#applier.wantBatch()
  }

  /** Resolves when everything committed before the call is durable here; rejects if that cannot be. */
  drain(): Promise<void> {
    return this.#applier.drain()
  }

  /** Starts no further batch; resolves when the one under way has ended. */
  async stop(): Promise<void> {
    await this.#applier.stop()
    this.#alongside.fail(new StoreError('closed', 'this node is stopping'))
    await this.#sweep.stop()
    await this.hashes.stop()
  }

  /** No read of the group is at an earlier timestamp once its horizon is this. */
  #oldest(group: GroupId, horizon: Timestamp): Timestamp {
    return oldestReadable(horizon, this.pins.oldest(group, this.#options.clock.monotonicMs()))
  }

  /**
   * As many groups as its share of the turn has room for, of those that wait since `untilMs`, or longer; the rest of the
   * turn is the log's and the store's.
   */
  #nextBatch(untilMs: number): Batch {
    const { clock, limits, trace } = this.#options
    const { applierBatchBytesMax: bytesMax } = limits
    const alongs = this.#alongside.take(bytesMax)
    const endMs = clock.monotonicMs() + limits.sliceMs / 2
    const groupPuts: Put[] = []
    let [superseded, isCut] = [0, false]
    const taken = this.#overlay.take({ bytesMax, untilMs }, (group) => {
      superseded += this.#putGroup(groupPuts, group)
      isCut = clock.monotonicMs() >= endMs
      return !isCut
    })
    isCut &&= (this.#overlay.waitingSinceMs ?? Number.POSITIVE_INFINITY) <= untilMs
    if (isCut) trace.mark('applier_batch_cut')
    const groups = [...taken, ...this.#putAlongs(groupPuts, alongs)]
    this.hashes.putFound(groupPuts)
    this.onBatch(groups)
    const puts = this.#notes.takeRows()
    for (const put of groupPuts) puts.push(put)
    puts.push(...this.listing.puts(groups))
    for (const key of this.#sweep.take()) puts.push({ key })
    puts.push(...this.#notes.takeNames())
    this.#lastBatch += 1
    puts.push(encodeMarker(this.#lastBatch))
    return { taken, groups, puts, superseded, isCut }
  }

  /** Returns how many versions it moves to history. */
  #putGroup(puts: Put[], taken: TakenGroup): number {
    const { group, horizon } = taken
    const counted = this.hashes.begin(group)
    const place = { oldest: this.#oldest(group, horizon), own: this.placeOf(group), ...counted }
    const superseded = putGroup(puts, taken, place, (key) => unlessDamaged(() => this.#read(key)))
    this.hashes.onPut(group, taken.position, counted)
    return superseded
  }

  /** Gives the groups that snapshots take on. */
  #putAlongs(puts: Put[], alongs: readonly Alongside[]): readonly TakenGroup[] {
    const groups: TakenGroup[] = []
    for (const along of alongs) {
      for (const put of along.puts) puts.push(put)
      if (along.installed === undefined) continue
      const { group, position, state, hash, topics } = along.installed
      assert(!this.#overlay.has(group), 'SNAP-3: a snapshot is taken in beside entries')
      const key = stateKey(groupPrefix(group))
      const own = { flush: this.placeOf(group).flush, snapshot: position }
      puts.push({ key, value: encodeState(key, position, own, state, hash) })
      this.hashes.onInstalled(group, position, hash)
      this.listing.install(group, position, topics)
      groups.push({ ...along.installed, rows: [], isSnapshot: true })
    }
    return groups
  }

  #onWritten(batch: Batch): void {
    this.#durableBatch = this.#lastBatch
    this.#overlay.release(batch.taken)
    this.#notes.onWritten()
    const { groups, puts, superseded } = batch
    for (const { group, isSnapshot } of groups) if (isSnapshot === true) this.#onInstalled(group)
    this.#options.trace.emit({ kind: 'applied-batch', groups: groups.length, puts: puts.length })
    this.listing.onWritten(groups)
    this.#sweep.onWritten(groups, superseded)
    this.hashes.onWritten()
    this.onApplied(groups.map(({ group, position }) => [group, position]))
    this.#alongside.onWritten()
    if (!this.#alongside.isEmpty) this.#applier.hasten()
  }

  /** The snapshots of it that are open here are of another past. */
  #onInstalled(group: GroupId): void {
    this.#cache.dropGroup(group)
    this.pins.forgetAll(group)
  }

  /** Says so, once; nothing is applied from now on. */
  #failed(reason: Error): Error {
    if (this.#failure !== undefined || reason instanceof DamagedGroup) return reason
    this.#failure = reason
    this.#applier.fail(reason)
    this.#alongside.fail(reason)
    this.onFailure(reason)
    return reason
  }
}
