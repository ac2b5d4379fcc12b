/** The transport contract, on WebSockets between nodes and from clients, and on the simulated network. */
import { createServer, type Server } from 'node:http'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { WsClientDialer, WsClientListener } from '../../src/adapters/ws-clients.ts'
import type { LinkContext } from '../../src/adapters/ws-link.ts'
import { WsPeerTransport } from '../../src/adapters/ws-peers.ts'
import { clusterId, nodeId } from '../../src/base/ids.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { Coverage } from '../../sim/coverage.ts'
import { Network } from '../../sim/world/network.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'
import { Weather } from '../../sim/world/weather.ts'
import { World } from '../../sim/world/world.ts'
import { transportContract, type TransportEnd, type TransportPair } from './transport.ts'

const patienceMs = 10_000

/** The long wait after a refusal is ten times shorter; everything else takes its time. */
const hastyClock: Clock = {
  ...systemClock,
  setTimer: (delayMs, run) => systemClock.setTimer(delayMs > 2_000 ? delayMs / 10 : delayMs, run),
}

const context: Omit<LinkContext<string>, 'counters'> = {
  codec: {
    encode: (frame) => Buffer.from(frame),
    decode: (bytes) => ({ ok: true, frame: Buffer.from(bytes).toString() }),
  },
  ...{ clock: hastyClock, random: systemRandom, secret: 'shared secret', log: () => undefined },
  queueBytesMax: 16 * 1024 * 1024,
}

const servers: Server[] = []

async function listen(): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer((_, response) => response.writeHead(404).end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  servers.push(server)
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return { server, url: `http://127.0.0.1:${port}` }
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms))
}

async function untilReal(isSo: () => boolean): Promise<void> {
  const end = performance.now() + patienceMs
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`not so within ${patienceMs} ms: ${String(isSo)}`)
    await pause(5)
  }
}

function realPair(dialer: TransportEnd, listener: TransportEnd): TransportPair {
  return {
    ...{ dialer, listener, until: untilReal },
    idle: () => pause(100),
    remove: async () => {
      for (const server of servers.splice(0)) {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    },
  }
}

transportContract('links between nodes, over WebSockets', async () => {
  const [one, two] = [await listen(), await listen()]
  const peers = [
    { node: nodeId('n1'), url: one.url },
    { node: nodeId('n2'), url: two.url },
  ]
  const cluster = clusterId('c')
  const end = (name: string, server: Server): TransportEnd => ({
    make: () => new WsPeerTransport({ ...context, node: nodeId(name), cluster, server, peers }),
    tellsInfo: true,
  })
  return realPair(end('n1', one.server), end('n2', two.server))
})

transportContract('links of clients, over WebSockets', async () => {
  const { server, url } = await listen()
  const names = { node: nodeId('n1'), cluster: clusterId('c') }
  return realPair(
    {
      make: () => new WsClientDialer({ ...context, urls: [url] }),
      tellsInfo: false,
    },
    {
      make: () => new WsClientListener({ ...context, ...names, server, clientsMax: 10 }),
      tellsInfo: false,
    },
  )
})

const secondMicros = 1_000_000

transportContract('the simulated network', () => {
  const world = new World(1, 1_000_000)
  const weather = new Weather({
    ...{ delayMinMicros: 100, delayMeanMicros: 500, tail: 0, tailFactor: 10 },
    ...{ reorder: 0, drop: 0, duplicate: 0, late: 0, lateMeanMicros: 0, survive: 0 },
    ...{ noticeMeanMicros: 1_000, reconnectMeanMicros: 1_000, framesUnderWayMax: 1_000 },
  })
  const network = new Network<string>({
    ...{ world, weather, coverage: new Coverage(), name: 'peers' },
    codec: {
      encode: (frame) => Buffer.from(frame),
      decode: (bytes) => Buffer.from(bytes).toString(),
    },
    observer: { onSent: () => undefined, onDelivered: () => undefined },
  })
  const end = (name: string, dials: readonly string[]): TransportEnd => ({
    make: () => network.attach(new SimProcess(world, name), dials),
    tellsInfo: true,
  })
  const until = async (isSo: () => boolean): Promise<void> => {
    const ending = await world.run(isSo, world.nowMicros + 60 * secondMicros)
    if (ending !== 'done') throw new Error(`not so at the ${ending}: ${String(isSo)}`)
  }
  return Promise.resolve({
    ...{ dialer: end('n1', ['n2']), listener: end('n2', []), until },
    idle: async () => void (await world.run(() => false, world.nowMicros + secondMicros)),
    remove: () => Promise.resolve(),
  })
})
