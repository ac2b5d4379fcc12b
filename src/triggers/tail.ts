/**
 * The tail calls by which the cells of many shards come. One call covers all of them, as long as none is
 * behind, and asks any replica: the one that the client chooses for its first shard. A shard that could take
 * no more gets a short call of its own, and joins the others after that. A long call that brought nothing is
 * followed by one current read, which a node that is cut off cannot answer.
 */
import { toStoreError } from '../base/problem.ts'
import type { Cells } from '../client/cells.ts'
import type { LogPage } from '../client/options.ts'
import type { Clock } from '../ports/clock.ts'
import { pause } from '../time/moments.ts'
import type { TriggerLimits } from './limits.ts'
import { isOutage } from './member.ts'
import type { ShardRun } from './shard-run.ts'

export interface TailParts {
  readonly cells: Cells
  readonly clock: Clock
  readonly limits: TriggerLimits
  /** Answers whose cells are not all done with, of all tails of a trigger. */
  readonly answers: { count: number }
  mayRun(): boolean
  /** There is room for an answer again, of any tail. */
  onRoom(): void
  onFailed(error: unknown): void
}

/** A shard of a tail call. */
interface Asked {
  readonly run: ShardRun
  readonly place: NonNullable<ShardRun['wanted']>['place']
  readonly asked: number
}

export class Tail {
  readonly #parts: TailParts
  readonly #ready = new Set<ShardRun>()
  #polls = 0
  /** One of them waits for long. */
  #hasLong = false
  #isPumping = false

  constructor(parts: TailParts) {
    this.#parts = parts
  }

  /** The shard is to be asked for, unless it is. */
  add(run: ShardRun): void {
    if (run.isAsked || this.#ready.has(run)) return
    this.#ready.add(run)
    this.pump()
  }

  delete(run: ShardRun): void {
    this.#ready.delete(run)
  }

  /** Asks at the end of this turn: all shards that are ready by then go into one call. */
  pump(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    this.#parts.clock.defer(() => {
      this.#isPumping = false
      this.#ask()
    })
  }

  #ask(): void {
    const { limits, answers, mayRun } = this.#parts
    const isFull = this.#polls >= limits.pollsMax || answers.count >= limits.answersMax
    if (isFull || !mayRun()) return
    const asked: Asked[] = []
    for (const run of this.#ready) {
      const { wanted } = run
      if (wanted !== undefined) asked.push({ run, ...wanted })
    }
    this.#ready.clear()
    if (asked.length === 0) return
    const isLong = this.#polls === 0
    if (isLong) this.#hasLong = true
    this.#polls += 1
    for (const { run } of asked) run.isAsked = true
    this.#poll(asked, isLong).then(
      (isEmpty) => this.#onPolled(asked, isLong, isEmpty),
      (error: unknown) => this.#parts.onFailed(error),
    )
  }

  #onPolled(asked: readonly Asked[], isLong: boolean, isEmpty: boolean): void {
    this.#polls -= 1
    if (isLong) this.#hasLong = false
    for (const { run } of asked) {
      run.isAsked = false
      if (!run.isStopped) this.#ready.add(run)
    }
    // Short calls in vain that follow one another would never be one: the last begins the next.
    if (!isEmpty || this.#hasLong || this.#polls === 0) this.pump()
  }

  /** Whether it brought nothing. */
  async #poll(asked: readonly Asked[], isLong: boolean): Promise<boolean> {
    const { limits, clock } = this.#parts
    try {
      const pages = await this.#pages(asked, isLong ? limits.waitMs : limits.shortWaitMs)
      this.#give(asked, pages)
      const isEmpty = pages.every((page) => page === undefined || page.items.length === 0)
      if (isLong && isEmpty) await this.#probe(asked)
      return isEmpty
    } catch (error) {
      if (!isOutage(error)) throw error
      await pause({ clock }, limits.pauseMs)
      return true
    }
  }

  async #pages(asked: readonly Asked[], waitMs: number): Promise<readonly (LogPage | undefined)[]> {
    const { cells, limits } = this.#parts
    const { pageCells: limit, callMs: timeoutMs } = limits
    const outcomes = await cells.shardLogs(
      asked.map(({ place }) => place),
      { read: 'snapshot', limit, waitMs, timeoutMs },
    )
    const failed = outcomes.find((outcome) => outcome.kind === 'problem')
    const isNothing = outcomes.every(
      (outcome) => outcome.kind === 'problem' || outcome.value.items.length === 0,
    )
    if (failed !== undefined && isNothing) throw toStoreError(failed.problem)
    return outcomes.map((outcome) => (outcome.kind === 'ok' ? outcome.value : undefined))
  }

  /** Asked of the same node, as it is the same shard. */
  async #probe([first]: readonly Asked[]): Promise<void> {
    if (first === undefined) return
    const { cells, limits } = this.#parts
    await cells.shardLogs([first.place], { limit: 1, timeoutMs: limits.callMs })
  }

  #give(asked: readonly Asked[], pages: readonly (LogPage | undefined)[]): void {
    const { answers } = this.#parts
    let left = pages.reduce((sum, page) => sum + (page?.items.length ?? 0), 0)
    if (left > 0) answers.count += 1
    const release = (): void => {
      left -= 1
      if (left > 0) return
      answers.count -= 1
      this.#parts.onRoom()
    }
    for (const [i, one] of asked.entries()) {
      const page = pages[i]
      // A shard that nothing came of goes on where it is; a time is an added id from now on.
      if (page !== undefined) one.run.take(page, one.asked, release)
    }
  }
}
