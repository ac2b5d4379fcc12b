/** The placement of groups that a configuration of nodes gives: the same at each node that has the same list. */
import { buildJoining, buildKeptSets, buildReplicaSets } from '../config/replica-sets.ts'
import type { NodeAddress } from '../config/values.ts'
import { placementOver, type Placement } from '../placement/placement.ts'

/** `nodes`: of a configuration that was checked. */
export function buildPlacement(nodes: readonly NodeAddress[]): Placement {
  return placementOver(buildReplicaSets(nodes), buildJoining(nodes), buildKeptSets(nodes))
}
