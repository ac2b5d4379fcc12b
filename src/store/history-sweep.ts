/**
 * Forgets what no reader may see any more: looks through the history of groups whose horizon has moved
 * on, a chunk at a time, and hands what may go to the applier, which deletes it along with its next
 * batch. Only groups that are written cost anything; one look is under way at a time, and it is as
 * long as what was superseded since the one before calls for: a history that is looked through more
 * slowly than it is made has no bound.
 *
 * MVCC-1  What may go is reckoned from a horizon that is durable: after a crash none is lower.
 *
 * A group that is not written any more keeps what history it has.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import { isSweepDue, mayGo } from './collection.ts'
import type { KeyValue, Range } from '../ports/storage.ts'
import type { TakenGroup } from './overlay.ts'
import { afterHistory, groupPrefix, historyPrefix } from './row-format.ts'

/** Versions that one scan reads: in between, others have their turn. */
export const sweepChunkRows = 256
/** Versions that one look goes over, but for the rest of its last chunk, and finds, at least and at most. */
export const lookVersionsMin = 256
export const lookVersionsMax = 65_536
/** Looked at for each version that is superseded: with two, what may go is half of all at most, about. */
const looksPerVersion = 2
/**
 * The cost of a scan beside that of what it finds, in versions: there may be thousands of groups with next to
 * none.
 */
const scanVersions = 4
/** Groups that wait to be looked through; one more is left for the next time. */
export const sweepGroupsMax = 10_000

export interface SweepParts {
  readonly historyMs: number
  /** The oldest timestamp at which a group is read whose horizon is this. */
  oldest(group: GroupId, horizon: Timestamp): Timestamp
  scan(range: Range): AsyncIterable<readonly KeyValue[]>
  /** The stamp of what is stored: where a version ends. */
  findEnd(row: KeyValue): Timestamp
  onFailed(error: unknown): void
}

/** A group that is looked through. */
interface Sweep {
  readonly group: GroupId
  /** Durable; it may have moved on since the group began to wait. */
  horizon: Timestamp
  /** The last key that was looked at. */
  after: Uint8Array | undefined
}

export class HistorySweep {
  readonly #parts: SweepParts
  /** The first one is at work. */
  readonly #waiting = new Map<GroupId, Sweep>()
  /** Versions to be looked at for those that were superseded since the last look began. */
  #owed = 0
  /** Found by the last look, for the next batch. */
  #found: readonly Uint8Array[] = []
  #underWay: Promise<void> | undefined

  constructor(parts: SweepParts) {
    this.#parts = parts
  }

  /** Keys to be deleted along with the next batch. */
  take(): readonly Uint8Array[] {
    const found = this.#found
    this.#found = []
    return found
  }

  /** A batch is durable, and with it these groups' horizons; it moved `superseded` versions to history. */
  onWritten(groups: readonly TakenGroup[], superseded: number): void {
    const { historyMs } = this.#parts
    for (const { group, horizonBefore, horizon } of groups) {
      const waiting = this.#waiting.get(group)
      if (waiting !== undefined) waiting.horizon = horizon
      else if (!isSweepDue(horizonBefore, horizon, historyMs)) continue
      else if (this.#waiting.size < sweepGroupsMax) {
        this.#waiting.set(group, { group, horizon, after: undefined })
      }
    }
    const owed = this.#waiting.size === 0 ? 0 : this.#owed + superseded * looksPerVersion
    this.#owed = Math.min(owed, lookVersionsMax)
    this.#next()
  }

  /** Resolves when nothing is being read any more. */
  async stop(): Promise<void> {
    this.#waiting.clear()
    await this.#underWay
  }

  /** One look, unless what the last one found is not taken yet. */
  #next(): void {
    if (this.#waiting.size === 0 || this.#underWay !== undefined || this.#found.length > 0) return
    const versions = Math.max(lookVersionsMin, this.#owed)
    this.#owed = 0
    this.#underWay = this.#look(versions).then(
      () => (this.#underWay = undefined),
      (error: unknown) => {
        this.#underWay = undefined
        this.#waiting.clear()
        this.#parts.onFailed(error)
      },
    )
  }

  /** Chunk after chunk, of as many groups as that takes. */
  async #look(versions: number): Promise<void> {
    const found: Uint8Array[] = []
    for (let left = versions; left > 0;) {
      const [sweep] = this.#waiting.values()
      if (sweep === undefined) break
      left -= scanVersions + (await this.#lookAtChunk(sweep, found))
    }
    this.#found = found
  }

  /** Adds what may go to `found`. Returns how many versions it has looked at. */
  async #lookAtChunk(sweep: Sweep, found: Uint8Array[]): Promise<number> {
    const { group, horizon, after } = sweep
    const prefix = groupPrefix(group)
    // Of this moment: who opens a snapshot later may do so from the horizon on only.
    const oldest = this.#parts.oldest(group, horizon)
    assert(oldest <= horizon, 'MVCC-1: versions beyond the horizon were to be forgotten')
    const range = {
      lt: afterHistory(prefix),
      limit: sweepChunkRows,
      ...(after === undefined ? { gte: historyPrefix(prefix) } : { gt: after }),
    }
    let count = 0
    for await (const rows of this.#parts.scan(range)) {
      count += rows.length
      sweep.after = rows.at(-1)?.key
      for (const row of rows) if (mayGo(this.#parts.findEnd(row), oldest)) found.push(row.key)
    }
    if (count < sweepChunkRows) this.#waiting.delete(group)
    return count
  }
}
