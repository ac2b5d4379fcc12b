/**
 * Settings of every process that listens, nodes and gateways alike: which callers it serves, and how much of
 * its room they get.
 */
import type { ConnectionLimits } from '../adapters/connections.ts'
import { frameBytesMax } from '../base/limits.ts'
import { settingsInForce, type EffectiveSetting, type Take } from './gather.ts'
import type { Setting } from './settings.ts'
import type { Located, Origin } from './source.ts'
import { readCount, refuse, type Read } from './values.ts'
import { plainHost } from '../adapters/origin-gate.ts'

export interface ListenerSettings extends ConnectionLimits {
  /** Names that lead here, besides those in its own addresses. */
  readonly allowedHosts: readonly string[]
  /** Origins of pages that may ask: `https://app.example`. */
  readonly allowedOrigins: readonly string[]
  /** Of HTTP answers that wait to be taken, together; the largest one is no longer than a frame. */
  readonly answerBytesMax: number
}

export const defaultListenerSettings: ListenerSettings = {
  allowedHosts: [],
  allowedOrigins: [],
  connectionsMax: 12_000,
  connectionsPerAddressMax: 6_000,
  unprovenMax: 1_000,
  unprovenPerAddressMax: 500,
  answerBytesMax: 64 * 1024 * 1024,
}

type NumberField = {
  [Name in keyof ListenerSettings]: ListenerSettings[Name] extends number ? Name : never
}[keyof ListenerSettings]

const connectionsMaxMost = 1_000_000

const numbers: readonly (readonly [name: string, field: NumberField, what: string])[] = [
  [
    'connections_max',
    'connectionsMax',
    'connections at once; fewer where the process may not open so many files',
  ],
  [
    'connections_per_address_max',
    'connectionsPerAddressMax',
    'connections of clients from one address; this machine has no such bound',
  ],
  [
    'unproven_max',
    'unprovenMax',
    'connections that have not proven themselves; above it the oldest one is ended',
  ],
  [
    'unproven_per_address_max',
    'unprovenPerAddressMax',
    'connections of one address that have not proven themselves',
  ],
  [
    'answer_bytes_max',
    'answerBytesMax',
    'HTTP answers that wait to be taken, together, in bytes: above it the oldest is ended',
  ],
]

export const listenerSettings: readonly Setting[] = [
  {
    name: 'allowed_hosts',
    argument: 'NAME,…',
    what: 'names that lead here, besides those of its own addresses; in the file a list',
    fallback: 'none',
  },
  {
    name: 'allowed_origins',
    argument: 'ORIGIN,…',
    what: 'origins of web pages that may ask, such as https://app.example; in the file a list',
    fallback: 'none',
  },
  ...numbers.map(([name, field, what]): Setting => {
    return { name, argument: 'NUMBER', what, fallback: String(defaultListenerSettings[field]) }
  }),
]

export const listenerLists: Readonly<Record<string, (text: string, origin: Origin) => Located>> = {
  allowed_hosts: textListText,
  allowed_origins: textListText,
}

function textListText(text: string, origin: Origin): Located {
  const items = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
  return {
    kind: 'list',
    items: items.map((value) => ({ kind: 'scalar', value, origin })),
    origin,
  }
}

/** The settings that are given, and the defaults of the others. */
export function takeListenerSettings(take: Take): ListenerSettings {
  const taken: { -readonly [Name in keyof ListenerSettings]: ListenerSettings[Name] } = {
    ...defaultListenerSettings,
  }
  taken.allowedHosts = take('allowed_hosts', (at) => readList(at, readHost)) ?? []
  taken.allowedOrigins = take('allowed_origins', (at) => readList(at, readOrigin)) ?? []
  for (const [name, field] of numbers) {
    const isOfBytes = field === 'answerBytesMax'
    const [least, most] = isOfBytes ? [frameBytesMax, 2 ** 31 - 1] : [1, connectionsMaxMost]
    taken[field] = take(name, (at) => readCount(at, least, most)) ?? taken[field]
  }
  return taken
}

/** Checks that single numbers do not tell: each complaint with the setting to change. */
export function checkListenerSettings(
  { connectionsMax, unprovenMax, unprovenPerAddressMax }: ListenerSettings,
  complain: (name: string, text: string) => void,
): void {
  if (unprovenMax >= connectionsMax) {
    complain(
      'unproven_max',
      `unproven_max (${unprovenMax}) must be less than connections_max (${connectionsMax}): the rest is for those who have proven themselves`,
    )
  }
  if (unprovenPerAddressMax > unprovenMax) {
    complain(
      'unproven_per_address_max',
      `unproven_per_address_max (${unprovenPerAddressMax}) must not exceed unproven_max (${unprovenMax})`,
    )
  }
}

export function listenerInForce(
  settings: ListenerSettings,
  origins: ReadonlyMap<string, Origin>,
): readonly EffectiveSetting[] {
  return settingsInForce(origins, [
    ['allowed_hosts', listText(settings.allowedHosts)],
    ['allowed_origins', listText(settings.allowedOrigins)],
    ...numbers.map(([name, field]): [string, string] => [name, String(settings[field])]),
  ])
}

function listText(items: readonly string[]): string | undefined {
  return items.length === 0 ? undefined : items.join(',')
}

function readList(
  located: Located,
  read: (item: Located) => Read<string>,
): Read<readonly string[]> {
  if (located.kind !== 'list') return refuse(located.origin, 'wants a list')
  const all = located.items.map(read)
  const problems = all.flatMap((one) => (one.ok ? [] : one.problems))
  if (problems.length > 0) return { ok: false, problems }
  return { ok: true, value: all.flatMap((one) => (one.ok ? [one.value] : [])) }
}

function readHost(item: Located): Read<string> {
  const text = readWord(item)
  const isHost = /^(?:[a-z0-9_.-]+|\[?[0-9a-f:.]+\]?)$/i.test(text)
  if (isHost) return { ok: true, value: plainHost(text) }
  return refuse(item.origin, `wants names of hosts without a port, such as db1.example`)
}

/** A number of the file is no text: 10.10 would be 10.1. */
function readWord(item: Located): string {
  return item.kind === 'scalar' && typeof item.value === 'string' ? item.value : ''
}

function readOrigin(item: Located): Read<string> {
  const text = readWord(item)
  const isOrigin = /^https?:\/\/[^/]+\/?$/.test(text) && URL.canParse(text)
  if (isOrigin) return { ok: true, value: new URL(text).origin }
  return refuse(item.origin, 'wants origins such as https://app.example')
}
