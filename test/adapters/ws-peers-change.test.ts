/** Peers that come and go while a node runs: links are dialled and ended, and strangers still hear why they get none. */
import { createServer, type Server } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { WsPeerTransport } from '../../src/adapters/ws-peers.ts'
import { clusterId, nodeId } from '../../src/base/ids.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { PeerAddress } from '../../src/ports/transport.ts'

/** Timers of more than two seconds run 25 times as fast. */
const hastyClock: Clock = {
  ...systemClock,
  setTimer: (delayMs, run) => systemClock.setTimer(delayMs > 2_000 ? delayMs / 25 : delayMs, run),
}

const ends: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

interface Place {
  readonly server: Server
  readonly url: string
}

async function listening(): Promise<Place> {
  const server = createServer((_, response) => response.end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return { server, url: `http://127.0.0.1:${port}` }
}

/** A node that admits the peers of its list alone, as `Admission` does, and keeps what it hears. */
class End {
  readonly transport: WsPeerTransport<string>
  readonly lines: string[] = []
  #list: readonly string[]

  constructor(
    name: string,
    { server }: Place,
    urls: Readonly<Record<string, string>>,
    clientUrl?: string,
  ) {
    this.#list = Object.keys(urls)
    this.transport = new WsPeerTransport<string>({
      ...{ node: nodeId(name), cluster: clusterId('c'), server, secret: 'shared secret' },
      codec: {
        encode: (frame) => Buffer.from(frame),
        decode: (bytes) => ({ ok: true, frame: Buffer.from(bytes).toString() }),
      },
      peers: Object.entries(urls).map(([id, url]) => ({ node: nodeId(id), url })),
      ...{ clock: hastyClock, random: systemRandom, queueBytesMax: 1_048_576 },
      ...(clientUrl !== undefined && { clientUrl }),
      log: () => undefined,
    })
    this.transport.onClientUrl = () => this.lines.push('an address for clients')
    ends.push(() => this.transport.close())
  }

  start(): this {
    this.transport.start({
      self: () => ({}),
      admit: (peer) => (this.#list.includes(peer) ? undefined : `removed-node: ${peer}`),
      onRefused: (peer, reason) => this.lines.push(`refused by ${peer}: ${reason}`),
      onLink: (peer, state) => this.lines.push(`${state} ${peer}`),
      onFrame: (from, frame) => this.lines.push(`${from}: ${frame}`),
    })
    return this
  }

  setPeers(...peers: readonly (string | PeerAddress)[]): void {
    const all = peers.map((one) => (typeof one === 'string' ? { node: one, url: undefined } : one))
    this.#list = all.map(({ node }) => node)
    this.transport.setPeers(all)
  }

  async until(line: string, times = 1): Promise<void> {
    const endMs = performance.now() + 8_000
    while (this.lines.filter((one) => one.includes(line)).length < times) {
      if (performance.now() > endMs) throw new Error(`no "${line}" in ${this.lines.join('; ')}`)
      await pause(5)
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

test('a peer that is added is dialled by the one with the smaller id, whichever hears of it first', async () => {
  const [one, two, three] = [await listening(), await listening(), await listening()]
  const a = new End('n1', one, { n1: one.url, n2: two.url }).start()
  const b = new End('n2', two, { n1: one.url, n2: two.url }).start()
  await a.until('up n2')
  const c = new End('n3', three, { n1: one.url, n2: two.url, n3: three.url }).start()
  a.setPeers('n2', { node: 'n3', url: three.url })
  await Promise.all([a.until('up n3'), c.until('up n1')])
  b.setPeers('n1', { node: 'n3', url: three.url })
  await Promise.all([b.until('up n3'), c.until('up n2')])
  expect(a.transport.send('n3', 'hello')).toBe(true)
  await c.until('n1: hello')
  expect(a.lines).toEqual(['up n2', 'up n3'])
})

test('the same list again does nothing, and one before the start is the list of the start', async () => {
  const [one, two, three] = [await listening(), await listening(), await listening()]
  const urls = { n1: one.url, n2: two.url }
  const a = new End('n1', one, urls)
  a.setPeers('n2', { node: 'n3', url: three.url })
  a.start()
  const b = new End('n2', two, urls).start()
  new End('n3', three, { n1: one.url, n3: three.url }).start()
  await Promise.all([a.until('up n2'), a.until('up n3')])
  for (let times = 0; times < 3; times++) a.setPeers({ node: 'n3', url: three.url }, 'n2')
  await pause(200)
  expect(a.lines.toSorted()).toEqual(['up n2', 'up n3'])
  expect(b.lines).toEqual(['up n1'])
  expect(a.transport.peerUrls).toEqual(
    new Map([
      ['n3', three.url],
      ['n2', two.url],
    ]),
  )
})

test.each([
  ['n1', 'n2', 'which it had dialled'],
  ['n2', 'n1', 'which had dialled it'],
])('%s that removes %s, %s, ends the link, and says why there is none', async (by, removed) => {
  const [one, two] = [await listening(), await listening()]
  const urls = { n1: one.url, n2: two.url }
  const all = new Map([
    ['n1', new End('n1', one, urls).start()],
    ['n2', new End('n2', two, urls).start()],
  ])
  const [remover, gone] = [all.get(by), all.get(removed)]
  if (remover === undefined || gone === undefined) return expect.fail('there are two')
  await Promise.all([remover.until('up'), gone.until('up')])
  remover.setPeers()
  await Promise.all([remover.until('down'), gone.until('down')])
  expect(remover.transport.isUp(removed)).toBe(false)
  expect(remover.transport.send(removed, 'late')).toBe(false)
  await gone.until(`refused by ${by}: removed-node: ${removed}`)
  await pause(100)
  expect(remover.transport.troubles).toEqual(new Map())
  expect(remover.lines.filter((line) => line.startsWith('up'))).toEqual([`up ${removed}`])
  remover.setPeers(removed)
  await Promise.all([remover.until('up', 2), gone.until('up', 2)])
})

test('a peer with another address is dialled there', async () => {
  const [one, two, other] = [await listening(), await listening(), await listening()]
  const urls = { n1: one.url, n2: two.url }
  const a = new End('n1', one, urls).start()
  const b = new End('n2', two, urls).start()
  await a.until('up n2')
  const moved = new End('n2', other, urls).start()
  a.setPeers({ node: 'n2', url: other.url })
  await Promise.all([a.until('down n2'), b.until('down n1')])
  await Promise.all([a.until('up n2', 2), moved.until('up n1')])
  expect(b.lines).toEqual(['up n1', 'down n1'])
})

test('the reason why a removed peer had no link is forgotten with it', async () => {
  const [one, two] = [await listening(), await listening()]
  const a = new End('n1', one, { n1: one.url, n2: two.url }).start()
  const endMs = performance.now() + 8_000
  while (a.transport.troubles.size === 0 && performance.now() < endMs) await pause(5)
  expect([...a.transport.troubles.keys()]).toEqual(['n2'])
  a.setPeers()
  await pause(300)
  expect(a.transport.troubles).toEqual(new Map())
})

test('a peer says where clients reach it, and that address is forgotten with the peer', async () => {
  const [one, two, three] = [await listening(), await listening(), await listening()]
  const urls = { n1: one.url, n2: two.url, n3: three.url }
  const ends = [
    new End('n1', one, urls).start(),
    new End('n2', two, urls, 'https://n2.example').start(),
    new End('n3', three, urls).start(),
  ]
  const [n1] = ends
  await n1?.until('up n2')
  await n1?.until('up n3')
  expect(n1?.transport.clientUrls).toEqual(new Map([['n2', 'https://n2.example']]))
  expect(n1?.lines.filter((line) => line.startsWith('an address'))).toHaveLength(1)
  n1?.setPeers('n3')
  expect(n1?.transport.clientUrls).toEqual(new Map())
})
