/** Names of the endpoints of a run: faults name them before the run makes them. */
import { nodeId, type NodeId } from '../../src/base/ids.ts'

export function nodeName(index: number): NodeId {
  return nodeId(`n${index + 1}`)
}

/** The nodes of each replica set: as many in each as in the others, one more in the first ones. */
export function buildSets(nodeCount: number, setCount = 1): readonly (readonly NodeId[])[] {
  const names = Array.from({ length: nodeCount }, (_, i) => nodeName(i))
  const sizes = Array.from({ length: setCount }, (_, set) =>
    Math.ceil((nodeCount - set) / setCount),
  )
  return sizes.map((size) => names.splice(0, size))
}

/** Nodes beside those that the sets begin with: they have no part in the cluster until they are added. */
export function listSpares({ nodeCount, spares = 0 }: Spares): readonly NodeId[] {
  return Array.from({ length: spares }, (_, i) => nodeName(nodeCount + i))
}

/** The nodes of a set that comes later: none of them runs before an operator has added it. */
export function listLater(options: Later): readonly NodeId[] {
  const { nodeCount, spares = 0, laterNodes = 0 } = options
  return Array.from({ length: laterNodes }, (_, i) => nodeName(nodeCount + spares + i))
}

interface Spares {
  readonly nodeCount: number
  readonly spares?: number
}

interface Later extends Spares {
  readonly laterNodes?: number
}

/**
 * Where a node asks the nodes of other sets, as a client of theirs: as such it has lives, too. `nth`: of the other sets, from 0; each has an
 * endpoint of its own.
 */
export function outgoing(node: string, life: number, nth = 0): string {
  return nth === 0 ? `${node}~out${life}` : `${node}~out${life}~${nth}`
}

/** An endpoint of its own for each life of a client, as each connection has one at a node. */
export function nameEndpoint(client: string, life: number): string {
  return life === 1 ? client : `${client}~${life}`
}

/** The client or node whose endpoint this is: what faults name. */
export function findPlace(endpoint: string): string {
  const end = endpoint.indexOf('~')
  return end < 0 ? endpoint : endpoint.slice(0, end)
}

export function clientName(index: number): string {
  return `c${index + 1}`
}

export function gatewayNames(gateways: { readonly count: number } | undefined): readonly string[] {
  return Array.from({ length: gateways?.count ?? 0 }, (_, i) => `gw${i + 1}`)
}

/** The endpoints that may be cut off, or die, beside the nodes. */
export function aroundNodes(workload: {
  readonly clientCount: number
  readonly gateways?: { readonly count: number }
}): readonly string[] {
  const clients = Array.from({ length: workload.clientCount }, (_, i) => clientName(i))
  return [...clients, ...gatewayNames(workload.gateways)]
}
