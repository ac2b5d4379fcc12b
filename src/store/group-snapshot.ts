/**
 * All that a data store durably has of a group, as of one position: what a replica that is too far behind takes in
 * place of the entries (`snapshot-intake.ts`). It is read out of one snapshot of the store, part by part, while the group goes on.
 *
 * SNAP-2  State record, newest rows and history are of one position.
 * HASH-1  Rows that are not those which the state record's hash counts are damaged, and are not given away.
 */
import { assert } from '../base/assert.ts'
import { crc32 } from '../base/bytes.ts'
import type { Position } from '../base/ids.ts'
import { keyBytesMax } from '../base/limits.ts'
import type { SnapshotRow } from '../replication/message.ts'
import { RowsSum, type GroupHash } from './group-hash.ts'
import { historySubspace, isVersionKey, rowSubspace, type Stored } from './row-format.ts'

/** Of a snapshot that is read: rows, then pieces of the state record. */
export interface ReadPart {
  readonly rows: readonly SnapshotRow[]
  readonly state: Uint8Array
  /** Of the last part: the checksum over all of it. */
  readonly crc: number | undefined
  /** Of the last part: the rows are other ones than the hash in the state record says. */
  readonly isDamaged?: boolean
}

/** The bytes of a row in a part beside its key and its payload, about. */
const rowOverheadBytes = 16

export class GroupSnapshot {
  readonly position: Position
  /** The group's state record there. */
  readonly state: Uint8Array
  readonly #rows: AsyncIterator<readonly SnapshotRow[]>
  /** Of the rows, as the state record tells; undefined: it tells none. */
  readonly hash: GroupHash | undefined
  readonly #sum = new RowsSum()
  #rest: SnapshotRow[] = []
  #crc = 0
  #stateAt = 0
  #isOver = false
  #isClosed = false

  /** `record`: the group's state record as it is stored. */
  constructor(record: Stored, rows: AsyncIterable<readonly SnapshotRow[]>) {
    assert(record.stamp > 0, 'SNAP-2: a snapshot of a group that has nothing')
    this.position = record.stamp
    this.state = record.payload
    this.hash = record.hash
    this.#rows = rows[Symbol.asyncIterator]()
  }

  /** The next rows, or the next piece of the state record, about `bytesMax`. One call at a time. */
  async next(bytesMax: number): Promise<ReadPart> {
    assert(!this.#isClosed, 'SNAP-2: a snapshot is read on after its end')
    const rows: SnapshotRow[] = []
    let bytes = 0
    while (bytes < bytesMax) {
      const row = this.#rest.shift()
      if (row === undefined) {
        if (!(await this.#read())) break
        continue
      }
      rows.push(row)
      if (row.subspace === rowSubspace) this.#sum.add(row.key, row.stamp, row.payload)
      bytes += sizeInBytes(row)
    }
    this.#crc = crcOfRows(rows, this.#crc)
    const isAtState = this.#isOver && this.#rest.length === 0
    const end = isAtState ? this.#stateAt + Math.max(0, bytesMax - bytes) : this.#stateAt
    const state = this.state.subarray(this.#stateAt, end)
    this.#stateAt += state.length
    const isLast = isAtState && this.#stateAt === this.state.length
    if (!isLast) return { rows, state, crc: undefined }
    const isDamaged = this.hash !== undefined && this.hash !== this.#sum.hash
    return { rows, state, crc: crc32(this.state, this.#crc), isDamaged }
  }

  /** False: there is no more. */
  async #read(): Promise<boolean> {
    // Given up while a part of it was read: the store's iterator is gone.
    if (this.#isOver || this.#isClosed) return false
    const next = await this.#rows.next()
    if (next.done === true) this.#isOver = true
    else this.#rest = [...next.value]
    return !this.#isOver
  }

  /** Lets go of the store's snapshot. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#rows.return?.()
  }
}

/** `prefixBytes`: of the group's prefix in the key. */
export function toSnapshotRow(
  prefixBytes: number,
  key: Uint8Array,
  { stamp, payload }: Stored,
): SnapshotRow {
  const rest = key.subarray(prefixBytes + 1)
  return { subspace: key[prefixBytes] ?? 0, key: rest, stamp, payload }
}

export function sizeInBytes({ key, payload }: SnapshotRow): number {
  return rowOverheadBytes + key.length + payload.length
}

/** Escaping may double a key; the end of the key and the start of the version follow it. */
const versionKeyBytesMax = 2 * keyBytesMax + 10

/** Whether a row that came from a peer is of a form that a store has. */
export function isWellFormed({ subspace, key }: SnapshotRow): boolean {
  if (subspace === rowSubspace) return key.length <= keyBytesMax
  return subspace === historySubspace && key.length <= versionKeyBytesMax && isVersionKey(key)
}

/** A checksum over rows in their order, which goes on from `before`: nothing is left out, changed, or there twice. */
export function crcOfRows(rows: readonly SnapshotRow[], before: number): number {
  let crc = before
  for (const { subspace, key, stamp, payload } of rows) {
    const head = Buffer.allocUnsafe(17)
    head.writeUInt8(subspace, 0)
    head.writeUInt32BE(key.length, 1)
    head.writeUInt32BE(payload.length, 5)
    head.writeBigUInt64BE(BigInt(stamp), 9)
    crc = crc32(payload, crc32(key, crc32(head, crc)))
  }
  return crc
}
