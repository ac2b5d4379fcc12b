/**
 * A gateway's configuration, from the same sources as a node's: flag > environment > file > default.
 * `nodes` are addresses alone; a node's own list, with ids, is taken too.
 */
import { nodeCountMax } from '../base/limits.ts'
import { isClusterId, isNodeId } from '../base/ids.ts'
import { defaultClientLimits, type ClientLimits } from '../client/client-limits.ts'
import { callTimeoutMsMax } from '../txn/limits.ts'
import { checkListener, complaints, type ListenerConfig } from '../config/check.ts'
import {
  gather,
  settingReaders,
  settingsInForce,
  unknownVariables,
  type ConfigSources,
  type EffectiveSetting,
  type SettingsSchema,
  type Take,
} from '../config/gather.ts'
import {
  drainTimeoutDefaultMs,
  drainTimeoutMaxMs,
  numberMax,
  requestBytesLeast,
} from '../config/config.ts'
import type { BuildResult } from '../config/load.ts'
import { scalarText, type ConfigProblem, type Located, type Origin } from '../config/source.ts'
import { nodeSettings, type Setting } from '../config/settings.ts'
import {
  listenerInForce,
  listenerLists,
  listenerSettings,
  takeListenerSettings,
  type ListenerSettings,
} from '../config/listener-settings.ts'
import {
  formatAddress as addressOfUrl,
  readCount,
  hostPort,
  readListen,
  readLogLevel,
  refuse,
  readText,
  readBoolean,
  readCalledUrl,
  isWildcard,
  type LogLevel,
  type Read,
} from '../config/values.ts'

export interface GatewayConfig extends ListenerConfig {
  readonly name: string
  readonly listener: ListenerSettings
  /** Absent: the cluster of the first node that answers. */
  readonly cluster: string | undefined
  readonly nodes: readonly string[]
  /** Whether the gateway goes on to nodes that those tell of. */
  readonly follow: boolean
  readonly logLevel: LogLevel
  readonly drainTimeoutMs: number
  /** One HTTP request's time, waiting for new cells not counted. */
  readonly timeoutMs: number
  readonly requestsMax: number
  readonly requestBytesMax: number
  readonly clientsMax: number
  readonly tryTimeoutMs: number
  readonly breakerFailures: number
  readonly breakerOpenMs: number
  readonly breakerOpenMaxMs: number
}

const shared = ['secret_file', 'tls.cert_file', 'tls.key_file', 'insecure', 'log_level']

type Numbers = {
  readonly [
    Name in keyof GatewayConfig as GatewayConfig[Name] extends number ? Name : never
  ]: number
}

const defaults: Numbers = {
  drainTimeoutMs: drainTimeoutDefaultMs,
  timeoutMs: 10_000,
  requestsMax: 10_000,
  requestBytesMax: 256 * 1024 * 1024,
  clientsMax: 10_000,
  tryTimeoutMs: 1_000,
  breakerFailures: 5,
  breakerOpenMs: 1_000,
  breakerOpenMaxMs: 15_000,
}

type Writable = { -readonly [Field in keyof Numbers]: Numbers[Field] }

/** A request over the network of one machine takes some milliseconds. */
const timeoutLeastMs = 10
/** The least that serves one request, where that is not 1. */
const leasts: Partial<Numbers> = {
  drainTimeoutMs: 0,
  timeoutMs: timeoutLeastMs,
  tryTimeoutMs: timeoutLeastMs,
  requestBytesMax: requestBytesLeast,
}

const numbers: readonly (readonly [
  name: string,
  field: keyof Numbers,
  max: number,
  what: string,
])[] = [
  [
    'drain_timeout_ms',
    'drainTimeoutMs',
    drainTimeoutMaxMs,
    'how long a stopping gateway waits for work in flight',
  ],
  ['timeout_ms', 'timeoutMs', callTimeoutMsMax, 'the time that one HTTP request has'],
  ['requests_max', 'requestsMax', numberMax, 'requests at work; more are refused as overloaded'],
  ['request_bytes_max', 'requestBytesMax', numberMax, 'their bodies together, in bytes'],
  ['clients_max', 'clientsMax', numberMax, 'links of client libraries; more are refused'],
  [
    'try_timeout_ms',
    'tryTimeoutMs',
    callTimeoutMsMax,
    'how long one node may take before another one is asked',
  ],
  [
    'breaker_failures',
    'breakerFailures',
    numberMax,
    'failures in a row that open the breaker of a node',
  ],
  [
    'breaker_open_ms',
    'breakerOpenMs',
    numberMax,
    'how long a node is passed over at first; each failed probe doubles it',
  ],
  ['breaker_open_max_ms', 'breakerOpenMaxMs', numberMax, 'how long a node is passed over at most'],
]

export const gatewaySettings: readonly Setting[] = [
  { name: 'nodes', argument: 'URL,…', what: 'nodes of the cluster; in the file a list' },
  {
    name: 'listen',
    argument: 'HOST:PORT',
    what: 'where to listen for HTTP and client libraries',
    fallback: '127.0.0.1:4800',
  },
  { name: 'name', argument: 'ID', what: 'what this gateway is called', fallback: 'gateway' },
  {
    name: 'cluster',
    argument: 'NAME',
    what: 'the cluster; without it that of the first node that answers',
  },
  {
    name: 'follow',
    argument: 'true|false',
    what: 'go on to the nodes that these tell of, and leave removed ones; false: these alone',
    fallback: 'true',
  },
  ...nodeSettings.filter(({ name }) => shared.includes(name)),
  ...numbers.map(([name, field, , what]): Setting => {
    return { name, argument: 'NUMBER', what, fallback: String(defaults[field]) }
  }),
  ...listenerSettings,
]

const schema: SettingsSchema = {
  settings: gatewaySettings,
  lists: { nodes: addressListText, ...listenerLists },
}

/** Merges the sources and checks the whole. */
export function buildGatewayConfig(sources: ConfigSources): BuildResult<GatewayConfig> {
  const problems: ConfigProblem[] = []
  const given = gather(schema, sources, problems)
  const { take, need, path } = settingReaders(given, sources, problems)
  const nodes = need('nodes', 'nodes: ["http://127.0.0.1:4700"]', readAddresses)
  const certFile = path('tls.cert_file')
  const keyFile = path('tls.key_file')
  const nameRule = 'is 1 to 32 of a-z, 0-9 and -'
  const rest = {
    name: take('name', (at) => readText(at, isNodeId, nameRule)) ?? 'gateway',
    cluster: take('cluster', (at) => readText(at, isClusterId, 'is 1 to 64 of a-z, 0-9 and -')),
    follow: take('follow', readBoolean) ?? true,
    listen: take('listen', readListen) ?? { host: '127.0.0.1', port: 4800 },
    secretFile: path('secret_file'),
    tls: certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile },
    insecure: take('insecure', readBoolean) ?? false,
    logLevel: take('log_level', readLogLevel) ?? ('info' as const),
    ...takeNumbers(take),
    listener: takeListenerSettings(take),
  }
  if (problems.length > 0 || nodes === undefined) return { ok: false, problems }
  const origins = new Map([...given].map(([name, located]) => [name, located.origin]))
  const config: GatewayConfig = { nodes, ...rest }
  const complain = complaints(problems, origins)
  checkListener(config, origins, complain)
  checkNumbers(config, complain)
  const itself = nodes.find(
    (url) => addressOfUrl(url) === addressOfUrl(`http://${hostPort(rest.listen)}`),
  )
  if (itself !== undefined) {
    complain('nodes', `${itself} is where this gateway listens: it would ask itself`)
  }
  if (problems.length > 0) return { ok: false, problems }
  const { allowedHosts: names } = config.listener
  const wildcards = nodes.filter(isWildcard).map((url) => {
    const text = `${url} is an address to listen on: it leads to the machine that calls it, or nowhere`
    return { setting: 'nodes', text }
  })
  const warnings = [...wildcards, ...unknownVariables(schema, sources.environment)]
  const settings = inForce(config, origins)
  return { ok: true, config, settings, origins, warnings, names, called: nodes }
}

function takeNumbers(take: Take): Numbers {
  const taken: Writable = { ...defaults }
  const given = new Set<keyof Numbers>()
  for (const [name, field, max] of numbers) {
    const least = leasts[field] ?? 1
    const value = take(name, (at) => readCount(at, least, max))
    taken[field] = value ?? defaults[field]
    if (value !== undefined) given.add(field)
  }
  // A default gives way to a value that the operator set.
  if (!given.has('tryTimeoutMs')) lower(taken, 'tryTimeoutMs', taken.timeoutMs)
  if (!given.has('breakerOpenMs')) lower(taken, 'breakerOpenMs', taken.breakerOpenMaxMs)
  return taken
}

function lower(taken: Writable, field: keyof Numbers, most: number): void {
  taken[field] = Math.min(taken[field], most)
}

/** Checks two numbers against one another. */
function checkNumbers(config: Numbers, complain: (name: string, text: string) => void): void {
  const { tryTimeoutMs, timeoutMs, breakerOpenMs, breakerOpenMaxMs } = config
  if (tryTimeoutMs > timeoutMs) {
    complain(
      'try_timeout_ms',
      `try_timeout_ms (${tryTimeoutMs}) must not exceed timeout_ms (${timeoutMs}): a request would end before a second node is asked`,
    )
  }
  if (breakerOpenMs > breakerOpenMaxMs) {
    complain(
      'breaker_open_ms',
      `breaker_open_ms (${breakerOpenMs}) must not exceed breaker_open_max_ms (${breakerOpenMaxMs})`,
    )
  }
}

function addressListText(text: string, origin: Origin): Located {
  const items = text.split(',').map((item) => scalarText(item.trim(), origin))
  return { kind: 'list', items, origin }
}

/** Each a URL, `ID=URL`, or `{id, url}` as a node's list has it. */
function readAddresses(located: Located): Read<readonly string[]> {
  if (located.kind !== 'list' || located.items.length === 0) {
    return refuse(located.origin, 'wants a list of addresses such as http://127.0.0.1:4700')
  }
  if (located.items.length > nodeCountMax) {
    const { length } = located.items
    return refuse(located.origin, `names ${length} nodes; the most is ${nodeCountMax}`)
  }
  const read = located.items.map((item) => readCalledUrl(pickAddress(item)))
  const problems = read.flatMap((one) => (one.ok ? [] : [...one.problems]))
  if (problems.length > 0) return { ok: false, problems }
  const urls = read.flatMap((one) => (one.ok ? [one.value] : []))
  for (const [place, url] of urls.entries()) {
    const first = urls.findIndex((other) => addressOfUrl(other) === addressOfUrl(url))
    if (first === place) continue
    const at = located.items[place]?.origin ?? located.origin
    const reason =
      urls[first] === url ? `url ${url}` : `same address: ${urls[first] ?? ''} and ${url}`
    problems.push({ at, reason: `two nodes have the ${reason}` })
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value: urls }
}

function pickAddress(item: Located): Located {
  if (item.kind === 'map') return item.fields.get('url')?.value ?? item
  if (item.kind !== 'scalar' || typeof item.value !== 'string') return item
  return { ...item, value: item.value.replace(/^[a-z0-9-]+(?:@[a-z0-9-]+)?(?:\+joins)?=/, '') }
}

function inForce(
  config: GatewayConfig,
  origins: ReadonlyMap<string, Origin>,
): readonly EffectiveSetting[] {
  const own = settingsInForce(origins, [
    ['nodes', config.nodes.join(',')],
    ['listen', hostPort(config.listen)],
    ['name', config.name],
    ['cluster', config.cluster],
    ['follow', String(config.follow)],
    ['secret_file', config.secretFile],
    ['tls.cert_file', config.tls?.certFile],
    ['tls.key_file', config.tls?.keyFile],
    ['insecure', String(config.insecure)],
    ['log_level', config.logLevel],
    ...numbers.map(([name, field]): [string, string] => [name, String(config[field])]),
  ])
  return [...own, ...listenerInForce(config.listener, origins)]
}

/** The parts that a command needs to load one. */
export const gatewayConfigured: {
  readonly settings: readonly Setting[]
  readonly build: (sources: ConfigSources) => BuildResult<GatewayConfig>
} = { settings: gatewaySettings, build: buildGatewayConfig }

/** The limits of the gateway's client, which sends requests to the nodes. */
export function buildClientLimits(config: GatewayConfig): ClientLimits {
  return {
    ...defaultClientLimits,
    timeoutMs: config.timeoutMs,
    tryTimeoutMs: config.tryTimeoutMs,
    failuresMax: config.breakerFailures,
    avoidMs: config.breakerOpenMs,
    avoidMaxMs: config.breakerOpenMaxMs,
    callsMax: config.requestsMax,
    putBytesMax: config.requestBytesMax,
  }
}
