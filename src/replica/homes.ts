/** Which set of this cluster a group begins in, as its log needs that: here, or elsewhere (`../placement/SPEC.md`). */
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
    return this.#guestOf(this.#shares.of(group)?.set)
  }

  /** `begins`: the set that this one has given the bucket to, if it has. */
  #guestOf(begins: string | undefined): LogHome {
    if (begins === undefined) return this.#guest
    const known = this.#guests.get(begins)
    if (known !== undefined) return known
    const made = { ...this.#guest, begins }
    this.#guests.set(begins, made)
    return made
  }
}
