/** The words that a program and the command get for an address that gives no link: which address, and why. */
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { causeOfError, causeOfStatus } from '../../src/adapters/link-causes.ts'
import { connect, StoreError } from '../../src/index.ts'
import { encodeHandshake, protocolMax } from '../../src/wire/handshake.ts'
import { runProgram } from '../cluster/harness.ts'
import { cert, expired, key } from '../node/tls-kit.ts'

const cell = { rowKey: '0b5c1a52-1f5e-4d0c-8d2b-3c6a0d1e7f00', column: 'BASE', refKey: 0 }
/** Long enough that a call which ends before it has not waited for it. */
const longMs = 60_000

const closings: (() => unknown)[] = []
afterAll(() => Promise.all(closings.map((close) => close())))

async function listening(server: Server, host = '127.0.0.1'): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  closings.push(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  const at: AddressInfo | string | null = server.address()
  return `${host}:${typeof at === 'object' ? at?.port : 0}`
}

async function failureOf(nodes: readonly string[], timeoutMs = longMs): Promise<StoreError> {
  const client = await connect({ endpoints: nodes, timeoutMs })
  try {
    const failed: unknown = await client
      .cells('x')
      .get(cell)
      .catch((error: unknown) => error)
    if (failed instanceof StoreError) return failed
    throw new Error('it is refused')
  } finally {
    await client.close()
  }
}

const answering =
  (status: number): RequestListener =>
  (_, response) =>
    response.writeHead(status).end()

/** A WebSocket server that says this to a hello. */
async function websockets(said?: Uint8Array): Promise<string> {
  const server = createHttpServer()
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    if (said !== undefined) socket.on('message', () => socket.send(said))
  })
  closings.push(() => sockets.close())
  return listening(server)
}

const newer = encodeHandshake({
  kind: 'hello',
  hello: {
    ...{ side: 'listener', role: 'node', cluster: 'c', node: 'n1', nonce: new Uint8Array(16) },
    ...{ protocolMin: protocolMax + 1, protocolMax: protocolMax + 1 },
  },
})

test.each<readonly [string, () => Promise<string>, string]>([
  [
    'a web server',
    async () => `http://${await listening(createHttpServer(answering(200)))}`,
    'it is no trilithon node or gateway: it answers HTTP 200',
  ],
  [
    'a plain port spoken to in TLS',
    async () => `https://${await listening(createHttpServer(answering(404)))}`,
    'it does not speak TLS (give http://)',
  ],
  [
    'a certificate that nobody vouches for',
    async () => `https://${await listening(createHttpsServer({ cert, key }))}`,
    'its certificate is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)',
  ],
  [
    'a server that speaks no HTTP',
    async () =>
      `http://${await listening(createServer((socket) => void socket.end('SSH-2.0-x\r\n')))}`,
    'what listens there does not speak HTTP (if it speaks TLS, give https://)',
  ],
  [
    'a WebSocket server that is another one',
    async () => `http://${await websockets(Buffer.from('hello'))}`,
    'what listens there is no trilithon node or gateway',
  ],
  [
    'a node of another version',
    async () => `http://${await websockets(newer)}`,
    `(node n1): protocol: this side speaks versions ${protocolMax} to ${protocolMax}, the other`,
  ],
])('%s is told of at once, and no retry is advised', async (_, start, said) => {
  const url = await start()
  const failed = await failureOf([url])
  expect(failed.message).toContain(said)
  expect(failed.message).toContain(url)
  expect(failed.message).not.toContain('try again')
  expect(failed).toMatchObject({ code: 'invalid', retry: 'never' })
})

// Together: each waits for as long as its call may take.
test.concurrent.each<readonly [string, () => Promise<string>, string]>([
  [
    'a port where nobody listens',
    async () => {
      const server = createServer()
      const at = await listening(server)
      await new Promise((resolve) => server.close(resolve))
      return `http://${at}`
    },
    'connection refused: nothing listens there',
  ],
  [
    'a TLS port spoken to in plain',
    async () => `http://${await listening(createHttpsServer({ cert, key }))}`,
    'it closed the connection without an answer (if it speaks TLS, give https://)',
  ],
  [
    'a proxy whose node is away',
    async () => `http://${await listening(createHttpServer(answering(502)))}`,
    'it answers HTTP 502, as a proxy does whose node is away',
  ],
  [
    'a load balancer that has no rule yet',
    async () => `http://${await listening(createHttpServer(answering(404)))}`,
    'it answers HTTP 404: it is another server, or a proxy that has no way to a node yet',
  ],
  [
    'a server that says nothing',
    async () => `http://${await listening(createServer())}`,
    'no answer in time',
  ],
])('%s may be reached later: the call waits, and its error says why', async (_, start, said) => {
  const url = await start()
  const timeoutMs = 2_600
  const before = performance.now()
  const failed = await failureOf([url], timeoutMs)
  expect(performance.now() - before).toBeGreaterThan(timeoutMs * 0.9)
  expect(failed.message).toContain(`${url}: ${said}`)
  expect(failed).toMatchObject({ code: 'unavailable', retry: 'safe' })
})

test('where one address may yet be reached, the call waits; its error tells of each address', async () => {
  const wrong = `http://${await listening(createHttpServer(answering(200)))}`
  const closing = createServer()
  const away = `http://${await listening(closing)}`
  await new Promise((resolve) => closing.close(resolve))
  const failed = await failureOf([away, wrong], 700)
  expect(failed).toMatchObject({ code: 'unavailable', retry: 'safe' })
  expect(failed.message).toContain(`${away}: connection refused`)
  expect(failed.message).toContain(`${wrong}: it is no trilithon node`)
  expect(failed.message).toMatch(/; try again$/)
})

test('one address that refuses the secret ends no call that another may yet take', async () => {
  const refusing = `http://${await websockets(
    encodeHandshake({ kind: 'refuse', reason: 'secret: the secrets of the two sides differ' }),
  )}`
  const starting = `http://${await listening(createHttpServer(answering(503)))}`
  const failed = await failureOf([starting, refusing], 700)
  expect(failed).toMatchObject({ code: 'unavailable', retry: 'safe' })
  expect(failed.message).toContain(`${refusing}: secret: `)
  const alone = await failureOf([refusing])
  expect(alone).toMatchObject({ code: 'forbidden', retry: 'never' })
})

const passing = [300, 301, 302, 307, 308, 404, 408, 421, 425, 426, 429, 500, 501, 502, 503, 504]

test.each(passing)('HTTP %i may be a proxy that finds its node later', (status) => {
  expect(causeOfStatus(status, false, 'http://db:4700').kind).toBe('waits')
})

test.each([200, 204, 400, 401, 405, 410])('HTTP %i is no answer of a way to a node', (status) => {
  expect(causeOfStatus(status, false, 'http://db:4700').kind).toBe('wrong')
})

test('errors of looking a host up name it', () => {
  const error = Object.assign(new Error('getaddrinfo ENOTFOUND db.invalid'), { code: 'ENOTFOUND' })
  expect(causeOfError(error, 'http://db.invalid:4700')).toEqual({
    kind: 'waits',
    reason: 'unknown host db.invalid (ENOTFOUND)',
  })
})

test('the command says the same, and ends with the code of it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-ca-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'ca.pem')
  await writeFile(file, Buffer.concat([cert, expired.cert]))
  const environment = { NODE_EXTRA_CA_CERTS: file }
  const get = (url: string): ReturnType<typeof runProgram> =>
    runProgram(
      [...['cells', 'get', cell.rowKey, 'BASE', '0', '-d', 'x'], '--url', url, '--timeout', '30'],
      { environment },
    )
  const otherName = `https://${await listening(createHttpsServer({ cert, key }), '127.0.0.2')}`
  const old = `https://${await listening(createHttpsServer(expired))}`
  const web = `http://${await listening(createHttpServer(answering(200)))}`
  for (const [url, said] of [
    [otherName, 'its certificate is for other names: '],
    [old, 'its certificate has expired'],
    [web, 'it is no trilithon node or gateway'],
  ] as const) {
    const { code, stdout, stderr } = await get(url)
    expect({ code, stdout }, stderr).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(`${url}: ${said}`)
    expect(stderr.trim().split('\n')).toHaveLength(1)
    const status = await runProgram(['status', '--url', url], { environment })
    expect({ ...status, code: 4 }, status.stderr).toEqual(status)
    expect(status.stderr).toContain(`${url}: ${said}`)
  }
})
