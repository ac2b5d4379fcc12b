/**
 * Finds the value chosen at a settled position. The search begins at a flush that names the group. Each such
 * flush leads to the one before it. The search ends when sound records give the decision and its value.
 *
 * LOG-15  From the last flush that names a group, a search reaches every flush that names it.
 */
import { equalBallots, type Ballot } from '../paxos/ballot.ts'
import type { GroupId, Position } from '../base/ids.ts'
import { assert } from '../base/assert.ts'
import type { FlushHeader } from './flush.ts'
import type { Place } from './settled.ts'

export interface Chosen {
  readonly ballot: Ballot
  readonly place: Place
}

export interface Search {
  /** Undefined: no sound records say so. */
  readonly chosen: Chosen | undefined
  /** Flushes on the way that the disk does not give any more. */
  readonly damaged: readonly number[]
}

/** As much of a flush as a search looks at. */
export type SearchedFlush = Pick<FlushHeader, 'number' | 'groups' | 'records'>

/** Damaged flushes that a search goes around, each by looking at the one right before it. */
const damagedMax = 64

/**
 * `from`: a flush that names the group, at or after the one that says what was chosen; 0: there is none. `first`: the
 * log has given up the flushes before it, which is no damage. `read` gives a flush's header, or undefined where the
 * disk does not give it any more; it may keep what it reads. The search ends at a flush of an earlier build, which does
 * not name the one before.
 */
export function searchChosen(
  group: GroupId,
  position: Position,
  from: number,
  first: number,
  read: (flush: number) => SearchedFlush | undefined,
): Search {
  const said = new Said(position)
  const damaged: number[] = []
  let isLost = false
  for (let flush = from; flush >= Math.max(1, first) && damaged.length <= damagedMax;) {
    const header = read(flush)
    if (header === undefined) damaged.push(flush)
    isLost ||= header === undefined
    const named = header?.groups.find((one) => one.group === group)
    // Which flush comes before a damaged one is not known: each is looked at until one names the group.
    assert(named !== undefined || isLost, 'LOG-15: a flush on the way does not name the group')
    if (header === undefined || named === undefined) {
      flush -= 1
      continue
    }
    isLost = false
    const chosen = said.take(group, header)
    if (chosen !== undefined || named.previous === undefined) return { chosen, damaged }
    assert(named.previous < flush, 'LOG-15: the way goes back')
    flush = named.previous
  }
  return { chosen: undefined, damaged }
}

/** The records of one position in the flushes so far; later flushes come first. */
class Said {
  readonly #position: Position
  #ballot: Ballot | undefined
  readonly #accepted: Chosen[] = []

  constructor(position: Position) {
    this.#position = position
  }

  /** The decision and its value, once both are known. */
  take(group: GroupId, { number, records }: SearchedFlush): Chosen | undefined {
    let told: Ballot | undefined
    for (const [index, record] of records.entries()) {
      if (record.position !== this.#position || record.group !== group) continue
      const { kind, ballot, piece } = record
      if (kind === 'chosen') told = ballot
      if (piece !== undefined) this.#accepted.push({ ballot, place: { flush: number, index } })
    }
    const decided = (this.#ballot ??= told)
    return decided && this.#accepted.find(({ ballot }) => equalBallots(ballot, decided))
  }
}
