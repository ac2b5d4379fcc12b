/** Three real processes on loopback: all have the writes of each, and one may die at any moment. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, runProgram, startCluster, type TestCluster } from './harness.ts'

let cluster: TestCluster
beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster?.close())

const place = '/v1/datastores/trips'
const json = { 'content-type': 'application/json' }

async function put(node: string, rowKey: string, body: unknown, refKey = 0): Promise<Response> {
  const url = `${cluster.node(node).url}${place}/cells/${rowKey}/BASE/${refKey}`
  return fetch(url, { method: 'PUT', headers: json, body: JSON.stringify(body) })
}

async function get(node: string, rowKey: string, query = ''): Promise<unknown> {
  const response = await fetch(`${cluster.node(node).url}${place}/cells/${rowKey}/BASE${query}`)
  const found: unknown = await response.json()
  return response.ok && typeof found === 'object' && found !== null && 'body' in found
    ? found.body
    : undefined
}

/** Puts `count` new cells through the node, one after the other; every one must be acknowledged. */
async function putMany(node: string, count: number): Promise<readonly string[]> {
  const rowKeys = Array.from({ length: count }, () => randomUUID())
  for (const rowKey of rowKeys) {
    const response = await put(node, rowKey, { rowKey })
    expect(response.status, await response.text()).toBe(201)
  }
  return rowKeys
}

async function expectEverywhere(rowKeys: readonly string[]): Promise<void> {
  for (const { id } of cluster.nodes) {
    for (const rowKey of rowKeys) expect(await get(id, rowKey)).toEqual({ rowKey })
  }
}

/** The same through each replica alone, once it has caught up. */
async function expectAtEachReplica(rowKeys: readonly string[]): Promise<void> {
  for (const { id } of cluster.nodes) {
    for (const rowKey of rowKeys) {
      await eventually(`replica ${id} has ${rowKey}`, () => get(id, rowKey, '?read=snapshot'))
    }
  }
}

test('a cell put through one node is readable through the others, and an equal put repeats it', async () => {
  const rowKeys = await putMany('a', 20)
  await expectEverywhere(rowKeys)
  const [rowKey = ''] = rowKeys
  expect((await put('b', rowKey, { rowKey })).status).toBe(200)
  expect((await put('c', rowKey, { other: true })).status).toBe(409)
})

test('a node told to stop finishes what is in flight, ends with 0, and comes back with everything', async () => {
  const rowKeys = Array.from({ length: 30 }, () => randomUUID())
  const puts = rowKeys.map((rowKey) => put('b', rowKey, { rowKey }))
  // The requests have reached the node when the first one is answered.
  await Promise.race(puts)
  const exit = await cluster.node('b').stop('SIGTERM')
  expect(exit, cluster.node('b').log()).toEqual({ code: 0, signal: undefined })
  const answers = await Promise.allSettled(puts)
  const acknowledged = rowKeys.filter((_, i) => {
    const answer = answers[i]
    return answer?.status === 'fulfilled' && answer.value.status === 201
  })
  expect(acknowledged.length).toBeGreaterThan(0)
  await cluster.node('b').start()
  await expectEverywhere(acknowledged)
})

test('writes go on at the other nodes when one is killed, and it rejoins without help', async () => {
  const before = await putMany('c', 10)
  await cluster.node('c').stop('SIGKILL')
  const during = [...(await putMany('a', 20)), ...(await putMany('b', 20))]
  await cluster.node('c').start()
  const after = await putMany('c', 10)
  await expectEverywhere([...before, ...during, ...after])
  await expectAtEachReplica([...before, ...during, ...after])
})

test('all three killed at once lose nothing that was acknowledged', async () => {
  const rowKeys = await putMany('a', 20)
  await Promise.all(cluster.nodes.map((node) => node.stop('SIGKILL')))
  await Promise.all(cluster.nodes.map((node) => node.start()))
  await expectEverywhere(rowKeys)
})

test('without a majority a put says unavailable or unknown, in time, and status ends with 4', async () => {
  await Promise.all([cluster.node('a').stop('SIGKILL'), cluster.node('b').stop('SIGKILL')])
  const rowKey = randomUUID()
  const response = await put('c', rowKey, { rowKey })
  expect([503, 504]).toContain(response.status)
  expect(await response.json()).toMatchObject({
    code: expect.any(String),
    detail: expect.any(String),
  })
  const status = await runProgram(['status', '--url', cluster.node('c').url])
  expect(status).toMatchObject({ code: 4, stdout: expect.stringContaining('has no majority') })
  await Promise.all([cluster.node('a').start(), cluster.node('b').start()])
  await eventually('the cluster takes writes again', async () => {
    const again = await put('c', rowKey, { rowKey })
    return again.ok ? again : undefined
  })
  await expectEverywhere([rowKey])
})

test('health, metrics and status have their documented forms', async () => {
  const { url } = cluster.node('a')
  // A node is ready with a majority of its peers; this looks at one that has them all.
  const readiness = await eventually('node a reaches every node', async () => {
    const text = await (await fetch(`${url}/readyz?verbose`)).text()
    return text.includes('3 of 3 nodes') ? text : undefined
  })
  expect(readiness).toMatch(
    /^\[\+\] stores: open\n\[\+\] accepting: .*\n\[\+\] majority: 3 of 3 nodes.*\n\[\+\] clocks: .*\nready\n$/,
  )
  expect(await (await fetch(`${url}/livez`)).text()).toBe('ok\n')
  const metrics = await (await fetch(`${url}/metrics`)).text()
  expect(metrics).toMatch(/^trilithon_ready\{.*node="a".*\} 1$/m)
  expect(metrics).toMatch(/^trilithon_peer_up\{peer="c",.*\} 1$/m)
  expect(metrics).toMatch(/^trilithon_events_total\{event="apply",.*\} [1-9]\d*$/m)
  const { stdout, code } = await eventually('every node is ready', async () => {
    const told = await runProgram(['status', '--json', '--url', url])
    return told.stdout.includes('"ready":3') ? told : undefined
  })
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ cluster: 'test', ready: 3, canLose: 1 })
})
