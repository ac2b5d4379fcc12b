/** The groups that one node holds: those of its replica set, along with the other nodes of that set. */
import type { GroupId, NodeId } from '../base/ids.ts'
import type { Placement } from './placement.ts'

export class Holdings {
  /** The nodes of the set, this one included. */
  readonly nodes: readonly NodeId[]
  readonly #node: NodeId
  readonly #placement: Placement
  readonly #set: number

  constructor(placement: Placement, node: NodeId) {
    this.#placement = placement
    this.#node = node
    this.#set = placement.setOfNode(node)
    this.nodes = placement.nodesOf(this.#set)
  }

  has(group: GroupId): boolean {
    // A bucket is a hash: it is not asked for where there is one set.
    return this.#placement.setCount === 1 || this.#placement.setOf(group) === this.#set
  }

  /** Whether this node is the first one alive of those that hold the group. */
  isFirst(group: GroupId, isAlive: (node: NodeId) => boolean): boolean {
    return this.#placement.replicasOf(group).voters.find(isAlive) === this.#node
  }
}
