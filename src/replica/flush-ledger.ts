/**
 * Which groups each flush wrote: how far the log is settled (the data store durably holds what it
 * says), and what a peer may have missed since a flush it knows.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, Position } from '../base/ids.ts'
import { highestOf, type GroupPositions } from './log-index.ts'

/** The groups of one flush, each with its highest position in it. */
interface FlushGroups {
  readonly groups: GroupPositions[]
  readonly positions: Position[]
}

export interface WrittenSince {
  readonly through: number
  readonly groups: readonly (readonly [GroupId, Position])[]
}

export class FlushLedger {
  readonly #firstFlush: number
  readonly #flushes: FlushGroups[] = []
  #settledFlush: number
  /** How many groups of the flush after the settled ones are settled already. */
  #settledGroups = 0

  constructor(firstFlush: number) {
    this.#firstFlush = firstFlush
    this.#settledFlush = firstFlush - 1
  }

  get settledFlush(): number {
    return this.#settledFlush
  }

  /** Opens flush `number`, the next one. */
  open(number: number): void {
    assert(number === this.#firstFlush + this.#flushes.length, 'replica: flush numbers are dense')
    this.#flushes.push({ groups: [], positions: [] })
  }

  /** A record of flush `number`, which is open. */
  add(number: number, group: GroupPositions, position: Position): void {
    const flush = this.#flushes[number - this.#firstFlush]
    assert(flush !== undefined, 'replica: a record of a flush that is not open')
    if (group.lastFlush !== number) {
      group.lastFlush = number
      group.lastSlot = flush.groups.push(group) - 1
      flush.positions.push(position)
    } else if (position > (flush.positions[group.lastSlot] ?? 0)) {
      flush.positions[group.lastSlot] = position
    }
  }

  /** Goes on after `settled`; everything before counts as settled. */
  resume(settled: number): void {
    assert(this.#settledFlush < this.#firstFlush, 'replica: the log is resumed once')
    this.#settledFlush = Math.max(settled, this.#settledFlush)
  }

  /** Moves on over flushes, up to the durable one, whose groups are all settled. */
  advance(durableFlush: number): void {
    while (this.#settledFlush < durableFlush) {
      const flush = this.#flushes[this.#settledFlush + 1 - this.#firstFlush]
      assert(flush !== undefined, 'replica: a durable flush is in the ledger')
      while (isSettled(flush, this.#settledGroups)) this.#settledGroups += 1
      if (this.#settledGroups < flush.groups.length) return
      this.#settledGroups = 0
      this.#settledFlush += 1
    }
  }

  /** Groups with records that are not settled, each once, in order of their first such flush. */
  unsettled(): Iterable<GroupId> {
    const found = new Set<GroupId>()
    for (const flush of this.#flushes.slice(this.#settledFlush + 1 - this.#firstFlush)) {
      for (const [slot, { group }] of flush.groups.entries()) {
        if (!isSettled(flush, slot)) found.add(group)
      }
    }
    return found
  }

  /**
   * Groups written in the flushes after `after`, whole flushes as long as there are at most `limit`
   * groups. The first flush is always given, or nobody could get past it; a flush is bounded too.
   */
  since(after: number, limit: number, durableFlush: number): WrittenSince {
    const found = new Map<GroupPositions, Position>()
    let through = Math.max(after, this.#firstFlush - 1)
    while (through < durableFlush) {
      const flush = this.#flushes[through + 1 - this.#firstFlush]
      assert(flush !== undefined, 'replica: a durable flush is in the ledger')
      const added = flush.groups.filter((group) => !found.has(group))
      if (found.size > 0 && found.size + added.length > limit) break
      for (const group of added) found.set(group, highestOf(group))
      through += 1
    }
    const written = [...found].filter(([, position]) => position > 0)
    return { through, groups: written.map(([{ group }, position]) => [group, position]) }
  }
}

function isSettled(flush: FlushGroups, slot: number): boolean {
  const group = flush.groups[slot]
  return group !== undefined && group.settled >= (flush.positions[slot] ?? 0)
}
