/**
 * WebSocket upgrades of one HTTP server, by path: peers and clients share a listener. An upgrade to
 * any other path is answered with 404 and closed; one that the server's guard refuses, as it says.
 */
import { STATUS_CODES, type IncomingMessage, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocketServer, type WebSocket } from 'ws'
import { retryOverHttp, type StoreErrorCode } from '../base/errors.ts'
import { frameBytesMax } from '../base/limits.ts'

export const peerPath = '/v1/peer'
export const clientPath = '/v1/client'

/** `raw`: the connection under the socket. */
type Accept = (socket: WebSocket, remote: string, raw: Socket) => void

/** The answer to a refused upgrade, or to bytes that are no request. */
export interface UpgradeRefusal {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

/** Looks at an upgrade before anything is done for it: undefined lets it through. */
export type UpgradeGuard = (request: IncomingMessage) => UpgradeRefusal | undefined

const routers = new WeakMap<Server, Map<string, Accept>>()
const guards = new WeakMap<Server, UpgradeGuard>()

/** Has `guard` look at every upgrade of this server. */
export function guardUpgrades(server: Server, guard: UpgradeGuard): void {
  guards.set(server, guard)
}

/** Sends upgrades of `path` to `accept` until the returned function is called. */
export function routeUpgrades(server: Server, path: string, accept: Accept): () => void {
  const known = routers.get(server)
  const routes = known ?? new Map<string, Accept>()
  routes.set(path, accept)
  if (known === undefined) {
    routers.set(server, routes)
    install(server, routes)
  }
  return () => routes.delete(path)
}

function install(server: Server, routes: ReadonlyMap<string, Accept>): void {
  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    // Of who has proven to be of the cluster: until then a link takes a handshake's bytes (HELLO-3).
    maxPayload: frameBytesMax,
    clientTracking: false,
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // A socket that breaks during its upgrade concerns only itself.
    socket.on('error', () => socket.destroy())
    const refusal = guards.get(server)?.(request)
    if (refusal !== undefined) return answerRaw(socket, refusal)
    const [path = ''] = (request.url ?? '').split('?')
    const accept = routes.get(path)
    if (accept === undefined) return answerRaw(socket, notFound(path))
    sockets.handleUpgrade(request, socket, head, (opened) => {
      // A socket that is not taken may still report a broken frame, and no one else listens.
      opened.on('error', () => undefined)
      const { socket: raw } = request
      accept(opened, raw.remoteAddress ?? 'unknown', raw)
    })
  })
  sockets.on('wsClientError', ({ message }, socket) => {
    answerRaw(socket, buildRefusal(400, 'invalid', `this opens no WebSocket: ${message}`))
  })
}

export const problemContentType = 'application/problem+json'

/**
 * Nodes and gateways answer like this. So a dialer can tell one that is stopping from a server that is
 * neither.
 */
function notFound(path: string): UpgradeRefusal {
  const target = JSON.stringify(path.slice(0, 200))
  const text = `no WebSocket is taken at ${target} now; clients dial ${clientPath}, and nodes ${peerPath}`
  return buildRefusal(404, 'not-found', text)
}

/** RFC 9457. */
function buildRefusal(status: number, code: StoreErrorCode, detail: string): UpgradeRefusal {
  const title = STATUS_CODES[status] ?? ''
  const type = `urn:trilithon:problem:${code}`
  const problem = { type, title, status, detail, code, retry: retryOverHttp[code] }
  return { status, contentType: problemContentType, body: JSON.stringify(problem) }
}

/**
 * Answers without a request, and ends the connection. The server's time-outs end with an upgrade: a client that
 * never closes would keep the socket for good.
 */
export function answerRaw(socket: Duplex, { status, contentType, body }: UpgradeRefusal): void {
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Connection: close',
    `Content-Type: ${contentType}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  socket.once('finish', () => socket.destroy())
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
