import { createServer, request, type Server } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { WsClientDialer, WsClientListener } from '../../src/adapters/ws-clients.ts'
import type { FrameCodec } from '../../src/adapters/ws-link.ts'
import { WsPeerTransport } from '../../src/adapters/ws-peers.ts'
import { routeUpgrades } from '../../src/adapters/ws-router.ts'
import { clusterId, nodeId } from '../../src/base/ids.ts'
import { frameBytesMax } from '../../src/base/limits.ts'
import type { LinkInfo, TransportHandlers } from '../../src/ports/transport.ts'
import { encodeHandshake, nonceBytes, protocolMax, protocolMin } from '../../src/wire/handshake.ts'

const codec: FrameCodec<string> = {
  encode: (frame) => Buffer.from(frame),
  decode: (bytes) => {
    const frame = Buffer.from(bytes).toString()
    return frame === 'bad' ? { ok: false, reason: 'bad frame' } : { ok: true, frame }
  },
}

const ends: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

async function listening(): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer((_request, response) => response.end('http'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return { server, url: `http://127.0.0.1:${port}` }
}

/** Handlers that write down their calls, and wake the tests that wait for them. */
class Notes implements TransportHandlers<string> {
  readonly lines: string[] = []
  readonly #info: LinkInfo
  readonly #reason: string | undefined
  #wake: () => void = () => undefined

  constructor(info: LinkInfo = {}, reason?: string) {
    this.#info = info
    this.#reason = reason
  }

  self(): LinkInfo {
    return this.#info
  }

  admit(): string | undefined {
    return this.#reason
  }

  onRefused(peer: string, reason: string): void {
    this.#note(`refused by ${peer}: ${reason}`)
  }

  onLink(peer: string, state: 'up' | 'down', info: LinkInfo): void {
    this.#note(`${state} ${peer} ${info.durableFlush ?? ''}`.trim())
  }

  onFrame(from: string, frame: string): void {
    this.#note(`${from}: ${frame.slice(0, 20)} ${frame.length}`)
  }

  #note(line: string): void {
    this.lines.push(line)
    this.#wake()
  }

  /** Resolves when a line that contains `text` was noted `times` times. */
  async until(text: string, times = 1): Promise<void> {
    const end = performance.now() + 8_000
    while (this.lines.filter((line) => line.includes(text)).length < times) {
      if (performance.now() > end) throw new Error(`no "${text}" in ${JSON.stringify(this.lines)}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 100)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
}

interface Peer {
  readonly transport: WsPeerTransport<string>
  readonly notes: Notes
  readonly log: string[]
}

function peer(
  name: string,
  server: Server,
  peers: Record<string, string>,
  options: { readonly notes?: Notes; readonly secret?: string; readonly cluster?: string } = {},
): Peer {
  const log: string[] = []
  const transport = new WsPeerTransport<string>({
    ...{ node: nodeId(name), cluster: clusterId(options.cluster ?? 'c'), server, codec },
    peers: Object.entries(peers).map(([id, url]) => ({ node: nodeId(id), url })),
    ...{ clock: systemClock, random: systemRandom, secret: options.secret ?? '' },
    queueBytesMax: 1024 * 1024,
    log: (message, detail) => log.push(`${message} ${JSON.stringify(detail)}`),
  })
  const notes = options.notes ?? new Notes()
  transport.start(notes)
  ends.push(() => transport.close())
  return { transport, notes, log }
}

test('two nodes get one link, tell of their stores, and pass frames both ways', async () => {
  const [one, two] = [await listening(), await listening()]
  const urls = { n1: one.url, n2: two.url }
  const info = { storeId: 's', incarnation: 1, durableFlush: 7 }
  const a = peer('n1', one.server, urls, { notes: new Notes(info) })
  const b = peer('n2', two.server, urls)
  await Promise.all([a.notes.until('up n2'), b.notes.until('up n1 7')])
  expect(a.transport.send('n2', 'hello')).toBe(true)
  expect(b.transport.send('n1', 'x'.repeat(100_000))).toBe(true)
  await Promise.all([b.notes.until('n1: hello 5'), a.notes.until(' 100000')])
  expect(a.transport.send('n9', 'nobody')).toBe(false)
})

test('a link comes back by itself after the other side was gone', async () => {
  const [one, two] = [await listening(), await listening()]
  const urls = { n1: one.url, n2: two.url }
  const a = peer('n1', one.server, urls)
  const b = peer('n2', two.server, urls)
  await a.notes.until('up n2')
  await b.transport.close()
  await a.notes.until('down n2')
  expect(a.transport.isUp('n2')).toBe(false)
  expect(a.transport.send('n2', 'lost')).toBe(false)
  const again = peer('n2', two.server, urls)
  await a.notes.until('up n2', 2)
  await again.notes.until('up n1')
})

test.each([
  ['another cluster', { cluster: 'other' }, 'cluster: '],
  ['another secret', { secret: 'guess' }, 'secret: '],
  ['a disk that its peers know to be stale', { notes: new Notes({}, 'stale-disk: 3') }, 'stale'],
])('refuses %s, says why to the other side, and has no link', async (_title, options, reason) => {
  const [one, two] = [await listening(), await listening()]
  const urls = { n1: one.url, n2: two.url }
  const a = peer('n1', one.server, urls)
  const b = peer('n2', two.server, urls, options)
  await until(() => [...a.log, ...b.log].some((line) => line.includes(reason)))
  expect(a.transport.isUp('n2')).toBe(false)
  expect(a.transport.counters.refused + b.transport.counters.refused).toBeGreaterThan(0)
})

test('a node believes the refusal of a proven peer and not that of a stranger', async () => {
  const [one, two] = [await listening(), await listening()]
  const urls = { n1: one.url, n2: two.url }
  const a = peer('n1', one.server, urls)
  const stale = peer('n2', two.server, urls, { notes: new Notes({}, 'stale-disk: 3') })
  await a.notes.until('refused by n2: stale-disk')
  const refusal = encodeHandshake({ kind: 'refuse', reason: 'stale-disk: forged' })
  await closed(`${one.url.replace('http', 'ws')}/v1/peer`, Buffer.from(refusal))
  expect(a.log.some((line) => line.includes('forged'))).toBe(true)
  expect(a.notes.lines.some((line) => line.includes('forged'))).toBe(false)
  expect(stale.transport.isUp('n1')).toBe(false)
})

test('two listeners cannot be made to prove themselves to each other by a relay', async () => {
  const [one, two] = [await listening(), await listening()]
  const a = peer('n1', one.server, {}, { secret: 'shared' })
  const b = peer('n2', two.server, {}, { secret: 'shared' })
  const sockets = [one, two].map(({ url }) => {
    return new WebSocket(`${url.replace('http', 'ws')}/v1/peer`)
  })
  for (const [index, socket] of sockets.entries()) {
    const other = sockets[1 - index]
    const pass = (data: Buffer): void => other?.send(data, () => undefined)
    socket.on('message', (data: Buffer) => {
      if (other?.readyState === WebSocket.CONNECTING) other.on('open', () => pass(data))
      else pass(data)
    })
    socket.on('error', () => undefined)
  }
  // Neither speaks first, so the relay begins: with a hello as a node would send it.
  const side = { side: 'dialer', role: 'peer', protocolMin, protocolMax } as const
  const names = { cluster: 'c', node: 'n1', nonce: Buffer.alloc(nonceBytes) }
  const hello = encodeHandshake({ kind: 'hello', hello: { ...side, ...names } })
  sockets[1]?.on('open', () => sockets[1]?.send(hello))
  await until(() => [...a.log, ...b.log].some((line) => line.includes('side: ')))
  for (const socket of sockets) socket.terminate()
  expect(a.transport.isUp('n2') || b.transport.isUp('n1')).toBe(false)
})

test('close ends at once although the other side does not answer', async () => {
  const { server, url } = await listening()
  const held: WebSocket[] = []
  const stop = routeUpgrades(server, '/v1/client', (socket) => {
    socket.pause()
    held.push(socket)
  })
  const dialer = new WsClientDialer<string>({
    ...{ codec, clock: systemClock, random: systemRandom, secret: '', log: () => 0 },
    ...{ queueBytesMax: 1024, urls: [url] },
  })
  dialer.start(new Notes())
  await until(() => held.length > 0)
  const began = performance.now()
  await dialer.close()
  expect(performance.now() - began).toBeLessThan(1_500)
  stop()
  for (const socket of held) socket.terminate()
})

test('garbage, text, an oversize frame and an unknown path end that connection, nothing else', async () => {
  const [one, two] = [await listening(), await listening()]
  const urls = { n1: one.url, n2: two.url }
  const a = peer('n1', one.server, urls)
  const b = peer('n2', two.server, urls)
  await a.notes.until('up n2')
  const address = one.url.replace('http', 'ws')
  for (const message of [Buffer.from('garbage'), 'text', Buffer.alloc(frameBytesMax + 1)]) {
    await closed(`${address}/v1/peer`, message)
  }
  await closed(`${address}/v1/nothing`, 'x')
  await closed(`${address}//`, 'x')
  await raw(one.url, 'GET /v1/peer HTTP/1.1\r\nnot http at all\r\n\r\n')
  expect(a.transport.counters.malformed).toBe(3)
  expect(a.transport.send('n2', 'still here')).toBe(true)
  await b.notes.until('still here')
})

test('a frame that its receiver cannot decode closes the link, which comes back', async () => {
  const [one, two] = [await listening(), await listening()]
  const urls = { n1: one.url, n2: two.url }
  const a = peer('n1', one.server, urls)
  peer('n2', two.server, urls)
  await a.notes.until('up n2')
  a.transport.send('n2', 'bad')
  await a.notes.until('up n2', 2)
  expect(a.transport.isUp('n2')).toBe(true)
})

test('clients are named by the listener; their dialer names nodes by URL; bounds refuse', async () => {
  const { server, url } = await listening()
  const common = { codec, clock: systemClock, random: systemRandom, secret: 's3', log: () => 0 }
  const bounds = { queueBytesMax: 1024 * 1024, clientsMax: 1 }
  const names = { node: nodeId('n1'), cluster: clusterId('c'), server }
  const listener = new WsClientListener<string>({ ...common, ...bounds, ...names })
  const nodeNotes = new Notes()
  listener.start(nodeNotes)
  ends.push(() => listener.close())
  const dial = (secret: string): Notes => {
    const dialer = new WsClientDialer<string>({ ...common, ...bounds, secret, urls: [url] })
    const notes = new Notes()
    dialer.start(notes)
    ends.push(() => dialer.close())
    return notes
  }
  const first = dial('s3')
  await Promise.all([first.until(`up ${url}`), nodeNotes.until('up c1')])
  listener.send('c1', 'for you')
  await first.until(`${url}: for you`)
  await dial('s3').until('overloaded')
  await dial('wrong').until('secret: ')
  expect(listener.clients).toBe(1)
})

async function until(isSo: () => boolean): Promise<void> {
  const end = performance.now() + 4_000
  while (!isSo()) {
    if (performance.now() > end) throw new Error('it did not come so')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

function closed(url: string, message: Buffer | string): Promise<void> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url)
    socket.on('open', () => socket.send(message))
    socket.on('error', () => undefined)
    socket.on('close', () => resolve())
  })
}

function raw(url: string, text: string): Promise<void> {
  return new Promise((resolve) => {
    const sent = request(url, { headers: { upgrade: 'nonsense', connection: 'upgrade' } })
    sent.on('error', () => resolve())
    sent.on('response', () => resolve())
    sent.on('close', () => resolve())
    sent.end(text)
  })
}
