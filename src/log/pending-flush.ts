/** Records on their way into one flush, and the callbacks that wait for it to be durable. */
import {
  flushRecordsMax,
  readValue,
  recordBytes,
  type FlushContent,
  type FlushRecord,
} from './flush.ts'

export interface PendingFlush extends FlushContent {
  /** The flush it becomes. */
  readonly number: number
  readonly records: FlushRecord[]
  readonly groupNumbers: number[]
  readonly previous: number[]
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
    previous: [],
    waiters: [],
    onFailed: [],
    bytes: 0,
    isForced: false,
    isClosed: false,
  }
}

/** About what a record takes up in a flush. */
export function sizeInBytes(record: FlushRecord): number {
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
