/** A process's journal, whose checks and mending the disk hears of. */
import type {
  Journal,
  JournalFlush,
  JournalRecord,
  JournalWrite,
  LostWrites,
} from '../../src/ports/journal.ts'
import type { CheckPace } from '../../src/ports/storage.ts'

export interface Watcher {
  /** Values are written that were durable once; and no more. */
  onPutBack(isUnderWay: boolean): void
  /** A check has reported damage. */
  onDamage(): void
}

export class WatchedJournal implements Journal {
  readonly lost: LostWrites | undefined
  readonly #journal: Journal
  readonly #watcher: Watcher

  constructor(journal: Journal, watcher: Watcher) {
    this.#journal = journal
    this.#watcher = watcher
    const { lost } = journal
    const putBack: LostWrites['putBack'] = async (found) => {
      watcher.onPutBack(true)
      await lost?.putBack(found)
      watcher.onPutBack(false)
    }
    this.lost = lost && { ...lost, putBack }
  }

  record(name: string): Uint8Array | undefined {
    return this.#journal.record(name)
  }

  recordNames(): Promise<readonly string[]> {
    return this.#journal.recordNames()
  }

  read(number: number): Uint8Array | undefined {
    return this.#journal.read(number)
  }

  scan(number: number): AsyncIterable<readonly JournalFlush[]> {
    return this.#journal.scan(number)
  }

  last(): Promise<number> {
    return this.#journal.last()
  }

  append(flush: JournalFlush, records?: readonly JournalRecord[]): Promise<void> {
    return this.#journal.append(flush, records)
  }

  checkpoint(records: readonly JournalRecord[]): Promise<void> {
    return this.#journal.checkpoint(records)
  }

  write(write: JournalWrite): Promise<void> {
    return this.#journal.write(write)
  }

  drop(first: number): Promise<void> {
    return this.#journal.drop(first)
  }

  separate(): void {
    this.#journal.separate?.()
  }

  async erased(): Promise<boolean> {
    return (await this.#journal.erased?.()) ?? true
  }

  sizeOf(first: number, last: number): Promise<number> {
    return this.#journal.sizeOf(first, last)
  }

  check(pace?: CheckPace): Promise<void> {
    const { onDamage } = pace ?? {}
    if (pace === undefined || onDamage === undefined) return this.#journal.check(pace)
    return this.#journal.check({
      ...pace,
      onDamage: (what) => {
        this.#watcher.onDamage()
        onDamage(what)
      },
    })
  }

  close(): Promise<void> {
    return this.#journal.close()
  }
}
