/**
 * WebSocket upgrades of one HTTP server, by path: peers and clients share a listener. An upgrade to
 * any other path is answered with 404 and closed.
 */
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer, type WebSocket } from 'ws'
import { frameBytesMax } from '../base/limits.ts'

export const peerPath = '/v1/peer'
export const clientPath = '/v1/client'

/** `received`: the bytes that have come in over the connection, of frames that are not whole too. */
type Accept = (socket: WebSocket, remote: string, received: () => number) => void

const routers = new WeakMap<Server, Map<string, Accept>>()

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
    maxPayload: frameBytesMax,
    clientTracking: false,
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // A socket that breaks during its upgrade is nobody's business but its own.
    socket.on('error', () => socket.destroy())
    const [path = ''] = (request.url ?? '').split('?')
    const accept = routes.get(path)
    if (accept === undefined) return notFound(socket)
    sockets.handleUpgrade(request, socket, head, (opened) => {
      // One that is not taken may still tell of a broken frame, and nobody else listens.
      opened.on('error', () => undefined)
      const { socket: raw } = request
      accept(opened, raw.remoteAddress ?? 'unknown', () => raw.bytesRead)
    })
  })
  sockets.on('wsClientError', (_error, socket) => socket.destroy())
}

/** The server's time-outs end with an upgrade: who never closes would keep the socket for good. */
function notFound(socket: Duplex): void {
  socket.once('finish', () => socket.destroy())
  socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
}
