/**
 * The one listener of a node: HTTP, and ws by upgrade. It listens before the stores are opened, so
 * that a busy port is told before anything is touched and health can be asked from the first moment.
 */
import { createServer, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { StoreError } from '../base/errors.ts'
import type { Listen } from './config-values.ts'

export type Fetch = (request: Request) => Promise<Response> | Response

export interface ListenOptions {
  readonly listen: Listen
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined
  readonly fetch: Fetch
  /** The flag that chooses another port, for the message about a busy one. */
  readonly portFlag: string
}

export interface BoundServer {
  readonly server: Server
  /** With the port that was really taken. */
  readonly url: string
  /** Takes no more connections; resolves when the last one has ended, or after `graceMs` by force. */
  close(graceMs: number): Promise<void>
}

/** Rejects with one sentence when the address cannot be listened on. */
export async function listen(options: ListenOptions): Promise<BoundServer> {
  const { tls, fetch } = options
  const listener = getRequestListener(fetch, { overrideGlobalObjects: false })
  const handle: Parameters<typeof createServer>[1] = (request, response) => {
    void listener(request, response)
  }
  const server = tls === undefined ? createServer(handle) : createSecureServer({ ...tls }, handle)
  const sockets = trackSockets(server)
  const port = await bind(server, options)
  const host = options.listen.host.includes(':') ? `[${options.listen.host}]` : options.listen.host
  return {
    server,
    url: `${tls === undefined ? 'http' : 'https'}://${host}:${port}`,
    close: (graceMs) => close(server, sockets, graceMs),
  }
}

/** Upgraded connections are no longer the server's; they are remembered here. */
function trackSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return sockets
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
