/**
 * A refusal names the node that refuses. A program that names the addresses itself reads them in its
 * errors. Nodes and gateways call one another by their ids: their addresses are nothing for their callers.
 */
import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { WsClientListener } from '../../src/adapters/ws-clients.ts'
import { WsPeerTransport } from '../../src/adapters/ws-peers.ts'
import { clusterId, nodeId } from '../../src/base/ids.ts'
import { connect, type ConnectOptions } from '../../src/client/connect.ts'
import { gatewayReport } from '../../src/gateway/gateway-status.ts'
import { decodeClientFrame, encodeClientFrame } from '../../src/wire/client/client-codec.ts'

const cluster = clusterId('c')
const secret = 'what all of them know'
const ports = { cluster, clock: systemClock, random: systemRandom, queueBytesMax: 1024 * 1024 }
/** A scheme, an IPv4 address, or a port. */
const address = /https?:|wss?:|\d+\.\d+\.\d+\.\d+|localhost|:\d{2,5}\b/

async function startServer(status = 404): Promise<{
  readonly server: ReturnType<typeof createServer>
  readonly url: string
}> {
  const server = createServer((_, response) => response.writeHead(status).end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const at = server.address()
  return { server, url: `http://127.0.0.1:${typeof at === 'object' ? at?.port : 0}` }
}

/** A node `n1` that takes a given number of clients. */
async function startListener(clientsMax: number): Promise<string> {
  const { server, url } = await startServer()
  const listener = new WsClientListener({
    ...{ ...ports, node: nodeId('n1'), server, secret, clientsMax, log: () => undefined },
    codec: { encode: encodeClientFrame, decode: decodeClientFrame },
  })
  listener.start({
    ...{ self: () => ({}), admit: () => undefined, onRefused: () => undefined },
    ...{ onLink: () => undefined, onFrame: () => undefined },
  })
  onTestFinished(() => listener.close())
  return url
}

test.each<readonly [string, Omit<ConnectOptions, 'endpoints'>, number, RegExp]>([
  [
    'of another secret',
    { secret: 'a guess that is long enough' },
    9,
    /^no node takes this client: URL: secret: /,
  ],
  ['of no secret', {}, 9, /^no node takes this client: URL: secret: .*this client gives none/],
  ['of another cluster', { secret, cluster: 'other' }, 9, /^no node takes .*: URL: cluster: /],
  ['for whom is no room', { secret }, 0, /^no node could be reached in time: URL: overloaded: /],
])(
  'a client %s is told by which node it is refused, where that listens, and why',
  async (...row) => {
    const [, options, clientsMax, expected] = row
    const url = await startListener(clientsMax)
    const client = await connect({ ...options, endpoints: [url] })
    onTestFinished(() => client.close())
    const group = { rowKey: '0b5c1a52-1f5e-4d0c-8d2b-3c6a0d1e7f00', column: 'BASE', refKey: 0 }
    const error: unknown = await client
      .cells('x')
      .get(group, { timeoutMs: 700 })
      .catch((reason: unknown) => reason)
    if (!(error instanceof Error)) return expect.fail('it is refused')
    expect(error.message.replace(`${url} (node n1)`, 'URL')).toMatch(expected)
  },
)

test('a client of a server that is no node learns so at once', async () => {
  const { url } = await startServer(200)
  const client = await connect({ endpoints: [url] })
  onTestFinished(() => client.close())
  const error: unknown = await client
    .cells('x')
    .get(
      { rowKey: '0b5c1a52-1f5e-4d0c-8d2b-3c6a0d1e7f00', column: 'BASE', refKey: 0 },
      { timeoutMs: 60_000 },
    )
    .catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: 'invalid', retry: 'never' })
  expect(String(error)).toContain(`${url}: it is no trilithon node or gateway: it answers HTTP 200`)
})

/** Node `name`, which refuses a peer called `unwanted`, and dials `peers`. */
async function startPeer(
  name: string,
  refuses: boolean,
  peers: Readonly<Record<string, string>>,
): Promise<{ readonly url: string; readonly told: string[]; readonly log: string[] }> {
  const { server, url } = await startServer()
  const [told, log]: [string[], string[]] = [[], []]
  const transport = new WsPeerTransport<string>({
    ...{ ...ports, node: nodeId(name), server, secret },
    codec: { encode: (frame) => Buffer.from(frame), decode: () => ({ ok: true, frame: '' }) },
    peers: Object.entries(peers).map(([id, at]) => ({ node: nodeId(id), url: at })),
    log: (message, detail) => log.push(`${message} ${JSON.stringify(detail)}`),
  })
  transport.start({
    self: () => ({ storeId: 's', incarnation: 1, durableFlush: 1 }),
    admit: () => (refuses ? 'stale-disk: its log has come further' : undefined),
    onRefused: (peer, reason) => told.push(`${peer}: ${reason}`),
    ...{ onLink: () => undefined, onFrame: () => undefined },
  })
  onTestFinished(() => transport.close())
  return { url, told, log }
}

test.each([
  ['dialled', true, false],
  ['that dialled', false, true],
])('a node learns the id of the %s that refuses it', async (_, ...refuses) => {
  const [listenerRefuses, dialerRefuses] = refuses
  const listener = await startPeer('n2', listenerRefuses, {})
  const dialer = await startPeer('n1', dialerRefuses, { n2: listener.url })
  const [refused, other] = listenerRefuses ? [dialer, 'n2'] : [listener, 'n1']
  await expect.poll(() => refused.told, { timeout: 5_000 }).not.toEqual([])
  expect(refused.told[0]).toBe(`${other}: stale-disk: its log has come further`)
  const line = refused.log.find((one) => one.startsWith('refused by the other side'))
  expect(line).toContain(`"node":"${other}"`)
  expect(dialer.log.join()).not.toMatch(address)
})

test('a gateway names a node that it has met by its id', () => {
  const endpoint = 'http://10.1.2.3:4700'
  const tries = { answered: 1, failed: 0, lost: 0, inconclusive: 0 }
  const link = { endpoint, node: 'n1', breaker: 'open', opened: 1, tries } as const
  const parts = {
    ...({ name: 'g', cluster: 'c', version: '0', url: '', state: 'running', uptimeMs: 0 } as const),
    ...{ nodes: [endpoint], requests: 0, requestBytes: 0, clients: 0 },
    held: { waiting: { writes: 0, reads: 0 }, refused: { writes: 0, reads: 0 } },
  } as const
  for (const isUp of [true, false]) {
    const { messages } = gatewayReport({ ...parts, links: [{ ...link, isUp }] })
    expect(messages).toEqual([expect.stringMatching(/^node n1 /)])
    expect(messages.join()).not.toMatch(address)
  }
})
