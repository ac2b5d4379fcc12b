/**
 * One trigger in one process: the shards that it has been given, and the tail calls by which their
 * cells come. One call covers all shards, as long as none is behind; it asks any replica. A call that
 * brought nothing is followed by one current read, which a node that is cut off cannot answer.
 */
import { errorOf } from '../base/problem.ts'
import type { TriggerRow } from '../cells/service-table.ts'
import type { ClientCells } from '../client/cells.ts'
import type { LogPage } from '../client/options.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { pause } from '../txn/time.ts'
import type { TriggerLimits } from './bounds.ts'
import type { Trigger } from './definition.ts'
import type { TriggerEvent } from './event.ts'
import { isOutage } from './member.ts'
import type { OffsetStore } from './offset-store.ts'
import { ShardRun } from './shard-run.ts'
import { Slots } from './slots.ts'

export interface TriggerRunParts {
  readonly trigger: Trigger
  readonly worker: string
  readonly offsets: OffsetStore
  readonly cells: ClientCells
  readonly clock: Clock
  readonly random: Random
  readonly limits: TriggerLimits
  /** Tells the service how many cells of a shard are marked, and gives the trigger's row then. */
  report(trigger: string, shard: number, marked: number): Promise<TriggerRow>
  onEvent(event: TriggerEvent): void
  onFailed(error: unknown): void
}

/** A shard that is asked about in a call. */
interface Asked {
  readonly run: ShardRun
  readonly place: NonNullable<ShardRun['wanted']>['place']
  readonly asked: number
}

export class TriggerRun {
  readonly #parts: TriggerRunParts
  readonly #slots: Slots
  readonly #opens: Slots
  readonly #runs = new Map<number, ShardRun>()
  /** Shards that others have claimed, by the generation under which they were this worker's. */
  readonly #lost = new Map<number, number>()
  readonly #ready = new Set<ShardRun>()
  readonly #stopping = new Map<number, Promise<void>>()
  #row: TriggerRow | undefined
  /** Marked cells by shard that the service has not been told of, and how often there was something. */
  readonly #unreported = new Map<number, number>()
  #marksUnreported = 0
  #reporting: Promise<void> | undefined
  /** Something was not done, since the trigger was not to run. */
  #wasHeld = true
  #polls = 0
  #answers = 0
  #isPumping = false
  #isEnding = false

  constructor(parts: TriggerRunParts) {
    this.#parts = parts
    this.#slots = new Slots(parts.limits.handlersMax)
    this.#opens = new Slots(parts.limits.opensMax)
  }

  get name(): string {
    return this.#parts.trigger.name
  }

  /** Resolves when no shard that was taken away is worked on. */
  async quiet(): Promise<void> {
    while (this.#stopping.size > 0) await Promise.all(this.#stopping.values())
  }

  /** What the service says of the trigger. */
  onRow(row: TriggerRow): void {
    const before = this.#row
    this.#row = row
    const { state, reason, trigger } = row
    if (before?.state !== state) this.#parts.onEvent({ kind: 'state', trigger, state, reason })
    if (before !== undefined && before.revision !== row.revision) this.#reopen()
    if (this.#wasHeld && this.#mayRun()) this.#goOn()
    void this.#reportAll()
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
      ...{ slots: this.#slots, claim: { shard, generation, owner: worker }, clock, limits },
      mayRun: () => this.#mayRun(),
      report: (of, marked) => this.#report(of, marked),
      onReady: (ready) => this.#onReady(ready),
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
      await this.#opens.take()
      try {
        if (this.#runs.get(run.claim.shard) === run) await run.open()
      } finally {
        this.#opens.give()
      }
    }
    open().catch((error: unknown) => this.#parts.onFailed(error))
  }

  #drop(run: ShardRun): void {
    const { shard } = run.claim
    this.#runs.delete(shard)
    this.#ready.delete(run)
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
      this.#onReady(run)
    }
    this.#pump()
  }

  #report(shard: number, marked: number): Promise<void> {
    this.#unreported.set(shard, marked)
    this.#marksUnreported += 1
    return this.#reportAll()
  }

  /** What the service cannot be told now it is told when it can be reached. */
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

  #onReady(run: ShardRun): void {
    const isNew = !this.#ready.has(run) && this.#runs.get(run.claim.shard) === run
    if (!isNew || run.isAsked) return
    this.#ready.add(run)
    this.#pump()
  }

  /** Asks at the end of this turn: all shards that are ready by then go into one call. */
  #pump(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    this.#parts.clock.defer(() => {
      this.#isPumping = false
      this.#ask()
    })
  }

  #ask(): void {
    const { pollsMax, answersMax } = this.#parts.limits
    if (!this.#mayRun() || this.#polls >= pollsMax || this.#answers >= answersMax) return
    const asked: Asked[] = []
    for (const run of this.#ready) {
      const { wanted } = run
      if (wanted !== undefined) asked.push({ run, ...wanted })
    }
    this.#ready.clear()
    if (asked.length === 0) return
    this.#polls += 1
    for (const { run } of asked) run.isAsked = true
    this.#poll(asked)
      .catch((error: unknown) => this.#parts.onFailed(error))
      .finally(() => {
        this.#polls -= 1
        for (const { run } of asked) {
          run.isAsked = false
          this.#onReady(run)
        }
        this.#pump()
      })
  }

  async #poll(asked: readonly Asked[]): Promise<void> {
    const { limits, clock } = this.#parts
    const isOnly = this.#polls === 1
    const waitMs = isOnly ? limits.waitMs : limits.shortWaitMs
    try {
      const pages = await this.#pages(asked, waitMs)
      this.#give(asked, pages)
      const isEmpty = pages.every((page) => page === undefined || page.cells.length === 0)
      if (isOnly && isEmpty) await this.#probe(asked)
    } catch (error) {
      if (!isOutage(error)) throw error
      await pause({ clock }, limits.pauseMs)
    }
  }

  async #pages(asked: readonly Asked[], waitMs: number): Promise<readonly (LogPage | undefined)[]> {
    const { cells, limits } = this.#parts
    const options = {
      read: 'any',
      limit: limits.pageCells,
      waitMs,
      timeoutMs: limits.callMs,
    } as const
    const outcomes = await cells.batchShardLog(
      asked.map(({ place }) => place),
      options,
    )
    const failed = outcomes.find((outcome) => outcome.kind === 'problem')
    const isNothing = outcomes.every(
      (outcome) => outcome.kind === 'problem' || outcome.value.cells.length === 0,
    )
    if (failed !== undefined && isNothing) throw errorOf(failed.problem)
    return outcomes.map((outcome) => (outcome.kind === 'ok' ? outcome.value : undefined))
  }

  /** Asked of the same node, as it is the same shard. */
  async #probe([first]: readonly Asked[]): Promise<void> {
    if (first === undefined) return
    const { cells, limits } = this.#parts
    await cells.batchShardLog([first.place], { limit: 1, timeoutMs: limits.callMs })
  }

  #give(asked: readonly Asked[], pages: readonly (LogPage | undefined)[]): void {
    let left = pages.reduce((sum, page) => sum + (page?.cells.length ?? 0), 0)
    if (left > 0) this.#answers += 1
    const release = (): void => {
      left -= 1
      if (left > 0) return
      this.#answers -= 1
      this.#pump()
    }
    for (const [i, one] of asked.entries()) {
      const page = pages[i]
      // A shard that nothing came of goes on where it is; a time is an added id from now on.
      if (page !== undefined) one.run.take(page, one.asked, release)
    }
  }
}
