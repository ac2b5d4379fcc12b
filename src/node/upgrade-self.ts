/** A node as it tells of its build, and of the nodes that an operator upgrades with it. */
import type { StatusParts } from './status.ts'
import { findOwnSet, listSeenNodes } from './status-nodes.ts'
import type { UpgradeSelf } from './upgrade-routes.ts'

export function describeUpgrade(parts: StatusParts): UpgradeSelf {
  const seen = listSeenNodes(parts)
  return {
    ...{ node: parts.node, set: findOwnSet(parts), build: parts.version },
    // One that joins is a node of its set once the row says so.
    nodes: parts.nodes
      .filter(({ joins }) => joins !== true)
      .map(({ id, url, set }) => ({ id, url, set })),
    urls: new Map(seen.map(({ id, url }) => [id, url])),
  }
}
