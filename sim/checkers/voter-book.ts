/** The voters of each epoch, as the nodes' log disks durably name them. */
import { groupOfBytes, nodeId, type NodeId } from '../../src/base/ids.ts'
import { fromLatin1 } from '../../src/base/bytes.ts'
import type { OwnEpochs } from '../../src/log/own-epochs.ts'
import { computeMajority, type Placement } from '../../src/placement/placement.ts'

export class VoterBook {
  readonly #placement: Placement
  /** By set, the voters of the epochs that have others than the set began with. */
  readonly #voters = new Map<number, Map<number, readonly NodeId[]>>()
  readonly #own = new Map<string, OwnEpochs>()

  constructor(placement: Placement) {
    this.#placement = placement
  }

  /** The record of the node has become durable. */
  note(node: string, own: OwnEpochs): void {
    this.#own.set(node, own)
    if (own.voters === undefined) return
    const set = this.#placement.setOfNode(nodeId(node))
    const epochs = this.#voters.get(set) ?? new Map<number, readonly NodeId[]>()
    this.#voters.set(set, epochs)
    epochs.set(own.epoch, own.voters)
  }

  forget(node: string): void {
    this.#own.delete(node)
  }

  /** The voters of the epoch that the node durably acts in. */
  ofNode(node: string): readonly NodeId[] {
    const set = this.#placement.setOfNode(nodeId(node))
    return this.#own.get(node)?.voters ?? this.#placement.nodesOf(set)
  }

  of(group: string, epoch: number): readonly NodeId[] {
    const set = this.#placement.setOf(groupOfBytes(fromLatin1(group)))
    return this.#voters.get(set)?.get(epoch) ?? this.#placement.nodesOf(set)
  }

  /** The leader of position 1 in the epoch. */
  firstFull(group: string, epoch: number): NodeId | undefined {
    const name = groupOfBytes(fromLatin1(group))
    const first = this.#placement.nodesOf(this.#placement.setOf(name))
    const voters = this.of(group, epoch)
    return voters[first.indexOf(this.#placement.replicasOf(name).firstFull) % voters.length]
  }

  isVoter(group: string, node: string, epoch: number): boolean {
    return this.of(group, epoch).some((voter) => voter === node)
  }

  isMajority(group: string, nodes: Iterable<string>, epoch: number): boolean {
    let count = 0
    for (const node of nodes) if (this.isVoter(group, node, epoch)) count += 1
    return count >= computeMajority(this.of(group, epoch))
  }
}
