/**
 * One trigger in one process: the shards that it has been given, whether it runs, and how many cells
 * it has marked.
 */
import type { TriggerRow } from './service-rows.ts'
import type { Cells } from '../client/cells.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { TriggerLimits } from './limits.ts'
import type { Trigger } from './definition.ts'
import type { TriggerEvent } from './event.ts'
import { isOutage } from './member.ts'
import type { OffsetStore } from './offset-store.ts'
import { ShardRun } from './shard-run.ts'
import { Slots } from '../base/concurrency.ts'
import { Tail } from './tail.ts'

export interface TriggerRunParts {
  readonly trigger: Trigger
  readonly worker: string
  readonly offsets: OffsetStore
  readonly cells: Cells
  readonly clock: Clock
  readonly random: Random
  readonly limits: TriggerLimits
  /** Tells the service how many cells of a shard are marked, and gives the trigger's row then. */
  report(trigger: string, shard: number, marked: number): Promise<TriggerRow>
  /** Shards of which the service counts marked cells. */
  marks(trigger: string): Promise<readonly { readonly shard: number; readonly marked: number }[]>
  onEvent(event: TriggerEvent): void
  onFailed(error: unknown): void
}

export class TriggerRun {
  readonly #parts: TriggerRunParts
  readonly #slots: Slots
  readonly #opens: Slots
  readonly #runs = new Map<number, ShardRun>()
  /** Shards that others have claimed, by the generation under which they were this worker's. */
  readonly #lost = new Map<number, number>()
  readonly #tails: readonly Tail[]
  readonly #stopping = new Map<number, Promise<void>>()
  #row: TriggerRow | undefined
  /** Marked cells by shard that the service has not been told of, and how often there was something. */
  readonly #unreported = new Map<number, number>()
  #marksUnreported = 0
  #reporting: Promise<void> | undefined
  /** Shards that were opened without a marked cell; the service may count some. */
  readonly #unmarked = new Set<number>()
  #isComparing = false
  /** Something was not done, since the trigger was not to run. */
  #wasHeld = true
  #isEnding = false

  constructor(parts: TriggerRunParts) {
    this.#parts = parts
    this.#slots = new Slots(parts.limits.handlersMax)
    this.#opens = new Slots(parts.limits.opensMax)
    const tail = {
      ...parts,
      answers: { count: 0 },
      mayRun: () => this.#mayRun(),
      onRoom: () => this.#pumpAll(),
    }
    this.#tails = Array.from({ length: parts.limits.tails }, () => new Tail(tail))
  }

  get name(): string {
    return this.#parts.trigger.name
  }

  /** Resolves when no shard that was taken away is worked on. */
  async quiet(): Promise<void> {
    while (this.#stopping.size > 0) await Promise.all(this.#stopping.values())
  }

  /** Takes the service's row of the trigger. */
  onRow(row: TriggerRow): void {
    const before = this.#row
    this.#row = row
    const { state, reason, trigger } = row
    if (before?.state !== state) this.#parts.onEvent({ kind: 'state', trigger, state, reason })
    if (before !== undefined && before.revision !== row.revision) this.#reopen()
    if (this.#wasHeld && this.#mayRun()) this.#goOn()
    void this.#reportAll()
    this.#compareAll()
  }

  /** These shards are this worker's, each under its generation, and no others. */
  assign(given: ReadonlyMap<number, number>): void {
    const shards = this.#isEnding ? new Map<number, number>() : given
    for (const [shard, run] of this.#runs) {
      if (shards.get(shard) !== run.claim.generation) this.#drop(run)
    }
    for (const [shard, generation] of shards) {
      const isLost = (this.#lost.get(shard) ?? 0) >= generation
      if (!this.#runs.has(shard) && !isLost) this.#begin(shard, generation)
    }
  }

  /** Gives up all shards; resolves when nothing is at work. */
  async end(): Promise<void> {
    this.#isEnding = true
    this.assign(new Map())
    await this.quiet()
  }

  /** Calls of the same shards are of the same tail, so that they go to the same node. */
  #pickTail({ claim }: ShardRun): Tail | undefined {
    return this.#tails[claim.shard % this.#tails.length]
  }

  #mayRun(): boolean {
    const mayRun = this.#isRunning && !this.#isEnding
    if (!mayRun) this.#wasHeld = true
    return mayRun
  }

  get #isRunning(): boolean {
    const row = this.#row
    // While the service cannot be told, this worker counts for itself.
    const marked = this.#marksUnreported + (row?.marked ?? 0) - (row?.forgiven ?? 0)
    return row?.state === 'running' && marked <= row.marksMax
  }

  #begin(shard: number, generation: number): void {
    const { worker, clock, limits } = this.#parts
    const run: ShardRun = new ShardRun({
      ...this.#parts,
      slots: this.#slots,
      opens: this.#opens,
      claim: { shard, generation, owner: worker },
      clock,
      limits,
      mayRun: () => this.#mayRun(),
      report: (of, marked) => this.#report(of, marked),
      onNoneMarked: (of) => this.#compare(of),
      onReady: (ready) => this.#pickTail(ready)?.add(ready),
      onDisplaced: (displaced) => {
        this.#lost.set(shard, generation)
        if (this.#runs.get(shard) === displaced) this.#drop(displaced)
      },
    })
    this.#runs.set(shard, run)
    this.#open(run, this.#stopping.get(shard))
  }

  /** Behind a run of the same shard that comes to its end. */
  #open(run: ShardRun, after: Promise<void> | undefined): void {
    const open = async (): Promise<void> => {
      await after
      if (this.#runs.get(run.claim.shard) === run) await run.open()
    }
    open().catch((error: unknown) => this.#parts.onFailed(error))
  }

  #drop(run: ShardRun): void {
    const { shard } = run.claim
    this.#runs.delete(shard)
    this.#pickTail(run)?.delete(run)
    const before = this.#stopping.get(shard)
    const stop = async (): Promise<void> => {
      await before
      await run.stop()
    }
    const stopped = stop()
      .catch((error: unknown) => this.#parts.onFailed(error))
      .finally(() => {
        if (this.#stopping.get(shard) === stopped) this.#stopping.delete(shard)
      })
    this.#stopping.set(shard, stopped)
  }

  #reopen(): void {
    for (const run of this.#runs.values()) this.#open(run, undefined)
  }

  #goOn(): void {
    this.#wasHeld = false
    for (const run of this.#runs.values()) {
      run.go()
      this.#pickTail(run)?.add(run)
    }
    this.#pumpAll()
  }

  #pumpAll(): void {
    for (const tail of this.#tails) tail.pump()
  }

  #report(shard: number, marked: number): Promise<void> {
    this.#unreported.set(shard, marked)
    this.#marksUnreported += 1
    return this.#reportAll()
  }

  /** Reports counts to the service; those that fail for an outage are reported once it can be reached. */
  #reportAll(): Promise<void> {
    if (this.#unreported.size === 0) return Promise.resolve()
    this.#reporting ??= this.#tellService()
      .catch((error: unknown) => {
        if (!isOutage(error)) this.#parts.onFailed(error)
      })
      .finally(() => (this.#reporting = undefined))
    return this.#reporting
  }

  async #tellService(): Promise<void> {
    for (const [shard, marked] of this.#unreported) {
      const row = await this.#parts.report(this.name, shard, marked)
      if (this.#unreported.get(shard) === marked) this.#unreported.delete(shard)
      if (this.#unreported.size === 0) this.#marksUnreported = 0
      this.onRow(row)
    }
  }

  #compare(shard: number): void {
    this.#unmarked.add(shard)
    this.#compareAll()
  }

  /**
   * One look for all shards, and only while the service counts any cell. The owner of a shard before this one
   * may have died when its last mark was gone, and before the service knew.
   */
  #compareAll(): void {
    if ((this.#row?.marked ?? 0) === 0) return this.#unmarked.clear()
    if (this.#unmarked.size === 0 || this.#isEnding || this.#isComparing) return
    this.#isComparing = true
    this.#recount()
      .catch((error: unknown) => {
        if (!isOutage(error)) this.#parts.onFailed(error)
      })
      .finally(() => (this.#isComparing = false))
  }

  /** After an outage the next look is with the next word of the service. */
  async #recount(): Promise<void> {
    const shards = [...this.#unmarked]
    const counted = new Set<number>()
    for (const { shard, marked } of await this.#parts.marks(this.name)) {
      if (marked > 0) counted.add(shard)
    }
    for (const shard of shards) {
      this.#unmarked.delete(shard)
      if (counted.has(shard)) this.#runs.get(shard)?.recount()
    }
  }
}
