/**
 * Which requests a listener takes by what browsers say of them. A page from anywhere may send requests to
 * this machine, and by a name of its own that it has led here (DNS rebinding): where a cluster has no secret
 * it could read and write. So the host name in a request must be one of this listener's, and the page that
 * sends it must be of this listener or allowed by name. Programs send no `Origin`.
 */
import { isIP } from 'node:net'

export interface GateOptions {
  /** Whether the listener speaks TLS. */
  readonly isSecure: boolean
  /** Names and addresses that lead here, besides those of loopback and the one that was connected to. */
  readonly hosts: readonly string[]
  /** Origins of pages that may ask, such as `https://app.example`. */
  readonly origins: readonly string[]
}

/** The origin that a request names, and the end of the connection it came over. */
export interface Asked {
  readonly method: string
  readonly host: string | undefined
  readonly origin: string | undefined
  /** The headers `Sec-Fetch-Site` and `Sec-Fetch-Mode`. */
  readonly site: string | undefined
  readonly mode: string | undefined
  readonly localAddress: string | undefined
  readonly localPort: number | undefined
}

export interface GateRefusal {
  readonly why: 'host' | 'origin'
  readonly text: string
}

export type Gate = (asked: Asked) => GateRefusal | undefined

export function originGate(options: GateOptions): Gate {
  const hosts = new Set(options.hosts.map(plainHost))
  const origins = new Set(options.origins)
  return (asked) => {
    const host = asked.host === undefined ? undefined : parseHost(asked.host)
    if (asked.host !== undefined && !isOwnHost(host?.name, hosts, asked)) {
      return { why: 'host', text: wrongHost(asked.host) }
    }
    const { origin } = asked
    if (origin === undefined) return isOfAnotherPage(asked) ? fromPage('another site') : undefined
    const isOwn = isOwnOrigin(origin, host, options.isSecure, asked)
    return isOwn || origins.has(origin) ? undefined : fromPage(JSON.stringify(origin.slice(0, 200)))
  }
}

function wrongHost(host: string): string {
  const name = JSON.stringify(host.slice(0, 200))
  return `${name} is no name of this process; if it leads here by right, add the name to allowed_hosts`
}

function fromPage(whose: string): GateRefusal {
  const text = `this request is from a page of ${whose}; if such pages may ask, add their origin to allowed_origins`
  return { why: 'origin', text }
}

interface Host {
  readonly name: string
  readonly port: string | undefined
}

function parseHost(header: string): Host | undefined {
  const match = /^(\[[0-9a-f:.]+\]|[^:[\]\s/]+)(?::(\d{1,5}))?$/i.exec(header)
  const name = match?.[1]
  return name === undefined ? undefined : { name: plainHost(name), port: match?.[2] }
}

/** In one spelling: no brackets, no capitals, no dot at the end, no IPv4 in the garb of IPv6. */
export function plainHost(name: string): string {
  const bare = name
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .replace(/^::ffff:(?=\d+\.)/, '')
  return isIP(bare) === 6 ? shortest(bare) : bare
}

function shortest(address: string): string {
  const url = `http://[${address}]/`
  // One with a zone is none to a URL.
  return URL.canParse(url) ? new URL(url).hostname.slice(1, -1) : address
}

export function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))
}

function isOwnHost(name: string | undefined, hosts: ReadonlySet<string>, asked: Asked): boolean {
  if (name === undefined) return false
  // The client connected to this address; it is no name that an attacker could have led here.
  return isLoopbackName(name) || hosts.has(name) || name === plainHost(asked.localAddress ?? '')
}

/** A browser's request without `Origin` that a page of another site had it make; but no link followed. */
function isOfAnotherPage({ site, mode, method }: Asked): boolean {
  if (site !== 'cross-site' && site !== 'same-site') return false
  return !(mode === 'navigate' && method === 'GET')
}

function isOwnOrigin(
  origin: string,
  host: Host | undefined,
  isSecure: boolean,
  { localAddress, localPort }: Asked,
): boolean {
  if (!URL.canParse(origin)) return false
  const { protocol, hostname, port } = new URL(origin)
  const itsPort = port === '' ? pickDefaultPort(protocol) : port
  const name = plainHost(hostname)
  const scheme = isSecure ? 'https:' : 'http:'
  if (host !== undefined && protocol === scheme && name === host.name) {
    if (itsPort === (host.port ?? pickDefaultPort(scheme))) return true
  }
  const isOnLoopback = isLoopbackName(plainHost(localAddress ?? ''))
  return isOnLoopback && isLoopbackName(name) && itsPort === String(localPort)
}

function pickDefaultPort(protocol: string): string {
  return protocol === 'https:' ? '443' : '80'
}
