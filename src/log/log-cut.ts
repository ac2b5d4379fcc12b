/**
 * Giving up the first flushes of a log. Which of them may go is the matter of `log-end.ts`.
 *
 * LOG-17  The mark of the first flush is durable, by a write of its own, before the journal gives up the flushes
 *         before it.
 */
import { assert } from '../base/assert.ts'
import type { Journal } from '../ports/journal.ts'
import type { Trace } from '../ports/trace.ts'
import type { FlushLedger } from './flush-ledger.ts'
import type { LogRecords } from './log-records.ts'
import type { StretchSweep } from './stretch-sweep.ts'

export interface LogCutParts {
  readonly journal: Journal
  readonly records: LogRecords
  readonly ledger: FlushLedger
  readonly sweep: StretchSweep
  readonly trace: Trace
  /** The checksum of the flush before this one; undefined: it cannot be read. */
  previousCrc(flush: number): number | undefined
  onFailed(error: unknown): void
}

export class LogCut {
  readonly #parts: LogCutParts

  constructor(parts: LogCutParts) {
    this.#parts = parts
    const { records } = parts
    records.onFirstFlush = (first) => this.#onFirstFlush(first)
    // A crash may have come between the mark and the end of this.
    if (records.meta.firstFlush > 1) this.#drop(records.meta.firstFlush)
  }

  /**
   * Notes the mark for the next write of records. False: not now, since the flush that is to be the first one cannot be
   * read, or the last call has not ended.
   */
  begin(first: number): boolean {
    const { records, previousCrc } = this.#parts
    if (records.isMoving) return false
    const crc = previousCrc(first)
    if (crc === undefined) return false
    records.moveFirst(first, crc)
    return true
  }

  /** The mark is durable. */
  #onFirstFlush(first: number): void {
    const { trace, ledger, sweep } = this.#parts
    trace.mark('log_truncated')
    trace.emit({ kind: 'given-up', before: ledger.firstFlush, first })
    ledger.giveUp(first)
    sweep.sweep(first)
    this.#drop(first)
  }

  /** The flushes before it are deleted some time: the journal sees to it that no commit waits for that. */
  #drop(first: number): void {
    const { journal, records, onFailed } = this.#parts
    assert(
      first <= records.meta.firstFlush,
      'LOG-17: flushes are deleted before the mark is durable',
    )
    journal.drop(first).catch(onFailed)
  }
}
