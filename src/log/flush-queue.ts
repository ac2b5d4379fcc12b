/**
 * The flushes that are not durable yet, in order. New records go into the last one, or begin the next. The index
 * folds each record as it comes, so that it tells of records on their way, too.
 *
 * LOG-15  Of each group a flush names the last one before it that names the group.
 */
import { assert } from '../base/assert.ts'
import type { LogRecord } from '../replication/effect.ts'
import { readValue, type FlushRecord, type NamedGroup } from './flush.ts'
import type { FlushLedger } from './flush-ledger.ts'
import type { GroupPositions, LogIndex } from './log-index.ts'
import { hasRoom, newFlush, sizeInBytes, type PendingFlush } from './pending-flush.ts'
import type { Place } from './settled.ts'

export interface FlushQueueParts {
  readonly index: LogIndex
  readonly ledger: FlushLedger
  readonly flushBytesMax: number
}

export class FlushQueue {
  readonly #parts: FlushQueueParts
  readonly #flushes: PendingFlush[] = []
  #bytes = 0
  #lastFlush: number

  /** `lastFlush`: the last one that was written. */
  constructor(parts: FlushQueueParts, lastFlush: number) {
    this.#parts = parts
    this.#lastFlush = lastFlush
  }

  /** The one that is in flight, or goes next. */
  get first(): PendingFlush | undefined {
    return this.#flushes[0]
  }

  get last(): PendingFlush | undefined {
    return this.#flushes.at(-1)
  }

  get lastForced(): PendingFlush | undefined {
    return this.#flushes.findLast((flush) => flush.isForced)
  }

  get length(): number {
    return this.#flushes.length
  }

  /** Bytes that are not durable yet. */
  get bytes(): number {
    return this.#bytes
  }

  /** The flush that records go into now, or went into last. */
  get lastFlush(): number {
    return this.#lastFlush
  }

  [Symbol.iterator](): Iterator<PendingFlush> {
    return this.#flushes[Symbol.iterator]()
  }

  gather(records: readonly LogRecord[]): PendingFlush {
    const { index } = this.#parts
    const flush = this.#open(records)
    for (const record of records) {
      const group = index.fold(record, nextPlace(flush, record), flush.number)
      this.#add(flush, group, record)
    }
    return flush
  }

  /** Takes in copies of all that is open of a group. */
  gatherCopies(found: GroupPositions, copies: readonly FlushRecord[]): void {
    const { index } = this.#parts
    const flush = this.#open(copies)
    for (const copy of copies) {
      index.onCopied(found, copy, nextPlace(flush, copy), flush.number)
      this.#add(flush, found, copy)
    }
    found.copiedIn = flush.number
  }

  /** The flush that has room for all of them: the records of one call are never torn apart. */
  #open(records: readonly FlushRecord[]): PendingFlush {
    const { flushBytesMax, ledger } = this.#parts
    let bytes = 0
    for (const record of records) bytes += sizeInBytes(record)
    let flush = this.last
    if (flush === undefined || !hasRoom(flush, records.length, bytes, flushBytesMax)) {
      flush = newFlush(this.#lastFlush + 1)
      this.#lastFlush = flush.number
      ledger.open(flush.number)
      this.#flushes.push(flush)
    }
    flush.bytes += bytes
    this.#bytes += bytes
    return flush
  }

  #add(flush: PendingFlush, group: GroupPositions, record: FlushRecord): void {
    const { number } = flush
    const { lastFlush } = group
    assert(lastFlush <= number, 'LOG-15: a later flush names the group already')
    this.#parts.ledger.add(number, group, record.position, record.kind !== 'promise')
    if (lastFlush !== number) flush.previous.push(lastFlush)
    flush.records.push(record)
    flush.groupNumbers.push(group.lastSlot)
  }

  /** The first one is durable: its bytes count no more. It stays until `shift`. */
  onDurable(): void {
    this.#bytes -= this.first?.bytes ?? 0
  }

  shift(): void {
    this.#flushes.shift()
  }

  /** A value in a flush that is here. */
  valueAt(place: Place): Uint8Array | undefined {
    const record = this.#at(place.flush)?.records[place.index]
    return record === undefined ? undefined : readValue(record)
  }

  /** The groups that a flush names which is here. */
  groupsOf(number: number): readonly NamedGroup[] | undefined {
    const flush = this.#at(number)
    if (flush === undefined) return undefined
    const groups: NamedGroup[] = []
    for (const [index, { group }] of flush.records.entries()) {
      // Groups are numbered in the order of their first records.
      if (flush.groupNumbers[index] !== groups.length) continue
      groups.push({ group, previous: flush.previous[groups.length] ?? 0 })
    }
    assert(
      groups.length === flush.previous.length,
      'LOG-15: a flush names a group without a record',
    )
    return groups
  }

  #at(number: number): PendingFlush | undefined {
    const { first } = this
    return first === undefined ? undefined : this.#flushes[number - first.number]
  }
}

/** Where the value of the next record of a flush stands; undefined: it has none. */
function nextPlace(flush: PendingFlush, record: FlushRecord): Place | undefined {
  if (readValue(record) === undefined) return undefined
  return { flush: flush.number, index: flush.records.length }
}
