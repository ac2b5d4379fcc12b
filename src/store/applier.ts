/**
 * Moves what was committed from the overlay into the store: in large synced batches, one at a time, off the
 * commit path: in the batch of the log they would cost a commit 1.7 times as much. What a batch holds is its owner's matter.
 *
 * Each batch is a checkpoint of its groups: a start takes up from the log what came after. A group waits for
 * `checkpointMs` from its first commit on, so that one state record stands for many entries. It waits less long where
 * much waits, where the group is large, or where a caller waits for the end.
 *
 * LIVE-6  One turn puts together what it has time for; the next batch then follows without a wait.
 */
import { StoreError } from '../base/errors.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Put } from '../ports/storage.ts'
import type { Overlay } from './overlay.ts'

/** The puts that are written at once. */
export interface ComposedBatch {
  readonly puts: readonly Put[]
  /** There was no time for all that is due: the next one need not wait for company. */
  readonly isCut: boolean
}

export interface ApplierPorts<Batch extends ComposedBatch> {
  readonly clock: Clock
  readonly limits: Pick<
    Limits,
    | 'applierDelayMs'
    | 'checkpointMs'
    | 'checkpointBytesMax'
    | 'overlayBytesMax'
    | 'groupsInMemoryMax'
  >
  readonly overlay: Pick<
    Overlay,
    'bytes' | 'commits' | 'oldestCommit' | 'waitingGroups' | 'waitingSinceMs' | 'hasLarge'
  >
  /**
   * Takes the next batch out of the overlay, of the groups that wait since `untilMs`, or longer. Throws when something
   * that it needs cannot be read.
   */
  compose(untilMs: number): Batch
  readonly write: (batch: Batch) => Promise<void>
  /** It is durable. */
  onWritten(batch: Batch): void
  onFailed(error: unknown): void
}

/** Groups whose time is nearly over share a batch with the one whose time is over: this part of it may be left. */
const sharedPart = 0.1
/** Parts of what may be in memory: where waiting commits take more, some of them wait no longer. */
const overlayPart = 0.5
const groupsPart = 0.25

/** A caller that waits until everything up to a commit is durable. */
interface Drain {
  readonly commit: number
  readonly resolve: () => void
  readonly reject: (reason: Error) => void
}

export class Applier<Batch extends ComposedBatch> {
  readonly #ports: ApplierPorts<Batch>
  #drains: Drain[] = []
  #underWay: Promise<void> | undefined
  #isScheduled = false
  #isWanted = false
  #isUrgent = false
  /** The last batch had no time for all groups that wait since then, or longer. */
  #cutUntilMs: number | undefined
  #timer: { readonly timer: Timer; readonly atMs: number } | undefined
  #isStopping = false
  #failure: Error | undefined

  constructor(ports: ApplierPorts<Batch>) {
    this.#ports = ports
  }

  /** Something was committed. */
  onCommit(): void {
    const isTimed = this.#timer !== undefined && !this.#ports.overlay.hasLarge && !this.#isPressed
    if (!isTimed) this.#schedule()
  }

  /** Has a batch written in a while, though nothing is committed meanwhile. */
  wantBatch(): void {
    this.#isWanted = true
    this.#schedule()
  }

  /** The same without a wait for company. */
  hasten(): void {
    this.#isUrgent = true
    this.#schedule()
  }

  /** Resolves when everything committed before the call is durable; rejects if that cannot be. */
  drain(): Promise<void> {
    const commit = this.#ports.overlay.commits
    return new Promise((resolve, reject) => {
      this.#drains.push({ commit, resolve, reject })
      this.#endDrains()
      this.#schedule()
      if (this.#isStopping || this.#failure !== undefined) this.#breakDrains()
    })
  }

  /** Nothing is applied from now on. */
  fail(reason: Error): void {
    this.#failure = reason
    this.#breakDrains()
  }

  /** Starts no further batch; resolves when the one under way has ended. */
  async stop(): Promise<void> {
    this.#isStopping = true
    this.#timer?.timer.cancel()
    await this.#underWay
    this.#breakDrains()
  }

  get #isOver(): boolean {
    return this.#isStopping || this.#failure !== undefined
  }

  /** More waits than memory has room for. */
  get #isPressed(): boolean {
    const { overlay, limits } = this.#ports
    const { checkpointBytesMax, overlayBytesMax, groupsInMemoryMax } = limits
    return (
      overlay.bytes >= Math.min(checkpointBytesMax, overlayBytesMax * overlayPart) ||
      overlay.waitingGroups >= Math.max(1, groupsInMemoryMax * groupsPart)
    )
  }

  #schedule(): void {
    if (this.#isScheduled || this.#underWay !== undefined || this.#isOver) return
    const nowMs = this.#ports.clock.monotonicMs()
    const dueMs = this.#dueMs(nowMs)
    if (dueMs === undefined || (this.#timer !== undefined && this.#timer.atMs <= dueMs)) return
    this.#timer?.timer.cancel()
    this.#timer = undefined
    if (dueMs > nowMs) {
      const timer = this.#ports.clock.setTimer(dueMs - nowMs, () => this.#apply())
      this.#timer = { timer, atMs: dueMs }
      return
    }
    this.#isScheduled = true
    this.#ports.clock.defer(() => this.#apply())
  }

  /** When the next batch is due; undefined: nothing is. */
  #dueMs(nowMs: number): number | undefined {
    const { overlay, limits } = this.#ports
    if (this.#cutUntilMs !== undefined || this.#isUrgent) return nowMs
    const sinceMs = overlay.waitingSinceMs
    const isFull = sinceMs !== undefined && this.#isPressed
    if (isFull || (this.#drains.length > 0 && overlay.oldestCommit !== undefined)) return nowMs
    if (this.#isWanted || overlay.hasLarge) return nowMs + limits.applierDelayMs
    if (sinceMs === undefined) return undefined
    return Math.max(sinceMs + limits.checkpointMs, nowMs)
  }

  #apply(): void {
    this.#isScheduled = false
    this.#timer = undefined
    if (this.#isOver) return
    const untilMs = this.#waitingUntilMs()
    this.#isWanted = false
    this.#isUrgent = false
    try {
      const batch = this.#ports.compose(untilMs)
      this.#cutUntilMs = batch.isCut ? untilMs : undefined
      this.#underWay = this.#ports.write(batch).then(
        () => this.#onWritten(batch),
        (error: unknown) => {
          this.#underWay = undefined
          this.#ports.onFailed(error)
        },
      )
    } catch (error) {
      this.#ports.onFailed(error)
    }
  }

  /** Groups that wait since then, or longer, need wait no more. */
  #waitingUntilMs(): number {
    const { clock, limits } = this.#ports
    if (this.#drains.length > 0 || this.#isPressed) return Number.POSITIVE_INFINITY
    const untilMs = clock.monotonicMs() - limits.checkpointMs * (1 - sharedPart)
    return Math.max(untilMs, this.#cutUntilMs ?? untilMs)
  }

  #onWritten(batch: Batch): void {
    this.#underWay = undefined
    this.#ports.onWritten(batch)
    this.#endDrains()
    this.#schedule()
  }

  #endDrains(): void {
    const oldest = this.#ports.overlay.oldestCommit ?? Number.POSITIVE_INFINITY
    for (const { commit, resolve } of this.#drains) if (commit < oldest) resolve()
    this.#drains = this.#drains.filter(({ commit }) => commit >= oldest)
  }

  #breakDrains(): void {
    const reason = this.#failure ?? new StoreError('closed', 'this node is stopping')
    for (const { reject } of this.#drains) reject(reason)
    this.#drains = []
  }
}
