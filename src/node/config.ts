/**
 * A node's configuration: flag > environment > file > default, every value with its origin, all
 * problems found in one go. Pure; `config-load.ts` reads the files.
 */
import { dirname, resolve } from 'node:path'
import { isClusterId, isNodeId } from '../base/ids.ts'
import { defaultLimits, type Limits } from '../base/limits.ts'
import { checkConfig } from './config-check.ts'
import type { NodeConfig } from './node-config.ts'
import {
  describeOrigin,
  nodeListText,
  scalarText,
  type ConfigProblem,
  type Located,
  type LocatedMap,
  type Origin,
} from './config-source.ts'
import { allSettings, flagOf, limitSettings, variableOf } from './config-settings.ts'
import {
  countOf,
  listenOf,
  logLevelOf,
  nodesOf,
  textOf,
  truthOf,
  mainSet,
  type Listen,
  type NodeAddress,
  type Read,
} from './config-values.ts'
import { unknownWord } from '../base/suggest.ts'

export interface ConfigSources {
  readonly file?: { readonly path: string; readonly root: LocatedMap }
  readonly environment: Readonly<Record<string, string | undefined>>
  /** By setting name. */
  readonly flags: ReadonlyMap<string, string>
  /** Relative paths of flags and variables start here; those of the file at its own folder. */
  readonly workingFolder: string
}

/** A setting's value in force, as text, and where it came from. */
export interface EffectiveSetting {
  readonly name: string
  readonly value: string
  readonly origin: Origin
}

export type ConfigResult =
  | {
      readonly ok: true
      readonly config: NodeConfig
      readonly settings: readonly EffectiveSetting[]
      readonly origins: ReadonlyMap<string, Origin>
    }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] }

const listenDefault: Listen = { host: '127.0.0.1', port: 4700 }
const drainTimeoutDefaultMs = 10_000
const drainTimeoutMaxMs = 3_600_000
/** Timers of Node.js take no more; nobody needs a larger count either. */
const numberMax: number = 2 ** 31 - 1

/** Merges the sources and checks the whole. */
export function buildConfig(sources: ConfigSources): ConfigResult {
  const problems: ConfigProblem[] = []
  const given = gather(sources, problems)
  const { take, need, path } = settingReaders(given, sources, problems)
  const idRule = 'is 1 to 32 of a-z, 0-9 and -'
  const clusterRule = 'is 1 to 64 of a-z, 0-9 and -'
  const cluster = need('cluster', 'cluster: trips', (at) => textOf(at, isClusterId, clusterRule))
  const node = need('node', 'node: a', (at) => textOf(at, isNodeId, idRule))
  const nodes = need('nodes', 'nodes: [{ id: a, url: "http://127.0.0.1:4700" }]', nodesOf)
  const dataText = need('data', 'data: ./data/a', pathOf)
  const certFile = path('tls.cert_file')
  const keyFile = path('tls.key_file')
  const rest = {
    listen: take('listen', listenOf) ?? listenDefault,
    secretFile: path('secret_file'),
    tls: certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile },
    insecure: take('insecure', truthOf) ?? false,
    logLevel: take('log_level', logLevelOf) ?? ('info' as const),
    drainTimeoutMs:
      take('drain_timeout_ms', (at) => countOf(at, 0, drainTimeoutMaxMs)) ?? drainTimeoutDefaultMs,
    limits: takeLimits(take),
  }
  const isWhole =
    cluster !== undefined && node !== undefined && nodes !== undefined && dataText !== undefined
  if (problems.length > 0 || !isWhole) return { ok: false, problems }
  const origins = new Map([...given].map(([name, located]) => [name, located.origin]))
  const data = path('data') ?? dataText
  const config: NodeConfig = { cluster, node, nodes, data, ...rest }
  const contradictions = checkConfig(config, origins)
  if (contradictions.length > 0) return { ok: false, problems: contradictions }
  return { ok: true, config, settings: effectiveSettings(config, origins), origins }
}

type Take = <T>(name: string, read: (located: Located) => Read<T>) => T | undefined

interface SettingReaders {
  /** The value, or undefined when it is not given or wrong (which is then a problem). */
  readonly take: Take
  /** As `take`, and its absence is a problem; `example` shows what to write. */
  readonly need: <T>(
    name: string,
    example: string,
    read: (located: Located) => Read<T>,
  ) => T | undefined
  /** A path, made absolute. */
  readonly path: (name: string) => string | undefined
}

function settingReaders(
  given: ReadonlyMap<string, Located>,
  sources: ConfigSources,
  problems: ConfigProblem[],
): SettingReaders {
  const take: Take = (name, read) => {
    const located = given.get(name)
    if (located === undefined) return undefined
    const result = read(located)
    if (result.ok) return result.value
    for (const { at, reason } of result.problems) {
      problems.push({ where: describeOrigin(at), text: `${name}: ${reason}` })
    }
    return undefined
  }
  return {
    take,
    need: (name, example, read) => {
      if (given.has(name)) return take(name, read)
      const where = sources.file?.path ?? 'configuration'
      problems.push({ where, text: `"${name}" is missing; write for example ${example}` })
      return undefined
    },
    path: (name) => {
      const text = take(name, pathOf)
      if (text === undefined) return undefined
      const isFromFile = given.get(name)?.origin.kind === 'file'
      const file = isFromFile ? sources.file : undefined
      return resolve(file === undefined ? sources.workingFolder : dirname(file.path), text)
    },
  }
}

function pathOf(located: Located): Read<string> {
  return textOf(located, (text) => text.trim() !== '', 'names a file or folder')
}

function takeLimits(take: Take): Limits {
  const limits: { -readonly [Name in keyof Limits]: Limits[Name] } = { ...defaultLimits }
  for (const { name, limit } of limitSettings) {
    // A lease of no time at all means: no leases.
    const least = limit === 'leaseMs' ? 0 : 1
    limits[limit] = take(name, (at) => countOf(at, least, numberMax)) ?? defaultLimits[limit]
  }
  return limits
}

/** The value in force of each setting that is given at all. */
function gather(sources: ConfigSources, problems: ConfigProblem[]): Map<string, Located> {
  const given = new Map<string, Located>()
  if (sources.file !== undefined) gatherFile(sources.file.root, given, problems)
  for (const { name } of allSettings) {
    const variable = sources.environment[variableOf(name)]
    const flag = sources.flags.get(name)
    if (flag !== undefined) {
      given.set(name, textValue(name, flag, { kind: 'flag', name: flagOf(name) }))
    } else if (variable !== undefined) {
      const origin: Origin = { kind: 'environment', name: variableOf(name) }
      given.set(name, textValue(name, variable, origin))
    }
  }
  return given
}

function textValue(name: string, text: string, origin: Origin): Located {
  return name === 'nodes' ? nodeListText(text, origin) : scalarText(text, origin)
}

/** `limits` and `tls` are maps of settings; every other field is one. */
function gatherFile(
  root: LocatedMap,
  given: Map<string, Located>,
  problems: ConfigProblem[],
  prefix = '',
): void {
  const known = knownFields(prefix)
  for (const [field, { value, origin }] of root.fields) {
    const name = `${prefix}${field}`
    const isSection = knownFields(`${name}.`).length > 0
    if (!known.includes(field)) {
      problems.push({ where: describeOrigin(origin), text: unknownWord('field', field, known) })
    } else if (!isSection) given.set(name, value)
    else if (value.kind === 'map') gatherFile(value, given, problems, `${name}.`)
    else {
      const text = `${name} is a map of ${knownFields(`${name}.`).slice(0, 2).join(', ')} …`
      problems.push({ where: describeOrigin(value.origin), text })
    }
  }
}

/** The names that may stand in the section `prefix` (`''` or such as `limits.`). */
function knownFields(prefix: string): readonly string[] {
  const inside = allSettings.filter(({ name }) => name.startsWith(prefix))
  return [...new Set(inside.map(({ name }) => name.slice(prefix.length).split('.')[0] ?? ''))]
}

/** As a flag has it. */
function nodeText({ id, url, set }: NodeAddress): string {
  return set === mainSet ? `${id}=${url}` : `${id}@${set}=${url}`
}

function effectiveSettings(
  config: NodeConfig,
  origins: ReadonlyMap<string, Origin>,
): readonly EffectiveSetting[] {
  const { listen, limits } = config
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host
  const valueByName = new Map<string, string | undefined>([
    ['cluster', config.cluster],
    ['node', config.node],
    ['listen', `${host}:${listen.port}`],
    ['data', config.data],
    ['nodes', config.nodes.map(nodeText).join(',')],
    ['secret_file', config.secretFile],
    ['tls.cert_file', config.tls?.certFile],
    ['tls.key_file', config.tls?.keyFile],
    ['insecure', String(config.insecure)],
    ['log_level', config.logLevel],
    ['drain_timeout_ms', String(config.drainTimeoutMs)],
    ...limitSettings.map(({ name, limit }): [string, string] => [name, String(limits[limit])]),
  ])
  const settings: EffectiveSetting[] = []
  for (const [name, value] of valueByName) {
    const origin = origins.get(name) ?? { kind: 'default' as const }
    if (value !== undefined) settings.push({ name, value, origin })
  }
  return settings
}
