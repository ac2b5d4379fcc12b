/**
 * The nodes of one replica set as one of them knows them now. All parts of a node share this object and its lists. Each list
 * is the same array for the life of the process, and its elements change when a node is added or removed. So no part may keep
 * a copy of a list, nor its length.
 */
import { assert } from '../base/assert.ts'
import { compareText } from '../base/bytes.ts'
import type { NodeId } from '../base/ids.ts'
import { computeMajority } from './placement.ts'

export class SetNodes {
  readonly node: NodeId
  /** The nodes that vote in the present epoch, in its order: majorities are of these. A newcomer is not among them. */
  readonly voters: readonly NodeId[]
  /** Those of them beside this one. */
  readonly otherVoters: readonly NodeId[]
  /** All nodes that this one has links with: other voters, and nodes that are about to get or to lose a vote. */
  readonly others: readonly NodeId[]
  /** The read-only members beside this node: they hear of chosen values, and no majority counts them. */
  readonly readers: readonly NodeId[]
  readonly #voters: NodeId[] = []
  readonly #otherVoters: NodeId[] = []
  readonly #others: NodeId[] = []
  readonly #readers: NodeId[] = []

  constructor(node: NodeId, voters: readonly NodeId[]) {
    this.node = node
    this.voters = this.#voters
    this.otherVoters = this.#otherVoters
    this.others = this.#others
    this.readers = this.#readers
    this.set(voters, [], [])
  }

  /** This node and those with links, in an order that all nodes have. */
  get all(): readonly NodeId[] {
    return [this.node, ...this.others].toSorted(compareText)
  }

  get majority(): number {
    return computeMajority(this.voters)
  }

  isVoter(node: NodeId): boolean {
    return this.voters.includes(node)
  }

  /** Whether this node has links with that one. */
  has(node: NodeId): boolean {
    return this.others.includes(node)
  }

  /** `coming`: nodes that have links beside the voters; `readers` are among them. */
  set(voters: readonly NodeId[], coming: readonly NodeId[], readers: readonly NodeId[]): void {
    assert(voters.length > 0, 'MOVE-6: a replica set without voters')
    assert(
      readers.every((one) => coming.includes(one)),
      'RDR-3: a read-only member without links',
    )
    fill(this.#readers, this.#without(readers))
    fill(this.#voters, voters)
    fill(this.#otherVoters, this.#without(voters))
    fill(this.#others, this.#without([...new Set([...voters, ...coming])]))
  }

  #without(nodes: readonly NodeId[]): readonly NodeId[] {
    return nodes.filter((one) => one !== this.node)
  }
}

function fill(list: NodeId[], nodes: readonly NodeId[]): void {
  list.splice(0, list.length, ...nodes)
}
