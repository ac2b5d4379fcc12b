/** The groups that one node holds: those of its replica set. */
import type { GroupId, NodeId } from '../base/ids.ts'
import type { Placement } from './placement.ts'

export class Holdings {
  readonly #placement: Placement
  readonly #set: number

  constructor(placement: Placement, node: NodeId) {
    this.#placement = placement
    this.#set = placement.setOfNode(node)
  }

  has(group: GroupId): boolean {
    // A bucket is a hash: it is not asked for where there is one set.
    return this.#placement.setCount === 1 || this.#placement.setOf(group) === this.#set
  }
}
