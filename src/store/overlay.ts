/**
 * Versions of rows committed but not yet durable in the data store, visible at once: of each row a
 * chain, the newest first. The applier takes groups whole, the longest waiting first: every version
 * that no batch has taken, and the state of the newest commit, so that both are of one position
 * (LOG-6). Groups with more than `groupBytesMax` come before the others. Durable versions are released;
 * those written meanwhile stay.
 */
import { assert } from '../base/assert.ts'
import { compareText, latin1 } from '../base/bytes.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import type { RowWritten } from '../replication/apply.ts'
import type { Row } from '../group/replica-port.ts'
import { KeyOrder, type KeyBounds } from './key-order.ts'
import {
  sizeInBytes as pageSizeInBytes,
  type PageRange,
  type RowRange,
} from '../group/replica-port.ts'

/** A version of a row, with the position and the timestamp of the entry that wrote it. */
export interface OverlayRow {
  readonly key: Uint8Array
  /** Absent: deleted. */
  readonly value: Uint8Array | undefined
  readonly position: Position
  readonly timestamp: Timestamp
  /** There was no such row before this version. */
  readonly isNew: boolean
  /** The key, as the overlay looks it up. */
  readonly text: string
  /** The version that this one superseded, as long as that one is not durable either. */
  previous: OverlayRow | undefined
}

/** The effect of an entry on a group's rows. `horizon`: from when on its past is readable. */
export interface Commit {
  readonly group: GroupId
  readonly position: Position
  readonly timestamp: Timestamp
  readonly horizonBefore: Timestamp
  readonly horizon: Timestamp
  readonly writes: readonly RowWritten[]
  /** Called later, and then gives the state of the newest commit. */
  readonly encodeState: () => Uint8Array
}

/** A group's share of one batch. */
export interface TakenGroup {
  readonly group: GroupId
  readonly position: Position
  /** The group's state record at `position`. */
  readonly state: Uint8Array
  /** Of the state that is durable before this batch, and of the one in it. */
  readonly horizonBefore: Timestamp
  readonly horizon: Timestamp
  /** The newest version of each row, by their keys; those before it, as far as they are taken, hang on it. */
  readonly rows: readonly OverlayRow[]
  /** A snapshot of a peer takes it there, and no entry. */
  readonly isSnapshot?: boolean
}

interface GroupOverlay {
  position: Position
  /** Of the last state that a batch has taken, and of the newest commit. */
  takenHorizon: Timestamp
  horizon: Timestamp
  encodeState: () => Uint8Array
  /** The newest version of each row, by key as text; those in the batch under way included. */
  readonly rows: Map<string, OverlayRow>
  /** Of all versions. */
  bytes: number
  /** The commit that waits longest for a batch; undefined when all are taken. */
  waiting: number | undefined
  /** Since when it waits. */
  sinceMs: number
  isTaken: boolean
  /** The keys of `rows`, since they were scanned. */
  order: KeyOrder | undefined
}

/** The cost of a version, and of a group, beside their bytes, about. */
const rowOverheadBytes = 128
const groupOverheadBytes = 512

export interface OverlayOptions {
  /** On the monotonic clock. */
  readonly nowMs: () => number
  /** A group with this many bytes need not wait for those before it. */
  readonly groupBytesMax: number
}

export interface Deleting {
  readonly groups: number
  /** Since when the first of them waits for a batch, at the latest; on the monotonic clock. */
  readonly sinceMs: number
}

/** The part of the overlay that one batch takes. */
export interface TakeBounds {
  /** About. */
  readonly bytesMax: number
  /** Of groups that wait since then, or longer, or that are large. */
  readonly untilMs: number
}

export class Overlay {
  readonly #options: OverlayOptions
  readonly #groups = new Map<GroupId, GroupOverlay>()
  /** Groups with something to take, the longest waiting first. */
  readonly #dirty = new Map<GroupId, GroupOverlay>()
  /** Those of them that are large. */
  readonly #large = new Map<GroupId, GroupOverlay>()
  /** Those of them that delete rows, the one that began first. */
  readonly #deleting = new Map<GroupId, GroupOverlay>()
  #bytes = 0
  #commits = 0
  /** The oldest commit of the batch under way. */
  #takenCommit: number | undefined

  constructor(options: OverlayOptions) {
    this.#options = options
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Commits so far. */
  get commits(): number {
    return this.#commits
  }

  /** The oldest commit that is not durable yet; undefined when all are. */
  get oldestCommit(): number | undefined {
    if (this.#takenCommit !== undefined) return this.#takenCommit
    for (const { waiting } of this.#dirty.values()) return waiting
    return undefined
  }

  /** Groups with something that no batch has taken. */
  get waitingGroups(): number {
    return this.#dirty.size
  }

  /** Since when the longest waiting of them waits; undefined: there is none. */
  get waitingSinceMs(): number | undefined {
    for (const { sinceMs } of this.#dirty.values()) return sinceMs
    return undefined
  }

  /** Whether one of them is large. */
  get hasLarge(): boolean {
    return this.#large.size > 0
  }

  /** Whether something of the group waits that no batch has taken. */
  isWaiting(group: GroupId): boolean {
    return this.#dirty.has(group)
  }

  /** Groups with deletions that no batch has taken; undefined: there are none. */
  get deleting(): Deleting | undefined {
    for (const { sinceMs } of this.#deleting.values())
      return { groups: this.#deleting.size, sinceMs }
    return undefined
  }

  /** All that have something here. */
  groups(): Iterable<GroupId> {
    return this.#groups.keys()
  }

  has(group: GroupId): boolean {
    return this.#groups.has(group)
  }

  commit(commit: Commit): void {
    const { group, position, timestamp, writes } = commit
    this.#commits += 1
    const overlay = this.#ensureOverlay(commit)
    assert(position === overlay.position + 1, 'LOG-1: committed out of order')
    assert(commit.horizon >= overlay.horizon, 'MVCC-1: the horizon went back')
    overlay.position = position
    overlay.horizon = commit.horizon
    overlay.encodeState = commit.encodeState
    if (overlay.waiting === undefined) {
      overlay.waiting = this.#commits
      overlay.sinceMs = this.#options.nowMs()
      this.#dirty.set(group, overlay)
    }
    for (const { key, value, isNew, text } of writes) {
      if (value === undefined) this.#deleting.set(group, overlay)
      this.#put(overlay, { key, value, position, timestamp, isNew, text, previous: undefined })
    }
    if (overlay.bytes >= this.#options.groupBytesMax) this.#large.set(group, overlay)
  }

  #ensureOverlay({ group, position, horizonBefore }: Commit): GroupOverlay {
    let overlay = this.#groups.get(group)
    if (overlay === undefined) {
      overlay = {
        position: position - 1,
        takenHorizon: horizonBefore,
        horizon: horizonBefore,
        encodeState: noState,
        rows: new Map(),
        bytes: 0,
        waiting: undefined,
        sinceMs: 0,
        isTaken: false,
        order: undefined,
      }
      this.#groups.set(group, overlay)
      this.#bytes += groupOverheadBytes
    }
    return overlay
  }

  #put(overlay: GroupOverlay, row: OverlayRow): void {
    const known = overlay.rows.get(row.text)
    if (known === undefined) addToOrder(overlay, row.text)
    // A row that one entry writes twice has only what it wrote last: no reader can see the other.
    const isReplaced = known?.position === row.position
    row.previous = isReplaced ? known.previous : known
    overlay.rows.set(row.text, row)
    this.#count(overlay, sizeInBytes(row) - (isReplaced ? sizeInBytes(known) : 0))
  }

  #count(overlay: GroupOverlay, bytes: number): void {
    overlay.bytes += bytes
    this.#bytes += bytes
  }

  /** The newest version of a row, by its key as text, or the one that a read at `at` sees, if it is here. */
  get(group: GroupId, text: string, at?: Timestamp): OverlayRow | undefined {
    return versionAt(this.#groups.get(group)?.rows.get(text), at)
  }

  /**
   * The same for a range, deleted rows included, in the range's order: as many as a page of it may need, which
   * ends with the row that reaches its `limit`, or passes its `bytesMax`.
   */
  range(group: GroupId, range: PageRange, at?: Timestamp): readonly OverlayRow[] {
    const overlay = this.#groups.get(group)
    if (overlay === undefined) return []
    const { limit = Number.POSITIVE_INFINITY, bytesMax = Number.POSITIVE_INFINITY } = range
    const found: OverlayRow[] = []
    let [rows, bytes] = [0, 0]
    ensureOrder(overlay).walk(toBounds(range), range.reverse === true, (text) => {
      const row = versionAt(overlay.rows.get(text), at)
      if (row === undefined) return true
      found.push(row)
      // A deleted row only hides what the store has.
      if (row.value === undefined) return true
      rows += 1
      bytes += pageSizeInBytes({ key: row.key, value: row.value })
      return rows < limit && bytes <= bytesMax
    })
    return found
  }

  /**
   * The work, in pieces, after which a look at a range of the group costs no more than what it finds.
   * Undefined: nothing, or next to nothing.
   */
  ordering(group: GroupId): Generator<undefined, void> | undefined {
    const overlay = this.#groups.get(group)
    return overlay !== undefined && ensureOrder(overlay).step() ? this.#order(group) : undefined
  }

  /** The group's rows here may be released meanwhile, and come anew. */
  *#order(group: GroupId): Generator<undefined, void> {
    for (;;) {
      yield undefined
      const overlay = this.#groups.get(group)
      if (overlay === undefined || !ensureOrder(overlay).step()) return
    }
  }

  /**
   * Whole groups for one batch; none when no group waits that long. `mayGoOn` gets each as it is taken, and says
   * whether one more may be.
   */
  take(
    { bytesMax, untilMs }: TakeBounds,
    mayGoOn: (taken: TakenGroup) => boolean = always,
  ): readonly TakenGroup[] {
    assert(this.#takenCommit === undefined, 'replica: two batches under way')
    this.#takenCommit = this.oldestCommit
    const taken: TakenGroup[] = []
    let bytes = 0
    for (const [group, overlay] of this.#due(untilMs)) {
      if (taken.length > 0 && bytes + overlay.bytes > bytesMax) break
      bytes += overlay.bytes
      const one = this.#takeGroup(group, overlay)
      bytes += one.state.length
      taken.push(one)
      if (!mayGoOn(one)) break
    }
    if (taken.length === 0) this.#takenCommit = undefined
    return taken
  }

  *#due(untilMs: number): Generator<readonly [GroupId, GroupOverlay], void> {
    yield* this.#large
    for (const one of this.#dirty) {
      if (one[1].sinceMs > untilMs) return
      yield one
    }
  }

  /** No batch is under way, so that every row here is one that none has taken. */
  #takeGroup(group: GroupId, overlay: GroupOverlay): TakenGroup {
    overlay.waiting = undefined
    overlay.isTaken = true
    this.#dirty.delete(group)
    this.#large.delete(group)
    this.#deleting.delete(group)
    const { position, takenHorizon: horizonBefore, horizon, rows } = overlay
    overlay.takenHorizon = horizon
    const state = overlay.encodeState()
    // In order: each is looked for in the store, and put there, beside where the one before it was.
    const inOrder = [...rows.values()].sort((a, b) => compareText(a.text, b.text))
    return { group, position, state, horizonBefore, horizon, rows: inOrder }
  }

  /** The batch that took these is durable. */
  release(taken: readonly TakenGroup[]): void {
    for (const { group, rows } of taken) {
      const overlay = this.#groups.get(group)
      assert(overlay?.isTaken === true, 'replica: released what was not taken')
      overlay.isTaken = false
      if (overlay.waiting === undefined) this.#drop(group, overlay, rows)
      else this.#releaseRows(group, overlay, rows)
    }
    this.#takenCommit = undefined
  }

  /** Nothing was committed since the batch took it: the group goes as a whole. */
  #drop(group: GroupId, overlay: GroupOverlay, rows: readonly OverlayRow[]): void {
    assert(overlay.rows.size === rows.length, 'replica: a row is left with nobody to take it')
    this.#groups.delete(group)
    this.#bytes -= overlay.bytes + groupOverheadBytes
  }

  #releaseRows(group: GroupId, overlay: GroupOverlay, rows: readonly OverlayRow[]): void {
    for (const row of rows) {
      this.#cut(overlay, row)
      for (let one: OverlayRow | undefined = row; one !== undefined; one = one.previous) {
        this.#count(overlay, -sizeInBytes(one))
      }
    }
    if (overlay.bytes < this.#options.groupBytesMax) this.#large.delete(group)
    const { order, rows: left } = overlay
    order?.remove(rows.map(({ text }) => text).filter((text) => !left.has(text)))
  }

  /** Takes a version, and those before it, off its chain. */
  #cut(overlay: GroupOverlay, row: OverlayRow): void {
    let later = overlay.rows.get(row.text)
    if (later === row) {
      overlay.rows.delete(row.text)
      return
    }
    while (later !== undefined && later.previous !== row) later = later.previous
    assert(later !== undefined, 'replica: a version that is taken left its chain')
    later.previous = undefined
  }
}

function addToOrder(overlay: GroupOverlay, text: string): void {
  overlay.order?.add(text)
  if (overlay.order?.isOutgrown === true) overlay.order = undefined
}

/** Down the chain to the version that is seen at `at`. */
function versionAt(
  newest: OverlayRow | undefined,
  at: Timestamp | undefined,
): OverlayRow | undefined {
  if (at === undefined) return newest
  let version = newest
  while (version !== undefined && version.timestamp > at) version = version.previous
  return version
}

function always(): boolean {
  return true
}

function noState(): Uint8Array {
  return new Uint8Array()
}

function sizeInBytes(row: OverlayRow): number {
  return rowOverheadBytes + row.key.length + (row.value?.length ?? 0)
}

function ensureOrder(overlay: GroupOverlay): KeyOrder {
  overlay.order ??= new KeyOrder(overlay.rows.keys())
  return overlay.order
}

function toBounds({ gte, gt, lt }: RowRange): KeyBounds {
  const toText = (key: Uint8Array | undefined): string | undefined => key && latin1(key)
  return { gte: toText(gte), gt: toText(gt), lt: toText(lt) }
}

/** Undefined: it is deleted. */
export function toRow({ key, value, timestamp }: OverlayRow): Row | undefined {
  return value === undefined ? undefined : { key, value, timestamp }
}
