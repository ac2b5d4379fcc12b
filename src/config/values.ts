/** Readers of single configuration values: a typed value, or what is wrong with it and where. */
import { isNodeId, type NodeId } from '../base/ids.ts'
import { nodeCountMax, nodeUrlCharsMax, setCountMax } from '../base/limits.ts'
import type { Located, Origin } from './source.ts'
import { journalKinds, type JournalKind } from '../adapters/journal-kind.ts'
import { plainHost } from '../adapters/origin-gate.ts'
import { unknownWord } from '../base/suggest.ts'

export type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly ValueProblem[] }

export interface ValueProblem {
  readonly at: Origin
  readonly reason: string
}

export interface Listen {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
}

export interface NodeAddress {
  readonly id: NodeId
  /** Scheme, host and port: `http://10.0.0.1:4700`. */
  readonly url: string
  /** The replica set that the node is in. */
  readonly set: string
  /** The region that the node is in, such as `eu-west`, and the zone in it: parts that fail together. Absent: not said. */
  readonly region?: string
  readonly zone?: string
  /** The set did not begin with the node: `trilithon nodes add` makes it a member. Absent: the set began with it. */
  readonly joins?: true
}

/** Of a node that names no set. */
export const mainSet = 'main'

export type LogLevel = (typeof logLevels)[number]
const logLevels = ['error', 'warn', 'info', 'debug'] as const

export function refuse(
  at: Origin,
  reason: string,
): { readonly ok: false; readonly problems: ValueProblem[] } {
  return { ok: false, problems: [{ at, reason }] }
}

function shown(located: Located): string {
  if (located.kind !== 'scalar') return located.kind === 'list' ? 'a list' : 'a map'
  // JSON has no infinity.
  if (typeof located.value === 'number') return String(located.value)
  return JSON.stringify(located.value) ?? 'nothing'
}

/** Text that `accepts`; numbers and truth values of the file are not taken for text. */
export function readText(located: Located): Read<string>
export function readText<T extends string>(
  located: Located,
  accepts: ((text: string) => text is T) | ((text: string) => boolean),
  rule: string,
): Read<T>
export function readText(
  located: Located,
  accepts: (text: string) => boolean = () => true,
  rule = '',
): Read<string> {
  if (located.kind !== 'scalar' || typeof located.value !== 'string') {
    const isEmpty = located.kind === 'scalar' && located.value === undefined
    const hint = isEmpty ? '' : '; put it in quotes if it is text'
    return refuse(located.origin, `wants text, not ${shown(located)}${hint}`)
  }
  if (accepts(located.value)) return { ok: true, value: located.value }
  return refuse(located.origin, `${shown(located)} is not allowed: it ${rule}`)
}

/** A whole number within bounds. */
export function readCount(located: Located, min: number, max: number): Read<number> {
  const value = located.kind === 'scalar' ? located.value : undefined
  const isNumberText = typeof value === 'string' && isFromText(located) && /^\d{1,15}$/.test(value)
  const count = isNumberText ? Number(value) : value
  if (typeof count === 'number' && Number.isInteger(count) && count >= min && count <= max) {
    return { ok: true, value: count }
  }
  return refuse(located.origin, `wants a whole number from ${min} to ${max}, not ${shown(located)}`)
}

export function readBoolean(located: Located): Read<boolean> {
  const value = located.kind === 'scalar' ? located.value : undefined
  if (typeof value === 'boolean') return { ok: true, value }
  if (isFromText(located) && (value === 'true' || value === 'false')) {
    return { ok: true, value: value === 'true' }
  }
  return refuse(located.origin, `wants true or false, not ${shown(located)}`)
}

/** Flags and variables are text even where the file would have a number. */
function isFromText(located: Located): boolean {
  return located.origin.kind === 'flag' || located.origin.kind === 'environment'
}

export function readLogLevel(located: Located): Read<LogLevel> {
  const value = located.kind === 'scalar' ? located.value : undefined
  const level = logLevels.find((known) => known === value)
  if (level !== undefined) return { ok: true, value: level }
  return refuse(located.origin, unknownWord('level', String(value), logLevels))
}

export function readLogStore(located: Located): Read<JournalKind> {
  const value = located.kind === 'scalar' ? located.value : undefined
  const kind = journalKinds.find((known) => known === value)
  if (kind !== undefined) return { ok: true, value: kind }
  return refuse(located.origin, unknownWord('log store', String(value), journalKinds))
}

/** `127.0.0.1:4700`, `[::1]:4700`, `localhost:4700`. */
export function readListen(located: Located): Read<Listen> {
  const value = located.kind === 'scalar' ? located.value : undefined
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+):(\d{1,5})$/.exec(String(value))
  const host = match?.[1]?.replace(/^\[|\]$/g, '')
  const port = Number(match?.[2])
  if (host === undefined || port > 65_535) {
    return refuse(located.origin, `wants HOST:PORT such as 127.0.0.1:4700, not ${shown(located)}`)
  }
  return { ok: true, value: { host, port } }
}

/** As it is written: `127.0.0.1:4700`, `[::1]:4700`. */
export function hostPort({ host, port }: Listen): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** A list of `{id, url, set?, region?, zone?, joins?}`, each id and each url once. `own`: the node that reads it, which calls all others. */
export function readNodes(located: Located, own?: NodeId): Read<readonly NodeAddress[]> {
  if (located.kind !== 'list' || located.items.length === 0) {
    return refuse(located.origin, 'wants a list of { id, url }, one for every node')
  }
  if (located.items.length > nodeCountMax * setCountMax) {
    const most = `${nodeCountMax} in each of ${setCountMax} sets`
    return refuse(located.origin, `names ${located.items.length} nodes; the most is ${most}`)
  }
  const problems: ValueProblem[] = []
  const nodes: NodeAddress[] = []
  for (const item of located.items) {
    const node = readNode(item, own)
    if (!node.ok) problems.push(...node.problems)
    else {
      const address = formatAddress(node.value.url)
      const twin = nodes.find(
        ({ id, url }) => id === node.value.id || formatAddress(url) === address,
      )
      const same = twin?.id === node.value.id ? `id "${twin.id}"` : sameAddress(twin, node.value)
      if (twin === undefined) nodes.push(node.value)
      else problems.push({ at: item.origin, reason: `two nodes have the ${same}` })
    }
  }
  for (const { set, count } of countSets(nodes)) {
    if (count <= nodeCountMax) continue
    const reason = `names ${count} nodes in set ${set}; the most is ${nodeCountMax}`
    problems.push({ at: located.origin, reason })
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value: nodes }
}

function sameAddress(twin: NodeAddress | undefined, { url }: NodeAddress): string {
  return twin?.url === url ? `url ${url}` : `same address: ${twin?.url ?? ''} and ${url}`
}

/** Host and port, whatever the scheme: one process listens there. */
export function formatAddress(url: string): string {
  const { protocol, hostname, port } = new URL(url)
  const name = plainHost(hostname)
  const itsPort = port === '' ? (protocol === 'https:' ? '443' : '80') : port
  return `${name === 'localhost' ? '127.0.0.1' : name}:${itsPort}`
}

function countSets(
  nodes: readonly NodeAddress[],
): { readonly set: string; readonly count: number }[] {
  const sets = [...new Set(nodes.map(({ set }) => set))]
  return sets.map((set) => ({ set, count: nodes.filter((node) => node.set === set).length }))
}

function readNode(item: Located, own: NodeId | undefined): Read<NodeAddress> {
  if (item.kind !== 'map') return refuse(item.origin, `wants { id, url }, not ${shown(item)}`)
  const known = ['id', 'url', 'set', 'region', 'zone', 'joins']
  const problems: ValueProblem[] = []
  for (const [name, field] of item.fields) {
    if (known.includes(name)) continue
    problems.push({ at: field.origin, reason: unknownWord('field', name, known) })
  }
  // A mistyped name is one mistake, not also a lacking field.
  if (problems.length > 0) return { ok: false, problems }
  const id = readField(item, 'id', readName)
  const isOwn = id.ok && id.value === own
  const url = readField(item, 'url', isOwn ? readUrl : readCalledUrl)
  const set = readIfGiven<string>(item, 'set', mainSet, readName)
  const place = readPlace(item)
  const joins = readIfGiven(item, 'joins', false, readBoolean)
  for (const read of [id, url, set, place, joins]) if (!read.ok) problems.push(...read.problems)
  if (!id.ok || !url.ok || !set.ok || !place.ok || !joins.ok) return { ok: false, problems }
  const value = { id: id.value, url: url.value, set: set.value, ...place.value }
  return { ok: true, value: joins.value ? { ...value, joins: true } : value }
}

function readPlace(
  item: Located & { readonly kind: 'map' },
): Read<Pick<NodeAddress, 'region' | 'zone'>> {
  const region = readIfGiven<string | undefined>(item, 'region', undefined, readName)
  const zone = readIfGiven<string | undefined>(item, 'zone', undefined, readName)
  const problems = [region, zone].flatMap((read) => (read.ok ? [] : read.problems))
  if (!region.ok || !zone.ok) return { ok: false, problems }
  const value = {
    ...(region.value !== undefined && { region: region.value }),
    ...(zone.value !== undefined && { zone: zone.value }),
  }
  return { ok: true, value }
}

function readName(located: Located): Read<NodeId> {
  return readText(located, isNodeId, 'is 1 to 32 of a-z, 0-9 and -')
}

function readField<T>(
  item: Located & { readonly kind: 'map' },
  name: string,
  read: (located: Located) => Read<T>,
): Read<T> {
  const field = item.fields.get(name)
  return field === undefined ? refuse(item.origin, `a node lacks its ${name}`) : read(field.value)
}

function readIfGiven<T>(
  item: Located & { readonly kind: 'map' },
  name: string,
  fallback: T,
  read: (located: Located) => Read<T>,
): Read<T> {
  return item.fields.has(name) ? readField(item, name, read) : { ok: true, value: fallback }
}

/** An origin with a port: no path, no query, no user. `ws:` is taken for `http:`. */
export function readUrl(located: Located): Read<string> {
  const isText = located.kind === 'scalar' && typeof located.value === 'string'
  const text = isText ? located.value : ''
  const reason = `wants a URL such as http://127.0.0.1:4700, not ${shown(located)}`
  if (!/^(http|ws)s?:\/\/[^\s/\\?#]/.test(text) || !URL.canParse(text))
    return refuse(located.origin, reason)
  const { protocol, host, pathname, search, hash, username, password } = new URL(text)
  const rest = [search, hash, username, password].join('')
  if (pathname !== '/' || rest !== '') {
    return refuse(located.origin, `${reason}: only scheme, host and port`)
  }
  const isSecure = protocol === 'https:' || protocol === 'wss:'
  return { ok: true, value: `${isSecure ? 'https' : 'http'}://${host}` }
}

/** The same, of an address that this process calls. */
export function readCalledUrl(located: Located): Read<string> {
  const read = readUrl(located)
  if (!read.ok || new URL(read.value).port !== '0') return read
  return refuse(
    located.origin,
    `wants a URL such as http://127.0.0.1:4700, not ${shown(located)}: no process can be called at port 0`,
  )
}

/** The same, of an address that other processes call. */
export function readAdvertisedUrl(located: Located): Read<string> {
  const read = readCalledUrl(located)
  if (!read.ok) return read
  if (read.value.length > nodeUrlCharsMax) {
    return refuse(located.origin, `has more than ${nodeUrlCharsMax} characters`)
  }
  if (!isWildcard(read.value)) return read
  const why = 'is an address to listen on: clients would reach their own machine by it'
  return refuse(located.origin, `${read.value} ${why}`)
}

/** A host that stands for all addresses of a machine: a process that calls it reaches its own machine. */
export function isWildcard(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === '0.0.0.0' || hostname === '[::]'
}
