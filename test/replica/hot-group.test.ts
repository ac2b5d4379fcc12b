/** One group that a thousand write to at a time: three nodes on LevelDB, on real connections. */
import { OrderedJournal } from '../../src/journal/ordered-journal.ts'
import { createServer, type Server } from 'node:http'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { WsPeerTransport } from '../../src/adapters/ws-peers.ts'
import { clusterId, groupOfBytes, nodeId, type NodeId } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { staticPlacement } from '../../src/placement/placement.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { Driver } from '../../src/replica/driver.ts'
import type { Outcome } from '../../src/group/replica-port.ts'
import type { PeerFrame } from '../../src/replication/message.ts'
import { decodePeerFrame, encodePeerFrame } from '../../src/wire/peer/peer-codec.ts'
import { disks, type Disk } from '../store/stores.ts'

const cluster = clusterId('test')
const group = groupOfBytes(Buffer.from('hot'))
const names = ['n1', 'n2', 'n3'].map(nodeId)
const timeoutMs = 20_000
const writers = 1_000
const rounds = 2

interface Listening {
  readonly node: NodeId
  readonly server: Server
  readonly url: string
}

async function listen(node: NodeId): Promise<Listening> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  return { node, server, url: `ws://127.0.0.1:${port}` }
}

async function start(
  { node, server }: Listening,
  all: readonly Listening[],
  made: Disk[],
): Promise<Driver> {
  const [, makeDisk] = disks.find(([name]) => name === 'LevelDB') ?? []
  if (makeDisk === undefined) throw new Error('there is no LevelDB')
  const [log, data] = [await makeDisk(), await makeDisk()]
  made.push(log, data)
  const peers = new WsPeerTransport<PeerFrame>({
    ...{ node, cluster, server, secret: '', queueBytesMax: 64 * 1024 * 1024 },
    peers: all.filter((one) => one.node !== node),
    ...{ clock: systemClock, random: systemRandom, log: () => undefined },
    codec: { encode: encodePeerFrame, decode: decodePeerFrame },
  })
  const stores = { log: new OrderedJournal(await log.open()), data: await data.open() }
  const ports = { clock: systemClock, random: systemRandom, trace: silentTrace, ...stores, peers }
  const placement = staticPlacement(names)
  const driver = await Driver.open(ports, { node, cluster, placement, limits: defaultLimits })
  await driver.start()
  return driver
}

/** Reads its own row and writes it: each time in a session of its own, at another node. */
async function write(driver: Driver, writer: number, round: number): Promise<Outcome> {
  const key = Buffer.from(`row ${writer}`)
  const { position: readPosition } = await driver.read(group, 'current', timeoutMs)
  const seen = driver.get(group, key)?.value.toString()
  const isAsLeft = (seen === undefined) === (round === 0)
  expect(isAsLeft).toBe(true)
  const expiresAt = systemClock.wallMicros() + 600_000_000
  const intent = { session: `${writer}/${round}`, sequence: 1, floor: 1, expiresAt }
  const mutations = [{ key, value: Buffer.from(String(round)) }]
  const content = { readPosition, reads: [key], ranges: [], allocations: [], mutations }
  return driver.submit({ group, intent, attempt: 1, ...content }, timeoutMs)
}

test('TXN-1: a thousand writers of a group, through all nodes, commit at their first try', async () => {
  const listening = await Promise.all(names.map(listen))
  const made: Disk[] = []
  const drivers: Driver[] = []
  try {
    for (const one of listening) drivers.push(await start(one, listening, made))
    const counts = new Map<string, number>()
    const writer = async (number: number): Promise<void> => {
      for (let round = 0; round < rounds; round++) {
        const driver = drivers[(number + round) % drivers.length]
        const outcome = driver && (await write(driver, number, round))
        const kind = outcome?.kind ?? 'nobody'
        counts.set(kind, (counts.get(kind) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: writers }, (_, number) => writer(number)))
    expect(Object.fromEntries(counts)).toEqual({ committed: writers * rounds })
  } finally {
    for (const driver of drivers) await driver.stop()
    for (const { server } of listening) server.close()
    for (const disk of made) await disk.remove()
  }
})
