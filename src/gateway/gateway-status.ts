/** The status that a gateway reports: ready or not, its nodes and their breakers, and its problems. */
import type { FollowedLinks, KnownAddress } from '../client/followed-links.ts'
import type { HoldingFigures } from '../client/holding.ts'
import type { LinkView } from '../client/links.ts'
import type { Figure } from '../node/metrics.ts'
import type { Check } from '../node/status.ts'

export type GatewayState = 'starting' | 'running' | 'draining' | 'failed'

export interface GatewayParts {
  readonly name: string
  readonly cluster: string | undefined
  readonly version: string
  readonly url: string
  readonly state: GatewayState
  readonly uptimeMs: number
  /** Addresses, as configured. */
  readonly nodes: readonly string[]
  /** Of those that were linked once. */
  readonly links: readonly LinkView[]
  /** The addresses that it dials now, and those that it refuses to dial; absent: as configured, and none. */
  readonly followed?: Pick<FollowedLinks, 'known' | 'refusedAddresses'> | undefined
  /** Why addresses have no link, where that is known. */
  readonly troubles?: ReadonlyMap<string, string>
  readonly requests: number
  readonly requestBytes: number
  readonly clients: number
  /** Requests that wait here until nodes have room for them. */
  readonly held: HoldingFigures
}

export interface GatewayNode {
  /** Its address's host and port until it has told its name. */
  readonly id: string
  readonly url: string
  /** `given`: the configuration names the address. `learned`: a node has told it. */
  readonly from: KnownAddress['from']
  readonly isUp: boolean
  readonly breaker: LinkView['breaker']
  readonly tries: LinkView['tries']
}

export interface GatewayReport {
  readonly node: string
  readonly kind: 'gateway'
  readonly cluster: string
  readonly version: string
  readonly url: string
  readonly pid: number
  readonly state: GatewayState
  readonly ready: boolean
  readonly uptimeSeconds: number
  readonly nodes: readonly GatewayNode[]
  readonly requests: number
  readonly clients: number
  readonly messages: readonly string[]
}

export function gatewayReport(parts: GatewayParts): GatewayReport {
  const { name, cluster = '', version, url, state, requests, clients } = parts
  return {
    node: name,
    kind: 'gateway',
    cluster,
    version,
    url,
    state,
    requests,
    clients,
    pid: process.pid,
    ready: gatewayChecks(parts).every(({ ok }) => ok),
    uptimeSeconds: Math.round(parts.uptimeMs / 1000),
    nodes: listNodes(parts),
    messages: listMessages(parts),
  }
}

export function gatewayChecks(parts: GatewayParts): readonly Check[] {
  const { state } = parts
  const nodes = listNodes(parts)
  const good = nodes.filter(isGood).length
  const isTaking = state === 'running'
  return [
    {
      name: 'accepting',
      ok: isTaking,
      text: isTaking ? 'taking requests' : `this gateway is ${state}`,
    },
    { name: 'nodes', ok: good > 0, text: `${good} of ${nodes.length} nodes answer` },
  ]
}

function isGood({ isUp, breaker }: GatewayNode): boolean {
  return isUp && breaker !== 'open'
}

function listNodes({ nodes, links, followed }: GatewayParts): readonly GatewayNode[] {
  const none = { answered: 0, failed: 0, lost: 0, inconclusive: 0 }
  const given = nodes.map((url) => ({ endpoint: url, node: undefined, from: 'given' }) as const)
  return (followed?.known ?? given).map(({ endpoint: url, node, from }) => {
    const link = links.find(({ endpoint }) => endpoint === url)
    if (link === undefined) {
      const id = node ?? new URL(url).host
      return { id, url, from, isUp: false, breaker: 'closed', tries: none }
    }
    const { node: id, isUp, breaker, tries } = link
    return { id, url, from, isUp, breaker, tries }
  })
}

function listMessages(parts: GatewayParts): readonly string[] {
  const messages: string[] = []
  if (parts.state === 'draining')
    messages.push('this gateway is stopping; requests go to the others')
  for (const { id, url, isUp, breaker } of listNodes(parts)) {
    const trouble = parts.troubles?.get(url)
    const why = trouble === undefined ? '' : ` (${trouble})`
    if (!isUp) messages.push(`node ${id} cannot be reached${why}: start it, or look at its log`)
    else if (breaker === 'open') {
      messages.push(`node ${id} has failed too often in a row, and is passed over for now`)
    }
  }
  return messages
}

const breakerNumbers = { closed: 0, 'half-open': 1, open: 2 } as const

/** The same as figures, for `/metrics`. */
export function gatewayFigures(parts: GatewayParts): readonly Figure[] {
  const { requests, requestBytes, clients, links } = parts
  const isReady = gatewayChecks(parts).every(({ ok }) => ok)
  const figures: Figure[] = [
    figure(
      'ready',
      'as /readyz says.',
      Number(isReady),
      '1 when requests are taken and a node answers, ',
    ),
    figure('gateway_requests', 'Requests at work at the nodes.', requests),
    figure('gateway_request_bytes', 'Bodies of the HTTP requests at work.', requestBytes),
    figure('gateway_clients', 'Links of client libraries.', clients),
  ]
  figures.push(...heldFigures(parts), ...followedFigures(parts))
  for (const node of listNodes(parts)) figures.push(...nodeFigures(node, links))
  return figures
}

function heldFigures({ held: { waiting, refused } }: GatewayParts): Figure[] {
  const waits = 'Requests that wait here until nodes have room for them.'
  const ends = 'Requests that were refused here, because nodes had no room for them in time.'
  return (['writes', 'reads'] as const).flatMap((lane) => [
    { ...figure('gateway_held', waits, waiting[lane]), labels: { lane } },
    { ...figure('gateway_held_refused_total', ends, refused[lane]), labels: { lane } },
  ])
}

function followedFigures(parts: GatewayParts): Figure[] {
  const learned = listNodes(parts).filter(({ from }) => from === 'learned').length
  const refused = parts.followed?.refusedAddresses ?? 0
  return [
    figure(
      'gateway_learned_nodes',
      'Nodes that it dials because other nodes told of them.',
      learned,
    ),
    figure(
      'gateway_refused_addresses_total',
      'Addresses that nodes told and it does not dial.',
      refused,
    ),
  ]
}

function nodeFigures(node: GatewayNode, links: readonly LinkView[]): Figure[] {
  const labels = { node: node.url }
  const opened = links.find(({ endpoint }) => endpoint === node.url)?.opened ?? 0
  const breaker = breakerNumbers[node.breaker]
  return [
    { ...figure('gateway_node_up', '1 when the node is linked.', Number(node.isUp)), labels },
    { ...figure('gateway_breaker', '0: closed; 1: half-open; 2: open.', breaker), labels },
    { ...figure('gateway_breaker_opened_total', 'Times that the breaker opened.', opened), labels },
    ...Object.entries(node.tries).map(([ending, value]) => ({
      ...figure('gateway_tries_total', 'Tries at the node, by how they ended.', value),
      labels: { ...labels, ending },
    })),
  ]
}

function figure(name: string, help: string, value: number, before = ''): Figure {
  return { name: `trilithon_${name}`, help: before + help, value }
}
