/**
 * Every setting of a node by name: its meaning, its flag and its variable of the environment. Names are those
 * of the file; `--secret-file` and `TRILITHON_SECRET_FILE` follow from `secret_file`, `--tls-cert-file` from
 * `tls.cert_file`.
 *
 * A variable that is no setting is warned of, and else left alone: container systems add some of their own
 * under any prefix. An unknown field of the file or an unknown flag is an error.
 */
import { defaultLimits, type Limits } from '../base/limits.ts'

export interface Setting {
  /** As in the file; a dot stands for nesting. */
  readonly name: string
  /** The form of the value, for help texts. */
  readonly argument: string
  readonly what: string
  /** Shown in help texts; the value itself is in `config.ts`. */
  readonly fallback?: string
}

export const nodeSettings: readonly Setting[] = [
  { name: 'cluster', argument: 'NAME', what: 'name of the cluster, the same at every node' },
  { name: 'node', argument: 'ID', what: 'which of the nodes this process is' },
  {
    name: 'listen',
    argument: 'HOST:PORT',
    what: 'where to listen for peers, clients and HTTP',
    fallback: '127.0.0.1:4700',
  },
  { name: 'data', argument: 'FOLDER', what: 'the data folder; made when it does not exist' },
  {
    name: 'nodes',
    argument: 'ID=URL,…',
    what: 'every node of the cluster, this one included; ID+joins=URL for a node that trilithon nodes add makes a member; ID+region:NAME+zone:NAME=URL says where a node is; in the file a list of {id, url, set, region, zone, joins}',
  },
  {
    name: 'advertised_url',
    argument: 'URL',
    what: 'where clients reach this node, if not where its peers do: behind a proxy, say',
  },
  {
    name: 'secret_file',
    argument: 'FILE',
    what: 'file with the secret that all nodes and clients share',
  },
  {
    name: 'peer_secret_file',
    argument: 'FILE',
    what: 'file with the secret by which nodes know one another; clients do not have it',
  },
  { name: 'tls.cert_file', argument: 'FILE', what: 'certificate chain, PEM' },
  { name: 'tls.key_file', argument: 'FILE', what: 'private key, PEM' },
  {
    name: 'insecure',
    argument: 'true|false',
    what: 'listen beyond loopback without TLS and secrets',
    fallback: 'false',
  },
  {
    name: 'log_level',
    argument: 'LEVEL',
    what: 'error, warn, info or debug',
    fallback: 'info',
  },
  {
    name: 'log_store',
    argument: 'leveldb|files',
    what: 'whether log/ is a store of LevelDB or segment files; a folder keeps the kind it was made with',
    fallback: 'leveldb',
  },
  {
    name: 'drain_timeout_ms',
    argument: 'MILLISECONDS',
    what: 'how long a stopping node waits for work in flight',
    fallback: '10000',
  },
  {
    name: 'buffer_copies',
    argument: 'NUMBER',
    what: 'other replica sets that each keep a copy of a cell whose own set is silent; 0: none',
    fallback: '1',
  },
  {
    name: 'seat',
    argument: 'NUMBER',
    what: 'for an empty data folder that takes the place of a lost one, or of a node that joins: as trilithon nodes replace or add says',
  },
  {
    name: 'heal_log',
    argument: 'true|false',
    what: 'where log/ is damaged or was cut, ask the other nodes for a seat, and begin anew; false: end',
    fallback: 'true',
  },
  {
    name: 'request_bytes_max',
    argument: 'NUMBER',
    what: 'bodies of the HTTP requests at work, together, in bytes',
    fallback: '67108864',
  },
]

/** `groupQueueMax` is `limits.group_queue_max` in the file. */
export function limitSettingName(limit: string): string {
  return `limits.${limit.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`
}

export interface LimitSetting extends Setting {
  readonly limit: keyof Limits
}

export const limitSettings: readonly LimitSetting[] = limitNames(defaultLimits).map((limit) => ({
  name: limitSettingName(limit),
  argument: 'NUMBER',
  what: `the bound ${limit} of the replica`,
  fallback: String(defaultLimits[limit]),
  limit,
}))

/** Those that every process has that listens are in `listener-settings.ts`. */
export const ownSettings: readonly Setting[] = [...nodeSettings, ...limitSettings]

export function nameFlag(name: string): string {
  return `--${name.replace(/[._]/g, '-')}`
}

export const variablePrefix = 'TRILITHON_'

export function nameVariable(name: string): string {
  return `${variablePrefix}${name.replace('.', '_').toUpperCase()}`
}

/** The names in `limits`, typed as what they are. */
function limitNames(limits: Limits): readonly (keyof Limits)[] {
  const isLimit = (name: string): name is keyof Limits => Object.hasOwn(limits, name)
  return Object.keys(limits).filter(isLimit)
}
