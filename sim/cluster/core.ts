/** The nodes that go on alone while all others stay broken for good. */
import { isUnderWay } from '../../src/members/change.ts'
import { computeMajority } from '../../src/placement/placement.ts'
import type { SwarmOptions } from '../swarm.ts'
import type { SimCluster } from './comparison.ts'
import { listLater, listSpares } from './endpoints.ts'

/**
 * A bare majority of each replica set, of nodes that were never hurt. Undefined: voters are on their way from one epoch to
 * the next in some set, which may take more nodes than that, or those that were never hurt have left it.
 */
export function chooseCore(
  cluster: SimCluster,
  options: SwarmOptions,
): readonly string[] | undefined {
  const { atlas, sets } = cluster
  const order = [...options.healing.coreOrder, ...listSpares(options), ...listLater(options)]
  const sound = order.filter((node) => atlas.isSound(node))
  const parts = sets.map((set) => {
    const isOfSet = (node: string): boolean => set.some((one) => one === node)
    const ofSet = sound.filter(isOfSet)
    const needed = computeMajority(set)
    const nodes = ofSet.filter((node) => atlas.isSettled(node))
    const isChanging = nodes.some((node) => isGrowingOrShrinking(cluster, node, set.length))
    // Where the run itself names too few nodes for a core, that is to be noticed.
    const isShort = nodes.length < needed && order.filter(isOfSet).length >= needed
    return { needed, nodes, isBetween: isChanging || isShort }
  })
  if (parts.some(({ isBetween }) => isBetween)) return undefined
  return parts.flatMap(({ needed, nodes }) => nodes.slice(0, needed))
}

/**
 * Whether a node of the core knows of a node that comes or leaves, or has no vote, or an operator has asked for that. The core itself goes on
 * with such a change, and then the majority is of more nodes, or its gate wants a node that leaves.
 */
function isGrowingOrShrinking(cluster: SimCluster, node: string, voters: number): boolean {
  const report = cluster.readMembers(node)?.report
  if (report === undefined) return false
  const { change, members } = report
  const isOfSize = change !== undefined && change.kind !== 'renew' && change.kind !== 'replace'
  return (isOfSize && isUnderWay(change)) || members.length !== voters
}
