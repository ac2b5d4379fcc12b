/**
 * Which groups each flush wrote: how far the log is settled (the data store durably holds what it
 * says, and rows of it), and what a peer may have missed since a flush it knows. Of the flushes that
 * are settled only the last are held; older ones are read again when a peer asks for them.
 */
import { assert, present } from '../base/assert.ts'
import type { GroupId, Position } from '../base/ids.ts'
import type { GroupPositions } from './log-index.ts'
import type { FlushMark } from './settled.ts'

/** The groups of one flush, each with its highest position in it, and its highest that has a value. */
interface FlushGroups {
  readonly groups: GroupPositions[]
  readonly positions: Position[]
  readonly values: Position[]
  /** Once it is written. */
  mark: FlushMark | undefined
  bytes: number
}

/** A group, and its highest position that a peer might lack. */
export type Written = readonly [GroupId, Position]

export interface WrittenSince {
  readonly through: number
  /** All groups of these flushes are named: each of them could be read. */
  readonly isWhole: boolean
  readonly groups: readonly Written[]
}

/**
 * A visit to a group on the way, whose records in the flush go through a position: `wait` stops there until
 * the next time.
 */
export type Visit = (group: GroupPositions, flush: number, through: Position) => 'pass' | 'wait'

/** The weight of settled flushes that is held, in groups: peers that are not far behind ask for less. */
const heldWeightMax = 100_000
/** The weight of a flush beside its groups: with one client each has one, and a list and a mark for it. */
const flushWeight = 4
/** The weight that may gather above the bound: letting go of the oldest moves all that stay. */
const gatheredWeight = 10_000
/** Bytes of the flushes of one answer, about: what a peer asks for next is all in them. */
export const digestBytesMax: number = 16 * 1024 * 1024
/** Flushes read again for one answer. */
const readFlushesMax = 64
/** Records that one piece of work looks at. */
const pieceWeight = 256

export class FlushLedger {
  #firstFlush: number
  /** The first flush held, and those from there on. */
  #firstHeld: number
  #flushes: FlushGroups[] = []
  #heldWeight = 0
  #settledFlush: number
  /** How many groups of the flush after the settled ones are passed already. */
  #passedGroups = 0

  /** `settled`: the flushes through there are not held. */
  constructor(firstFlush: number, settled: number) {
    this.#firstFlush = firstFlush
    this.#settledFlush = settled
    this.#firstHeld = settled + 1
  }

  get settledFlush(): number {
    return this.#settledFlush
  }

  /** The log has given up the flushes before this one. */
  get firstFlush(): number {
    return this.#firstFlush
  }

  /** The log gives up the flushes before `first`. */
  giveUp(first: number): void {
    assert(first > this.#firstFlush, 'LOG-17: the mark of the first flush goes back')
    assert(first <= this.#settledFlush, 'LOG-16: a flush is given up that is not settled')
    this.#firstFlush = first
  }

  /** Opens flush `number`, the next one. */
  open(number: number): void {
    assert(number === this.#firstHeld + this.#flushes.length, 'replica: flush numbers are dense')
    this.#flushes.push({ groups: [], positions: [], values: [], mark: undefined, bytes: 0 })
    this.#heldWeight += flushWeight
  }

  /** A record of flush `number`, which is open. */
  add(number: number, group: GroupPositions, position: Position, hasValue: boolean): void {
    const { groups, positions, values } = this.#held(number)
    if (group.lastFlush !== number) {
      group.lastFlush = number
      group.lastSlot = groups.push(group) - 1
      positions.push(position)
      values.push(hasValue ? position : 0)
      this.#heldWeight += 1
      return
    }
    const slot = group.lastSlot
    positions[slot] = Math.max(position, positions[slot] ?? 0)
    if (hasValue) values[slot] = Math.max(position, values[slot] ?? 0)
  }

  #held(number: number): FlushGroups {
    const flush = this.#flushes[number - this.#firstHeld]
    return present(flush, 'replica: the flush is in the ledger')
  }

  /** The flush is as it will be on the disk, and has this many bytes. */
  close(mark: FlushMark, bytes = 0): void {
    const flush = this.#held(mark.number)
    flush.mark = mark
    flush.bytes = bytes
  }

  /**
   * Moves on over the flushes up to the durable one as long as `visit` lets all of their groups pass.
   * Gives the last flush that was passed whole, when that is another one than before.
   */
  advance(durableFlush: number, visit: Visit): FlushMark | undefined {
    let last: FlushMark | undefined
    while (this.#settledFlush < durableFlush) {
      const number = this.#settledFlush + 1
      const flush = this.#held(number)
      for (; this.#passedGroups < flush.groups.length; this.#passedGroups++) {
        const slot = this.#passedGroups
        const group = present(flush.groups[slot], 'replica: a slot has its group')
        if (visit(group, number, flush.positions[slot] ?? 0) === 'wait') return last
      }
      this.#passedGroups = 0
      this.#settledFlush = number
      last = present(flush.mark, 'replica: a durable flush is closed')
    }
    return last
  }

  /** Lets go of the oldest of what is settled, when there is enough of it. */
  trim(): void {
    if (this.#heldWeight < heldWeightMax + gatheredWeight) return
    let count = 0
    for (const { groups } of this.#flushes) {
      if (this.#heldWeight <= heldWeightMax || this.#firstHeld + count > this.#settledFlush) break
      this.#heldWeight -= flushWeight + groups.length
      count += 1
    }
    this.#flushes.splice(0, count)
    this.#firstHeld += count
  }

  /** Groups with records that are not settled, each once, in order of their first such flush. */
  unsettled(): Set<GroupId> {
    const found = new Set<GroupId>()
    for (const flush of this.#flushes.slice(this.#settledFlush + 1 - this.#firstHeld)) {
      for (const [slot, { group }] of flush.groups.entries()) {
        if (!isSettled(flush, slot)) found.add(group)
      }
    }
    return found
  }

  /**
   * Groups written in the flushes after `after`, whole flushes as long as there are at most `limit`
   * groups, and `digestBytesMax` in them. The first flush is always given, or no peer could get past it; a flush is bounded too.
   * Those that the log has given up are passed, and the answer is not whole then. `read` gives those of a flush that is not held; one that cannot be read is passed, and told of.
   * Yields after each flush that was read, or after some that are held: others may go on meanwhile.
   */
  *since(
    after: number,
    limit: number,
    durableFlush: number,
    read: (number: number) => readonly Written[] | undefined,
  ): Generator<number, WrittenSince> {
    const found = new Map<GroupId, Position>()
    let through = after
    let left = readFlushesMax
    let isWhole = true
    let weight = 0
    let bytes = 0
    while (through < durableFlush && bytes < digestBytesMax) {
      // Others go on between two pieces: the log may give up flushes meanwhile.
      isWhole &&= through >= this.#firstFlush - 1
      through = Math.max(through, this.#firstFlush - 1)
      const number = through + 1
      const isHeld = number >= this.#firstHeld
      if (!isHeld && left-- === 0) break
      const written = isHeld ? this.#writtenIn(number) : toColumns(read(number))
      if (found.size > 0 && found.size + countNew(written, found) > limit) break
      isWhole &&= written !== nothingRead
      addTo(found, written)
      through = number
      if (isHeld) bytes += this.#held(number).bytes
      weight += isHeld ? flushWeight + written.groups.length : pieceWeight
      if (weight < pieceWeight) continue
      weight = 0
      yield 0
    }
    return { through, isWhole, groups: [...found] }
  }

  #writtenIn(number: number): Columns {
    const { groups, values } = this.#held(number)
    return { groups, positions: values }
  }
}

/** Groups of a flush and their highest positions that a peer might lack; 0: there is none. */
interface Columns {
  readonly groups: readonly { readonly group: GroupId }[]
  readonly positions: readonly Position[]
}

/** Stands for the groups of a flush that cannot be read. */
const nothingRead: Columns = { groups: [], positions: [] }

function toColumns(written: readonly Written[] | undefined): Columns {
  if (written === undefined) return nothingRead
  return {
    groups: written.map(([group]) => ({ group })),
    positions: written.map(([, position]) => position),
  }
}

/** How many of the groups are not in `found`. One that is named twice counts twice. */
function countNew({ groups, positions }: Columns, found: ReadonlyMap<GroupId, Position>): number {
  let count = 0
  for (let at = 0; at < groups.length; at++) {
    const name = groups[at]?.group
    if (name !== undefined && (positions[at] ?? 0) > 0 && !found.has(name)) count += 1
  }
  return count
}

function addTo(found: Map<GroupId, Position>, { groups, positions }: Columns): void {
  for (let at = 0; at < groups.length; at++) {
    const name = groups[at]?.group
    const position = positions[at] ?? 0
    if (name === undefined || position === 0) continue
    if (position > (found.get(name) ?? 0)) found.set(name, position)
  }
}

function isSettled(flush: FlushGroups, slot: number): boolean {
  const group = flush.groups[slot]
  return group !== undefined && group.settled >= (flush.positions[slot] ?? 0)
}
