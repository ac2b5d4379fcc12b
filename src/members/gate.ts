/**
 * The gate of an epoch at one of its voters.
 *
 * MOVE-3  A voter takes part in an epoch when it has, of a majority of the voters of the epoch before, all that their
 *         flushes through their seals name: applied, or held as chosen; and what they had accepted above that is carried.
 *
 * A majority of the voters of the epoch before accepted each value that was chosen in it, and a voter accepts nothing after
 * its seal. So one of the seals of any majority tells of the value.
 */
import { assert, present } from '../base/assert.ts'
import type { NodeId } from '../base/ids.ts'
import { computeMajority } from '../placement/placement.ts'

export class Gate {
  readonly #voters: readonly NodeId[]
  /** The flush of each voter's seal, by the voter. */
  readonly #seals = new Map<NodeId, number>()

  /** `voters`: of the epoch before. */
  constructor(voters: readonly NodeId[]) {
    assert(voters.length > 0, 'MOVE-3: a gate after an epoch without voters')
    this.#voters = voters
  }

  /** `through`: the last flush before the seal. A voter tells the same one each time. */
  onSeal(voter: NodeId, through: number): void {
    assert(this.#voters.includes(voter), 'MOVE-3: a seal of a node that had no vote')
    const before = this.#seals.get(voter) ?? through
    assert(through >= before, 'MOVE-3: a seal tells of less than before')
    this.#seals.set(voter, through)
  }

  /** `durableThrough`: how far the flushes of a voter are applied here, durably. */
  isPassedBy(durableThrough: (voter: NodeId) => number): boolean {
    let count = 0
    for (const voter of this.#seals.keys()) {
      const through = present(this.#seals.get(voter), 'MOVE-3: a voter with a seal has one')
      if (durableThrough(voter) >= through) count += 1
    }
    return count >= computeMajority(this.#voters)
  }
}
