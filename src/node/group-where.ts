/** Where a group is: its replica set, the nodes of that set, and the leader as far as this node knows it. */
import { StoreError } from '../base/errors.ts'
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
  /** The name of the set in which the group began; absent: it has not moved from there. */
  readonly begins?: string
  /** Why the group may be in another set since. Absent: it is in this one. */
  readonly unsure?: string
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
  /** The name of the set that has the group now. */
  locate(group: GroupId): Promise<string>
}

/** Of another set, the nodes of the configuration. */
export async function findWhere(parts: WhereParts, group: GroupId): Promise<GroupWhere> {
  const { seen, placement, knownLeader } = parts
  const first = placement.setOf(group)
  const begins = placement.siteOf(first).name
  const { name, unsure } = await locateNow(parts, group, begins)
  const found = placement.sites.findIndex((site) => site.name === name)
  const number = found < 0 ? first : found
  const { name: set, region } = placement.siteOf(number)
  const place = placeOf(group)
  const isOwn = number === placement.setOfNode(seen.node)
  const listed = isOwn ? listSeenNodes(seen) : seen.nodes.filter((one) => one.set === set)
  const leader = isOwn ? knownLeader(group) : undefined
  const refusal = placement.refusalOf(group)
  return {
    ...(place !== undefined && { place: placeWords(place) }),
    set,
    ...(set !== begins && { begins }),
    ...(unsure !== undefined && { unsure }),
    ...(region !== undefined && { region }),
    nodes: listed.map((one) => describeNode(seen.nodes, one)),
    ...(leader !== undefined && { leader }),
    ...(refusal !== undefined && { refusal }),
  }
}

/** A group with a place that no set has is in none: nodes refuse to say where it is. */
async function locateNow(
  { placement, locate }: WhereParts,
  group: GroupId,
  begins: string,
): Promise<{ readonly name: string; readonly unsure?: string }> {
  if (placement.setCount === 1 || placement.refusalOf(group) !== undefined) return { name: begins }
  try {
    return { name: await locate(group) }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return { name: begins, unsure: error.message }
  }
}

function describeNode(
  nodes: readonly NodeAddress[],
  { id, url }: { readonly id: string; readonly url: string },
): GroupWhere['nodes'][number] {
  return { id, url, ...placeOfNode(nodes, id) }
}
