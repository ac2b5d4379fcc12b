/** Which set of this cluster a group begins in, as its log needs that: here, or elsewhere (`../placement/SPEC.md`). */
import { assert } from '../base/assert.ts'
import type { GroupId, NodeId } from '../base/ids.ts'
import { isRootGroup } from '../base/placed-group.ts'
import type { Placement } from '../placement/placement.ts'
import type { OwnShares } from '../placement/shares.ts'
import type { LogHome } from '../replication/log.ts'

export class Homes {
  readonly #placement: Placement
  readonly #shares: Pick<OwnShares, 'of' | 'begins'>
  readonly #ownSet: number
  /** For groups that begin in the set, and stay or may be moved; and for those that have come. */
  readonly #fixed: LogHome
  readonly #movable: LogHome
  readonly #guest: LogHome
  readonly #guests = new Map<string, LogHome>()

  constructor(placement: Placement, node: NodeId, shares: Pick<OwnShares, 'of' | 'begins'>) {
    this.#placement = placement
    this.#shares = shares
    this.#ownSet = placement.setOfNode(node)
    assert(this.#ownSet >= 0, 'MOVE-4: a node is in no replica set')
    const set = placement.setCount === 1 ? '' : placement.siteOf(this.#ownSet).name
    this.#fixed = { set, isGuest: false, mayMove: false }
    this.#movable = { set, isGuest: false, mayMove: placement.setCount > 1 }
    this.#guest = { set, isGuest: true, mayMove: true }
  }

  /** The name of the node's set; empty where there is one set. */
  get set(): string {
    return this.#fixed.set
  }

  of(group: GroupId): LogHome {
    const placement = this.#placement
    if (placement.setCount === 1) return this.#fixed
    if (this.#shares.begins(group, placement.setOf(group) === this.#ownSet)) {
      return isRootGroup(group) ? this.#movable : this.#fixed
    }
    const share = this.#shares.of(group)
    // Where this node has lost a row since, its last one may say less than the set has done.
    const isGone = share !== undefined && share.phase !== 'leaving' && share.phase !== 'here'
    return isGone ? this.#guestOf(share.set) : this.#guest
  }

  /** `begins`: the set to which this one has given the bucket. */
  #guestOf(begins: string): LogHome {
    assert(begins !== this.set, 'MOVE-14: a set gives a bucket to itself')
    const known = this.#guests.get(begins)
    if (known !== undefined) return known
    const made = { ...this.#guest, begins }
    this.#guests.set(begins, made)
    return made
  }
}
