/**
 * Moves what was committed from the overlay into the store: in large synced batches, one at a time, off the
 * commit path: in the batch of the log they would cost a commit 1.7 times as much. What a batch holds is its owner's matter.
 *
 * A batch waits for company, unless there is one full, or a caller waits for the end.
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
  /** There was no time for all of it: the next one need not wait for company. */
  readonly isCut: boolean
}

export interface ApplierPorts<Batch extends ComposedBatch> {
  readonly clock: Clock
  readonly limits: Pick<Limits, 'applierBatchBytesMax' | 'applierDelayMs'>
  readonly overlay: Pick<Overlay, 'bytes' | 'commits' | 'oldestCommit'>
  /** Takes the next batch out of the overlay. Throws when something that it needs cannot be read. */
  compose(): Batch
  readonly write: (batch: Batch) => Promise<void>
  /** It is durable. */
  onWritten(batch: Batch): void
  onFailed(error: unknown): void
}

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
  #wasCut = false
  #timer: Timer | undefined
  #isStopping = false
  #failure: Error | undefined

  constructor(ports: ApplierPorts<Batch>) {
    this.#ports = ports
  }

  /** Something was committed. */
  onCommit(): void {
    if (this.#isFull) this.#hasten()
    this.#schedule()
  }

  /** Has a batch written in a while, though nothing is committed meanwhile. */
  wantBatch(): void {
    this.#isWanted = true
    this.#schedule()
  }

  /** The same without a wait for company. */
  hasten(): void {
    this.#isWanted = true
    this.#isUrgent = true
    this.#hasten()
    this.#schedule()
  }

  /** Resolves when everything committed before the call is durable; rejects if that cannot be. */
  drain(): Promise<void> {
    const commit = this.#ports.overlay.commits
    return new Promise((resolve, reject) => {
      this.#drains.push({ commit, resolve, reject })
      this.#endDrains()
      this.#hasten()
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
    this.#timer?.cancel()
    await this.#underWay
    this.#breakDrains()
  }

  get #isOver(): boolean {
    return this.#isStopping || this.#failure !== undefined
  }

  get #isFull(): boolean {
    const { overlay, limits } = this.#ports
    return overlay.bytes >= limits.applierBatchBytesMax
  }

  #schedule(): void {
    if (this.#isScheduled || this.#underWay !== undefined || this.#isOver) return
    const { clock, limits, overlay } = this.#ports
    if (overlay.oldestCommit === undefined && !this.#isWanted) return
    this.#isScheduled = true
    // Commits that come meanwhile share the batch: fewer syncs, and one state record for many entries.
    const isDue = this.#drains.length > 0 || this.#isFull || this.#wasCut || this.#isUrgent
    if (isDue) clock.defer(() => this.#apply())
    else this.#timer = clock.setTimer(limits.applierDelayMs, () => this.#apply())
  }

  /** A caller waits, or there is a batch full: the applier does not wait for more. */
  #hasten(): void {
    if (this.#timer === undefined) return
    this.#timer.cancel()
    this.#timer = undefined
    this.#isScheduled = false
    this.#schedule()
  }

  #apply(): void {
    this.#isScheduled = false
    this.#timer = undefined
    if (this.#isOver) return
    this.#isWanted = false
    this.#isUrgent = false
    try {
      const batch = this.#ports.compose()
      this.#wasCut = batch.isCut
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
