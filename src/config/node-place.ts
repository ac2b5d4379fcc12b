/** Where a node is, as the configuration of the node that tells it says. */
import type { NodeAddress } from './values.ts'

export interface NodePlace {
  /** Absent: the configuration does not say it. */
  readonly region?: string
  readonly zone?: string
}

export function placeOfNode(nodes: readonly NodeAddress[], node: string): NodePlace {
  const { region, zone } = nodes.find(({ id }) => id === node) ?? {}
  return { ...(region !== undefined && { region }), ...(zone !== undefined && { zone }) }
}
