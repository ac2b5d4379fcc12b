/**
 * Input that is no request, or names its host in two places, is refused with a problem, as anything else is.
 */
import { connect } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { routeUpgrades } from '../../src/adapters/ws-router.ts'
import {
  defaultTimes,
  listen,
  type BoundServer,
  type ListenOptions,
} from '../../src/node/http-server.ts'
import { cert, key } from './tls-kit.ts'

async function start(
  headMs = defaultTimes.headMs,
  tls?: ListenOptions['tls'],
): Promise<BoundServer> {
  const bound = await listen({
    ...{ listen: { host: '127.0.0.1', port: 0 }, tls, portFlag: '--listen' },
    ...{ hosts: [], origins: [], answerBytesMax: 1024 * 1024 },
    connections: {
      ...{ connectionsMax: 60, connectionsPerAddressMax: 60 },
      ...{ unprovenMax: 20, unprovenPerAddressMax: 10 },
    },
    onError: () => undefined,
    fetch: async (request) => {
      const { pathname } = new URL(request.url)
      if (pathname === '/body') await request.text().catch(() => '')
      if (pathname === '/slow') await new Promise((resolve) => setTimeout(resolve, 300))
      return new Response(pathname)
    },
    times: { ...defaultTimes, headMs, sweepMs: 50 },
  })
  onTestFinished(() => bound.close(0))
  return bound
}

interface Said {
  readonly status: number
  readonly type: string | undefined
  readonly body: string
}

/** The answer to these bytes, once the listener has ended the connection. */
function say({ url }: BoundServer, words: string): Promise<Said> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(words))
    onTestFinished(() => void socket.destroy())
    socket.setEncoding('utf8').on('data', (piece: string) => (text += piece))
    socket.on('error', reject)
    socket.on('close', () => {
      const [head = '', body = ''] = text.split('\r\n\r\n')
      const type = /^content-type: (.*)$/im.exec(head)?.[1]
      resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), type, body })
    })
  })
}

function malformedCount(bound: BoundServer): number | undefined {
  return bound.figures().find(({ labels }) => labels?.['reason'] === 'malformed')?.value
}

const own = 'Host: 127.0.0.1'

test.each([
  [
    'two Host headers',
    `GET /x HTTP/1.1\r\n${own}\r\nHost: localhost\r\n\r\n`,
    { status: 400, code: 'invalid', detail: /has one Host header, and this one has 2$/ },
  ],
  [
    'no Host header',
    'GET /x HTTP/1.1\r\n\r\n',
    { status: 400, code: 'invalid', detail: /has one Host header, and this one has none$/ },
  ],
  [
    'a target of another host',
    `GET http://other.example/x HTTP/1.1\r\n${own}\r\n\r\n`,
    { status: 400, code: 'invalid', detail: /other\.example\/x" and names another host, "127/ },
  ],
  [
    'a target that is no path',
    `OPTIONS * HTTP/1.1\r\n${own}\r\n\r\n`,
    { status: 400, code: 'invalid', detail: /begins with \/, not "\*"$/ },
  ],
  [
    'an upgrade with two Host headers',
    `GET /v1/client HTTP/1.1\r\n${own}\r\n${own}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n`,
    { status: 400, code: 'invalid', detail: /has one Host header, and this one has 2$/ },
  ],
  [
    'no HTTP at all',
    'hello\r\n\r\n',
    { status: 400, code: 'invalid', detail: /^this is no request of HTTP\/1\.1: / },
  ],
  [
    'a length in words',
    `PUT /x HTTP/1.1\r\n${own}\r\nContent-Length: ten\r\n\r\n`,
    { status: 400, code: 'invalid', detail: /^this is no request of HTTP\/1\.1: / },
  ],
  [
    'a head that is too large',
    `GET /x HTTP/1.1\r\n${own}\r\nX: ${'a'.repeat(20_000)}`,
    { status: 431, code: 'too-large', detail: /at most 16384 bytes$/ },
  ],
  [
    'a body that is packed on its way',
    `PUT /x HTTP/1.1\r\n${own}\r\nTransfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n0\r\n\r\n`,
    { status: 501, code: 'invalid', detail: /says "gzip, chunked", not chunked alone$/ },
  ],
  [
    'a tunnel',
    `CONNECT other.example:443 HTTP/1.1\r\n${own}\r\n\r\n`,
    { status: 405, code: 'invalid', detail: /^this is no proxy, and CONNECT opens no tunnel here/ },
  ],
  [
    'an expectation that nobody knows',
    `GET /x HTTP/1.1\r\n${own}\r\nExpect: wonders\r\nConnection: close\r\n\r\n`,
    { status: 417, code: 'invalid', detail: /"wonders", only of 100-continue$/ },
  ],
])('%s is refused with a problem, and counted', async (_title, words, expected) => {
  const bound = await start()
  const { status, type, body } = await say(bound, words)
  expect({ status, type }).toEqual({ status: expected.status, type: 'application/problem+json' })
  const problem: unknown = JSON.parse(body)
  expect(problem).toMatchObject({
    ...{ status: expected.status, code: expected.code },
    detail: expect.stringMatching(expected.detail),
  })
  expect(malformedCount(bound)).toBe(1)
})

test('a head that does not come to its end is answered with 408 and a problem', async () => {
  const { status, body } = await say(await start(100), `GET /x HTTP/1.1\r\n${own}\r\nX: `)
  expect(status).toBe(408)
  expect(JSON.parse(body)).toMatchObject({ status: 408, code: 'timeout' })
})

test('a body that does not come is answered with 408 and a problem', async () => {
  const bound = await start()
  const words = `PUT /body HTTP/1.1\r\n${own}\r\nContent-Length: 1000\r\n\r\n`
  const { status, type, body } = await say(bound, words)
  expect({ status, type }).toEqual({ status: 408, type: 'application/problem+json' })
  expect(JSON.parse(body)).toMatchObject({
    ...{ status: 408, code: 'timeout', retry: 'check-first' },
    detail: expect.stringContaining(
      'the body came too slowly, after 5 s with less than 8192 bytes',
    ),
  })
  await vi.waitFor(() => expect(bound.connections.count('stranger')).toBe(0))
})

test('a WebSocket at a path that takes none is answered with 404 and a problem', async () => {
  const bound = await start()
  onTestFinished(routeUpgrades(bound.server, '/v1/client', () => undefined))
  const key = 'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13'
  const head = (path: string, more: string): string =>
    `GET ${path} HTTP/1.1\r\n${own}\r\n${key}\r\n${more}\r\n`
  const sent = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  const unknown = await say(bound, head('/v1/nothing', sent))
  expect({ ...unknown, body: JSON.parse(unknown.body) }).toMatchObject({
    ...{ status: 404, type: 'application/problem+json' },
    body: {
      ...{
        type: 'urn:trilithon:problem:not-found',
        status: 404,
        code: 'not-found',
        retry: 'never',
      },
      detail:
        'no WebSocket is taken at "/v1/nothing" now; clients dial /v1/client, and nodes /v1/peer',
    },
  })
  const none = await say(bound, head('/v1/client', ''))
  expect({ ...none, body: JSON.parse(none.body) }).toMatchObject({
    ...{ status: 400, type: 'application/problem+json' },
    body: { code: 'invalid', detail: expect.stringMatching(/^this opens no WebSocket: /) },
  })
})

test('a whole URL of this host, and HTTP/1.0 without a host, are requests like any other', async () => {
  const bound = await start()
  const whole = `GET http://127.0.0.1/x HTTP/1.1\r\n${own}\r\nConnection: close\r\n\r\n`
  expect(await say(bound, whole)).toMatchObject({
    status: 200,
    body: expect.stringContaining('/x'),
  })
  const old = `GET /y HTTP/1.0\r\n${own}\r\n\r\n`
  expect(await say(bound, old)).toMatchObject({ status: 200, body: '/y' })
  expect(malformedCount(bound)).toBe(0)
})

test('a TLS listener ends a connection that speaks no TLS, without an answer', async () => {
  const bound = await start(defaultTimes.headMs, { cert, key })
  const { status, body } = await say(bound, `GET /x HTTP/1.1\r\n${own}\r\n\r\n`)
  expect({ status, body }).toEqual({ status: Number.NaN, body: '' })
  expect(malformedCount(bound)).toBe(0)
  await vi.waitFor(() => expect(bound.connections.count('stranger')).toBe(0))
})

test('bad bytes behind a running request end the connection after its own answer', async () => {
  const bound = await start()
  const first = `GET /slow HTTP/1.1\r\n${own}\r\n\r\n`
  expect(await say(bound, `${first}no request\r\n\r\n`)).toMatchObject({
    ...{ status: 200, body: '/slow' },
  })
  await vi.waitFor(() => expect(bound.connections.count('stranger')).toBe(0))
})

test('a request whose body is malformed is answered itself', async () => {
  const head = `PUT /slow HTTP/1.1\r\n${own}\r\nTransfer-Encoding: chunked\r\n\r\n`
  const { status, body } = await say(await start(), `${head}zz\r\n`)
  expect(status).toBe(400)
  expect(JSON.parse(body)).toMatchObject({ code: 'invalid' })
})
