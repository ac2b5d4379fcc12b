/**
 * Gateways as real processes in front of real nodes: what applications and `curl` see of them, and
 * that what was acknowledged through them is kept while nodes and gateways are killed.
 */
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { connect } from '../../src/client/connect.ts'
import { rootKey } from '../../src/tables/tables.ts'
import {
  eventually,
  patienceMs,
  runProgram,
  startCluster,
  startGateway,
  startProgram,
  withFolder,
  type TestCluster,
  type TestGateway,
} from './harness.ts'
import { contentsAt, writeUntil } from './ledger.ts'

let cluster: TestCluster
let gateways: readonly TestGateway[] = []
beforeAll(async () => {
  cluster = await startCluster()
  gateways = [await startGateway(cluster.urls), await startGateway(cluster.urls)]
})
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop('SIGKILL')))
  await cluster?.close()
})

function urls(): string[] {
  return gateways.map(({ url }) => url)
}

/** A cell of `rides`; `trips` is the documentation's alone, which knows what is in its shards. */
function cellPath(url: string | undefined, rowKey: string, rest = '/BASE/0'): string {
  return `${url}/v1/datastores/rides/cells/${rowKey}${rest}`
}

test('COST-4: nodes end the work of a client that has left the gateway', async () => {
  const atWork = async (): Promise<number> => {
    const pages = await Promise.all(
      cluster.urls.map(async (url) => (await fetch(`${url}/metrics`)).text()),
    )
    const counts = pages.map((page) => /^trilithon_client_requests\S* (\d+)/m.exec(page)?.[1])
    return counts.reduce((sum, count) => sum + Number(count ?? Number.NaN), 0)
  }
  const [url] = urls()
  const gone = new AbortController()
  const waits = Array.from({ length: 20 }, (_, shard) => {
    const log = `${url}/v1/datastores/rides/shards/${shard + 100}/cells?wait=60`
    return fetch(log, { signal: gone.signal }).catch(() => undefined)
  })
  await expect.poll(atWork, { timeout: 10_000 }).toBe(20)
  gone.abort()
  await Promise.all(waits)
  await expect.poll(atWork, { timeout: 5_000 }).toBe(0)
})

test('cells over HTTP through a gateway are those of the nodes', async () => {
  const rowKey = randomUUID()
  const [first, second] = urls()
  const put = { method: 'PUT', body: '{"fare":1}' }
  const written = await fetch(cellPath(first, rowKey), put)
  expect(written.status).toBe(201)
  const position = written.headers.get('trilithon-position') ?? ''
  expect(position).toMatch(/^rides\/\d+\/\d+$/)
  expect((await fetch(cellPath(second, rowKey), put)).status).toBe(200)
  const other = await fetch(cellPath(second, rowKey), { ...put, body: '2' })
  expect(other.status).toBe(409)
  for (const url of [second, cluster.urls[0]]) {
    const found = await fetch(cellPath(url, rowKey, '/BASE'))
    expect([found.status, await found.json()]).toMatchObject([200, { body: { fare: 1 } }])
  }
  const headers = { 'trilithon-position': position }
  const any = await fetch(cellPath(second, rowKey, '/BASE?read=snapshot'), { headers })
  expect(await any.json()).toMatchObject({ body: { fare: 1 } })
  // No node waits for a place that never was, and it does no harm.
  const far = { 'trilithon-position': position.replace(/\d+$/, '999999999999') }
  const beyond = await fetch(cellPath(second, rowKey, '/BASE?read=snapshot'), { headers: far })
  const straight = await fetch(cellPath(cluster.urls[0], rowKey, '/BASE?read=snapshot'), {
    headers: far,
  })
  expect(await beyond.json()).toMatchObject({ code: 'invalid' })
  expect(beyond.status).toBe(straight.status)
  expect((await fetch(`${second}/livez`)).status).toBe(200)
})

test('a client that offers HTTP/2 with every request reads and writes cells like others', async () => {
  const headers = {
    ...{ connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c' },
    ...{ 'http2-settings': 'AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA' },
  }
  const ask = (url: string, method: string, body?: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const sent = httpRequest(url, { method, headers }, (answer) => {
        answer.resume().once('end', () => resolve(answer.statusCode))
      })
      sent.once('error', reject).end(body)
    })
  for (const url of [urls()[0], cluster.urls[0]]) {
    const cell = cellPath(url, randomUUID())
    expect(await ask(cell, 'PUT', '{"fare":1}')).toBe(201)
    expect(await ask(cell, 'GET')).toBe(200)
    expect(await (await fetch(cell)).json()).toMatchObject({ body: { fare: 1 } })
  }
})

test('the gateway answers operators: health, status, metrics, the OpenAPI document', async () => {
  const [url] = urls()
  await eventually('the gateway reaches every node', async () => {
    const ready = await (await fetch(`${url}/readyz?verbose`)).text()
    return ready.includes('[+] nodes: 3 of 3 nodes answer\n') || undefined
  })
  const status: unknown = await (await fetch(`${url}/status`)).json()
  expect(status).toMatchObject({
    ...{ node: 'gateway', kind: 'gateway', cluster: 'test', ready: true, state: 'running' },
    nodes: [{ id: 'a', isUp: true, breaker: 'closed' }, { id: 'b' }, { id: 'c' }],
  })
  const figures = await (await fetch(`${url}/metrics`)).text()
  expect(figures).toMatch(/^trilithon_gateway_breaker\{node="http:\S+",gateway="gateway"\} 0$/m)
  for (const any of [url, cluster.urls[0]]) {
    const document: unknown = await (await fetch(`${any}/openapi.json`)).json()
    expect(document).toMatchObject({ openapi: '3.1.0', paths: { '/readyz': {} } })
  }
  const told = await runProgram(['status', '--url', String(url)])
  expect([told.code, told.stdout]).toEqual([0, expect.stringContaining('can lose 1 more node')])
})

test('tables and transactions through gateways are those of the nodes', async () => {
  const Counter = table('Counter', { id: t.integer(), value: t.integer() }).key('id').root()
  const counters = defineSchema('Counters', [Counter])
  const client = await connect({ endpoints: urls(), cluster: 'test', timeoutMs: patienceMs })
  const direct = await connect({ endpoints: cluster.urls, timeoutMs: patienceMs })
  try {
    await client.applySchema(counters.model)
    const db = await client.tables(counters)
    const key = rootKey(Counter, { id: 1 })
    await db.transaction(key, (tx) => tx.insert(Counter, { id: 1, value: 0 }))
    const add = (): Promise<unknown> =>
      db.transaction(key, async (tx) => {
        const row = await tx.get(Counter, { id: 1 })
        await tx.put(Counter, { id: 1, value: (row?.value ?? 0) + 1 })
      })
    await Promise.all(Array.from({ length: 10 }, add))
    const there = await direct.tables(counters)
    const { value } = await there.read(key, 'current', (rows) => rows.get(Counter, { id: 1 }))
    expect(value?.value).toBe(10)
    expect(await client.status()).toMatchObject({ kind: 'gateway' })
  } finally {
    await Promise.all([client.close(), direct.close()])
  }
})

test('a client of another cluster is refused by a gateway too', async () => {
  const client = await connect({ endpoints: urls(), cluster: 'other', timeoutMs: 1_500 })
  try {
    await expect(
      client.cells('rides').get({ rowKey: randomUUID(), column: 'BASE' }),
    ).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('cluster'),
    })
  } finally {
    await client.close()
  }
})

test('a gateway refuses to listen beyond this machine without TLS and a secret', async () => {
  const flags = ['--nodes', cluster.urls.join(','), '--listen', '0.0.0.0:0']
  const refused = await runProgram(['gateway', ...flags])
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining('wants tls.cert_file and tls.key_file and secret_file'),
  ])
  const wrong = await runProgram([
    'gateway',
    '--nodes',
    'http://x/y,ftp://z',
    '--try-timeout-ms',
    '0',
  ])
  expect(wrong.code).toBe(2)
  expect(wrong.stderr).toContain('3 problems')
  const [url = ''] = urls()
  const busy = ['gateway', '--nodes', cluster.urls.join(','), '--listen', url.slice(7)]
  expect(await runProgram(busy)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('in use'),
  })
})

test('SIGTERM drains: the gateway answers requests under way, ends waits and exits with 0', async () => {
  const gateway = await startGateway(cluster.urls)
  const rowKeys = Array.from({ length: 50 }, () => randomUUID())
  const waiting = fetch(`${gateway.url}/v1/datastores/idle/shards/7/cells?wait=60`)
  const writing = rowKeys.map((rowKey) =>
    fetch(cellPath(gateway.url, rowKey), { method: 'PUT', body: '1' }).then(
      ({ status }) => status,
      () => 0,
    ),
  )
  await new Promise((resolve) => setTimeout(resolve, 60))
  const exit = await gateway.stop('SIGTERM')
  expect(exit.code).toBe(0)
  expect((await waiting).status).toBe(503)
  const statuses = await Promise.all(writing)
  // Taken and answered, told that it stops, or not taken at all: never a guess.
  expect(statuses.every((status) => [201, 503, 0].includes(status))).toBe(true)
  for (const [i, rowKey] of rowKeys.entries()) {
    if (statuses[i] !== 201) continue
    expect((await fetch(cellPath(cluster.urls[0], rowKey))).status).toBe(200)
  }
})

test('LOG-4: a node and a gateway are killed under load, and all that was acknowledged is there', async () => {
  const end = performance.now() + 7_000
  const writing = writeUntil(urls(), () => performance.now() >= end)
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  await cluster.node('b').stop('SIGKILL')
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  await gateways[0]?.stop('SIGKILL')
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  await gateways[0]?.start()
  await cluster.node('b').start()
  const ledger = await writing
  expect(ledger.acknowledged.length).toBeGreaterThan(100)
  expect(Object.fromEntries(ledger.failures)).toEqual({})
  for (const url of [...urls(), ...cluster.urls]) {
    await eventually(`all is at ${url}`, () => hasAll(url, ledger.acknowledged))
  }
})

async function hasAll(
  url: string,
  entries: readonly { readonly rowKey: string; readonly body: object }[],
): Promise<true | undefined> {
  const { bodies } = await contentsAt(url, { rows: entries })
  const missing = entries.filter(({ rowKey, body }) => {
    return JSON.stringify(bodies.get(`${rowKey}/BASE/0`)) !== JSON.stringify(body)
  })
  return missing.length === 0 ? true : undefined
}

test('gateways take their settings from a file, the environment and flags', async () => {
  const { url } = gateways[1] ?? { url: '' }
  const program = startProgram(['gateway', '--listen', '127.0.0.1:0', '--log-level', 'info'], {
    environment: {
      TRILITHON_NODES: `a=${cluster.urls[0]},${cluster.urls[1]}`,
      TRILITHON_NAME: 'west',
    },
  })
  try {
    const line = await eventually('it serves', async () => {
      return program
        .stderr()
        .split('\n')
        .find((one) => one.includes('"serving"'))
    })
    const told: { readonly gateway: string; readonly nodes: readonly string[] } = JSON.parse(line)
    expect(told).toMatchObject({ gateway: 'west', nodes: [cluster.urls[0], cluster.urls[1]] })
    expect(url).not.toBe('')
  } finally {
    program.child.kill('SIGTERM')
    expect((await program.exited()).code).toBe(0)
  }
})

/** The second block of shell lines on the page, as a reader would paste them. */
function shownLines(url: string): string {
  const page = readFileSync(new URL('../../src/docs/gateway.md', import.meta.url), 'utf8')
  const block = [...page.matchAll(/```sh\n([^]*?)```/g)][1]?.[1] ?? ''
  return block.replace('http://127.0.0.1:4800', url)
}

test('the lines of curl in the documentation do what is said of them', () => {
  const [url = ''] = urls()
  const script = shownLines(url)
  expect(script.match(/^curl /gm)).toHaveLength(9)
  const ran = spawnSync('bash', ['--norc', '-e', '-u', '-o', 'pipefail', '-c', script], {
    encoding: 'utf8',
  })
  expect([ran.status, ran.stderr]).toEqual([0, ''])
  const lines = ran.stdout.split('\n')
  const answers = lines
    .filter((line) => line.startsWith('{'))
    .map((line): unknown => JSON.parse(line))
  const body = (kilometres: number): object => ({ city: 'Berlin', kilometres })
  expect(answers).toMatchObject([
    { shard: 2602, created: true },
    { created: true },
    { refKey: 1, body: body(4.3) },
    { items: [{ refKey: 1 }], cursor: 0 },
    { items: [{ cell: { refKey: 1 } }, { cell: null }] },
    { shard: 2602, items: [{ refKey: 0, body: body(4.2) }, { refKey: 1 }], cursor: 2 },
    { items: [{ items: { length: 2 } }, { shard: 7, items: [] }] },
  ])
  expect(lines).toContain('ready')
})

test('cells are purged from the command line, through a gateway too', async () => {
  const rowKey = randomUUID()
  const client = await connect({ endpoints: urls(), timeoutMs: patienceMs })
  const cells = client.cells('purged')
  try {
    for (const refKey of [0, 1, 2])
      await cells.put({ rowKey, column: 'BASE', refKey, body: refKey })
    const { shard } = await cells.put({ rowKey, column: 'BASE', refKey: 2, body: 2 })
    const flags = ['--datastore', 'purged', '--url', urls().join(','), '--before', '2200-01-01']
    const asked = ['cells', 'purge', ...flags, '--shard', String(shard)]
    const unsure = await runProgram(asked)
    expect([unsure.code, unsure.stderr]).toEqual([2, expect.stringContaining('add --yes')])
    expect((await cells.versions(rowKey, 'BASE')).items).toHaveLength(3)
    const done = await runProgram([...asked, '--yes'])
    expect([done.code, done.stdout]).toEqual([0, 'purged 2 cells\n'])
    expect((await cells.versions(rowKey, 'BASE')).items.map(({ refKey }) => refKey)).toEqual([2])
    const all = await runProgram([...asked, '--yes', '--all-versions', '--json'])
    expect(JSON.parse(all.stdout)).toEqual({ shard, purged: 1 })
    expect(await cells.shardLog(shard)).toMatchObject({ items: [], cursor: 0 })
    await expect(
      cells.put({ rowKey, column: 'BASE', refKey: 1, body: 'new' }),
    ).rejects.toMatchObject({
      ...{ code: 'immutable', message: expect.stringContaining('was purged') },
    })
  } finally {
    await client.close()
  }
})

test('with a secret, nodes, gateway and their clients must all have it', async () => {
  await withFolder(async (folder) => {
    const secretFile = join(folder, 'secret')
    const secret = 'a secret of sufficient length'
    await writeFile(secretFile, secret)
    const guarded = await startCluster({ ids: ['a'], extraYaml: `secret_file: ${secretFile}` })
    const gateway = await startGateway(guarded.urls, ['--secret-file', secretFile])
    const stranger = await connect({ endpoints: [gateway.url], timeoutMs: 1_000 })
    const friend = await connect({ endpoints: [gateway.url], secret, timeoutMs: patienceMs })
    try {
      const put = { method: 'PUT', body: '1' }
      const rowKey = randomUUID()
      expect((await fetch(cellPath(gateway.url, rowKey), put)).status).toBe(401)
      const headers = { authorization: `Bearer ${secret}` }
      expect((await fetch(cellPath(gateway.url, rowKey), { ...put, headers })).status).toBe(201)
      expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200)
      const page = { ...headers, origin: 'https://evil.example' }
      expect((await fetch(cellPath(gateway.url, rowKey), { ...put, headers: page })).status).toBe(
        403,
      )
      expect(await friend.cells('rides').get({ rowKey, column: 'BASE' })).toMatchObject({ body: 1 })
      await expect(stranger.cells('rides').get({ rowKey, column: 'BASE' })).rejects.toMatchObject({
        message: expect.stringContaining('secret'),
      })
    } finally {
      await Promise.all([stranger.close(), friend.close()])
      await gateway.stop('SIGKILL')
      await guarded.close()
    }
  })
})
