/** The listener as strangers, slow ones and pages of other origins meet it: real sockets on loopback. */
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type Server,
} from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import type { ConnectionLimits } from '../../src/adapters/connections.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { WsClientDialer } from '../../src/adapters/ws-clients.ts'
import { clientPath, routeUpgrades } from '../../src/adapters/ws-router.ts'
import {
  defaultTimes,
  listen,
  type BoundServer,
  type ListenOptions,
} from '../../src/node/http-server.ts'
import { overloaded } from '../../src/node/refusals.ts'
import { SlowExchanges } from '../../src/node/slow-exchanges.ts'
import { cert, key } from './tls-kit.ts'
import { HandClock } from '../ports/hand-clock.ts'

const limits: ConnectionLimits = {
  ...{ connectionsMax: 60, connectionsPerAddressMax: 60 },
  ...{ unprovenMax: 20, unprovenPerAddressMax: 10 },
}

/** A listener whose `/v1/…` prove their senders to be clients, as a node's do. */
async function start(some: Partial<ListenOptions> = {}): Promise<BoundServer> {
  const options: ListenOptions = {
    ...{ listen: { host: '127.0.0.1', port: 0 }, tls: undefined, portFlag: '--listen' },
    ...{ hosts: [], origins: [], connections: limits, answerBytesMax: 1024 * 1024 },
    onError: () => undefined,
    fetch: async (asked, socket) => {
      const { pathname } = new URL(asked.url)
      if (!pathname.startsWith('/v1/')) return new Response('ok')
      const problem = bound.connections.prove(socket, 'client')
      if (problem !== undefined) return overloaded(problem)
      return new Response(`${pathname} ${(await asked.text()).length}`)
    },
    ...some,
  }
  const bound: BoundServer = await listen(options)
  onTestFinished(() => bound.close(0))
  return bound
}

function portOf({ url }: BoundServer): number {
  return Number(new URL(url).port)
}

function portOn(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

interface Answer {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** A request with these headers, `Host` among them, as a browser may be made to send it. */
function ask(
  bound: BoundServer,
  path: string,
  headers: Record<string, string>,
  method = 'PUT',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sending = httpRequest({ port: portOf(bound), host: '127.0.0.1', path, method, headers })
    sending.on('error', reject)
    sending.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      response.on('end', () =>
        resolve({ status: response.statusCode, headers: response.headers, text }),
      )
    })
    sending.end(method === 'PUT' ? '{}' : undefined)
  })
}

function figure(bound: BoundServer, reason: string): number | undefined {
  return bound
    .figures()
    .find(({ labels }) => labels?.['reason'] === reason || labels?.['of'] === reason)?.value
}

async function until(isSo: () => boolean, timeoutMs = 8_000): Promise<void> {
  const end = performance.now() + timeoutMs
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`not so in time: ${String(isSo)}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** A connection that says nothing but `words`. */
function visitor(bound: BoundServer, words = ''): Socket {
  const socket = connect(portOf(bound), '127.0.0.1', () => socket.write(words))
  socket.on('error', () => undefined).resume()
  onTestFinished(() => void socket.destroy())
  return socket
}

test('requests of pages of other origins, and by names of others, get 403 with what to set, and are counted', async () => {
  const bound = await start({ hosts: ['db.example'], origins: ['https://app.example'] })
  const port = portOf(bound)
  const evil = await ask(bound, '/v1/x', { origin: 'https://evil.example' })
  expect(evil).toMatchObject({
    status: 403,
    headers: { 'content-type': 'application/problem+json' },
  })
  expect(JSON.parse(evil.text)).toMatchObject({
    ...{ code: 'forbidden', retry: 'never', status: 403 },
    detail: expect.stringMatching(/evil\.example.*allowed_origins/),
  })
  const rebound = { host: `evil.example:${port}`, origin: `http://evil.example:${port}` }
  const led = await ask(bound, '/status', rebound, 'GET')
  expect([led.status, led.text]).toEqual([403, expect.stringContaining('allowed_hosts')])
  for (const headers of [
    {},
    { host: `localhost:${port}` },
    { host: 'db.example' },
    { origin: bound.url },
    { origin: `http://localhost:${port}` },
    { host: 'db.example', origin: 'https://app.example' },
  ]) {
    expect(await ask(bound, '/v1/x', headers)).toMatchObject({ status: 200, text: '/v1/x 2' })
  }
  expect([figure(bound, 'origin'), figure(bound, 'host')]).toEqual([1, 1])
})

test('WebSockets of pages of other origins are not opened; others are', async () => {
  const bound = await start()
  const opened: string[] = []
  routeUpgrades(bound.server, clientPath, (socket, remote) => {
    opened.push(remote)
    socket.terminate()
  })
  const address = `${bound.url.replace('http', 'ws')}${clientPath}`
  const outcome = (headers: Record<string, string>): Promise<string> =>
    new Promise((resolve) => {
      const socket = new WebSocket(address, { headers })
      socket.on('unexpected-response', (_, response) => {
        let text = ''
        response.on('data', (piece: Buffer) => (text += piece.toString()))
        response.on('close', () => resolve(`${response.statusCode} ${text}`))
      })
      socket.on('error', () => undefined)
      socket.on('open', () => resolve('open'))
    })
  expect(await outcome({ origin: 'https://evil.example' })).toMatch(/^403 .*allowed_origins/)
  expect(await outcome({ host: 'evil.example' })).toMatch(/^403 .*allowed_hosts/)
  expect(opened).toEqual([])
  expect(await outcome({ origin: bound.url })).toBe('open')
  expect(await outcome({})).toBe('open')
})

/** The answers on one connection to these requests, each sent after the answer before it. */
async function exchanged(
  bound: BoundServer,
  words: readonly (readonly [said: string, last: string])[],
): Promise<string> {
  const socket = visitor(bound)
  let text = ''
  socket.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  for (const [said, last] of words) {
    socket.write(said)
    await until(() => text.includes(last) || socket.destroyed)
  }
  return text
}

test.each(['h2c', 'TLS/1.0', 'websocket, h2c'])(
  'a request that offers another protocol (%s) is served as if it did not',
  async (protocol) => {
    const bound = await start()
    routeUpgrades(bound.server, clientPath, (socket) => socket.terminate())
    const head = (request: string, ...more: readonly string[]): string =>
      [
        `${request} HTTP/1.1`,
        `Host: 127.0.0.1:${portOf(bound)}`,
        'Connection: Upgrade, HTTP2-Settings',
        `Upgrade: ${protocol}`,
        'HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
        ...more,
        '\r\n',
      ].join('\r\n')
    const got = head('GET /v1/get')
    const put = `${head('PUT /v1/put', 'Content-Length: 7')}{"a":1}`
    const chunked = `${head('PUT /v1/chunks', 'Transfer-Encoding: chunked')}5\r\n[1,2]\r\n0\r\n\r\n`
    const after = `GET /v1/after HTTP/1.1\r\nHost: 127.0.0.1:${portOf(bound)}\r\n\r\n`
    const text = await exchanged(bound, [
      [got, '/v1/get 0'],
      [put, '/v1/put 7'],
      [chunked, '/v1/chunks 5'],
      [after, '/v1/after 0'],
    ])
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(Array(4).fill('HTTP/1.1 200'))
    expect(text).toMatch(/get 0[^]*put 7[^]*chunks 5[^]*after 0/)
    const socket = new WebSocket(`${bound.url.replace('http', 'ws')}${clientPath}`)
    socket.on('error', () => undefined)
    await new Promise((resolve) => socket.once('open', resolve))
  },
)

test('a client that uses a wrong name for a node learns so', async () => {
  const detail = '"db.example" is no name of this process'
  const server = createServer()
  server.on('upgrade', (_, socket) => {
    const body = JSON.stringify({ detail })
    socket.end(`HTTP/1.1 403 Forbidden\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const refusals: string[] = []
  const dialer = new WsClientDialer<string>({
    codec: { encode: (frame) => Buffer.from(frame), decode: () => ({ ok: true, frame: '' }) },
    ...{ clock: systemClock, random: systemRandom, secret: '', log: () => undefined },
    ...{
      queueBytesMax: 1024,
      urls: [`http://127.0.0.1:${portOn(server)}`],
    },
  })
  onTestFinished(() => dialer.close())
  dialer.start({
    ...{ self: () => ({}), admit: () => undefined, onLink: () => undefined },
    ...{ onFrame: () => undefined, onRefused: (_, reason) => void refusals.push(reason) },
  })
  await until(() => refusals.length > 0)
  expect(refusals[0]).toBe(`forbidden: ${detail} (so it says)`)
})

test('idle strangers lose their place to newer ones, and a request among them is answered', async () => {
  const bound = await start()
  const idle = Array.from({ length: 100 }, () => visitor(bound))
  await until(() => idle.filter(({ destroyed }) => destroyed).length >= 90)
  expect(figure(bound, 'stranger')).toBe(10)
  expect(await ask(bound, '/livez', {}, 'GET')).toMatchObject({ status: 200 })
  expect(await ask(bound, '/v1/x', {})).toMatchObject({ status: 200 })
  expect(figure(bound, 'displaced')).toBeGreaterThanOrEqual(91)
})

test('a full house refuses one client more in words, and still answers health', async () => {
  const bound = await start({ connections: { ...limits, connectionsMax: 25 } })
  const words = 'GET /v1/x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
  const clients = Array.from({ length: 5 }, () => visitor(bound, words))
  await until(() => figure(bound, 'client') === 5)
  const more = await ask(bound, '/v1/x', {})
  expect(more).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
  expect(JSON.parse(more.text)).toMatchObject({ code: 'overloaded', retry: 'safe' })
  expect(await ask(bound, '/readyz', {}, 'GET')).toMatchObject({ status: 200 })
  expect(figure(bound, 'full')).toBe(1)
  clients[0]?.destroy()
  await until(() => figure(bound, 'client') === 4)
  expect(await ask(bound, '/v1/x', {})).toMatchObject({ status: 200 })
})

test('the server soon ends a silent or dripping connection, and at once one with a large head', async () => {
  const times = { ...defaultTimes, headMs: 300, strangerIdleMs: 300, sweepMs: 50 }
  const bound = await start({ times })
  const silent = visitor(bound)
  const dripping = visitor(bound, 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ')
  const drip = setInterval(() => dripping.write('a'), 20)
  onTestFinished(() => clearInterval(drip))
  await until(() => silent.destroyed && dripping.destroyed, 4_000)
  const large = visitor(bound, `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ${'a'.repeat(20_000)}`)
  let said = ''
  large.on('data', (piece: Buffer) => (said += piece.toString()))
  await until(() => large.destroyed)
  expect(said).toMatch(/^HTTP\/1\.1 431 /)
  expect(await ask(bound, '/livez', {}, 'GET')).toMatchObject({ status: 200 })
})

test('over TLS, connections count as what they have proven to be, those that never speak it too', async () => {
  const bound = await start({ tls: { cert, key } })
  const plain = [visitor(bound), visitor(bound)]
  await until(() => figure(bound, 'stranger') === 2)
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: false })
  onTestFinished(() => agent.destroy())
  const status = (headers: Record<string, string>): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const asked = httpsRequest(`${bound.url}/v1/x`, { agent, headers }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode))
      })
      asked.on('error', reject).end()
    })
  expect(await status({ origin: bound.url })).toBe(200)
  expect([figure(bound, 'client'), figure(bound, 'stranger')]).toEqual([1, 2])
  expect(await status({ origin: bound.url.replace('https', 'http') })).toBe(200)
  expect(await status({ origin: 'https://evil.example' })).toBe(403)
  for (const one of plain) one.destroy()
  agent.destroy()
  await until(() => figure(bound, 'client') === 0 && figure(bound, 'stranger') === 0)
})

test('an error of the listener is reported and counted, and the server goes on', async () => {
  const errors: string[] = []
  const bound = await start({ onError: ({ message }) => void errors.push(message) })
  bound.server.emit('error', new Error('accept EMFILE'))
  expect([errors, figure(bound, 'error')]).toEqual([['accept EMFILE'], 1])
  expect(await ask(bound, '/livez', {}, 'GET')).toMatchObject({ status: 200 })
})

/** A server whose exchanges are watched by a clock that the test turns; answers are `answer`. */
async function watched(
  answer: string,
  answerBytesMax = 64 * 1024 * 1024,
): Promise<{
  readonly clock: HandClock
  readonly slow: SlowExchanges
  readonly open: (words: string) => Socket
}> {
  const clock = new HandClock()
  const slow = new SlowExchanges(clock, answerBytesMax)
  const server = createServer((request, response) => {
    slow.begin(request, response)
    request.resume().once('end', () => {
      response.end(answer)
      slow.answered(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const port = portOn(server)
  const open = (words: string): Socket => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined).write(words)
    onTestFinished(() => void socket.destroy())
    return socket
  }
  return { clock, slow, open }
}

test('a body that comes too slowly is ended, one that comes at its rate is not', async () => {
  const { clock, slow, open } = await watched('done')
  const head = 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n'
  const [lazy, brisk] = [open(head).resume(), open(head).resume()]
  brisk.write(Buffer.alloc(500_000))
  const goOn = async (ms: number): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 100))
    clock.nowMs += ms
    slow.sweep()
  }
  await goOn(4_900)
  expect(slow.counts.slowBodies).toBe(0)
  await goOn(1_000)
  await until(() => lazy.destroyed)
  await goOn(40_000)
  expect(brisk.destroyed).toBe(false)
  expect(slow.counts.slowBodies).toBe(1)
  brisk.write(Buffer.alloc(500_000))
  await goOn(0)
  await goOn(90_000)
  expect(slow.counts.slowBodies).toBe(1)
})

const large = 'x'.repeat(16 * 1024 * 1024)
const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

test('the server counts an answer that its client does not take and ends it in time, not others', async () => {
  const { clock, slow, open } = await watched(large)
  const reader = open(get).resume()
  const sleeper = open(get).pause()
  await until(() => slow.answerBytes > 0 && reader.bytesRead > large.length)
  await until(() => slow.answerBytes < 1.5 * large.length)
  expect(slow.answerBytes).toBeGreaterThanOrEqual(large.length)
  clock.nowMs += 5_000
  slow.sweep()
  expect(slow.counts.slowAnswers).toBe(0)
  clock.nowMs += (1000 * large.length) / (64 * 1024) + 1_000
  slow.sweep()
  expect(slow.counts.slowAnswers).toBe(1)
  expect(slow.answerBytes).toBe(0)
  expect(reader.destroyed).toBe(false)
  sleeper.resume()
  await until(() => sleeper.destroyed)
})

test('answers that wait are bounded together: the oldest goes for a newer one', async () => {
  const { slow, open } = await watched(large, 2.5 * large.length)
  const sleepers: Socket[] = []
  for (let i = 1; i <= 5; i++) {
    sleepers.push(open(get).pause())
    const isSo = (): boolean => {
      const held = Math.round(slow.answerBytes / large.length)
      return held === Math.min(i, 2) && slow.counts.answersForRoom === Math.max(0, i - 2)
    }
    await until(isSo)
  }
  for (const one of sleepers) one.resume()
  await until(() => sleepers.slice(0, 3).every(({ destroyed }) => destroyed))
  await until(() => slow.answerBytes === 0)
  await until(() => sleepers.slice(3).every(({ bytesRead }) => bytesRead > large.length))
  expect(slow.counts).toEqual({ slowBodies: 0, slowAnswers: 0, answersForRoom: 3 })
})

test('the server begins each request of a connection after answering the one before', async () => {
  const begun: string[] = []
  let atWork = 0
  let most = 0
  const bound = await start({
    fetch: async (asked) => {
      begun.push(new URL(asked.url).pathname)
      atWork += 1
      most = Math.max(most, atWork)
      await new Promise((resolve) => setTimeout(resolve, 2))
      atWork -= 1
      return new Response('ok')
    },
  })
  const paths = Array.from({ length: 20 }, (_, at) => `/${at}`)
  const socket = connect(portOf(bound), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
  socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join(''))
  await expect.poll(() => text.split('HTTP/1.1 200').length - 1).toBe(20)
  expect(begun).toEqual(paths)
  expect(most).toBe(1)
})

test('a connection that brings more requests than may wait is ended, and few of them are begun', async () => {
  let begun = 0
  const bound = await start({
    fetch: () => {
      begun += 1
      return new Response('ok')
    },
  })
  const socket = connect(portOf(bound), '127.0.0.1')
  const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.on('error', () => undefined).resume()
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(1_500))
  await gone
  expect(begun).toBeLessThan(1_500 / 2)
  expect(bound.figures()).toContainEqual(
    expect.objectContaining({ labels: { reason: 'hasty' }, value: 1 }),
  )
})
