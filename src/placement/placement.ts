/**
 * Which nodes hold a group. A bucket (4,096 of them) is the unit of placement; a map says which
 * nodes hold it, under an epoch that every replication message names.
 *
 * The configuration names replica sets, one or several; a node is in one of them, and is a full replica of its
 * buckets. Here they are in epoch 1: `../members` has the later ones. Buckets go to the sets in turn; the order of a bucket's
 * replicas rotates, so that the first position of each group (whose leader is the first full replica)
 * spreads over the nodes.
 */
import { assert, present } from '../base/assert.ts'
import { bytesOfGroup, type GroupId, type NodeId } from '../base/ids.ts'
import { sha256Start } from '../base/bytes.ts'

export const bucketCount = 4096

export interface ReplicaSet {
  readonly epoch: number
  /** Nodes whose answers make a majority (full replicas and, later, witnesses). Order matters. */
  readonly voters: readonly NodeId[]
  /** The leader of position 1. */
  readonly firstFull: NodeId
}

export interface Placement {
  /** All of them, set by set. */
  readonly nodes: readonly NodeId[]
  readonly setCount: number
  replicasOf(group: GroupId): ReplicaSet
  /** The number of the set that holds the group, from 0. */
  setOf(group: GroupId): number
  /** The number of the set that the node is in. */
  setOfNode(node: NodeId): number
  /** The first voters of a set. */
  nodesOf(set: number): readonly NodeId[]
}

/** 12 bits of the SHA-256 of the root key. */
export function hashToBucket(group: GroupId): number {
  return sha256Start(bytesOfGroup(group)) >> 4
}

export function computeMajority(voters: { readonly length: number }): number {
  return Math.floor(voters.length / 2) + 1
}

/** Whether the node is the first of these voters that is alive. That one does the work in the background for a group. */
export function isFirstAlive(
  node: NodeId,
  voters: readonly NodeId[],
  isAlive: (node: NodeId) => boolean,
): boolean {
  return voters.find(isAlive) === node
}

/** Every node holds everything. `nodes` are distinct; their order is the same at every node. */
export function staticPlacement(nodes: readonly NodeId[]): Placement {
  return placementOver([nodes])
}

/** A node that has come to a set later than its first voters. */
export interface Joining {
  readonly node: NodeId
  /** The number of the set, from 0. */
  readonly set: number
}

/**
 * Each set holds its share of the buckets. `sets`: the first voters of each. The order, of sets and in each, is the same at
 * every node. `joining`: nodes that no set began with, as far as the caller's configuration names them.
 */
export function placementOver(
  sets: readonly (readonly NodeId[])[],
  joining: readonly Joining[] = [],
): Placement {
  const nodes = [...sets.flat(), ...joining.map(({ node }) => node)]
  assert(sets.length > 0 && sets.every((set) => set.length > 0), 'placement: a set has nodes')
  assert(new Set(nodes).size === nodes.length, 'placement: a node is named twice')
  const rotations = sets.map(buildRotations)
  const setOf = (group: GroupId): number => hashToBucket(group) % sets.length
  return {
    nodes,
    setCount: sets.length,
    setOf,
    setOfNode: (node) =>
      joining.find((one) => one.node === node)?.set ?? sets.findIndex((set) => set.includes(node)),
    nodesOf: (number) => present(sets[number], 'placement: there is such a set'),
    replicasOf: (group) => {
      const bucket = hashToBucket(group)
      const ordered = present(rotations[bucket % sets.length], 'placement: a bucket has a set')
      const turn = Math.floor(bucket / sets.length) % ordered.length
      return present(ordered[turn], 'placement: a bucket has a replica set')
    },
  }
}

/** The set's nodes beginning with each of them. */
function buildRotations(set: readonly NodeId[]): readonly ReplicaSet[] {
  return set.map((firstFull, first): ReplicaSet => {
    const voters = [...set.slice(first), ...set.slice(0, first)]
    return { epoch: 1, voters, firstFull }
  })
}
