/**
 * A node's configuration: flag > environment > file > default, every value with its origin, all
 * problems found in one go. Pure; `load.ts` reads the files.
 */
import { isClusterId, isNodeId } from '../base/ids.ts'
import { batchItemsMax, defaultLimits, entryBytesMax, type Limits } from '../base/limits.ts'
import { batchBytesMax } from '../cells/limits.ts'
import { checkConfig } from './check.ts'
import { findWarnings } from './warnings.ts'
import {
  gather,
  readPath,
  settingReaders,
  settingsInForce,
  unknownVariables,
  type ConfigSources,
  type EffectiveSetting,
  type SettingsSchema,
  type Take,
} from './gather.ts'
import type { BuildResult } from './load.ts'
import { bufferCopiesDefault, logStoreDefault, type NodeConfig } from './node-config.ts'
import { nodeListText, type ConfigProblem, type Origin } from './source.ts'
import { limitSettings, ownSettings, type Setting } from './settings.ts'
import {
  readCount,
  hostPort,
  isWildcard,
  readListen,
  readLogLevel,
  readLogStore,
  readNodes,
  readAdvertisedUrl,
  readText,
  readBoolean,
  mainSet,
  type Listen,
  type NodeAddress,
} from './values.ts'
import { plainHost } from '../adapters/origin-gate.ts'
import {
  defaultListenerSettings,
  listenerInForce,
  listenerLists,
  listenerSettings,
  takeListenerSettings,
} from './listener-settings.ts'

export type ConfigResult = BuildResult<NodeConfig>

const listenDefault: Listen = { host: '127.0.0.1', port: 4700 }
export const drainTimeoutDefaultMs = 10_000
export const drainTimeoutMaxMs = 3_600_000
/** Timers of Node.js take no more; no count needs to be larger either. */
export const numberMax: number = 2 ** 31 - 1

/** A cell has a mebibyte at most, a batch eight: enough for dozens at once. */
export const requestBytesMaxDefault: number = 64 * 1024 * 1024

/** The largest body of one request. */
export const requestBytesLeast: number = batchBytesMax

export const allSettings: readonly Setting[] = [...ownSettings, ...listenerSettings]

const nodeSchema: SettingsSchema = {
  settings: allSettings,
  lists: { nodes: nodeListText, ...listenerLists },
}

/** Merges the sources and checks the whole. */
export function buildConfig(sources: ConfigSources): ConfigResult {
  const problems: ConfigProblem[] = []
  const given = gather(nodeSchema, sources, problems)
  const { take, need, path } = settingReaders(given, sources, problems)
  const idRule = 'is 1 to 32 of a-z, 0-9 and -'
  const clusterRule = 'is 1 to 64 of a-z, 0-9 and -'
  const cluster = need('cluster', 'cluster: trips', (at) => readText(at, isClusterId, clusterRule))
  const node = need('node', 'node: a', (at) => readText(at, isNodeId, idRule))
  const nodes = need('nodes', 'nodes: [{ id: a, url: "http://127.0.0.1:4700" }]', (at) =>
    readNodes(at, node),
  )
  const dataText = need('data', 'data: ./data/a', readPath)
  const certFile = path('tls.cert_file')
  const keyFile = path('tls.key_file')
  const rest = {
    listen: take('listen', readListen) ?? listenDefault,
    ...takeAdvertised(take),
    secretFile: path('secret_file'),
    peerSecretFile: path('peer_secret_file'),
    tls: certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile },
    insecure: take('insecure', readBoolean) ?? false,
    logLevel: take('log_level', readLogLevel) ?? ('info' as const),
    logStore: take('log_store', readLogStore) ?? logStoreDefault,
    healLog: take('heal_log', readBoolean) ?? true,
    ...takeNumbers(take),
    limits: takeLimits(take),
    listener: takeListenerSettings(take),
  }
  const isWhole =
    cluster !== undefined && node !== undefined && nodes !== undefined && dataText !== undefined
  if (problems.length > 0 || !isWhole) return { ok: false, problems }
  const origins = new Map([...given].map(([name, located]) => [name, located.origin]))
  const data = path('data') ?? dataText
  const config: NodeConfig = { cluster, node, nodes, data, ...rest }
  const contradictions = checkConfig(config, origins)
  if (contradictions.length > 0) return { ok: false, problems: contradictions }
  const own = nodes.filter(({ id }) => id === node)
  return {
    ...{ ok: true, config, settings: effectiveSettings(config, origins), origins },
    warnings: [...findWarnings(config), ...unknownVariables(nodeSchema, sources.environment)],
    names: [...own.map(({ url }) => url), ...listGiven(config.advertisedUrl)]
      .filter((url) => !isWildcard(url))
      .map((url) => plainHost(new URL(url).hostname)),
    called: nodes.filter(({ id }) => id !== node).map(({ url }) => url),
  }
}

function listGiven<T>(value: T | undefined): readonly T[] {
  return value === undefined ? [] : [value]
}

function takeAdvertised(take: Take): Pick<NodeConfig, 'advertisedUrl'> {
  const advertisedUrl = take('advertised_url', readAdvertisedUrl)
  return advertisedUrl === undefined ? {} : { advertisedUrl }
}

function takeNumbers(
  take: Take,
): Pick<NodeConfig, 'drainTimeoutMs' | 'bufferCopies' | 'requestBytesMax' | 'seat'> {
  const count = (name: string, least: number, most: number): number | undefined =>
    take(name, (at) => readCount(at, least, most))
  const seat = count('seat', 1, numberMax)
  return {
    ...(seat !== undefined && { seat }),
    drainTimeoutMs: count('drain_timeout_ms', 0, drainTimeoutMaxMs) ?? drainTimeoutDefaultMs,
    bufferCopies: count('buffer_copies', 0, numberMax) ?? bufferCopiesDefault,
    requestBytesMax:
      count('request_bytes_max', requestBytesLeast, numberMax) ?? requestBytesMaxDefault,
  }
}

/** Below these no request of the usual size is served. A lease of no time at all means: no leases. */
const limitLeasts: Partial<Limits> = {
  leaseMs: 0,
  transactionReadsMax: batchItemsMax,
  overlayBytesMax: entryBytesMax,
  logQueueBytesMax: entryBytesMax,
}

function takeLimits(take: Take): Limits {
  const limits: { -readonly [Name in keyof Limits]: Limits[Name] } = { ...defaultLimits }
  for (const { name, limit } of limitSettings) {
    const least = limitLeasts[limit] ?? 1
    limits[limit] = take(name, (at) => readCount(at, least, numberMax)) ?? defaultLimits[limit]
  }
  return limits
}

/** As a flag has it. */
function nodeText({ id, url, set, region, zone, joins }: NodeAddress): string {
  const marks = [
    ...(region === undefined ? [] : [`region:${region}`]),
    ...(zone === undefined ? [] : [`zone:${zone}`]),
    ...(joins === true ? ['joins'] : []),
  ]
  const name = set === mainSet ? id : `${id}@${set}`
  return `${[name, ...marks].join('+')}=${url}`
}

function effectiveSettings(
  config: NodeConfig,
  origins: ReadonlyMap<string, Origin>,
): readonly EffectiveSetting[] {
  const { listen, limits } = config
  const own = settingsInForce(origins, [
    ['cluster', config.cluster],
    ['node', config.node],
    ['listen', hostPort(listen)],
    ['data', config.data],
    ['nodes', config.nodes.map(nodeText).join(',')],
    ['advertised_url', config.advertisedUrl],
    ['secret_file', config.secretFile],
    ['peer_secret_file', config.peerSecretFile],
    ['tls.cert_file', config.tls?.certFile],
    ['tls.key_file', config.tls?.keyFile],
    ['insecure', String(config.insecure)],
    ['log_level', config.logLevel],
    ['log_store', config.logStore ?? logStoreDefault],
    ['drain_timeout_ms', String(config.drainTimeoutMs)],
    ['buffer_copies', String(config.bufferCopies)],
    ['seat', config.seat?.toString()],
    ['heal_log', String(config.healLog ?? false)],
    ['request_bytes_max', String(config.requestBytesMax ?? requestBytesMaxDefault)],
    ...limitSettings.map(({ name, limit }): [string, string] => [name, String(limits[limit])]),
  ])
  return [...own, ...listenerInForce(config.listener ?? defaultListenerSettings, origins)]
}
