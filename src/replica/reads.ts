/**
 * Reads of this node's edge: points to read at, and rows. A point is current, whatever is applied here, or a
 * timestamp of the past; a read at a timestamp keeps that snapshot open here. A read of bounded staleness begins at what
 * is applied, where that is fresh enough, and else it is current (`../peers/freshness.ts`).
 *
 * MVCC-1  A timestamp below the group's horizon is read only while its snapshot is open at this node.
 * MOVE-11 No read begins at a group that has left the set: it may be behind what the next set has shown.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { ClockReading as LeaseReading } from '../lease/clock-reading.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import { movedError } from '../group/moved-error.ts'
import { isCount } from '../group/transaction.ts'
import { DamagedGroup } from '../store/damage.ts'
import type { DataStore } from '../store/data-store.ts'
import type { BoundedRead } from '../peers/freshness.ts'
import type {
  BoundedStaleness,
  PageRange,
  ReplicaReadLevel,
  ReadPoint,
  Row,
  RowsAtPoint,
} from '../group/replica-port.ts'
import type { Applied, Replica } from './replica.ts'
import type { Requests } from './requests.ts'

const microsPerMs = 1_000
/** The timestamp of a group before its first commit. */
const unwritten: Timestamp = 0

export interface ReadsParts {
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: Limits
  readonly replica: Pick<
    Replica,
    'applied' | 'appliedInMemory' | 'isQuiet' | 'leased' | 'isStillLeased'
  >
  readonly data: Pick<
    DataStore,
    'get' | 'getAll' | 'getAllAt' | 'scan' | 'scanAt' | 'ordering' | 'pins'
  >
  readonly requests: Pick<Requests, 'count' | 'read'>
  /** Stopped, or failed. */
  isOver(): boolean
  /** Whether the data store holds what the log has given up (LOG-19). */
  isRestored(): boolean
  /** Whether the group may have come to this set from another one: by its name it begins there, or its bucket has gone from set to set. */
  mayHaveCome(group: GroupId): boolean
  /** Whether the applied state is fresh enough for this read. The replica then prepares for more reads with such a bound. */
  isFresh(read: BoundedRead): boolean
  /** Resolves when the group's rows are of one position again; undefined: they are (SNAP-4). */
  whenBack(group: GroupId): Promise<void> | undefined
  /** The group's rows are wrong here (HEAL-4). */
  isAside(group: GroupId): boolean
  /** Makes the group take up what it can by itself. */
  wake(group: GroupId): void
  /** Begins a majority read, which `requests` hears of under this number. */
  begin(group: GroupId, read: number): void
}

export class Reads {
  readonly #parts: ReadsParts

  constructor(parts: ReadsParts) {
    this.#parts = parts
  }

  async read(
    group: GroupId,
    level: ReplicaReadLevel | BoundedStaleness,
    timeoutMs: number,
    atLeast: Position = 0,
  ): Promise<ReadPoint> {
    this.#admit()
    await this.#whenWhole(group)
    if (typeof level === 'object') {
      const here = this.#here(group)
      checkHere(group, here)
      const fresh = this.#freshPoint(group, here, level, atLeast)
      if (fresh !== undefined) return fresh
      this.#parts.trace.mark('bounded_read_current')
    }
    // A replica that is not restored would show less than it has shown before (LOG-19).
    if (level === 'snapshot' && this.#parts.isRestored()) {
      const here = this.#here(group)
      checkHere(group, here)
      const { position, timestamp } = here
      if (position >= atLeast) return this.#served(group, 'snapshot', { position, timestamp })
    }
    // Behind what a session has seen: a majority knows of it, so a current read gets there.
    const point = await this.#current(group, timeoutMs)
    if (point.position >= atLeast) return point
    throw new StoreError('invalid', 'the group has no such position yet', { group })
  }

  /** STALE-1: the applied point, where that is fresh enough now. The read began earlier, so it is fresh enough for it, too. */
  #freshPoint(
    group: GroupId,
    { position, timestamp }: Applied,
    { maxStalenessMs }: BoundedStaleness,
    atLeast: Position,
  ): ReadPoint | undefined {
    const { replica, isRestored, isFresh, trace } = this.#parts
    if (!isRestored()) return undefined
    // It may have come from another set, to other nodes of this one: no digest tells of what a node has not applied itself.
    if (position === 0 && this.#parts.mayHaveCome(group)) return undefined
    const isQuiet = replica.isQuiet(group)
    if (!isFresh({ group, position, isQuiet, maxStalenessMs })) return undefined
    if (position < atLeast) return undefined
    trace.mark('bounded_read_local')
    trace.emit({ kind: 'fresh', group, position, maxStalenessMs })
    return this.#served(group, 'snapshot', { position, timestamp })
  }

  async readAt(group: GroupId, at: Timestamp, timeoutMs: number): Promise<ReadPoint> {
    this.#admit()
    await this.#whenWhole(group)
    const here = this.#here(group)
    checkHere(group, here)
    // Timestamps rise with the position (MVCC-2): up to the applied one nothing is missing here.
    const { position, timestamp } =
      at <= here.timestamp ? here : await this.#current(group, timeoutMs)
    const point = { position, timestamp: Math.min(at, timestamp) }
    assert(point.timestamp <= at, 'MVCC-1: a read of the past is at a later timestamp')
    this.#open(group, point.timestamp)
    return this.#served(group, 'at', point)
  }

  /** Resolves when the group may be read; at once where it may. Rejects where its rows are wrong. */
  #whenWhole(group: GroupId): Promise<void> | undefined {
    this.#checkSound(group)
    return this.#parts.whenBack(group)
  }

  #checkSound(group: GroupId): void {
    if (this.#parts.isAside(group)) throw new DamagedGroup(group)
  }

  get(group: GroupId, key: Uint8Array): Row | undefined {
    this.#checkSound(group)
    if (this.#parts.whenBack(group) !== undefined) throw asideError(group)
    this.#checkHere(group)
    return this.#parts.data.get(group, key)
  }

  async getAt(
    group: GroupId,
    keys: readonly Uint8Array[],
    at: Timestamp,
  ): Promise<readonly (Row | undefined)[]> {
    const { data } = this.#parts
    await this.#whenWhole(group)
    const { isNewest } = this.#open(group, at)
    if (isNewest) return data.getAll(group, keys)
    const rows = await data.getAllAt(group, keys, at)
    this.#checkSound(group)
    this.#checkHere(group)
    return rows
  }

  /**
   * Newest rows and the point that they are of, both taken in this call, where no peer has to be asked and
   * nothing waited for; undefined otherwise, and where the read would be refused.
   */
  rowsNow(
    group: GroupId,
    from: ReplicaReadLevel | BoundedStaleness | Timestamp,
    atLeast: Position,
    keys: readonly Uint8Array[],
  ): RowsAtPoint | undefined {
    const { requests, limits, data, clock } = this.#parts
    if (this.#parts.isOver() || requests.count >= limits.nodeQueueMax) return undefined
    if (this.#parts.whenBack(group) !== undefined || this.#parts.isAside(group)) return undefined
    if (this.#parts.replica.appliedInMemory(group)?.movedTo !== undefined) return undefined
    const point = this.#pointNow(group, from, atLeast)
    if (point === undefined || point.position < atLeast) return undefined
    const { timestamp } = point
    const rows = data.getAll(group, keys)
    if (mayBePassed(timestamp, timestamp, limits)) {
      data.pins.pin(group, timestamp, clock.monotonicMs())
    }
    for (const row of rows) checkSeen(row, timestamp)
    return { point, rows }
  }

  #pointNow(
    group: GroupId,
    from: ReplicaReadLevel | BoundedStaleness | Timestamp,
    atLeast: Position,
  ): ReadPoint | undefined {
    if (from === 'current') return this.#underLease(group)
    const here = this.#parts.replica.appliedInMemory(group)
    if (typeof from === 'object') return here && this.#freshPoint(group, here, from, atLeast)
    if (from === 'snapshot' && !this.#parts.isRestored()) return undefined
    if (here === undefined || (from !== 'snapshot' && from !== here.timestamp)) return undefined
    const { position, timestamp } = here
    return this.#served(group, from === 'snapshot' ? 'snapshot' : 'at', { position, timestamp })
  }

  async scan(group: GroupId, range: PageRange, at?: Timestamp): Promise<readonly Row[]> {
    await this.#whenWhole(group)
    const rows = await this.#scan(group, range, at)
    // Damage that was found meanwhile may be in it; and of a group that has left meanwhile, rows may be missing.
    this.#checkSound(group)
    this.#checkHere(group)
    return rows
  }

  async #scan(group: GroupId, range: PageRange, at?: Timestamp): Promise<readonly Row[]> {
    const { data } = this.#parts
    // As of this call, whatever that takes.
    if (at === undefined) return data.scan(group, range)
    let { isNewest } = this.#open(group, at)
    // Nothing was committed by then: most shards of a datastore are never written to, and to look for rows costs
    // far more than to know that there are none.
    if (at === unwritten) return []
    const ordering = data.ordering(group)
    if (ordering !== undefined) {
      await this.#inSlices(ordering)
      isNewest = this.#open(group, at).isNewest
    }
    return isNewest ? data.scan(group, range) : data.scanAt(group, range, at)
  }

  /** LIVE-6: what the rows are to be of is known by its timestamp, whenever they are looked at. */
  async #inSlices(work: Iterable<undefined>): Promise<void> {
    const { clock, limits, trace } = this.#parts
    trace.mark('scan_waits_for_key_order')
    let [sinceMs, pieces] = [clock.monotonicMs(), 0]
    for (const _ of work) {
      pieces += 1
      const isOver = clock.monotonicMs() - sinceMs >= limits.sliceMs
      if (!isOver && pieces < limits.slicePiecesMax) continue
      await new Promise<void>((resolve) => clock.defer(resolve))
      this.#checkRunning()
      sinceMs = clock.monotonicMs()
      pieces = 0
    }
  }

  #admit(): void {
    const { requests, limits } = this.#parts
    this.#checkRunning()
    if (requests.count >= limits.nodeQueueMax) {
      throw new StoreError('overloaded', 'too many requests wait at this node; try again later')
    }
  }

  #checkRunning(): void {
    if (!this.#parts.isOver()) return
    throw new StoreError('closed', 'this node is stopping; ask another one')
  }

  #here(group: GroupId): Applied {
    const { replica, wake } = this.#parts
    const applied = replica.appliedInMemory(group)
    if (applied !== undefined) return applied
    wake(group)
    return replica.applied(group)
  }

  async #current(group: GroupId, timeoutMs: number): Promise<ReadPoint> {
    const { requests, begin } = this.#parts
    const point =
      this.#underLease(group) ??
      (await requests.read(group, timeoutMs, (read) => begin(group, read)))
    this.#checkHere(group)
    return point
  }

  #checkHere(group: GroupId): void {
    checkHere(group, this.#parts.replica.applied(group))
  }

  /**
   * Under a lease the point is what is applied here. The clock is read in this call and once more after
   * the point is taken: a loop that stood still is a slow clock. The rows are looked up after that, and may
   * be newer; every commit acknowledged before the call is in them.
   */
  #underLease(group: GroupId): ReadPoint | undefined {
    const { trace, replica } = this.#parts
    const point = replica.leased(group, this.#reading())
    if (point === undefined || !replica.isStillLeased(group, this.#reading())) return undefined
    const { position, timestamp } = point
    trace.mark('leased_read')
    trace.emit({ kind: 'serve', group, level: 'current', position, isLeased: true })
    return { position, timestamp }
  }

  #reading(): LeaseReading {
    const { clock } = this.#parts
    return { now: clock.monotonicMs(), wall: clock.wallMicros() }
  }

  #served(group: GroupId, level: 'snapshot' | 'at', point: ReadPoint): ReadPoint {
    const { position, timestamp } = point
    const here = this.#parts.replica.appliedInMemory(group)
    assert(
      position <= (here?.position ?? position),
      'MVCC-2: a read is served beyond the applied position',
    )
    assert(here?.movedTo === undefined, 'MOVE-11: a read is served of a group that has left')
    const mayServe = level === 'at' || this.#parts.isRestored()
    assert(mayServe, 'LOG-19: a replica shows less than it has shown before')
    this.#parts.trace.emit({ kind: 'serve', group, level, position, timestamp })
    return point
  }

  /**
   * Opens the snapshot at `at`, or keeps it open; rejects when that cannot be read here. `isNewest`:
   * nothing is applied that it does not see.
   */
  #open(group: GroupId, at: Timestamp): { readonly isNewest: boolean } {
    this.#checkRunning()
    if (!isCount(at)) throw new StoreError('invalid', 'a timestamp is a whole number', { group })
    const { replica, clock, data, trace, limits } = this.#parts
    const { timestamp, horizon } = replica.applied(group)
    if (at > timestamp) {
      const message = `this replica has applied the group up to ${timestamp}, not to ${at} yet; begin the read here, or try again`
      throw new StoreError('unavailable', message, { group })
    }
    const nowMs = clock.monotonicMs()
    const isPinned = data.pins.isPinned(group, at, nowMs)
    if (at < horizon && !isPinned) {
      trace.mark('snapshot_too_old')
      const message = `the group's state at ${at} is gone; the oldest that can be read is the one at ${horizon}`
      throw new StoreError('snapshot-too-old', message, { group })
    }
    if (at < horizon) trace.mark('snapshot_held_beyond_horizon')
    if (mayBePassed(at, timestamp, limits)) data.pins.pin(group, at, nowMs)
    return { isNewest: at === timestamp }
  }
}

function checkHere(group: GroupId, { movedTo }: Applied): void {
  if (movedTo !== undefined) throw movedError(group, movedTo)
}

function asideError(group: GroupId): StoreError {
  const message = 'this replica takes in a snapshot of the group; try again, or ask another one'
  return new StoreError('unavailable', message, { group })
}

function checkSeen(row: Row | undefined, at: Timestamp): void {
  const isSeen = row === undefined || row.timestamp <= at
  assert(isSeen, 'MVCC-1: a row is newer than the point that it is read at')
}

/**
 * Whether the horizon may pass `at` before a pin would end. It stays `historyMs` behind the group's
 * newest commit, so what is young needs no pin, and most reads are of that.
 */
function mayBePassed(at: Timestamp, newest: Timestamp, limits: Limits): boolean {
  const { historyMs, snapshotHoldMs } = limits
  const isYoung = newest - at < (historyMs / 2) * microsPerMs
  return !isYoung || snapshotHoldMs > historyMs / 2
}
