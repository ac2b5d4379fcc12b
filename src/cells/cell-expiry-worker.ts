/**
 * Removes cells that have expired, at each node for the shards that it serves (`worklist/worklist-worker.ts`). Reads
 * do not see such a cell any more, so it does not matter when it goes: the worker looks at a shard when its first
 * cell falls due, and not more often than every few seconds. The clock of this node tells when to look, and
 * no more (TTL-4).
 */
import type { GroupId, Timestamp } from '../base/ids.ts'
import type { LocalReplica } from '../group/replica-port.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { IndexLag } from '../tables/index-lag.ts'
import { SweepTimes } from '../tables/sweep-times.ts'
import {
  WorklistWorker,
  worklistBounds,
  type Served,
  type WorklistBounds,
} from '../worklist/worklist-worker.ts'
import { cellExpiryNote, cellExpiryTopic, shardOfGroup } from './cell-table.ts'
import type { ShardName } from './cell.ts'
import { cellExpiryBounds } from './limits.ts'
import type { ShardSwept } from './shard-expiry.ts'

/** Of the cells of this node. */
export interface ExpiringCells {
  sweep(of: ShardName, now: Timestamp): Promise<ShardSwept>
  /** The shard has no cell that expires, if no put has brought one since the note. */
  takeNoteOff(of: ShardName, putAt: Timestamp): Promise<boolean>
}

export interface CellExpiryParts {
  readonly replica: LocalReplica
  readonly expiring: ExpiringCells
  readonly clock: Clock
  readonly random: Random
  readonly bounds?: WorklistBounds | undefined
  /** Between two looks at a shard, in milliseconds; as usual when absent. */
  readonly sweepMs?: number | undefined
  /** Told of each failure. */
  readonly onFailed?: (error: unknown) => void
}

export interface CellExpiryFigures {
  /** Expired cells that this node has removed since it began. */
  readonly removed: number
  /** Expired cells that stay at a look, since they are held. */
  readonly heldBack: number
  /** How long ago the oldest cell expired that was left at the last look at its shard, in milliseconds; 0: none was. */
  readonly oldestDueMs: number
  /** Of the newest ones that went: the time from the moment at which they expired, in milliseconds. */
  readonly lagP50Ms?: number
  readonly lagP99Ms?: number
  readonly lagMaxMs?: number
  /** Shards that wait to be looked at, or are. */
  readonly busyGroups: number
  readonly failures: number
}

export class CellExpiryWorker {
  readonly #parts: CellExpiryParts
  readonly #worker: WorklistWorker
  readonly #times: SweepTimes
  readonly #lag = new IndexLag()
  #failures = 0
  #heldBack = 0

  constructor(parts: CellExpiryParts) {
    this.#parts = parts
    const { replica, clock, random } = parts
    const { sweepMs = cellExpiryBounds.sweepMs } = parts
    this.#times = new SweepTimes(clock, { ...cellExpiryBounds, sweepMs })
    this.#worker = new WorklistWorker({
      topic: cellExpiryTopic,
      worklist: replica.worklist,
      clock,
      random,
      bounds: parts.bounds ?? worklistBounds,
      serve: (group) => this.#serve(group),
      onFailed: (_group, error) => {
        this.#failures += 1
        parts.onFailed?.(error)
      },
    })
  }

  start(): void {
    this.#worker.start()
  }

  /** Begins nothing more; resolves when the work under way has ended. */
  stop(): Promise<void> {
    return this.#worker.stop()
  }

  get figures(): CellExpiryFigures {
    const { relayed: removed, ...lag } = this.#lag.figures
    const { busyGroups } = this.#worker
    const oldestDueMs = this.#times.oldestDueMs()
    const heldBack = this.#heldBack
    return { removed, heldBack, oldestDueMs, ...lag, busyGroups, failures: this.#failures }
  }

  async #serve(group: GroupId): Promise<Served> {
    const { replica, clock, expiring } = this.#parts
    const { position, timestamp } = await replica.read(group, 'snapshot', cellExpiryBounds.callMs)
    // The log may be ahead of this clock.
    const now = Math.max(clock.wallMicros(), timestamp)
    const note = replica.get(group, cellExpiryNote)
    const of = shardOfGroup(group)
    if (note === undefined || of === undefined) {
      this.#times.forget(group)
      return { kind: 'empty', position }
    }
    const waitMs = this.#times.waitMs(group, note.timestamp)
    if (waitMs > 0) return { kind: 'later', delayMs: waitMs, position }
    const putOffMs = this.#times.putOff(group, note.timestamp, now)
    if (putOffMs !== undefined) return { kind: 'later', delayMs: putOffMs, position }
    const { removed, next, held } = await expiring.sweep(of, now)
    this.#heldBack += held
    const wall = clock.wallMicros()
    for (const moment of removed) this.#lag.add(moment, wall)
    if (next === undefined && (await expiring.takeNoteOff(of, note.timestamp))) {
      this.#times.forget(group)
      return { kind: 'again' }
    }
    const delayMs = this.#times.note(group, note.timestamp, next ?? now, now)
    return { kind: 'later', delayMs, position }
  }
}
