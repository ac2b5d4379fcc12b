/**
 * Counts the rows of all groups against the hashes in their state records, again and again, in the background: a row that is
 * missing, or is an older one, has no wrong checksum and is found by nothing else.
 *
 * HEAL-7  A pass counts each group that has a state record when it comes to it. One that is written meanwhile is counted
 *         again by the next pass.
 */
import { assert } from '../base/assert.ts'
import type { GroupId } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { GroupsPage } from '../peers/comparison.ts'
import type { Recount } from '../peers/differences.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'

export interface RowScrubParts {
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: Pick<Limits, 'scrubPauseMs'>
  /** Some groups in their order, behind `after`. */
  groups(after: GroupId | undefined): Promise<GroupsPage>
  /** At the pace of a scrub. */
  recount(group: GroupId): Promise<Recount>
  isAside(group: GroupId): boolean
  onDamaged(group: GroupId): void
  onFailed(error: unknown): void
}

export interface RowScrubFigures {
  /** Passes that came to their end since the start. */
  readonly rowScrubPasses: number
  /** Groups whose rows the pass under way, or the last one, has counted. */
  readonly rowScrubbedGroups: number
  /** Groups whose rows were wrong, since the start. */
  readonly rowScrubWrong: number
}

export class RowScrub {
  readonly #parts: RowScrubParts
  #passes = 0
  /** Groups of the pass under way, or of the last one. */
  #counted = 0
  #countedBefore = 0
  #wrong = 0
  #timer: Timer | undefined
  #underWay: Promise<void> | undefined
  #isStopped = false

  constructor(parts: RowScrubParts) {
    this.#parts = parts
  }

  get figures(): RowScrubFigures {
    return {
      rowScrubPasses: this.#passes,
      rowScrubbedGroups: this.#counted,
      rowScrubWrong: this.#wrong,
    }
  }

  get isUnderWay(): boolean {
    return this.#underWay !== undefined
  }

  start(): void {
    if (this.#isStopped) return
    assert(this.#underWay === undefined, 'HEAL-7: two passes are under way')
    const { clock, limits } = this.#parts
    this.#timer = clock.setTimer(limits.scrubPauseMs, () => void this.now())
  }

  /** A pass now, or the one under way. Resolves at its end. */
  now(): Promise<void> {
    this.#timer?.cancel()
    this.#underWay ??= this.#pass()
      .catch((error: unknown) => {
        if (!this.#isStopped) this.#parts.onFailed(error)
      })
      .then(() => {
        this.#underWay = undefined
        this.start()
      })
    return this.#underWay
  }

  async #pass(): Promise<void> {
    let after: GroupId | undefined
    this.#countedBefore += this.#counted
    this.#counted = 0
    do {
      const { groups, next } = await this.#parts.groups(after)
      for (const group of groups) {
        if (this.#isStopped) return
        await this.#look(group)
      }
      const isForward = next === undefined || after === undefined || next > after
      assert(isForward, 'HEAL-7: a pass goes back')
      after = next
    } while (after !== undefined)
    this.#passes += 1
    this.#parts.trace.mark('rows_counted')
  }

  async #look(group: GroupId): Promise<void> {
    const { recount, isAside, onDamaged, trace } = this.#parts
    if (isAside(group)) return
    const count = await recount(group)
    if (this.#isStopped || count === 'unknown') return
    this.#counted += 1
    const countedEver = this.#countedBefore + this.#counted
    assert(this.#wrong < countedEver, 'HEAL-7: more groups are wrong than were counted')
    if (count === 'sound') return
    this.#wrong += 1
    trace.mark('scrub_found_wrong_rows')
    onDamaged(group)
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }
}
