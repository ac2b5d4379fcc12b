/**
 * The one listener of a node: HTTP, and ws by upgrade. It listens before the stores are opened, so that a
 * busy port is an error before anything is touched, and health answers from the first moment.
 *
 * Each connection is a stranger's at first. This server bounds the connections, bytes and time that strangers
 * hold, and refuses pages of other origins.
 */
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Connections, type ConnectionLimits } from '../adapters/connections.ts'
import { PlainRequest } from '../adapters/plain-request.ts'
import { systemClock } from '../adapters/system-clock.ts'
import { guardUpgrades, type UpgradeRefusal } from '../adapters/ws-router.ts'
import { StoreError } from '../base/errors.ts'
import type { Listen } from '../config/values.ts'
import type { Figure } from './metrics.ts'
import { OneByOne } from './one-by-one.ts'
import { answerMalformed, headRefusal, refuseRequest, type Refusal } from './malformed.ts'
import { originGate } from '../adapters/origin-gate.ts'
import { problemContentType, problemPage } from './refusals.ts'
import { SlowExchanges } from './slow-exchanges.ts'

export type Fetch = (request: Request) => Promise<Response> | Response
/** `socket`: the connection it came over. */
export type Serve = (request: Request, socket: Socket) => Promise<Response> | Response

export interface ListenOptions {
  readonly listen: Listen
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined
  readonly fetch: Serve
  /** The flag that chooses another port, for the message about a busy one. */
  readonly portFlag: string
  /** Names that lead here, besides the one that is listened on. */
  readonly hosts: readonly string[]
  /** Origins of pages that may ask. */
  readonly origins: readonly string[]
  readonly connections: ConnectionLimits
  /** Of HTTP answers that wait to be taken, together. */
  readonly answerBytesMax: number
  /** Told of an error of the listener itself, such as no descriptor left for a connection. */
  readonly onError: (error: Error) => void
  /** Absent: `defaultTimes`. */
  readonly times?: ListenerTimes
}

/** How long others may take, milliseconds. */
export interface ListenerTimes {
  /** For the head of a request, and for a handshake of TLS. */
  readonly headMs: number
  /** For all of a request. */
  readonly requestMs: number
  /** How long a connection without a request is kept. */
  readonly keepAliveMs: number
  /** After this long without a served request the connection of a stranger is ended. */
  readonly strangerIdleMs: number
  /** How often that is looked at. */
  readonly sweepMs: number
}

export const defaultTimes: ListenerTimes = {
  headMs: 5_000,
  requestMs: 120_000,
  keepAliveMs: 5_000,
  strangerIdleMs: 10_000,
  sweepMs: 1_000,
}

export interface BoundServer {
  readonly server: Server
  /** With the port that was really taken. */
  readonly url: string
  readonly connections: Connections
  figures(): readonly Figure[]
  /** Takes no more connections; resolves when the last one has ended, or after `graceMs` by force. */
  close(graceMs: number): Promise<void>
}

/** Of a request's head. */
const headBytesMax: number = 16 * 1024

/** Counts of refusals by their cause, for metrics. */
interface RefusalCounts {
  host: number
  origin: number
  malformed: number
  error: number
}

/** Rejects with one sentence when the address cannot be listened on. */
export async function listen(options: ListenOptions): Promise<BoundServer> {
  const { tls, times = defaultTimes } = options
  const refused: RefusalCounts = { host: 0, origin: 0, malformed: 0, error: 0 }
  const findRefusal = refuser(options, refused)
  const slow = new SlowExchanges(systemClock, options.answerBytesMax)
  const connections = new Connections(options.connections, systemClock)
  const inTurn = new OneByOne(systemClock)
  const serve = handler(options, findRefusal, slow, connections)
  const handle = (request: IncomingMessage, response: ServerResponse): void =>
    inTurn.run(request.socket, response, () => {
      malformed.begin(request, response)
      serve(request, response)
    })
  const how = serverOptions(times)
  const server =
    tls === undefined
      ? createServer(how, handle)
      : createSecureServer({ ...how, ...tls, handshakeTimeout: times.headMs }, handle)
  const malformed = answerMalformed(server, headBytesMax, () => (refused.malformed += 1))
  guardUpgrades(server, (request) => upgradeRefusal(findRefusal(request)))
  const sockets = trackSockets(server, connections)
  const port = await bind(server, options)
  server.on('error', (error) => {
    refused.error += 1
    options.onError(error)
  })
  const sweep = setInterval(() => {
    slow.sweep()
    connections.endIdle(times.strangerIdleMs)
  }, times.sweepMs).unref()
  const host = options.listen.host.includes(':') ? `[${options.listen.host}]` : options.listen.host
  return {
    server,
    url: `${tls === undefined ? 'http' : 'https'}://${host}:${port}`,
    connections,
    figures: () => listenerFigures(connections, slow, { ...refused, ...inTurn.counts }),
    close: (graceMs) => {
      clearInterval(sweep)
      return close(server, sockets, graceMs)
    },
  }
}

function serverOptions(times: ListenerTimes): ServerOptions<typeof PlainRequest> {
  return {
    IncomingMessage: PlainRequest,
    maxHeaderSize: headBytesMax,
    // Looked at here, with an answer in words.
    requireHostHeader: false,
    headersTimeout: times.headMs,
    requestTimeout: times.requestMs,
    keepAliveTimeout: times.keepAliveMs,
    connectionsCheckingInterval: times.sweepMs,
  }
}

type RefusalOf = (request: IncomingMessage) => Refusal | undefined

function refuser(options: ListenOptions, refused: RefusalCounts): RefusalOf {
  const hosts = [...options.hosts, options.listen.host]
  const gate = originGate({ isSecure: options.tls !== undefined, hosts, origins: options.origins })
  return (request) => {
    const wrong = headRefusal(request)
    if (wrong !== undefined) {
      refused.malformed += 1
      return wrong
    }
    const { method = '', headers, socket } = request
    const refusal = gate({
      method,
      host: headers.host,
      origin: headers.origin,
      site: readHeader(headers['sec-fetch-site']),
      mode: readHeader(headers['sec-fetch-mode']),
      localAddress: socket.localAddress,
      localPort: socket.localPort,
    })
    if (refusal === undefined) return undefined
    refused[refusal.why] += 1
    return { status: 403, code: 'forbidden', text: refusal.text }
  }
}

function readHeader(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : header?.[0]
}

function upgradeRefusal(refusal: Refusal | undefined): UpgradeRefusal | undefined {
  if (refusal === undefined) return undefined
  const { status, code, text } = refusal
  return { status, contentType: problemContentType, body: problemPage(status, code, text) }
}

function handler(
  { fetch }: ListenOptions,
  findRefusal: RefusalOf,
  slow: SlowExchanges,
  connections: Connections,
): (request: IncomingMessage, response: ServerResponse) => void {
  const listener = getRequestListener((request, { incoming }) => fetch(request, incoming.socket), {
    overrideGlobalObjects: false,
  })
  return (request, response) => {
    const refusal = findRefusal(request)
    if (refusal !== undefined) return refuseRequest(response, refusal)
    slow.begin(request, response)
    void listener(request, response).then(() => {
      connections.touch(request.socket)
      slow.answered(response)
    })
  }
}

/** Upgraded connections are no longer the server's; they are remembered here. */
function trackSockets(server: Server, connections: Connections): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    connections.open(socket)
  })
  return sockets
}

function listenerFigures(
  connections: Connections,
  slow: SlowExchanges,
  refused: Readonly<Record<string, number>>,
): readonly Figure[] {
  const { displaced, idle, refused: full } = connections.counts
  const { slowBodies, slowAnswers, answersForRoom } = slow.counts
  const why = { ...refused, full, displaced, idle, slowBodies, slowAnswers, answersForRoom }
  return [
    ...(['stranger', 'client', 'peer'] as const).map((of) => ({
      name: 'trilithon_connections',
      help: 'Open connections, by what they have proven to be.',
      value: connections.count(of),
      labels: { of },
    })),
    ...Object.entries(why).map(([reason, value]) => ({
      name: 'trilithon_turned_away_total',
      help: 'Requests and connections refused or ended by the listener, by reason.',
      value,
      labels: { reason: reason.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`) },
    })),
    {
      name: 'trilithon_waiting_answer_bytes',
      help: 'Of HTTP answers that wait to be taken.',
      value: slow.answerBytes,
    },
  ]
}

function bind(server: Server, options: ListenOptions): Promise<number> {
  const { host, port } = options.listen
  return new Promise((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException): void => reject(bindFailure(error, options))
    server.once('error', refuse)
    server.listen(port, host, () => {
      server.off('error', refuse)
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

function bindFailure(error: NodeJS.ErrnoException, options: ListenOptions): StoreError {
  const { host, port } = options.listen
  const { portFlag } = options
  const saidByCode: Readonly<Record<string, string>> = {
    EADDRINUSE: `port ${port} on ${host} is in use by another process; stop that one, or choose another port with ${portFlag}`,
    EACCES: `this user may not listen on port ${port}; choose one above 1023 with ${portFlag}`,
    EADDRNOTAVAIL: `${host} is no address of this machine; choose one with ${portFlag}`,
    ENOTFOUND: `the host name ${host} is not known; choose another with ${portFlag}`,
  }
  const said = saidByCode[error.code ?? ''] ?? `cannot listen on ${host}:${port}: ${error.message}`
  return new StoreError('unavailable', said, {}, { cause: error })
}

function close(server: Server, sockets: ReadonlySet<Socket>, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const force = setTimeout(() => {
      for (const socket of sockets) socket.destroy()
    }, graceMs)
    server.close(() => {
      clearTimeout(force)
      resolve()
    })
    server.closeIdleConnections()
  })
}
