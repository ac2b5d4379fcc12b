/**
 * Where values of chosen entries stand, of the flushes that were read lately: a peer that was away asks
 * group by group, and each of its groups has entries in nearly all of the same flushes. Without this each
 * entry takes a look into the data store.
 *
 * Only what two sound records say counts: that a position was chosen at a ballot, and which value was
 * accepted at that ballot. Whether the value's own bytes are sound is seen when they are read.
 */
import type { GroupId, Position } from '../base/ids.ts'
import { equalBallots, type Ballot } from '../paxos/ballot.ts'
import type { RecordHeader } from './flush.ts'
import type { Place } from './settled.ts'

/** Positions that are held: above it all of them go, and come back as their flushes are read again. */
const positionsMax = 200_000

/** The content of the flushes read so far about a position. */
interface Said {
  ballot: Ballot
  isChosen: boolean
  /** Of the value at that ballot. */
  place: Place | undefined
}

export class ChosenPlaces {
  readonly #max: number
  readonly #groups = new Map<GroupId, Map<Position, Said>>()
  readonly #flushes = new Set<number>()
  #positions = 0

  constructor(max: number = positionsMax) {
    this.#max = max
  }

  /** Whether the flush was taken in, and is still. */
  has(flush: number): boolean {
    return this.#flushes.has(flush)
  }

  /** Takes in a flush, whichever comes first. */
  add(flush: number, records: readonly RecordHeader[]): void {
    if (this.#positions > this.#max) this.clear()
    this.#flushes.add(flush)
    for (const [index, { kind, group, position, ballot, piece }] of records.entries()) {
      if (kind === 'promise') continue
      const place = piece === undefined ? undefined : { flush, index }
      this.#say(group, position, { ballot, isChosen: kind === 'chosen', place })
    }
  }

  /** Absent: no two records that were read lately tell of it. */
  find(
    group: GroupId,
    position: Position,
  ): { readonly ballot: Ballot; readonly place: Place } | undefined {
    const said = this.#groups.get(group)?.get(position)
    if (said?.isChosen !== true || said.place === undefined) return undefined
    return { ballot: said.ballot, place: said.place }
  }

  #say(group: GroupId, position: Position, now: Said): void {
    let positions = this.#groups.get(group)
    if (positions === undefined) this.#groups.set(group, (positions = new Map<Position, Said>()))
    const before = positions.get(position)
    if (before === undefined) {
      this.#positions += 1
      positions.set(position, now)
    } else if (equalBallots(before.ballot, now.ballot)) {
      before.isChosen ||= now.isChosen
      before.place ??= now.place
    } else if (!before.isChosen) {
      // Of two that were accepted the one that a decision names is wanted, and mostly that is the later one.
      positions.set(position, now)
    }
  }

  clear(): void {
    this.#groups.clear()
    this.#flushes.clear()
    this.#positions = 0
  }
}
