/**
 * The small records beside the flushes of a log, and the time to write each: the identity with the first flush, the
 * memory of peers, and the damages found. They go along with a flush, or by themselves.
 *
 * LOG-17  A later first flush is written by itself. A record of the identity that is written anew has the first flush
 *         that is durable then: an older one would bring back flushes that are deleted.
 */
import type { JournalRecord } from '../ports/journal.ts'
import { damagesRecord, withDamage, type LogDamage } from './log-mending.ts'
import { metaRecords, type LogMeta } from './log-meta.ts'
import type { PeerMemory } from './peer-memory.ts'

/** Records that are written without a flush. */
export interface LoneWrite {
  readonly records: readonly JournalRecord[]
  /** Called when they are durable. */
  readonly onWritten: () => void
}

export class LogRecords {
  readonly memory: PeerMemory
  /** Called when the mark of the first flush is durable. */
  onFirstFlush: (first: number) => void = () => undefined
  #meta: LogMeta
  #nextMeta: LogMeta | undefined
  #damages: readonly LogDamage[]
  #isRenewalDue = false
  #isMemoryDue = false

  constructor(meta: LogMeta, memory: PeerMemory, damages: readonly LogDamage[]) {
    this.#meta = meta
    this.memory = memory
    this.#damages = damages
  }

  /** As it is durable. */
  get meta(): LogMeta {
    return this.#meta
  }

  get damages(): readonly LogDamage[] {
    return this.#damages
  }

  /** Something is to be written by itself, if nothing else is. */
  get isDue(): boolean {
    return this.#isMemoryDue || this.#nextMeta !== undefined
  }

  /** A later first flush is on its way. */
  get isMoving(): boolean {
    return this.#nextMeta !== undefined
  }

  remember(): void {
    this.#isMemoryDue = true
  }

  /** False: this damage is known. */
  renew(damage: LogDamage): boolean {
    const damages = withDamage(this.#damages, damage)
    if (damages === undefined) return false
    this.#damages = damages
    this.#isRenewalDue = true
    this.memory.renew()
    return true
  }

  /** The log is to begin with this flush. `previousCrc`: as that flush names it. */
  moveFirst(firstFlush: number, previousCrc: number): void {
    this.#nextMeta = { ...this.#meta, firstFlush, previousCrc }
  }

  /** The node stops, and leaves to the next run all that is not under way. */
  stop(): void {
    this.#nextMeta = undefined
  }

  /** The records that go along with a flush. */
  takeAlong(): readonly JournalRecord[] {
    const renewal = this.#isRenewalDue ? [damagesRecord(this.#damages)] : []
    const isMetaDue = this.#isRenewalDue
    this.#isRenewalDue = false
    return [...renewal, ...this.#takeMemory(isMetaDue)]
  }

  /** The record of the identity names the epoch, too: no copy of one record alone says how far the node had come. */
  #takeMemory(isMetaDue: boolean): readonly JournalRecord[] {
    this.#isMemoryDue = false
    const news = this.memory.take()
    const { epoch } = this.memory.epochs
    const isNewEpoch = news !== undefined && epoch !== this.#meta.epoch
    if (isNewEpoch) this.#meta = { ...this.#meta, epoch }
    const meta = isMetaDue || isNewEpoch ? metaRecords(this.#meta) : []
    return news === undefined ? meta : [...meta, news]
  }

  /** A later first flush goes before all else. */
  takeMove(): LoneWrite | undefined {
    if (this.#nextMeta === undefined) return undefined
    const meta = { ...this.#nextMeta, epoch: this.#meta.epoch }
    const onWritten = (): void => {
      this.#meta = meta
      this.#nextMeta = undefined
      this.onFirstFlush(meta.firstFlush)
    }
    return { records: metaRecords(meta), onWritten }
  }

  takeMemory(): LoneWrite | undefined {
    const records = this.#takeMemory(false)
    if (records.length === 0) return undefined
    return { records, onWritten: () => this.memory.onWritten() }
  }
}
