/**
 * Settings that a configuration may have, and hardly ever means: `config validate` tells of them, and so does
 * the log of a start.
 */
import { formatAddress, hostPort, isWildcard, type NodeAddress } from './values.ts'
import { isLoopbackName, plainHost } from '../adapters/origin-gate.ts'
import type { Warning } from './source.ts'
import type { NodeConfig } from './node-config.ts'
import { findRegion } from './replica-sets.ts'

export function findWarnings(config: NodeConfig): readonly Warning[] {
  return [
    ...warnOfSets(config),
    ...warnOfPlaces(config),
    ...warnOfOthers(config),
    ...warnOfOwnAddress(config),
  ].map((text) => ({
    setting: 'nodes',
    text,
  }))
}

/**
 * A set goes on as long as a majority of it is up: one of two, and one of one, are none. Where nodes join, the configuration
 * does not tell how many there are.
 */
function warnOfSets({ nodes: all }: NodeConfig): readonly string[] {
  const changing = new Set(all.filter(({ joins }) => joins).map(({ set }) => set))
  const nodes = all.filter(({ set }) => !changing.has(set))
  if (all.length === 1)
    return ['one node: there is one copy of all data, and it survives no failure']
  return [...new Set(nodes.map(({ set }) => set))].flatMap((name) => {
    const { length } = nodes.filter(({ set }) => set === name)
    if (length === 1)
      return [`set ${name} has one node: one copy of its data, which survives no failure`]
    if (length % 2 === 1) return []
    const survived = length / 2 - 1
    const failures = survived === 0 ? 'none' : `${survived}`
    return [
      `set ${name} has ${length} nodes, of which ${length / 2 + 1} must be up: it survives as many failures as ${length - 1} would (${failures})`,
    ]
  })
}

/**
 * A set should lose no majority with one zone, and should be in a region where its nodes say regions. Where nodes join, the
 * configuration does not tell which nodes there are.
 */
function warnOfPlaces({ nodes }: NodeConfig): readonly string[] {
  return [...new Set(nodes.map(({ set }) => set))].flatMap((name) => {
    const ofSet = nodes.filter(({ set }) => set === name)
    if (ofSet.length === 1 || ofSet.some(({ joins }) => joins)) return []
    return [...warnOfZones(name, ofSet), ...warnOfRegions(name, ofSet)]
  })
}

function warnOfZones(name: string, ofSet: readonly NodeAddress[]): readonly string[] {
  // Zones of two regions may have one name.
  const zones = ofSet.flatMap(({ region = '', zone }) =>
    zone === undefined ? [] : { region, zone },
  )
  const most = ofSet.length - (Math.floor(ofSet.length / 2) + 1)
  const found = zones.find((one) => countEqual(zones, one) > most)
  // Of two nodes, neither may fail: that is said already.
  if (found === undefined || most === 0) return []
  const { region, zone } = found
  const where = region === '' ? `zone ${zone}` : `zone ${zone} of region ${region}`
  return [
    `set ${name} has ${countEqual(zones, found)} of its ${ofSet.length} nodes in ${where}: without that zone it has no majority; spread them over zones so that each has at most ${most}`,
  ]
}

function countEqual(
  zones: readonly { readonly region: string; readonly zone: string }[],
  { region, zone }: { readonly region: string; readonly zone: string },
): number {
  return zones.filter((one) => one.region === region && one.zone === zone).length
}

function warnOfRegions(name: string, ofSet: readonly NodeAddress[]): readonly string[] {
  if (ofSet.every(({ region }) => region === undefined) || findRegion(ofSet) !== undefined)
    return []
  return [
    `set ${name} is in no region, since no region has a majority of its nodes: PLACEMENT of a region does not choose it`,
  ]
}

function warnOfOthers({ nodes, node, tls }: NodeConfig): readonly string[] {
  const others = nodes.filter(({ id }) => id !== node)
  const warnings: string[] = []
  const are = (ids: readonly string[]): string =>
    `${ids.join(', ')} ${ids.length === 1 ? 'is' : 'are'}`
  const plain = others.filter(({ url }) => url.startsWith('http:')).map(({ id }) => id)
  if (tls !== undefined && plain.length > 0) {
    warnings.push(
      `${node} has tls, and ${are(plain)} called over http: what passes there can be read on the way`,
    )
  }
  const wildcards = others.filter(({ url }) => isWildcard(url)).map(({ id }) => id)
  if (wildcards.length > 0) {
    warnings.push(
      `${are(wildcards)} called at an address to listen on: it leads to the machine that calls it, or nowhere`,
    )
  }
  return warnings
}

/** A node does not call itself by its own url; others do, if their lists have the same. */
function warnOfOwnAddress(config: NodeConfig): readonly string[] {
  const own = config.nodes.find(({ id }) => id === config.node)
  if (own === undefined) return []
  const { hostname, port } = new URL(own.url)
  if (port !== '0' && !isWildcard(own.url)) {
    return [...warnOfOwnProtocol(config, own), ...warnOfOwnHost(config, own)]
  }
  const what = port === '0' ? 'no process can be called at port 0' : `${hostname} is to listen on`
  return [`the url of ${own.id} is ${own.url}, by which no other machine reaches it: ${what}`]
}

function warnOfOwnProtocol({ tls }: NodeConfig, { id, url }: NodeAddress): readonly string[] {
  const isSecure = url.startsWith('https:')
  if (isSecure === (tls !== undefined)) return []
  const text = isSecure
    ? `the url of ${id} is ${url}, and it has no tls: right only where a proxy speaks TLS for it`
    : `${id} has tls, and its url is ${url}: its listener speaks nothing but TLS, so no client reaches it by that url; write https`
  return [text]
}

function warnOfOwnHost({ nodes, node, listen }: NodeConfig, own: NodeAddress): readonly string[] {
  const { hostname } = new URL(own.url)
  const isOwnHere = isLoopbackName(plainHost(hostname))
  const warnings: string[] = []
  const isSameHost = isOwnHere || plainHost(hostname) === plainHost(listen.host)
  if (isSameHost && listen.port !== 0 && String(listen.port) !== readPort(own.url)) {
    warnings.push(
      `${node} listens at ${hostPort(listen)}, and its url is ${own.url}: right only where something passes on what comes there`,
    )
  }
  if (isLoopbackName(listen.host) && !isOwnHere) {
    warnings.push(
      `${node} listens on ${listen.host}, which other machines cannot reach, and its url is ${own.url}`,
    )
  }
  const isElsewhere = ({ id, url }: NodeAddress): boolean =>
    id !== node && !isWildcard(url) && !isLoopbackName(plainHost(new URL(url).hostname))
  if (isOwnHere && nodes.some(isElsewhere)) {
    warnings.push(
      `the url of ${node} is ${own.url}: nodes on other machines would reach themselves by it`,
    )
  }
  return warnings
}

function readPort(url: string): string {
  return formatAddress(url).replace(/.*:/, '')
}
