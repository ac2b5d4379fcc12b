/**
 * How an operator keeps control of a running node: which signals end it, and how; pages of other
 * origins at every door; and figures that keep what their types promise while nodes come and go.
 */
import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { connect } from '../../src/client/connect.ts'
import {
  eventually,
  startCluster,
  startGateway,
  type TestCluster,
  type TestGateway,
} from './harness.ts'

let cluster: TestCluster
let gateway: TestGateway

beforeAll(async () => {
  cluster = await startCluster()
  gateway = await startGateway(cluster.urls)
})

afterAll(async () => {
  await gateway.stop('SIGKILL')
  await cluster.close()
})

interface Page {
  readonly help: ReadonlyMap<string, string>
  readonly types: ReadonlyMap<string, string>
  /** By name and labels. */
  readonly samples: ReadonlyMap<string, number>
}

async function figuresOf(url: string): Promise<Page> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const help = new Map<string, string>()
  const types = new Map<string, string>()
  const samples = new Map<string, number>()
  for (const line of text.split('\n').filter((one) => one !== '')) {
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? []
    if (kind === 'HELP') help.set(name, rest)
    else if (kind === 'TYPE') types.set(name, rest)
    else {
      const cut = line.lastIndexOf(' ')
      samples.set(line.slice(0, cut), Number(line.slice(cut + 1)))
    }
  }
  return { help, types, samples }
}

/** The family that a sample is of: those of a histogram have endings. */
function familyOf(sample: string, types: ReadonlyMap<string, string>): string {
  const name = sample.replace(/\{.*/, '')
  if (types.has(name)) return name
  return name.replace(/_(?:bucket|sum|count)$/, '')
}

test('every figure has its help and a type, counters are named as such, and never fall', async () => {
  const client = await connect({ endpoints: [...cluster.urls, gateway.url], timeoutMs: 10_000 })
  const cells = client.cells('figures')
  const over = new AbortController()
  const load = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const rowKey = randomUUID()
      await cells.put({ rowKey, column: 'A', refKey: 0, body: { n: 1 } }).catch(() => undefined)
      await fetch(`${gateway.url}/v1/datastores/figures/cells/${rowKey}/A`).catch(() => undefined)
    }
  }
  const urls = [...cluster.urls.slice(0, 2), gateway.url]
  const before = new Map<string, Page>()
  const complaints = new Set<string>()
  const look = async (): Promise<void> => {
    for (const url of urls) {
      const page = await figuresOf(url)
      for (const complaint of complaintsOf(page, before.get(url))) complaints.add(complaint)
      before.set(url, page)
    }
  }
  const loops = Array.from({ length: 8 }, load)
  try {
    for (let round = 0; round < 12; round++) {
      // Links end and begin: their counts stay.
      if (round === 3) await cluster.node('c').stop('SIGKILL')
      if (round === 7) await cluster.node('c').start()
      await look()
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
  } finally {
    over.abort()
    await Promise.all(loops)
    await client.close()
  }
  expect([...complaints]).toEqual([])
  const page = before.get(urls[0] ?? '')
  const counters = [...(page?.types ?? [])].filter(([, type]) => type === 'counter')
  expect(counters.map(([name]) => name)).toContain('trilithon_link_frames_sent_total')
  expect(counters.length).toBeGreaterThan(20)
})

function complaintsOf(page: Page, before: Page | undefined): readonly string[] {
  const named = [...page.types].flatMap(([family, type]) => [
    ...((page.help.get(family) ?? '').length < 10 ? [`${family} has no help`] : []),
    ...((type === 'counter') === family.endsWith('_total') ? [] : [`${family} is a ${type}`]),
  ])
  const wrong = [...page.samples].flatMap(([sample, value]) => [
    ...(page.types.has(familyOf(sample, page.types)) ? [] : [`${sample} has no type`]),
    ...(Number.isFinite(value) ? [] : [`${sample} is ${value}`]),
  ])
  // A figure that was never above 0 may come and go with its labels.
  const fell = [...(before?.samples ?? [])].flatMap(([sample, was]) => {
    const isGauge = page.types.get(familyOf(sample, page.types)) === 'gauge'
    const value = page.samples.get(sample) ?? 0
    return isGauge || value >= was ? [] : [`${sample} fell from ${was} to ${value}`]
  })
  return [...named, ...wrong, ...fell]
}

test('a page of another origin comes in at no door of a node or a gateway', async () => {
  const origin = 'http://evil.example'
  const hello = ['/livez', '/readyz', '/metrics', '/status', '/openapi.json', '/v1/x', '/none']
  for (const url of [cluster.urls[0] ?? '', gateway.url]) {
    for (const path of hello) {
      const { status } = await fetch(`${url}${path}`, { headers: { origin } })
      expect([path, status]).toEqual([path, 403])
    }
    for (const path of ['/v1/client', '/v1/peer', '/none', '/metrics']) {
      expect([path, await upgrade(url, path, origin)]).toEqual([path, 403])
      expect([path, await upgrade(url, path, 'null')]).toEqual([path, 403])
    }
    expect(await upgrade(url, '/v1/client', url)).toBe('open')
    expect(await upgrade(url, '/v1/client')).toBe('open')
  }
})

function upgrade(url: string, path: string, origin?: string): Promise<number | 'open'> {
  return new Promise((resolve, reject) => {
    const headers = origin === undefined ? {} : { origin }
    const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, { headers })
    socket.once('open', () => {
      socket.terminate()
      resolve('open')
    })
    socket.once('unexpected-response', (_, { statusCode = 0 }) => {
      socket.terminate()
      resolve(statusCode)
    })
    socket.once('error', reject)
  })
}

test('SIGUSR1 opens no debugger, SIGUSR2 ends nothing, and the log mentions both', async () => {
  const node = cluster.node('b')
  for (const signal of ['SIGUSR1', 'SIGUSR2', 'SIGPIPE', 'SIGUSR1'] as const) node.signal(signal)
  const said = (text: string) => async (): Promise<true | undefined> =>
    node.log().includes(text) || undefined
  await eventually('it tells of SIGUSR1', said('SIGUSR1 opens no debugger'))
  await eventually('it tells of SIGUSR2', said('SIGUSR2 means nothing'))
  await node.ready()
  expect(node.log()).not.toMatch(/[Dd]ebugger listening|inspector on/)
})

test('SIGHUP, sent twice as a closing terminal does, stops nodes and gateways in order', async () => {
  const node = cluster.node('c')
  node.signal('SIGHUP')
  node.signal('SIGHUP')
  expect(await node.exited()).toEqual({ code: 0, signal: undefined })
  expect(node.log()).toMatch(/"signal":"SIGHUP".*a signal asks for an end/)
  expect(node.log()).toMatch(/draining[^]*stopped/)
  expect(node.log()).not.toContain('a second signal came')
  expect(await gateway.stop('SIGHUP')).toEqual({ code: 0, signal: undefined })
  await gateway.start()
})

test('a second SIGTERM ends a node at once', async () => {
  const node = cluster.node('a')
  node.signal('SIGTERM')
  await eventually(
    'it drains',
    async () => node.log().includes('a signal asks for an end') || undefined,
  )
  node.signal('SIGTERM')
  const isCutShort = { code: undefined, signal: 'SIGTERM' }
  const isInOrder = { code: 0, signal: undefined }
  const ended = await node.exited()
  // In order where it was faster than the second signal.
  expect(ended).toEqual(node.log().includes('a second signal came') ? isCutShort : isInOrder)
})

test('a node whose data folder is removed stops, in words', async () => {
  const node = cluster.node('a')
  await node.start()
  await node.ready()
  await rm(join(cluster.folder, 'data-a'), { recursive: true })
  expect(await node.exited()).toEqual({ code: 1, signal: undefined })
  expect(node.log()).toMatch(/the node must stop[^]*error: .* was removed while this node ran: /)
})
