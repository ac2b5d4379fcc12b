/**
 * Rows committed but not yet durable in the data store: the newest version of each, visible at
 * once. The applier takes groups whole, the longest waiting first: every row that no batch has
 * taken, and the state of the newest commit, so that both are of one position (LOG-6). What has
 * become durable, and was not written again meanwhile, is released.
 */
import { assert } from '../base/assert.ts'
import { compareText, latin1 } from '../base/bytes.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import type { RowRange } from './local-replica.ts'

/** A row written or, without a value, deleted. The key is relative to the group. */
export interface RowWrite {
  readonly key: Uint8Array
  readonly value?: Uint8Array
}

/** A version of a row, with the position and the timestamp of the entry that wrote it. */
export interface OverlayRow {
  readonly key: Uint8Array
  /** Absent: deleted. */
  readonly value: Uint8Array | undefined
  readonly position: Position
  readonly timestamp: Timestamp
  /** The key, as the overlay looks it up. */
  readonly text: string
}

/** A group's share of one batch. */
export interface TakenGroup {
  readonly group: GroupId
  readonly position: Position
  /** The group's state record at `position`. */
  readonly state: Uint8Array
  readonly rows: readonly OverlayRow[]
}

interface GroupOverlay {
  position: Position
  encodeState: () => Uint8Array
  /** All rows here, by key as text; those in the batch under way included. */
  readonly rows: Map<string, OverlayRow>
  /** Of the rows. */
  bytes: number
  /** The commit that waits longest for a batch; undefined when all are taken. */
  waiting: number | undefined
  isTaken: boolean
  /** Keys in order, while nothing was added or released. */
  sorted: readonly string[] | undefined
}

/** What a row and a group cost beside their bytes, about. */
const rowOverheadBytes = 128
const groupOverheadBytes = 512

export class Overlay {
  readonly #groups = new Map<GroupId, GroupOverlay>()
  /** Groups with something to take, the longest waiting first. */
  readonly #dirty = new Map<GroupId, GroupOverlay>()
  #bytes = 0
  #commits = 0
  /** The oldest commit of the batch under way. */
  #takenCommit: number | undefined

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

  has(group: GroupId): boolean {
    return this.#groups.has(group)
  }

  /** `encodeState` is called later, and then gives the state of the newest commit. */
  commit(
    group: GroupId,
    position: Position,
    timestamp: Timestamp,
    writes: readonly RowWrite[],
    encodeState: () => Uint8Array,
  ): void {
    this.#commits += 1
    const overlay = this.#overlayOf(group, position)
    assert(position === overlay.position + 1, 'LOG-1: committed out of order')
    overlay.position = position
    overlay.encodeState = encodeState
    if (overlay.waiting === undefined) {
      overlay.waiting = this.#commits
      this.#dirty.set(group, overlay)
    }
    for (const { key, value } of writes) {
      this.#put(overlay, { key, value, position, timestamp, text: latin1(key) })
    }
  }

  #overlayOf(group: GroupId, position: Position): GroupOverlay {
    let overlay = this.#groups.get(group)
    if (overlay === undefined) {
      overlay = {
        position: position - 1,
        encodeState: noState,
        rows: new Map(),
        bytes: 0,
        waiting: undefined,
        isTaken: false,
        sorted: undefined,
      }
      this.#groups.set(group, overlay)
      this.#bytes += groupOverheadBytes
    }
    return overlay
  }

  #put(overlay: GroupOverlay, row: OverlayRow): void {
    const known = overlay.rows.get(row.text)
    if (known === undefined) overlay.sorted = undefined
    overlay.rows.set(row.text, row)
    this.#count(overlay, bytesOf(row) - (known === undefined ? 0 : bytesOf(known)))
  }

  #count(overlay: GroupOverlay, bytes: number): void {
    overlay.bytes += bytes
    this.#bytes += bytes
  }

  get(group: GroupId, key: Uint8Array): OverlayRow | undefined {
    return this.#groups.get(group)?.rows.get(latin1(key))
  }

  /** The group's rows in a range, deleted ones included, in the range's order. Without its limit. */
  range(group: GroupId, range: RowRange): readonly OverlayRow[] {
    const overlay = this.#groups.get(group)
    if (overlay === undefined) return []
    overlay.sorted ??= [...overlay.rows.keys()].sort(compareText)
    const { rows, sorted } = overlay
    const end = range.lt === undefined ? undefined : latin1(range.lt)
    const found: OverlayRow[] = []
    for (let at = startOf(sorted, range); at < sorted.length; at++) {
      const text = sorted[at] ?? ''
      if (end !== undefined && text >= end) break
      const row = rows.get(text)
      if (row !== undefined) found.push(row)
    }
    return range.reverse === true ? found.reverse() : found
  }

  /** Whole groups for one batch, about `bytesMax` of them; none when nothing waits. */
  take(bytesMax: number): readonly TakenGroup[] {
    assert(this.#takenCommit === undefined, 'replica: two batches under way')
    this.#takenCommit = this.oldestCommit
    const taken: TakenGroup[] = []
    let bytes = 0
    for (const [group, overlay] of this.#dirty) {
      if (taken.length > 0 && bytes + overlay.bytes > bytesMax) break
      bytes += overlay.bytes
      const one = this.#takeGroup(group, overlay)
      bytes += one.state.length
      taken.push(one)
    }
    return taken
  }

  /** No batch is under way, so that every row here is one that none has taken. */
  #takeGroup(group: GroupId, overlay: GroupOverlay): TakenGroup {
    overlay.waiting = undefined
    overlay.isTaken = true
    this.#dirty.delete(group)
    const { position, rows } = overlay
    return { group, position, state: overlay.encodeState(), rows: [...rows.values()] }
  }

  /** The batch that took these is durable. */
  release(taken: readonly TakenGroup[]): void {
    for (const { group, rows } of taken) {
      const overlay = this.#groups.get(group)
      assert(overlay?.isTaken === true, 'replica: released what was not taken')
      overlay.isTaken = false
      for (const row of rows) {
        if (overlay.rows.get(row.text) !== row) continue
        overlay.rows.delete(row.text)
        overlay.sorted = undefined
        this.#count(overlay, -bytesOf(row))
      }
      if (overlay.waiting !== undefined) continue
      assert(overlay.rows.size === 0, 'replica: a row is left with nobody to take it')
      this.#groups.delete(group)
      this.#bytes -= groupOverheadBytes
    }
    this.#takenCommit = undefined
  }
}

function noState(): Uint8Array {
  return new Uint8Array()
}

function bytesOf(row: OverlayRow): number {
  return rowOverheadBytes + row.key.length + (row.value?.length ?? 0)
}

/** The first key of `sorted` in the range. */
function startOf(sorted: readonly string[], { gte, gt }: RowRange): number {
  const from = gte === undefined ? '' : latin1(gte)
  const above = gt === undefined ? undefined : latin1(gt)
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const text = sorted[middle] ?? ''
    if (text < from || (above !== undefined && text <= above)) low = middle + 1
    else high = middle
  }
  return low
}
