import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { WsClientListener } from '../../src/adapters/ws-clients.ts'
import { clusterId, nodeId } from '../../src/base/ids.ts'
import { cellBytesMax } from '../../src/base/limits.ts'
import { ClientServer } from '../../src/node/client-server.ts'
import { CellStore } from '../../src/cells/cell-store.ts'
import type { LinkInfo } from '../../src/ports/transport.ts'
import type { ClientFrame, SetList } from '../../src/wire/client/client-message.ts'
import { connect, StoreError } from '../../src/index.ts'
import { WorklistService } from '../../src/worklist/worklist-service.ts'
import { GroupService } from '../../src/txn/group-service.ts'
import { decodeClientFrame, encodeClientFrame } from '../../src/wire/client/client-codec.ts'
import { noteBug } from '../bugs.ts'
import { rowKey } from '../cells/kit.ts'
import { MemoryLog } from '../cells/memory-log.ts'
import { MemoryReplica } from '../cells/memory-replica.ts'

const cleanups: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** Lists that a node tells, by the URLs of all nodes once those are known. */
type Lists = () => readonly SetList[]

interface RealNode {
  readonly url: string
  stop(): Promise<void>
}

async function startNode(
  log: MemoryLog,
  name: string,
  secret = '',
  lists?: Lists,
): Promise<RealNode> {
  const server = createServer()
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const transport = new WsClientListener<ClientFrame>({
    ...{ node: nodeId(name), cluster: clusterId('test'), server, clientsMax: 10, secret },
    ...{ clock: systemClock, random: systemRandom, queueBytesMax: 64 * 1024 * 1024 },
    codec: { encode: encodeClientFrame, decode: decodeClientFrame },
    log: () => undefined,
  })
  const replica = new MemoryReplica(log, systemClock)
  const clock = systemClock
  const cells = new CellStore({ replica, clock, random: systemRandom })
  const groups = new GroupService({ replica, clock })
  const worklists = new WorklistService({
    replica,
    clock,
    random: systemRandom,
    node: nodeId(name),
  })
  const status = (): { readonly node: string } => ({ node: name })
  const parts = { transport, cells, groups, worklists, clock, status, noteBug }
  new ClientServer({
    ...parts,
    ...(lists !== undefined && {
      lists: {
        open: (client: string, { followsNodes }: LinkInfo) => {
          if (followsNodes === true) transport.send(client, { kind: 'nodes', sets: lists() })
        },
        close: () => undefined,
      },
    }),
  }).start()
  let isStopped = false
  const stop = async (): Promise<void> => {
    if (isStopped) return
    isStopped = true
    await transport.close()
    await closed(server)
  }
  cleanups.push(stop)
  return { url: urlOf(server.address()), stop }
}

function urlOf(address: AddressInfo | string | null): string {
  return typeof address === 'object' ? `http://127.0.0.1:${address?.port ?? 0}` : ''
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => void server.close(() => resolve()))
}

const base = { rowKey: rowKey(1), column: 'BASE', refKey: 0 }

test('a client puts and reads over real sockets, large cells too, and goes on when a node goes', async () => {
  const log = new MemoryLog()
  const nodes = [await startNode(log, 'n1'), await startNode(log, 'n2')]
  const client = await connect({ endpoints: nodes.map(({ url }) => url), timeoutMs: 5_000 })
  cleanups.push(() => client.close())
  const cells = client.cells('trips')
  expect(await cells.put({ ...base, body: { fare: 12.5 } })).toMatchObject({ addedId: 1 })
  const large = 'x'.repeat(cellBytesMax - 2)
  const many = [1, 2, 3, 4, 5, 6].map((refKey) => cells.put({ ...base, refKey, body: large }))
  expect((await Promise.all(many)).every(({ created }) => created)).toBe(true)
  expect((await cells.versions(base.rowKey, 'BASE', { cursor: 1 })).items).toHaveLength(3)
  const status = JSON.stringify(await client.status())
  await nodes[status.includes('n1') ? 0 : 1]?.stop()
  expect(await cells.get(base)).toMatchObject({ body: { fare: 12.5 } })
  expect(await cells.put({ ...base, refKey: 9, body: 1 })).toMatchObject({ addedId: 8 })
})

test('a client of another secret hears so at once, as forbidden, and of which address', async () => {
  const { url } = await startNode(new MemoryLog(), 'n1', 'a secret of this cluster')
  for (const [secret, said] of [
    ['short', 'has 5 characters; at least 16'],
    ['a sécret of this cluster', 'has U+00E9 as its character 4, and is to be printable ASCII'],
    ['a secret of this cluster\n', 'has a line break as its character 25'],
  ] as const) {
    await expect(connect({ endpoints: [url], secret })).rejects.toMatchObject({
      ...{ code: 'invalid', message: expect.stringContaining(said) },
    })
  }
  const client = await connect({
    endpoints: [url],
    secret: 'another secret than that',
    timeoutMs: 60_000,
  })
  cleanups.push(() => client.close())
  for (let nth = 0; nth < 2; nth++) {
    const refused = client.cells('trips').get(base)
    await expect(refused).rejects.toMatchObject({
      ...{ code: 'forbidden', retry: 'never' },
      message: expect.stringContaining(`${url} (node n1): secret: `),
    })
  }
})

test('a signal that is aborted makes no client, and one that is aborted later closes it', async () => {
  const { url } = await startNode(new MemoryLog(), 'n1')
  const nodes = [url]
  const gone = new Error('the page was left')
  const early = connect({ endpoints: nodes, signal: AbortSignal.abort(gone) })
  await expect(early).rejects.toMatchObject({ code: 'closed', cause: gone })
  const controller = new AbortController()
  const client = await connect({ endpoints: nodes, signal: controller.signal, timeoutMs: 5_000 })
  cleanups.push(() => client.close())
  expect(await client.cells('trips').put({ ...base, body: 1 })).toMatchObject({ created: true })
  const waiting = client.cells('trips').shardLogs([{ kind: 'after', shard: 1, addedId: 0 }], {
    waitMs: 60_000,
  })
  controller.abort(gone)
  await expect(waiting).rejects.toMatchObject({ code: 'closed' })
  await expect(client.cells('trips').get(base)).rejects.toMatchObject({ code: 'closed' })
  // @ts-expect-error: text is no signal
  await expect(connect({ endpoints: nodes, signal: 'now' })).rejects.toMatchObject({
    ...{ code: 'invalid', message: 'connect: signal is "now"; expected an AbortSignal' },
  })
})

test('when no node listens, the client says so when its time is up', async () => {
  const node = await startNode(new MemoryLog(), 'n1')
  await node.stop()
  const client = await connect({ endpoints: [node.url], timeoutMs: 300 })
  cleanups.push(() => client.close())
  await expect(client.cells('trips').get(base)).rejects.toMatchObject({
    ...{ code: 'unavailable', message: expect.stringContaining('no node could be reached') },
  })
})

test.each([[[]], [['localhost:4700']], [['ftp://x']], [['']]])(
  'addresses that are none are refused: %j',
  async (nodes) => {
    await expect(connect({ endpoints: nodes })).rejects.toThrow(StoreError)
  },
)

/** Two nodes with the same cells: each tells of both, the second one at the address that `tell` makes of its own. */
async function startTwo(
  tell: (url: string) => string = (url) => url,
): Promise<readonly RealNode[]> {
  const log = new MemoryLog()
  const nodes: RealNode[] = []
  const lists = (): readonly SetList[] => [
    {
      ...{ set: 0, epoch: 1 },
      nodes: nodes.map(({ url }, nth) => {
        return { node: nodeId(`n${nth + 1}`), url: nth === 0 ? url : tell(url) }
      }),
    },
  ]
  const secret = 'a secret of this cluster'
  for (const name of ['n1', 'n2']) nodes.push(await startNode(log, name, secret, lists))
  return nodes
}

test('MAP-1: a client of one address goes on by the other node when the one of that address is gone', async () => {
  const [first, second] = await startTwo()
  const given = { secret: 'a secret of this cluster', timeoutMs: 3_000 }
  const client = await connect({ endpoints: [first?.url ?? ''], ...given })
  const alone = await connect({ endpoints: [first?.url ?? ''], ...given, follow: false })
  for (const one of [client, alone]) cleanups.push(() => one.close())
  await Promise.all([client, alone].map((one) => one.cells('trips').put({ ...base, body: 1 })))
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  await first?.stop()
  expect(await client.cells('trips').get(base)).toMatchObject({ body: 1 })
  await expect(alone.cells('trips').get(base)).rejects.toMatchObject({ code: 'unavailable' })
  await second?.stop()
  // Its message names the address that the application gave, and no other one.
  const lost = client.cells('trips').get(base, { timeoutMs: 500 })
  await expect(lost).rejects.toThrow(first?.url)
  await expect(client.cells('trips').get(base, { timeoutMs: 500 })).rejects.not.toThrow(second?.url)
})

test('a told address where another node answers gets no link, and the link with the teller stays', async () => {
  const stranger = await startNode(new MemoryLog(), 'n3', 'a secret of this cluster')
  const [first] = await startTwo(() => stranger.url)
  const client = await connect({
    endpoints: [first?.url ?? ''],
    ...{ secret: 'a secret of this cluster', timeoutMs: 1_000 },
  })
  cleanups.push(() => client.close())
  await client.cells('trips').put({ ...base, body: 1 })
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  for (let nth = 0; nth < 20; nth++) {
    expect(JSON.stringify(await client.status())).toContain('n1')
    expect(await client.cells('trips').get(base)).toMatchObject({ body: 1 })
  }
})
