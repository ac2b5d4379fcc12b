/** Records on their way into one flush, and the callbacks that wait for it to be durable. */
import type { LogRecord } from '../replication/effect.ts'
import { flushRecordsMax, recordBytes, readValue } from './flush.ts'

export interface PendingFlush {
  /** The flush it becomes. */
  readonly number: number
  readonly records: LogRecord[]
  /** Of each record, the number of its group among those of the flush, in the order of their first records. */
  readonly groupNumbers: number[]
  /** Called in order when it is durable. */
  readonly waiters: (() => void)[]
  /** Called with the reason when it cannot be made durable. */
  readonly onFailed: ((reason: Error) => void)[]
  bytes: number
  /** Whether a callback waits: notes alone force no flush. */
  isForced: boolean
  /** Its write is under way: nothing more goes in. */
  isClosed: boolean
}

export function newFlush(number: number): PendingFlush {
  return {
    number,
    records: [],
    groupNumbers: [],
    waiters: [],
    onFailed: [],
    bytes: 0,
    isForced: false,
    isClosed: false,
  }
}

/** About what a record takes up in a flush. */
export function sizeInBytes(record: LogRecord): number {
  return recordBytes + record.group.length + (readValue(record)?.length ?? 0)
}

/** Whether all of `count` records fit; the records of one call are never torn apart. */
export function hasRoom(
  flush: PendingFlush,
  count: number,
  bytes: number,
  flushBytesMax: number,
): boolean {
  if (flush.isClosed) return false
  if (flush.records.length === 0) return true
  return flush.bytes + bytes <= flushBytesMax && flush.records.length + count <= flushRecordsMax
}
