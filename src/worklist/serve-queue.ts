/**
 * Gives the groups that wait to be served their turns, a bounded number at a time. Groups whose last serve
 * failed wait in a lane of their own, and have half of the slots at most. Each of them may wait for a node
 * that does not answer, and if they had all slots no other group would be served. Both lanes move in turn.
 */
import type { GroupId } from '../base/ids.ts'

/** The groups that wait in it, and how many of it are being served. */
interface Lane {
  readonly waiting: GroupId[]
  served: number
  readonly slots: number
}

/** A group that has a slot. */
export interface ServeTurn {
  readonly group: GroupId
  /** It was served: its slot is free. */
  end(): void
}

export class ServeQueue {
  readonly #slots: number
  readonly #well: Lane
  readonly #failing: Lane
  /** Whose turn was last. */
  #last: Lane

  constructor(slots: number) {
    this.#slots = slots
    this.#well = { waiting: [], served: 0, slots }
    this.#failing = { waiting: [], served: 0, slots: Math.max(1, Math.floor(slots / 2)) }
    this.#last = this.#failing
  }

  /** Groups that wait. */
  get size(): number {
    return this.#well.waiting.length + this.#failing.waiting.length
  }

  /** Of these, those of which nothing has failed. */
  get sizeWell(): number {
    return this.#well.waiting.length
  }

  get served(): number {
    return this.#well.served + this.#failing.served
  }

  push(group: GroupId, hasFailed: boolean): void {
    const { waiting } = hasFailed ? this.#failing : this.#well
    waiting.push(group)
  }

  /** Undefined: no group waits for which there is a slot. */
  next(): ServeTurn | undefined {
    if (this.served >= this.#slots) return undefined
    const [first, second] =
      this.#last === this.#well ? [this.#failing, this.#well] : [this.#well, this.#failing]
    return this.#takeNext(first) ?? this.#takeNext(second)
  }

  #takeNext(lane: Lane): ServeTurn | undefined {
    const group = lane.served < lane.slots ? lane.waiting.shift() : undefined
    if (group === undefined) return undefined
    this.#last = lane
    lane.served += 1
    return { group, end: () => (lane.served -= 1) }
  }

  /** Drops all groups that wait. */
  clear(): void {
    this.#well.waiting.length = 0
    this.#failing.waiting.length = 0
  }
}
