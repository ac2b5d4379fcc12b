/** What a configuration may say, and hardly ever means: told by `config validate`, and in the log of a start. */
import { addressOf, hostPort } from './config-values.ts'
import { isLoopbackName, plainHost } from './origin-gate.ts'
import type { NodeConfig } from './node-config.ts'

export interface Warning {
  /** The setting to look at. */
  readonly setting: string
  readonly text: string
}

export function warningsOf(config: NodeConfig): readonly Warning[] {
  return [...ofSets(config), ...ofAddresses(config)].map((text) => ({ setting: 'nodes', text }))
}

/** A set goes on as long as a majority of it is up: one of two, and one of one, are none. */
function ofSets({ nodes }: NodeConfig): readonly string[] {
  if (nodes.length === 1)
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

function ofAddresses({ nodes, node, listen, tls }: NodeConfig): readonly string[] {
  const own = nodes.find(({ id }) => id === node)
  if (own === undefined) return []
  const others = nodes.filter(({ id }) => id !== node)
  const { protocol, hostname } = new URL(own.url)
  const isOwnHere = isLoopbackName(plainHost(hostname))
  const warnings: string[] = []
  if (protocol === 'https:' && tls === undefined) {
    warnings.push(
      `the url of ${node} is ${own.url}, and it has no tls: right only where a proxy speaks TLS for it`,
    )
  }
  const isSameHost = isOwnHere || plainHost(hostname) === plainHost(listen.host)
  if (isSameHost && listen.port !== 0 && String(listen.port) !== portOf(own.url)) {
    warnings.push(
      `${node} listens at ${hostPort(listen)}, and its url is ${own.url}: right only where something passes on what comes there`,
    )
  }
  const plain = others.filter(({ url }) => url.startsWith('http:')).map(({ id }) => id)
  if (tls !== undefined && plain.length > 0) {
    warnings.push(
      `${node} has tls, and ${plain.join(', ')} ${plain.length === 1 ? 'is' : 'are'} called over http: what passes there can be read on the way`,
    )
  }
  if (isLoopbackName(listen.host) && !isOwnHere) {
    warnings.push(
      `${node} listens on ${listen.host}, which other machines cannot reach, and its url is ${own.url}`,
    )
  }
  if (isOwnHere && others.some(({ url }) => !isLoopbackName(plainHost(new URL(url).hostname)))) {
    warnings.push(
      `the url of ${node} is ${own.url}: nodes on other machines would reach themselves by it`,
    )
  }
  return warnings
}

function portOf(url: string): string {
  return addressOf(url).replace(/.*:/, '')
}
