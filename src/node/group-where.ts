/** Where a group is: its replica set, the nodes of that set, and the leader as far as this node knows it. */
import type { GroupId, NodeId } from '../base/ids.ts'
import { placeOf, placeWords } from '../base/placed-group.ts'
import { placeOfNode, type NodePlace } from '../config/node-place.ts'
import type { NodeAddress } from '../config/values.ts'
import type { Placement } from '../placement/placement.ts'
import { listSeenNodes, type SeenParts } from './status-nodes.ts'

export interface GroupWhere {
  /** The place in the group's name: `region eu`, `set west`. Absent: the hash of its name gives the set. */
  readonly place?: string
  /** The set's name. */
  readonly set: string
  /** The region that the set is in; absent: none. */
  readonly region?: string
  readonly nodes: readonly (NodePlace & { readonly id: string; readonly url: string })[]
  /** Absent: the node that answers does not know it. */
  readonly leader?: string
  /** Why no node takes the group. Absent: they do. */
  readonly refusal?: string
}

export interface WhereParts {
  readonly seen: SeenParts
  readonly placement: Placement
  /** The leader of a group that is at hand. */
  knownLeader(group: GroupId): NodeId | undefined
}

/** Of another set, the nodes of the configuration. */
export function findWhere(
  { seen, placement, knownLeader }: WhereParts,
  group: GroupId,
): GroupWhere {
  const number = placement.setOf(group)
  const { name: set, region } = placement.siteOf(number)
  const place = placeOf(group)
  const isOwn = number === placement.setOfNode(seen.node)
  const listed = isOwn ? listSeenNodes(seen) : seen.nodes.filter((one) => one.set === set)
  const leader = isOwn ? knownLeader(group) : undefined
  const refusal = placement.refusalOf(group)
  return {
    ...(place !== undefined && { place: placeWords(place) }),
    set,
    ...(region !== undefined && { region }),
    nodes: listed.map((one) => describeNode(seen.nodes, one)),
    ...(leader !== undefined && { leader }),
    ...(refusal !== undefined && { refusal }),
  }
}

function describeNode(
  nodes: readonly NodeAddress[],
  { id, url }: { readonly id: string; readonly url: string },
): GroupWhere['nodes'][number] {
  return { id, url, ...placeOfNode(nodes, id) }
}
