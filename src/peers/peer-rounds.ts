/**
 * As of which moment this node has a peer's writes, group by group: a node answers a read of bounded staleness by it
 * (`freshness.ts`).
 *
 * A *round* begins with a question. The peer answers how far its flushes go, and the round is over once all that those
 * flushes name was named to this node (`PeerMarks.knownThrough`). A group counts as of the last round through which
 * nothing that was named of it is missing here.
 *
 * STALE-1  All that the peer had accepted of a group before the moment that a round gives for it is applied.
 * STALE-2  A round counts from the moment of its question, and not from that of the answer.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, Position } from '../base/ids.ts'
import type { ClockReading } from '../lease/clock-reading.ts'

/** Groups that the peer has named, each with the highest named position: those that are not applied are missing. */
type Named = Map<GroupId, Position>

/** A question, and how far the peer's flushes went as it answered. */
interface Answered {
  readonly asked: ClockReading
  readonly through: number
}

interface Round {
  readonly asked: ClockReading
  /** Named since the round before was over. */
  named: Named
}

/** A busy group lacks something of the last round nearly always: it counts as of one before. */
const roundsMax = 8
/** Questions without an answer; rounds that are not over. */
const openMax = 64

export class PeerRounds {
  /** How far the group is applied, at least. */
  readonly #applied: (group: GroupId) => Position
  /** Questions that have no answer, by their numbers, which rise. */
  readonly #questions = new Map<number, ClockReading>()
  #answered: Answered[] = []
  /** Their moments rise. */
  #rounds: Round[] = []
  /** Named before the first round was over. */
  #before: Named = new Map()
  /** Named since the last round was over. */
  #named: Named = new Map()
  /** The epoch of all these questions and answers. */
  #epoch = 0

  constructor(applied: (group: GroupId) => Position) {
    this.#applied = applied
  }

  /** The peer has named the position of the group, which is perhaps not applied here. */
  name(group: GroupId, position: Position): void {
    raise(this.#named, group, position)
    // As many go as come.
    this.#letGo(this.#named, 1)
    this.#letGo(this.#before, 1)
  }

  /** A question leaves. `number`: higher than all before. */
  ask(number: number, at: ClockReading): void {
    this.#questions.set(number, at)
    for (const oldest of this.#questions.keys()) {
      if (this.#questions.size <= openMax) return
      this.#questions.delete(oldest)
    }
  }

  /**
   * The peer answers that question. False where it is none of this node's that is open: a second answer, one to an earlier
   * question than the last that was answered, or one of another store. `epoch`: the one in which the peer votes.
   */
  answer(number: number, through: number, epoch: number): boolean {
    assert(epoch === this.#epoch, 'STALE-3: an answer of another epoch counts')
    const asked = this.#questions.get(number)
    if (asked === undefined) return false
    for (const one of this.#questions.keys()) if (one <= number) this.#questions.delete(one)
    // The oldest stay: they are over first.
    if (this.#answered.length < openMax) this.#answered.push({ asked, through })
    return true
  }

  /** All that the peer's flushes through here name was named. */
  end(knownThrough: number): void {
    const over = this.#answered.filter(({ through }) => through <= knownThrough)
    const last = over.at(-1)
    if (last === undefined) return
    // An answer that was overtaken on its way may name more than one to a later question: the later one is worth more.
    this.#answered = this.#answered.slice(this.#answered.lastIndexOf(last) + 1)
    assert(
      last.asked.now >= (this.#rounds.at(-1)?.asked.now ?? -Infinity),
      'STALE-2: a round is over that began before the last one',
    )
    this.#rounds.push({ asked: last.asked, named: this.#named })
    this.#named = new Map()
    if (this.#rounds.length > roundsMax) this.#merge()
  }

  /** The oldest two become one, of the later moment. */
  #merge(): void {
    const [first, second] = this.#rounds
    if (first === undefined || second === undefined) return
    for (const [group, position] of first.named) raise(this.#before, group, position)
    this.#rounds.shift()
  }

  /** STALE-3: questions and answers of another epoch count no more. Positions that are missing stay so. */
  takeUp(epoch: number): void {
    if (this.#epoch === epoch) return
    this.#epoch = epoch
    this.#questions.clear()
    this.#answered = []
    const open = this.#named
    for (const { named } of this.#rounds) {
      for (const [group, position] of named) raise(this.#before, group, position)
    }
    this.#rounds = []
    this.#named = open
  }

  /**
   * The moment before which no acceptance of the peer in the group is above `position`; undefined: there is none that is
   * known.
   */
  freshAt(group: GroupId, position: Position): ClockReading | undefined {
    let fresh: ClockReading | undefined
    if ((this.#before.get(group) ?? 0) > position) return undefined
    for (const { asked, named } of this.#rounds) {
      if ((named.get(group) ?? 0) > position) return fresh
      fresh = asked
    }
    return fresh
  }

  /** Lets go of positions that are applied by now, and puts the others behind the rest. */
  #letGo(named: Named, looks: number): void {
    let left = Math.min(looks + 1, named.size)
    for (const [group, position] of named) {
      if (left === 0) return
      left -= 1
      named.delete(group)
      if (this.#applied(group) < position) named.set(group, position)
    }
  }
}

function raise(named: Named, group: GroupId, position: Position): void {
  named.set(group, Math.max(position, named.get(group) ?? 0))
}
