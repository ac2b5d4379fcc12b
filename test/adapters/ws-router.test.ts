/** Upgrades to unknown paths: whatever their senders say or leave unsaid, they cost nothing. */
import { errorMonitor } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { routeUpgrades } from '../../src/adapters/ws-router.ts'

const path = '/v1/peer'

async function listen(): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  return { server, port: typeof address === 'object' && address !== null ? address.port : 0 }
}

function upgrade(to: string): string {
  return `GET ${to} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n`
}

test('a socket that is not taken may send a broken frame with its upgrade', async () => {
  const { server, port } = await listen()
  let listeners = 0
  const broken = new Promise((resolve) => {
    routeUpgrades(server, path, (socket) => {
      listeners = socket.listenerCount('error')
      socket.on(errorMonitor, resolve)
      socket.terminate()
    })
  })
  const socket = connect(port, '127.0.0.1', () => {
    socket.write(Buffer.concat([Buffer.from(upgrade(path)), Buffer.alloc(4, 0xff)]))
  })
  socket.on('error', () => undefined).resume()
  await broken
  // Without a listener the event ends the process.
  expect(listeners).toBe(1)
})

test('the server ends a connection to an unknown path even if its client does not close', async () => {
  const { server, port } = await listen()
  routeUpgrades(server, path, (socket) => socket.terminate())
  const gone = new Promise((resolve) => {
    server.on('connection', (socket) => socket.on('close', resolve))
  })
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  onTestFinished(() => void socket.destroy())
  let said = ''
  socket.setEncoding('latin1').on('data', (piece: string) => (said += piece))
  const ended = new Promise((resolve) => socket.on('end', resolve))
  socket.write(upgrade('/v1/nothing'))
  await Promise.all([gone, ended])
  expect(said).toMatch(/^HTTP\/1\.1 404 /)
  expect(socket.writable).toBe(true)
})
