/**
 * Links to whatever else may be at the other end: old releases, web servers, port scanners, the
 * silent. Each ends its own connection, is counted and logged, and a sound link stays as it is.
 */
import { createServer, type Server } from 'node:http'
import { connect, createServer as createTcpServer, type AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { WsClientListener } from '../../src/adapters/ws-clients.ts'
import { WsPeerTransport } from '../../src/adapters/ws-peers.ts'
import { sha256 } from '../../src/base/bytes.ts'
import { clusterId, nodeId } from '../../src/base/ids.ts'
import type { LinkInfo } from '../../src/ports/transport.ts'
import {
  decodeHandshake,
  encodeHandshake,
  computeProof,
  protocolMax,
  protocolMin,
  computeTell,
  type HandshakeMessage,
  type Hello,
} from '../../src/wire/handshake.ts'

const cluster = clusterId('c')
const secret = 'shared secret'

async function until(isSo: () => boolean, timeoutMs = 8_000): Promise<void> {
  const end = performance.now() + timeoutMs
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`not so within ${timeoutMs} ms: ${String(isSo)}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

function portOf(server: { address(): AddressInfo | string | null }): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function listen(): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer((_, response) => response.writeHead(404).end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { server, port: portOf(server) }
}

interface Node {
  readonly transport: WsPeerTransport<string>
  readonly port: number
  readonly log: string[]
  readonly told: string[]
}

/** Why nodes refuse these peers, by name. */
const problems = new Map([['unwanted', 'unknown-node: unwanted']])

const info: LinkInfo = { storeId: 's', incarnation: 1, durableFlush: 7 }

/** Node `name` with a listener of its own; dials those of `peers` with larger ids. */
async function startNode(
  name: string,
  peers: Readonly<Record<string, number>>,
  nodeList?: string,
): Promise<Node> {
  const { server, port } = await listen()
  const log: string[] = []
  const told: string[] = []
  const transport = new WsPeerTransport<string>({
    ...{ node: nodeId(name), cluster, server, secret, clock: systemClock, random: systemRandom },
    ...(nodeList === undefined ? {} : { nodeList }),
    peers: Object.entries(peers).map(([id, at]) => {
      return { node: nodeId(id), url: `http://127.0.0.1:${at}` }
    }),
    codec: {
      encode: (frame) => Buffer.from(frame),
      decode: (bytes) => ({ ok: true, frame: Buffer.from(bytes).toString() }),
    },
    queueBytesMax: 1024 * 1024,
    log: (message, detail) => log.push(`${message} ${JSON.stringify(detail)}`),
  })
  transport.start({
    self: () => info,
    admit: (peer) => problems.get(peer),
    onRefused: (peer, reason) => told.push(`refused by ${peer}: ${reason}`),
    onLink: (peer, state) => told.push(`${state} ${peer}`),
    onFrame: (from, frame) => told.push(`${from}: ${frame}`),
  })
  onTestFinished(() => transport.close())
  return { transport, port, log, told }
}

const ownHello: Hello = {
  ...{ side: 'dialer', role: 'peer', protocolMin, protocolMax, cluster, node: 'n0' },
  nonce: Buffer.alloc(16, 9),
}

/** Says hello as `hello` does, proves itself, and resolves with all that was answered. */
async function converse(
  url: string,
  hello: Hello,
  key = secret,
  tells: LinkInfo = info,
): Promise<HandshakeMessage[]> {
  const answers: HandshakeMessage[] = []
  let theirs: Hello | undefined
  const socket = new WebSocket(url)
  socket.on('open', () => socket.send(encodeHandshake({ kind: 'hello', hello })))
  socket.on('error', () => undefined)
  socket.on('message', (data: Buffer) => {
    const message = decodeHandshake(data)
    if (message === undefined) return
    answers.push(message)
    if (message.kind === 'welcome') socket.close()
    if (message.kind === 'hello') {
      theirs = message.hello
      socket.send(encodeHandshake({ kind: 'proof', mac: computeProof(key, hello, theirs) }))
    }
    if (message.kind !== 'tell' || theirs === undefined) return
    const mac = computeTell(key, hello, theirs, tells)
    socket.send(encodeHandshake({ kind: 'tell', info: tells, mac }))
  })
  await new Promise((resolve) => socket.on('close', resolve))
  return answers
}

function reasonIn(answers: readonly HandshakeMessage[]): string | undefined {
  for (const answer of answers) if (answer.kind === 'refuse') return answer.reason
  return undefined
}

test.each<readonly [string, Partial<Hello>, string, string]>([
  [
    'a release with newer versions only',
    { protocolMin: protocolMax + 1, protocolMax: 9 },
    secret,
    'protocol: ',
  ],
  [
    'a release with older versions only',
    { protocolMin: 0, protocolMax: protocolMin - 1 },
    secret,
    'protocol: ',
  ],
  ['a node of another cluster', { cluster: 'other' }, secret, 'cluster: '],
  ['a client on the peers’ path', { role: 'client', node: '' }, secret, 'role: '],
  ['a node with another secret', {}, 'guess', 'secret: '],
  ['a node without a secret', {}, '', 'secret: '],
  ['a node that should not dial but be dialled', { node: 'n3' }, secret, 'side: '],
  ['a node under this one’s own name', { node: 'n2' }, secret, 'side: '],
])('%s is told why it has no link; it is counted and logged', async (_, change, key, reason) => {
  const { transport, port, log, told } = await startNode('n2', {})
  const answers = await converse(`ws://127.0.0.1:${port}/v1/peer`, { ...ownHello, ...change }, key)
  expect(reasonIn(answers)).toMatch(new RegExp(`^${reason}`))
  expect(answers.some(({ kind }) => kind === 'welcome')).toBe(false)
  expect(transport.counters).toMatchObject({ connects: 1, refused: 1, malformed: 0 })
  expect(log.filter((line) => line.includes(reason)).length).toBe(1)
  expect(told).toEqual([])
})

test('a listener welcomes a correct hello, so the refusals above are due to the change', async () => {
  const { port } = await startNode('n2', {})
  const answers = await converse(`ws://127.0.0.1:${port}/v1/peer`, ownHello)
  expect(answers.at(-1)).toEqual({ kind: 'welcome' })
})

test('HELLO-4: a peer that tells no digest of its list of nodes, or a wrong one, has no link', async () => {
  const digest = (list: string): string => sha256(list).toString('hex').slice(0, 32)
  const { transport, port, told } = await startNode('n2', {}, 'n0 n2 n3')
  const url = `ws://127.0.0.1:${port}/v1/peer`
  const answersTo = (tells: LinkInfo): Promise<HandshakeMessage[]> =>
    converse(url, ownHello, secret, tells)
  expect(reasonIn(await answersTo(info))).toBe(
    'nodes: the other side does not tell its list of nodes',
  )
  for (const nodes of [digest('n2 n0 n3'), digest('n0 n2'), '']) {
    expect(reasonIn(await answersTo({ ...info, nodes }))).toMatch(
      /^nodes: the two sides have different lists of nodes, this side's is n0 n2 n3; /,
    )
  }
  expect(transport.counters).toMatchObject({ refused: 4, malformed: 0 })
  const tooLong = await answersTo({ ...info, nodes: 'x'.repeat(65) })
  expect(tooLong.map(({ kind }) => kind)).toEqual(['hello', 'tell'])
  expect(transport.counters).toMatchObject({ refused: 4, malformed: 1 })
  expect(told).toEqual([])
  const same = await answersTo({ ...info, nodes: digest('n0 n2 n3') })
  expect(same.at(-1)).toEqual({ kind: 'welcome' })
  await until(() => told.includes('up n0'))
})

test('the listener also tells clients with no secret or another version why it refuses them', async () => {
  const { server, port } = await listen()
  const listener = new WsClientListener<string>({
    ...{ node: nodeId('n1'), cluster, server, secret, clock: systemClock, random: systemRandom },
    codec: { encode: (frame) => Buffer.from(frame), decode: () => ({ ok: true, frame: '' }) },
    ...{ queueBytesMax: 1024, clientsMax: 5, log: () => undefined },
  })
  listener.start({
    self: () => ({}),
    admit: () => undefined,
    onRefused: () => undefined,
    onLink: () => undefined,
    onFrame: () => undefined,
  })
  onTestFinished(() => listener.close())
  const url = `ws://127.0.0.1:${port}/v1/client`
  const client: Hello = { ...ownHello, role: 'client', cluster: '', node: '' }
  expect(reasonIn(await converse(url, client, ''))).toMatch(/^secret: /)
  expect(reasonIn(await converse(url, { ...client, protocolMin: 7, protocolMax: 7 }))).toMatch(
    /^protocol: /,
  )
  expect(reasonIn(await converse(url, { ...client, cluster: 'other' }))).toMatch(/^cluster: /)
  expect((await converse(url, client)).at(-1)).toEqual({ kind: 'welcome' })
})

test('a node notes no trouble of a peer because of a stranger that takes its name', async () => {
  const closed = await listen()
  await new Promise((resolve) => closed.server.close(resolve))
  const { transport, port } = await startNode('n2', { n0: closed.port, n3: closed.port })
  await until(() => transport.troubles.has('n3'))
  const before = { n3: 'connection refused: nothing listens there' }
  expect(Object.fromEntries(transport.troubles)).toEqual(before)
  const url = `ws://127.0.0.1:${port}/v1/peer`
  expect(reasonIn(await converse(url, { ...ownHello, node: 'n3' }))).toMatch(/^side: /)
  expect(reasonIn(await converse(url, { ...ownHello, cluster: 'other' }))).toMatch(/^cluster: /)
  expect(reasonIn(await converse(url, ownHello, 'guess'))).toMatch(/^secret: /)
  expect(Object.fromEntries(transport.troubles)).toEqual(before)
})

test('why a peer that has proven itself has no link is noted of it', async () => {
  const { transport, port } = await startNode('z1', { unwanted: 9 })
  const url = `ws://127.0.0.1:${port}/v1/peer`
  expect(reasonIn(await converse(url, { ...ownHello, node: 'unwanted' }))).toMatch(/^unknown-node/)
  expect([...transport.troubles]).toEqual([['unwanted', 'unknown-node: unwanted']])
})

test('a refusal that goes away by itself puts the next dial off for a moment, and any other for seconds', async () => {
  problems.set('a1', 'forgetful: for a moment').set('a2', 'stale-disk: for good')
  const refusing = await startNode('z2', {})
  const nodes = await Promise.all(
    ['a1', 'a2'].map((name) => startNode(name, { z2: refusing.port })),
  )
  for (const { told } of nodes) await until(() => told.length > 0)
  problems.clear()
  problems.set('unwanted', 'unknown-node: unwanted')
  const [soon, later] = nodes
  // The first dial after a break waits for 50 ms at most, the one after a refusal for 2.5 s at least.
  await until(() => soon?.told.includes('up z2') === true)
  expect(later?.told.includes('up z2')).toBe(false)
})

test('a node notes trouble of a peer when another node answers at its address', async () => {
  const other = await startNode('n7', {})
  const { transport } = await startNode('n1', { n5: other.port })
  await until(() => transport.troubles.has('n5'))
  expect(transport.troubles.get('n5')).toContain('node: expected node n5, met node n7')
  expect(transport.troubles.has('n7')).toBe(false)
})

test('the listener cuts off a silent connection in time', async () => {
  const { port, log } = await startNode('n2', {})
  const began = performance.now()
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/peer`)
  await new Promise((resolve) => socket.on('close', resolve))
  const elapsedMs = performance.now() - began
  expect(elapsedMs).toBeGreaterThan(1_500)
  expect(elapsedMs).toBeLessThan(6_000)
  expect(log.some((line) => line.includes('no handshake in time'))).toBe(true)
})

test('words out of their order end the connection', async () => {
  const words: readonly (readonly HandshakeMessage[])[] = [
    [{ kind: 'welcome' }],
    [{ kind: 'proof', mac: Buffer.alloc(32) }],
    [
      { kind: 'hello', hello: ownHello },
      { kind: 'hello', hello: ownHello },
    ],
    [{ kind: 'hello', hello: ownHello }, { kind: 'welcome' }],
  ]
  const { transport, port, told } = await startNode('n2', {})
  for (const [index, said] of words.entries()) {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/peer`)
    socket.on('open', () => {
      for (const word of said) socket.send(encodeHandshake(word))
    })
    await new Promise((resolve) => socket.on('close', resolve))
    expect(transport.counters.malformed).toBe(index + 1)
  }
  expect(told).toEqual([])
})

test('a forged frame before the handshake has ended is no frame', async () => {
  const { transport, port, told } = await startNode('n2', {})
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/peer`)
  socket.on('open', () => {
    socket.send(encodeHandshake({ kind: 'hello', hello: ownHello }))
    socket.send(Buffer.from('forged'))
  })
  await new Promise((resolve) => socket.on('close', resolve))
  expect(told).toEqual([])
  expect(transport.counters).toMatchObject({ malformed: 1, framesReceived: 0 })
})

test('a dialer goes on against a web server, a closed port, a silent one and one that babbles', async () => {
  const web = await listen()
  const tcp = createTcpServer((socket) => {
    socket.on('error', () => undefined)
    socket.resume()
    socket.end('SSH-2.0-OpenSSH_9.2\r\n')
  })
  const babbler = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  babbler.on('connection', (socket) => socket.send(Buffer.from('what?')))
  await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
  const closed = await listen()
  await new Promise((resolve) => closed.server.close(resolve))
  onTestFinished(async () => {
    await new Promise((resolve) => tcp.close(resolve))
    for (const socket of babbler.clients) socket.terminate()
    await new Promise((resolve) => babbler.close(resolve))
  })
  const sound = await startNode('n9', {})
  const { transport, told } = await startNode('n1', {
    ...{ n5: web.port, n6: portOf(tcp), n7: portOf(babbler), n8: closed.port, n9: sound.port },
  })
  await until(() => transport.counters.malformed >= 3 && transport.isUp('n9'))
  expect(transport.send('n9', 'hello')).toBe(true)
  await until(() => sound.told.includes('n1: hello'))
  expect(told).toEqual(['up n9'])
})

test('raw bytes, whole or cut, and unknown paths leave the node and its links working', async () => {
  const a = await startNode('n2', {})
  const b = await startNode('n1', { n2: a.port })
  await until(() => b.transport.isUp('n2') && a.transport.isUp('n1'))
  const upgrade = (path: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n`
  const garbage = Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 31 + (i >> 3)) & 0xff))
  const inputs: readonly (readonly [string | Buffer, RegExp | undefined])[] = [
    [garbage, undefined],
    [Buffer.concat([Buffer.from(upgrade('/v1/peer')), garbage]), undefined],
    [upgrade('/v1/peer').slice(0, 40), undefined],
    [upgrade('/v1/nothing'), /^HTTP\/1\.1 404 /],
    [upgrade('//'), /^HTTP\/1\.1 404 /],
    [upgrade('http://['), /^HTTP\/1\.1 40[04] /],
    [upgrade('/v1/peer/'), /^HTTP\/1\.1 404 /],
    [upgrade('/v1/peer').replace('Version: 13', 'Version: 99'), undefined],
    [upgrade('/v1/peer').replace(/Sec-WebSocket-Key.*\r\n/, ''), undefined],
  ]
  for (const [input, answer] of inputs) {
    const said = await exchange(a.port, input)
    if (answer !== undefined) expect(said, JSON.stringify(input)).toMatch(answer)
  }
  expect(b.transport.send('n2', 'still here')).toBe(true)
  await until(() => a.told.includes('n1: still here'))
  expect(a.told).toEqual(['up n1', 'n1: still here'])
})

/** Sends bytes over TCP and half-closes; resolves with what came back when the other side is done. */
function exchange(port: number, input: string | Buffer): Promise<string> {
  return new Promise((resolve) => {
    let said = ''
    const socket = connect(port, '127.0.0.1', () => socket.end(input))
    socket.setEncoding('latin1')
    socket.on('data', (piece: string) => (said += piece))
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(said))
  })
}

test('a newer link of a peer takes the place of an older one, with a down and an up', async () => {
  const a = await startNode('n2', {})
  const first = await startNode('n1', { n2: a.port })
  await until(() => a.transport.isUp('n1') && first.transport.isUp('n2'))
  const second = await startNode('n1', { n2: a.port })
  await until(() => second.transport.isUp('n2'))
  await first.transport.close()
  await until(() => second.transport.isUp('n2') && a.transport.isUp('n1'))
  const states = a.told.map((line) => line.split(' ')[0])
  expect(states.length).toBeGreaterThan(1)
  expect(states.every((state, index) => state === (index % 2 === 0 ? 'up' : 'down'))).toBe(true)
})
