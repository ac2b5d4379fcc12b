/**
 * Which nodes hold a group. A bucket (4,096 of them) is the unit of placement; a map says which
 * nodes hold it, under an epoch that every replication message names.
 *
 * Static for now: every node of the configuration is a full replica of every bucket, epoch 1. The
 * order of a bucket's replicas rotates with its number, so that the first position of each group
 * (whose leader is the first full replica) spreads over the nodes.
 */
import { assert } from '../base/assert.ts'
import { bytesOfGroup, type GroupId, type NodeId } from '../base/ids.ts'
import { sha256 } from '../base/bytes.ts'

export const bucketCount = 4096

export interface ReplicaSet {
  readonly epoch: number
  /** Nodes whose answers make a majority (full replicas and, later, witnesses). Order matters. */
  readonly voters: readonly NodeId[]
  /** The leader of position 1. */
  readonly firstFull: NodeId
}

export interface Placement {
  readonly nodes: readonly NodeId[]
  replicasOf(group: GroupId): ReplicaSet
}

/** 12 bits of the SHA-256 of the root key. */
export function bucketOf(group: GroupId): number {
  return sha256(bytesOfGroup(group)).readUInt16BE(0) >> 4
}

export function majorityOf(voters: readonly NodeId[]): number {
  return Math.floor(voters.length / 2) + 1
}

/** Every node holds everything. `nodes` are distinct; their order is the same at every node. */
export function staticPlacement(nodes: readonly NodeId[]): Placement {
  assert(nodes.length > 0, 'placement: a cluster has at least one node')
  assert(new Set(nodes).size === nodes.length, 'placement: a node is named twice')
  const sets = nodes.map((firstFull, first): ReplicaSet => {
    const voters = [...nodes.slice(first), ...nodes.slice(0, first)]
    return { epoch: 1, voters, firstFull }
  })
  return {
    nodes,
    replicasOf: (group) => {
      const set = sets[bucketOf(group) % sets.length]
      assert(set !== undefined, 'placement: a bucket has a replica set')
      return set
    },
  }
}
