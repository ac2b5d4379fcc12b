/**
 * Drawn requests, most of them wrong, at real nodes and a real gateway: over client links, HTTP and a peer's
 * link, and through the client library. No process may end, every request is answered, none with `internal`,
 * and in the end the nodes serve as ever. FUZZ_REQUESTS and FUZZ_SEED draw more, or others:
 * `FUZZ_REQUESTS=100000 npm run test:long -- fuzz` takes a few minutes.
 */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildOverFew } from '../../sim/workloads/build-index.ts'
import { SeededRandom } from '../../sim/world/random.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { sha256 } from '../../src/base/bytes.ts'
import { isStoreErrorCode, StoreError } from '../../src/base/errors.ts'
import { connect } from '../../src/client/connect.ts'
import {
  eventually,
  patienceMs,
  startCluster,
  startGateway,
  type TestCluster,
  type TestGateway,
} from '../cluster/harness.ts'
import { applyPhotos, openPhotos } from '../client/known-calls.ts'
import { drawCall, make } from './calls.ts'
import { drawHttp, send } from './http.ts'
import { damagedPeerFrame, drawPeerFrame } from './peer-frames.ts'
import { asClient, RawLink } from './raw-link.ts'
import { drawRequest } from './requests.ts'

const requests = Number(process.env['FUZZ_REQUESTS'] ?? 20_000)
const seed = process.env['FUZZ_SEED'] ?? '1'
const timeoutMs = 600_000
const fields = [
  { field: 'k', type: 'string' },
  { field: 'd', type: 'datetime' },
  { field: 'n', type: 'integer' },
  { field: 't', type: 'string' },
]
const index = { table: 'ix', datastore: 'fuzz', column_defs: [{ column_key: 'B', fields }] }

let cluster: TestCluster
let gateway: TestGateway
beforeAll(async () => {
  cluster = await startCluster()
  gateway = await startGateway(cluster.urls)
  const client = await connect({ endpoints: cluster.urls, timeoutMs: patienceMs })
  try {
    await client.cells(index.datastore).indexes.apply(index)
    const ports = { clock: systemClock, random: systemRandom }
    const place = { datastore: index.datastore, name: index.table }
    // No shard has cells yet: one stands for all.
    await buildOverFew(client, ports, place, { graceMs: 1_000, shards: [0] })
  } finally {
    await client.close()
  }
})
afterAll(async () => {
  await gateway.stop('SIGKILL')
  await cluster.close()
})

/** Each process that ran still does, has met no error of its own, and serves. */
async function expectWhole(
  processes: readonly { readonly url: string; log(): string }[] = [...cluster.nodes, gateway],
): Promise<void> {
  for (const one of processes) {
    const page = await (await fetch(`${one.url}/metrics`)).text()
    const bugs = [...page.matchAll(/^trilithon_internal_errors_total\{.*\} (\d+)$/gm)]
    expect(bugs.length).toBeGreaterThan(0)
    const total = bugs.reduce((sum, [, count]) => sum + Number(count), 0)
    expect(total, one.log().slice(-4_000)).toBe(0)
    const cell = `${one.url}/v1/datastores/after/cells/${randomUUID()}/A/0`
    expect((await fetch(cell, { method: 'PUT', body: '1' })).status).toBe(201)
    expect((await fetch(cell)).status).toBe(200)
  }
}

const perFrame = 20

/** No frame: random bytes, or lists in lists as deep as a stack, or what says that it is long. */
function garbageOf(random: SeededRandom): Uint8Array {
  const start = [0x93, 1, 1]
  return random.pick([
    random.bytes(random.int(1, 30)),
    Buffer.concat([Buffer.from(start), Buffer.alloc(50_000, 0x91)]),
    Buffer.from([...start, 0xdd, 0xff, 0xff, 0xff, 0xff]),
    Buffer.alloc(20_000, 0x81),
  ])
}

/** Links side by side: a frame is answered when its slowest request is, which may wait for others, or for a time to be over. */
const lanes = 5

interface Lane {
  sent: number
  links: number
  readonly answers: Map<string, number>
}

/** Draws requests by its own course, so that each run sends the same ones, whatever lane is faster. */
async function sendAlong(url: string, lane: string, count: number): Promise<Lane> {
  const random = new SeededRandom(lane)
  const made: Lane = { sent: 0, links: 0, answers: new Map() }
  let id = 0
  while (made.sent < count) {
    made.links += 1
    const link = await RawLink.connect(url, asClient)
    for (let frames = 0; frames < 100 && made.sent < count && !link.isClosed; frames++) {
      const frame = Array.from({ length: perFrame }, () => {
        id += 1
        return { id, packed: drawRequest(random, id) }
      })
      link.send(frame)
      made.sent += perFrame
      await eventually('what was asked is answered', async () => {
        return link.open.size === 0 || link.isClosed ? true : undefined
      })
    }
    // A link ends by what is no frame, and by nothing else.
    expect(link.isClosed).toBe(false)
    expect(link.bugs).toEqual([])
    addTo(made.answers, link.answers)
    link.sendBytes(garbageOf(random))
    await eventually('garbage ends a link', async () => (link.isClosed ? true : undefined))
  }
  return made
}

function addTo(sum: Map<string, number>, counts: ReadonlyMap<string, number>): void {
  for (const [kind, count] of counts) sum.set(kind, (sum.get(kind) ?? 0) + count)
}

test.each([
  ['node', () => cluster.node('a').url, 0.4],
  ['gateway', () => gateway.url, 0.2],
])('client links of a %s', { timeout: timeoutMs }, async (name, urlOf, part) => {
  const all = await Promise.all(
    Array.from({ length: lanes }, (_, lane) =>
      sendAlong(urlOf(), `${seed}/links/${name}/${lane}`, (requests * part) / lanes),
    ),
  )
  const answers = new Map<string, number>()
  for (const lane of all) addTo(answers, lane.answers)
  const sent = all.reduce((sum, lane) => sum + lane.sent, 0)
  const links = all.reduce((sum, lane) => sum + lane.links, 0)
  console.log(
    `links of a ${name}: ${sent} requests over ${links} links`,
    Object.fromEntries(answers),
  )
  expect(answers.get('invalid')).toBeGreaterThan(sent / 10)
  expect(answers.get('put')).toBeGreaterThan(0)
  expect(answers.get('index')).toBeGreaterThan(0)
  await expectWhole()
})

test.each([
  ['node', () => cluster.node('b').url, 0.2],
  ['gateway', () => gateway.url, 0.15],
])('HTTP of a %s', { timeout: timeoutMs }, async (name, urlOf, part) => {
  const random = new SeededRandom(`${seed}/http/${name}`)
  const agent = new Agent({ keepAlive: true, maxSockets: 32 })
  const statuses = new Map<number, number>()
  const odd: unknown[] = []
  let left = Math.ceil(requests * part)
  const work = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      const drawn = drawHttp(random)
      try {
        const { status, text } = await send(agent, urlOf(), drawn, 30_000)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        if (status >= 500) odd.push({ drawn, status, text: text.slice(0, 300) })
      } catch (error) {
        odd.push({ drawn, error: String(error) })
      }
    }
  }
  await Promise.all(Array.from({ length: 32 }, work))
  agent.destroy()
  console.log(`HTTP of a ${name}:`, Object.fromEntries(statuses))
  expect(odd.slice(0, 5)).toEqual([])
  expect(statuses.get(400)).toBeGreaterThan(0)
  expect(statuses.get(200)).toBeGreaterThan(0)
  await expectWhole()
})

/** A caller gets no error but a StoreError, whatever it gave. */
function codeOf(error: unknown): string {
  return error instanceof StoreError ? error.code : String(error)
}

test('calls of the client library', { timeout: timeoutMs }, async () => {
  const random = new SeededRandom(`${seed}/calls`)
  const client = await connect({ endpoints: cluster.urls, timeoutMs: 5_000 })
  await applyPhotos(client)
  const on = { client, db: openPhotos(client, { clock: systemClock, random: systemRandom }) }
  const codes = new Map<string, number>()
  const odd: unknown[] = []
  let left = Math.ceil(requests * 0.1)
  const work = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      const call = drawCall(random)
      const said = await make(on, call).then(() => 'done', codeOf)
      // Options that were not understood were not passed over.
      const isPassedOver = said === 'done' && !call.isRight
      if (isPassedOver || said === 'internal' || (said !== 'done' && !isStoreErrorCode(said))) {
        odd.push({ call: call.known.name, given: call.given, said })
      }
      codes.set(said, (codes.get(said) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: 20 }, work))
  await client.close()
  console.log('calls of the library:', Object.fromEntries(codes))
  expect(odd.slice(0, 5)).toEqual([])
  expect(codes.get('done')).toBeGreaterThan(0)
  expect(codes.get('invalid')).toBeGreaterThan(0)
  await expectWhole()
})

test('the link of a peer that talks nonsense', { timeout: timeoutMs }, async () => {
  const random = new SeededRandom(`${seed}/peer`)
  const two = await startCluster({ notStarted: ['a'] })
  try {
    const path = join(two.folder, 'trilithon', 'peer-secret')
    const secret = (await readFile(path, 'utf8')).trim()
    const nodes = sha256('a b c').toString('hex').slice(0, 32)
    const store = { storeId: randomUUID(), incarnation: 1, durableFlush: 0, run: 1, known: [] }
    const info = { ...store, nodes }
    const asPeer = { cluster: 'test', role: 'peer', node: 'a', secret, info } as const
    let [frames, links] = [0, 0]
    while (frames < requests * 0.1) {
      const link = await RawLink.connect(two.node(random.pick(['b', 'c'])).url, asPeer)
      links += 1
      for (let i = 0; i < 500 && !link.isClosed; i++) {
        link.sendBytes(drawPeerFrame(random))
        frames += 1
        // The link's end is seen between two frames.
        if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      }
      link.sendBytes(damagedPeerFrame(random))
      link.close()
    }
    console.log(`a peer's link: ${frames} frames over ${links} links`)
    await expectWhole(two.nodes.slice(1))
  } finally {
    await two.close()
  }
})
