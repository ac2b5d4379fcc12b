/** The voters of each epoch, as the nodes' log disks durably name them; and the set that each part of a group's log is in. */
import { groupOfBytes, nodeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
import { fromLatin1 } from '../../src/base/bytes.ts'
import { isSharedOut } from '../../src/base/placed-group.ts'
import type { OwnEpochs } from '../../src/log/own-epochs.ts'
import { computeMajority, hashToBucket, type Placement } from '../../src/placement/placement.ts'

import type { Share, SharesRow } from '../../src/placement/shares.ts'

/** A position of a group. */
export interface Place {
  readonly group: string
  readonly position: number
}

export class VoterBook {
  readonly #placement: Placement
  /** By set, the voters of the epochs that have others than the set began with. */
  readonly #voters = new Map<number, Map<number, readonly NodeId[]>>()
  readonly #own = new Map<string, OwnEpochs>()
  /** By group, the positions at which it has left a set, and the number of the next set; in order. */
  readonly #moves = new Map<string, (readonly [position: number, set: number])[]>()
  /** By bucket, the set that has opened it in its highest term. */
  readonly #openers = new Map<number, { readonly term: number; readonly set: number }>()
  /** By group, the set that has chosen its first entry. */
  readonly #begun = new Map<string, number>()

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
  #ofNode(node: string): readonly NodeId[] {
    const set = this.#placement.setOfNode(nodeId(node))
    return this.#own.get(node)?.voters ?? this.#placement.nodesOf(set)
  }

  /** Whether a majority is left without the node, as its disk names the voters. */
  hasOthersEnough(node: string): boolean {
    const voters = this.#ofNode(node)
    return voters.length - 1 >= computeMajority(voters)
  }

  /**
   * Those of them that vote in all later epochs, too. A node may go by a list that its disk does not have: a store without a
   * vote, or one whose record is lost, goes by the voters that its peers tell. No node waits for one that has left.
   */
  stayingOf(node: string): readonly NodeId[] {
    const epochs = this.#voters.get(this.#placement.setOfNode(nodeId(node))) ?? []
    const own = this.#own.get(node)?.epoch ?? 1
    const later = [...epochs].filter(([epoch]) => epoch > own)
    return this.#ofNode(node).filter((one) => later.every(([, voters]) => voters.includes(one)))
  }

  /** The entry at the position is chosen, and the group's log goes on in the set of that name. */
  noteMove(group: string, position: number, to: string): void {
    const set = this.#placement.sites.findIndex(({ name }) => name === to)
    if (set < 0) return
    const moves = this.#moves.get(group) ?? []
    this.#moves.set(
      group,
      [...moves, [position, set] as const].sort(([a], [b]) => a - b),
    )
  }

  /** The group's first entry is chosen. */
  noteBegun(group: string, node: string): void {
    this.#begun.set(group, this.#placement.setOfNode(nodeId(node)))
  }

  /** A set has chosen this row of its buckets. Returns those that it has opened, and the name of the set that has given them. */
  noteShares(group: string, row: SharesRow): readonly Share[] {
    const set = this.setAt(group, Infinity)
    const opened = row.filter(({ phase, term, buckets: [first = 0] }) => {
      const before = this.#openers.get(first)
      return phase === 'here' && term > (before?.term ?? 0)
    })
    for (const { term, buckets } of opened) {
      for (const bucket of buckets) this.#openers.set(bucket, { term, set })
    }
    return opened
  }

  /** Whether the set of that number has the group, or has had it: its nodes know where the group has gone. */
  hasHad(group: string, set: number): boolean {
    const moves = this.#moves.get(group) ?? []
    return this.#begun.get(group) === set || moves.some(([, to]) => to === set)
  }

  /** The set in which groups of the bucket begin now, of those that are shared out. */
  homeOf(bucket: number): number {
    return this.#openers.get(bucket)?.set ?? this.#placement.setOfBucket(bucket)
  }

  /** The number of the set that chooses the entry at the position. */
  setAt(group: string, position: number): number {
    const moves = this.#moves.get(group) ?? []
    const last = moves.findLast(([at]) => at < position)
    return last?.[1] ?? this.#begun.get(group) ?? this.#beginsIn(groupOfBytes(fromLatin1(group)))
  }

  #beginsIn(group: GroupId): number {
    return isSharedOut(group) ? this.homeOf(hashToBucket(group)) : this.#placement.setOf(group)
  }

  /** Whether the entry at the position is the last one of the group's log in the node's set. */
  isLastOf(node: string, { group, position }: Place): boolean {
    const next = this.setAt(group, position + 1)
    const own = this.#placement.setOfNode(nodeId(node))
    return next !== own && this.setAt(group, position) === own
  }

  /**
   * The position of the last entry that the node's set has chosen of the group, below that position. Undefined: the set has the group there,
   * or has never had it.
   */
  leftAt(node: string, { group, position }: Place): number | undefined {
    if (this.isOfSet(node, { group, position })) return undefined
    const own = this.#placement.setOfNode(nodeId(node))
    const moves = (this.#moves.get(group) ?? []).filter(([at]) => at < position)
    return moves.findLast(([at]) => this.setAt(group, at) === own)?.[0]
  }

  /** Whether the node is in the set that chooses the entry at the position. */
  isOfSet(node: string, { group, position }: Place): boolean {
    return this.setAt(group, position) === this.#placement.setOfNode(nodeId(node))
  }

  /**
   * How far a node has to have the group before it may serve a read that knows of the entry at the position. A set that the group
   * has left shows nothing behind the entry by which it left.
   */
  neededAt(node: string, { group, position }: Place): number {
    const own = this.#placement.setOfNode(nodeId(node))
    if (this.setAt(group, position) === own) return position
    const moves = this.#moves.get(group) ?? []
    const left = moves.findLast(([at]) => at < position && this.setAt(group, at) === own)
    return left?.[0] ?? position
  }

  of({ group, position }: Place, epoch: number): readonly NodeId[] {
    const set = this.setAt(group, position)
    return this.#voters.get(set)?.get(epoch) ?? this.#placement.nodesOf(set)
  }

  /** The leader of position 1 in the epoch. */
  firstFull(group: string, epoch: number): NodeId | undefined {
    const name = groupOfBytes(fromLatin1(group))
    const first = this.#placement.nodesOf(this.#placement.setOf(name))
    const voters = this.of({ group, position: 1 }, epoch)
    const turn = first.indexOf(this.#placement.replicasOf(name).firstFull)
    const isHome = this.setAt(group, 1) === this.#placement.setOf(name)
    return voters[isHome ? turn % voters.length : 0]
  }

  isVoter(place: Place, node: string, epoch: number): boolean {
    return this.of(place, epoch).some((voter) => voter === node)
  }

  isMajority(place: Place, nodes: Iterable<string>, epoch: number): boolean {
    let count = 0
    for (const node of nodes) if (this.isVoter(place, node, epoch)) count += 1
    return count >= computeMajority(this.of(place, epoch))
  }
}
