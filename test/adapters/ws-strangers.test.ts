/**
 * Strangers at the listener of a node: the answers they get, the bytes they may send, and that none
 * of these count. The last test draws what they say and send, whole words and bytes, in any order.
 */
import { connect, type Socket } from 'node:net'
import * as fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { WsClientListener } from '../../src/adapters/ws-clients.ts'
import { WsPeerTransport } from '../../src/adapters/ws-peers.ts'
import { clusterId, nodeId, type NodeId } from '../../src/base/ids.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { listen } from '../../src/node/http-server.ts'
import type { LinkInfo, TransportHandlers } from '../../src/ports/transport.ts'
import {
  decodeHandshake,
  encodeHandshake,
  handshakeBytesMax,
  nonceBytes,
  computeProof,
  protocolMax,
  protocolMin,
  computeTell,
  type HandshakeMessage,
  type Hello,
} from '../../src/wire/handshake.ts'

const cluster = clusterId('c')
const [peerSecret, clientSecret] = ['what nodes know', 'what clients know']
const storeId = '01234567-89ab-4def-8123-456789abcdef'
const info: LinkInfo = { storeId, incarnation: 1, durableFlush: 2 ** 52 }

/** The long wait of a dialer after a refusal is ten times shorter. */
const hastyClock: Clock = {
  ...systemClock,
  setTimer: (delayMs, run) => systemClock.setTimer(delayMs > 2_000 ? delayMs / 10 : delayMs, run),
}

/** A node's listener for peers and clients, and a record of the calls of its handlers. */
interface Listener {
  readonly url: string
  readonly port: number
  readonly told: string[]
  /** Of each connection that has ended, what was read from it. */
  readonly bytesRead: number[]
  readonly peers: WsPeerTransport<string>
}

async function startListener(
  dialled: readonly { readonly node: NodeId; readonly url: string }[] = [],
): Promise<Listener> {
  const limits = { connectionsMax: 90, connectionsPerAddressMax: 90, unprovenMax: 70 }
  const bound = await listen({
    ...{ listen: { host: '127.0.0.1', port: 0 }, tls: undefined, portFlag: '--listen' },
    ...{ hosts: [], origins: [], answerBytesMax: 1024 * 1024, onError: () => undefined },
    connections: { ...limits, unprovenPerAddressMax: 70 },
    fetch: async (request) => new Response(`${(await request.text()).length}`),
  })
  const { server, connections } = bound
  const port = Number(new URL(bound.url).port)
  const told: string[] = []
  const bytesRead: number[] = []
  server.on('connection', (socket) => socket.on('close', () => bytesRead.push(socket.bytesRead)))
  const handlers: TransportHandlers<string> = {
    self: () => ({ ...info, durableFlush: 7 }),
    admit: (peer) => void told.push(`admit ${peer}`),
    onRefused: (peer, reason) => void told.push(`refused by ${peer}: ${reason}`),
    onLink: (peer, state) => void told.push(`${state} ${peer}`),
    onFrame: (from, frame) => void told.push(`${from}: ${frame.length}`),
  }
  const codec = {
    encode: (frame: string) => Buffer.from(frame),
    decode: (bytes: Uint8Array) => ({ ok: true, frame: Buffer.from(bytes).toString() }) as const,
  }
  const common = {
    ...{
      cluster,
      server,
      connections,
      codec,
      clock: hastyClock,
      random: systemRandom,
      log: () => undefined,
    },
    ...{ queueBytesMax: 1024 * 1024, node: nodeId('n2') },
  }
  const peers = new WsPeerTransport<string>({ ...common, secret: peerSecret, peers: dialled })
  const clients = new WsClientListener<string>({ ...common, secret: clientSecret, clientsMax: 9 })
  peers.start(handlers)
  clients.start(handlers)
  onTestFinished(async () => {
    await Promise.all([peers.close(), clients.close()])
    await bound.close(0)
  })
  return { url: `ws://127.0.0.1:${port}`, port, told, bytesRead, peers }
}

function helloOf(role: 'peer' | 'client'): Hello {
  const names = role === 'peer' ? { cluster, node: 'n1' } : { cluster: '', node: '' }
  const nonce = Buffer.alloc(nonceBytes, 5)
  return { side: 'dialer', role, protocolMin, protocolMax, ...names, nonce }
}

/** Speaks as a node or client with this secret would; gives all answers until the end. */
async function converse(
  url: string,
  role: 'peer' | 'client',
  secret: string,
): Promise<HandshakeMessage[]> {
  const answers: HandshakeMessage[] = []
  const own = helloOf(role)
  let theirs: Hello | undefined
  const socket = new WebSocket(`${url}/v1/${role}`)
  const say = (message: HandshakeMessage): void => socket.send(encodeHandshake(message))
  socket.on('open', () => say({ kind: 'hello', hello: own }))
  socket.on('error', () => undefined)
  socket.on('message', (data: Buffer) => {
    const message = decodeHandshake(data)
    if (message === undefined) return
    answers.push(message)
    if (message.kind === 'hello') {
      theirs = message.hello
      say({ kind: 'proof', mac: computeProof(secret, own, theirs) })
    } else if (message.kind === 'tell' && theirs !== undefined) {
      say({ kind: 'tell', info, mac: computeTell(secret, own, theirs, info) })
    } else if (message.kind === 'welcome') socket.close()
  })
  await new Promise((resolve) => socket.on('close', resolve))
  return answers
}

test('HELLO-1: a stranger without the peers’ secret cannot pose as a node with a longer log', async () => {
  const { url, told } = await startListener()
  for (const secret of [clientSecret, '', 'guess']) {
    const answers = await converse(url, 'peer', secret)
    expect(answers.map(({ kind }) => kind)).toEqual(['hello', 'refuse'])
    expect(JSON.stringify(answers)).not.toContain(storeId)
  }
  expect(told).toEqual([])
  const node = await converse(url, 'peer', peerSecret)
  expect(node.map(({ kind }) => kind)).toEqual(['hello', 'tell', 'welcome'])
  expect(told).toContain('admit n1')
})

test('HELLO-1: the peers’ secret does not admit a client, and no node believes a stranger’s refusal', async () => {
  const { url, told } = await startListener()
  const asClient = await converse(url, 'client', peerSecret)
  expect(asClient.map(({ kind }) => kind)).toEqual(['hello', 'refuse'])
  const socket = new WebSocket(`${url}/v1/peer`)
  socket.on('open', () => {
    socket.send(encodeHandshake({ kind: 'hello', hello: helloOf('peer') }))
    socket.send(encodeHandshake({ kind: 'refuse', reason: 'stale-disk: you are behind' }))
  })
  await new Promise((resolve) => socket.on('close', resolve))
  expect(told).toEqual([])
})

test('HELLO-1: a proven side’s store info counts only under a proof of its own', async () => {
  const { url, told } = await startListener()
  const own = helloOf('peer')
  const answers: (HandshakeMessage | undefined)[] = []
  const socket = new WebSocket(`${url}/v1/peer`)
  let theirs: Hello | undefined
  socket.on('open', () => socket.send(encodeHandshake({ kind: 'hello', hello: own })))
  socket.on('message', (data: Buffer) => {
    const message = decodeHandshake(data)
    answers.push(message)
    if (message?.kind === 'hello') {
      theirs = message.hello
      socket.send(encodeHandshake({ kind: 'proof', mac: computeProof(peerSecret, own, theirs) }))
    } else if (message?.kind === 'tell' && theirs !== undefined) {
      const mac = computeTell(peerSecret, own, theirs, { ...info, durableFlush: 1 })
      socket.send(encodeHandshake({ kind: 'tell', info, mac }))
    }
  })
  await new Promise((resolve) => socket.on('close', resolve))
  expect(answers.map((answer) => answer?.kind)).toEqual(['hello', 'tell', 'refuse'])
  expect(told).toEqual([])
})

async function until(isSo: () => boolean): Promise<void> {
  const end = performance.now() + 15_000
  while (!isSo() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 5))
}

test('HELLO-1, HELLO-2: a false listener learns nothing of a store and is never believed or admitted', async () => {
  const falseOne = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  onTestFinished(() => falseOne.close())
  const heard: HandshakeMessage[] = []
  let links = 0
  falseOne.on('connection', (socket) => {
    const refuses = (links += 1) % 2 === 0
    const say = (message: HandshakeMessage): void => socket.send(encodeHandshake(message))
    const names = { role: 'peer', cluster, node: 'n9', nonce: Buffer.alloc(nonceBytes, 7) } as const
    const own: Hello = { side: 'listener', protocolMin, protocolMax, ...names }
    socket.on('message', (data: Buffer) => {
      const message = decodeHandshake(data)
      if (message !== undefined) heard.push(message)
      if (message?.kind === 'hello') say({ kind: 'hello', hello: own })
      if (message?.kind !== 'proof') return
      if (refuses) say({ kind: 'refuse', reason: 'stale-disk: you are behind' })
      else say({ kind: 'tell', info, mac: Buffer.alloc(32) })
    })
  })
  await new Promise((resolve) => falseOne.once('listening', resolve))
  const address = falseOne.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const { told } = await startListener([{ node: nodeId('n9'), url: `http://127.0.0.1:${port}` }])
  await until(() => links > 2)
  const words = ['hello', 'proof', 'refuse', 'hello', 'proof']
  expect(heard.map(({ kind }) => kind).slice(0, 5)).toEqual(words)
  expect(told).toEqual([])
})

test('HELLO-2: a listener never speaks first, and tells an unproven dialer its names alone', async () => {
  const { url } = await startListener()
  const heard: Buffer[] = []
  const silent = new WebSocket(`${url}/v1/peer`)
  silent.on('message', (data: Buffer) => heard.push(data))
  const greeting = new WebSocket(`${url}/v1/peer`)
  greeting.on('open', () =>
    greeting.send(encodeHandshake({ kind: 'hello', hello: helloOf('peer') })),
  )
  const answered: Buffer[] = []
  greeting.on('message', (data: Buffer) => answered.push(data))
  await Promise.all(
    [silent, greeting].map((one) => new Promise((resolve) => one.on('close', resolve))),
  )
  expect(heard).toEqual([])
  expect(answered.map((data) => decodeHandshake(data)?.kind)).toEqual(['hello'])
  expect(answered[0]?.length).toBeLessThan(100)
})

test('HELLO-2: a proof that is said again, on another connection or of another side, is none', async () => {
  const { url, told } = await startListener()
  const own = helloOf('peer')
  let kept: Uint8Array | undefined
  for (const round of [1, 2]) {
    const socket = new WebSocket(`${url}/v1/peer`)
    const answers: (HandshakeMessage | undefined)[] = []
    socket.on('open', () => socket.send(encodeHandshake({ kind: 'hello', hello: own })))
    socket.on('message', (data: Buffer) => {
      const message = decodeHandshake(data)
      answers.push(message)
      if (message?.kind === 'hello') {
        kept ??= computeProof(peerSecret, own, message.hello)
        socket.send(encodeHandshake({ kind: 'proof', mac: kept }))
      } else socket.close()
    })
    await new Promise((resolve) => socket.on('close', resolve))
    expect(answers.at(-1)?.kind).toBe(round === 1 ? 'tell' : 'refuse')
  }
  expect(told).toEqual([])
})

/** A frame's head as clients send it, with a mask of zeros. */
function frameHead(opcode: number, bytes: number, isLast = true): Buffer {
  const head = Buffer.alloc(14)
  head[0] = (isLast ? 0x80 : 0) | opcode
  head[1] = 0x80 | 127
  head.writeBigUInt64BE(BigInt(bytes), 2)
  return head
}

const upgrade = (path: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n`

/** Upgrades, then sends as much as the other side takes. */
async function pour(port: number, path: string, pieces: Iterable<Buffer>): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined).resume()
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()))
  socket.write(upgrade(path))
  await new Promise<void>((resolve) => socket.once('data', () => resolve()))
  for (const piece of pieces) {
    if (socket.destroyed) break
    await new Promise<void>((resolve) => {
      socket.write(piece, () => resolve())
    })
  }
  await ended
}

function* chunks(bytes: number, first: Buffer): Generator<Buffer> {
  yield first
  for (let sent = 0; sent < bytes; sent += 1024) yield Buffer.alloc(1024)
}

test('HELLO-3: before its proof a link takes no more than a handshake has, however it is cut', async () => {
  const { port, told, bytesRead } = await startListener()
  const mebibyte = 1024 * 1024
  const whole = chunks(mebibyte, frameHead(2, 15 * mebibyte))
  const pings = (function* () {
    const ping = Buffer.concat([Buffer.from([0x89, 0x80 | 100, 0, 0, 0, 0]), Buffer.alloc(100)])
    for (let i = 0; i < 10_000; i++) yield ping
  })()
  const fragments = (function* () {
    yield Buffer.concat([Buffer.from([0x02, 0x80 | 100, 0, 0, 0, 0]), Buffer.alloc(100)])
    const part = Buffer.concat([Buffer.from([0x00, 0x80 | 100, 0, 0, 0, 0]), Buffer.alloc(100)])
    for (let i = 0; i < 10_000; i++) yield part
  })()
  for (const pieces of [whole, pings, fragments]) {
    await pour(port, '/v1/client', pieces)
  }
  expect(bytesRead).toHaveLength(3)
  // A connection is read by up to 64 KiB at once: one read may bring more than is taken.
  for (const bytes of bytesRead) expect(bytes).toBeLessThan(200 * 1024)
  expect(told).toEqual([])
})

test('HELLO-3: a proven client sends frames of any size, with its last handshake message or after it', async () => {
  const { url, told } = await startListener()
  const own = helloOf('client')
  const socket = new WebSocket(`${url}/v1/client`)
  onTestFinished(() => socket.terminate())
  let theirs: Hello | undefined
  socket.on('open', () => socket.send(encodeHandshake({ kind: 'hello', hello: own })))
  socket.on('message', (data: Buffer) => {
    const message = decodeHandshake(data)
    if (message?.kind === 'hello') {
      theirs = message.hello
      socket.send(encodeHandshake({ kind: 'proof', mac: computeProof(clientSecret, own, theirs) }))
    } else if (message?.kind === 'tell' && theirs !== undefined) {
      const mac = computeTell(clientSecret, own, theirs, {})
      socket.send(encodeHandshake({ kind: 'tell', info: {}, mac }))
      socket.send(Buffer.alloc(100_000))
    } else if (message?.kind === 'welcome') socket.send(Buffer.alloc(handshakeBytesMax * 200))
  })
  await until(() => told.length >= 4)
  const size = handshakeBytesMax * 200
  expect(told).toEqual(['admit c1', 'up c1', 'c1: 100000', `c1: ${size}`])
})

const hello = fc.record({
  side: fc.constantFrom('dialer' as const, 'listener' as const),
  role: fc.constantFrom('peer' as const, 'client' as const, 'node' as const),
  protocolMin: fc.constantFrom(0, 4, protocolMin, 2 ** 40),
  protocolMax: fc.constantFrom(4, protocolMax, 2 ** 50),
  cluster: fc.constantFrom('', 'c', 'd', 'x'.repeat(3000)),
  node: fc.constantFrom('', 'n1', 'n2', 'n9'),
  nonce: fc.uint8Array({ minLength: nonceBytes, maxLength: nonceBytes }),
})
const word: fc.Arbitrary<Uint8Array> = fc
  .oneof(
    fc.record({ kind: fc.constant('hello' as const), hello }),
    fc.constant({ kind: 'hello' as const, hello: helloOf('peer') }),
    fc.constant({ kind: 'hello' as const, hello: helloOf('client') }),
    fc.record({ kind: fc.constant('proof' as const), mac: fc.uint8Array({ maxLength: 64 }) }),
    fc.record({
      kind: fc.constant('tell' as const),
      info: fc.constant(info),
      mac: fc.uint8Array(),
    }),
    fc.record({
      kind: fc.constant('refuse' as const),
      reason: fc.constantFrom('stale-disk: x', 'unknown-store: y'),
    }),
    fc.constant({ kind: 'welcome' as const }),
  )
  .map((message) => encodeHandshake(message))

/** The traffic of one stranger: bytes on the connection, before or after an upgrade, or words in frames. */
const visit = fc.record({
  path: fc.constantFrom('/v1/peer', '/v1/client', '/v1/client', '/v1/none', undefined),
  head: fc.constantFrom(
    '',
    '',
    'PUT /x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n\r\n',
  ),
  sent: fc.array(
    fc.oneof(
      { weight: 3, arbitrary: word.map((bytes) => ({ bytes, isFramed: true })) },
      {
        weight: 1,
        arbitrary: fc.uint8Array({ maxLength: 6000 }).map((bytes) => ({ bytes, isFramed: true })),
      },
      {
        weight: 1,
        arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => ({ bytes, isFramed: false })),
      },
    ),
    { minLength: 1, maxLength: 6 },
  ),
})

function play(
  port: number,
  { path, head, sent }: typeof visit extends fc.Arbitrary<infer V> ? V : never,
): Promise<void> {
  return new Promise((resolve) => {
    const socket: Socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined).resume()
    socket.once('close', () => resolve())
    socket.once('connect', () => {
      socket.write(path === undefined ? head : upgrade(path))
      for (const { bytes, isFramed } of sent) {
        if (isFramed) socket.write(frameHead(2, bytes.length))
        socket.write(bytes)
      }
      // The node cuts most off; the others are in a handshake that has not ended.
      setTimeout(() => socket.destroy(), 60)
    })
  })
}

test('HELLO-1, HELLO-3: nothing that strangers send counts, and a true link stays up', async () => {
  const { url, port, told, peers } = await startListener()
  const seed = 4_700
  const visits = fc.sample(visit, { seed, numRuns: 600 })
  const before = process.memoryUsage().rss
  const lost: unknown[] = []
  const note = (error: unknown): void => void lost.push(error)
  process.on('uncaughtException', note)
  onTestFinished(() => void process.off('uncaughtException', note))
  for (let at = 0; at < visits.length; at += 60) {
    await Promise.all(visits.slice(at, at + 60).map((one) => play(port, one)))
  }
  expect(lost).toEqual([])
  expect(told).toEqual([])
  expect(peers.counters.framesReceived).toBe(0)
  expect(peers.counters.malformed + peers.counters.refused).toBeGreaterThan(20)
  expect((process.memoryUsage().rss - before) / 1e6).toBeLessThan(200)
  const answers = await converse(url, 'peer', peerSecret)
  expect(answers.at(-1)?.kind).toBe('welcome')
})
