/** Reading a journal that may notice damage by itself: its errors become those of the log's own checks. */
import type { Journal, JournalFlush } from '../ports/journal.ts'
import { corruptLog } from '../store/damage.ts'
import { checkedRead, checkedScan } from '../store/read-store.ts'

/** The flushes from `number` on as of the call. Rejects with `corrupt` where one cannot be read. */
export function scanFlushes(
  journal: Journal,
  number: number,
): AsyncIterable<readonly JournalFlush[]> {
  return checkedScan(journal.scan(number), corruptLog)
}

/** The record under a name; `damaged` when the journal cannot give it as it was written. */
export function readRecord(journal: Journal, name: string): Uint8Array | 'damaged' | undefined {
  return checkedRead(() => journal.record(name))
}

/** The bytes of a flush, in the same way. */
export function readFlush(journal: Journal, number: number): Uint8Array | 'damaged' | undefined {
  return checkedRead(() => journal.read(number))
}
