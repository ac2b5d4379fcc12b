/** The placement of groups that a configuration of nodes gives: the same at each node that has the same list. */
import { buildJoining, buildKeptSets, buildReplicaSets } from '../config/replica-sets.ts'
import type { NodeAddress } from '../config/values.ts'
import { placementOver, type LaterSet, type Placement } from '../placement/placement.ts'

/** `nodes`: of a configuration that was checked. `later`: the sets that have come since the cluster began, as far as they are known. */
export function buildPlacement(
  nodes: readonly NodeAddress[],
  later: readonly LaterSet[] = [],
): Placement {
  const begun = new Set<string>(later.flatMap((set) => set.nodes.map(({ node }) => node)))
  const names = later.map(({ name }) => name)
  const joining = buildJoining(nodes, names).filter(({ node }) => !begun.has(node))
  const placement = placementOver(buildReplicaSets(nodes), joining, buildKeptSets(nodes))
  placement.takeLater(later)
  return placement
}
