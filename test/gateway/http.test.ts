import { getEventListeners } from 'node:events'
import { expect, test, vi } from 'vitest'
import { cellBytesMax } from '../../src/base/limits.ts'
import { problem } from '../../src/base/problem.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { datastore, passMs, rowKey, settled } from '../cells/kit.ts'
import { createGatewayBench, type GatewayBench } from './kit.ts'

const row = rowKey(1)
const shard = shardOf(row)
const path = `/cells/${row}/BASE/7`

test('CELL-1: PUT creates with 201, repeats with 200, and refuses another body with 409', async () => {
  const { ask } = createGatewayBench()
  const created = await ask('PUT', path, { body: '{"fare":12.5}' })
  expect(created.status).toBe(201)
  expect(created.body).toStrictEqual({
    ...{ shard, addedId: 1, created: true },
    createdAt: expect.stringMatching(/^2026-01-01T00:00:\d\d\.\d{6}Z$/),
  })
  expect(created.headers.get('trilithon-position')).toBe(`trips/${shard}/1`)
  const again = await ask('PUT', path, { body: '{ "fare": 12.50 }' })
  expect(again.status).toBe(200)
  expect(again.body).toMatchObject({ addedId: 1, created: false })
  const other = await ask('PUT', path, { body: '{"fare":13}' })
  expect(other.status).toBe(409)
  expect(other.headers.get('content-type')).toBe('application/problem+json')
  expect(other.body).toStrictEqual({
    ...{ type: 'urn:trilithon:problem:immutable', title: expect.any(String), status: 409 },
    ...{ code: 'immutable', retry: 'never', instance: `/v1/datastores/trips${path}` },
    ...{ detail: expect.stringContaining('higher ref key'), group: `cells/trips/${shard}` },
  })
})

test('GET gives the cell, the latest of a column, the latest of all columns', async () => {
  const { ask } = createGatewayBench()
  for (const [column, refKey] of [
    ['BASE', 7],
    ['BASE', 3],
    ['STATUS', 1],
  ] as const) {
    await ask('PUT', `/cells/${row}/${column}/${refKey}`, { json: { column, refKey } })
  }
  const cell = {
    ...{ rowKey: row, column: 'BASE', refKey: 7, addedId: 1 },
    ...{ createdAt: expect.any(String), body: { column: 'BASE', refKey: 7 } },
  }
  const one = await ask('GET', path)
  expect(one).toMatchObject({ status: 200, body: cell })
  expect(one.headers.get('trilithon-position')).toBe(`trips/${shard}/3`)
  expect(await ask('GET', `/cells/${row.toUpperCase()}/BASE`)).toMatchObject({ body: cell })
  expect((await ask('GET', `/cells/${row}`)).body).toMatchObject({
    items: [cell, { column: 'STATUS', refKey: 1 }],
  })
  expect((await ask('GET', `/cells/${row}?limit=1`)).body).toMatchObject({ cursor: 'STATUS' })
  expect((await ask('GET', `/cells/${row}?cursor=STATUS`)).body).toMatchObject({
    items: [{ column: 'STATUS' }],
  })
  for (const none of [`/cells/${row}/BASE/8`, `/cells/${row}/NONE`, `/cells/${rowKey(2)}`]) {
    const { status, body } = await ask('GET', none)
    expect({ status, body }).toMatchObject({ status: 404, body: { code: 'not-found' } })
  }
})

test('the gateway lists the versions of a column with all=true', async () => {
  const { ask } = createGatewayBench()
  for (const refKey of [1, 2, 3]) {
    await ask('PUT', `/cells/${row}/BASE/${refKey}`, { json: refKey })
  }
  const keys = async (query: string): Promise<unknown> =>
    (await ask('GET', `/cells/${row}/BASE?all=true${query}`)).body
  expect(await keys('')).toMatchObject({ items: [{ refKey: 1 }, { refKey: 2 }, { refKey: 3 }] })
  expect(await keys('&limit=2')).toMatchObject({ items: [{ body: 1 }, { body: 2 }], cursor: 3 })
  expect(await keys('&reverse=true&cursor=2')).toMatchObject({ items: [{ body: 2 }, { body: 1 }] })
})

test('the shard log is read by added id and by time, and waited for', async () => {
  const { ask, send, bench } = createGatewayBench()
  for (const refKey of [1, 2, 3]) {
    await ask('PUT', `/cells/${row}/BASE/${refKey}`, { json: refKey })
    await passMs(bench.world, 5)
  }
  const log = `/shards/${shard}/cells`
  expect((await ask('GET', log)).body).toMatchObject({ shard, items: { length: 3 }, cursor: 3 })
  expect((await ask('GET', `${log}?after=1&limit=1`)).body).toMatchObject({
    ...{ items: [{ addedId: 2, body: 2 }], cursor: 2 },
  })
  const second = (await ask('GET', `/cells/${row}/BASE/2`)).body
  const [time = ''] = /2026[^"]*Z/.exec(JSON.stringify(second)) ?? []
  expect((await ask('GET', `${log}?since=${time}`)).body).toMatchObject({
    items: [{ addedId: 2 }, { addedId: 3 }],
  })
  const waiting = send('GET', `${log}?after=3&wait=60`)
  await passMs(bench.world, 1_000)
  await ask('PUT', `/cells/${row}/BASE/4`, { json: 4 })
  expect((await settled(bench.world, waiting)).body).toMatchObject({
    items: [{ addedId: 4 }],
    cursor: 4,
  })
  expect((await ask('GET', `${log}?after=4&wait=1`)).body).toStrictEqual({
    ...{ shard, items: [], cursor: 4 },
  })
})

test('batches give each item its own outcome', async () => {
  const { ask } = createGatewayBench()
  const name = { rowKey: row, column: 'BASE' }
  const put = await ask('POST', '/cells:batchPut', {
    json: {
      cells: [
        { ...name, refKey: 1, body: { a: 1 } },
        { ...name, refKey: -1, body: 1 },
        { ...name, refKey: 1.5, body: 1 },
        { ...name, refKey: 1, body: { a: 2 } },
      ],
    },
  })
  expect(put).toMatchObject({ status: 200, body: { items: { length: 4 } } })
  expect(put.body).toMatchObject({
    items: [
      { created: true, addedId: 1 },
      { problem: { code: 'invalid', status: 400 } },
      { problem: { code: 'invalid' } },
      { problem: { code: 'immutable', status: 409 } },
    ],
  })
  const got = await ask('POST', '/cells:batchGet', {
    json: { cells: [{ ...name, refKey: 1 }, { ...name }, { ...name, refKey: 9 }] },
  })
  expect(got.body).toMatchObject({
    items: [{ cell: { body: { a: 1 } } }, { cell: { refKey: 1 } }, { cell: null }],
  })
  const logs = await ask('POST', '/shards:batchGet', {
    json: {
      shards: [{ shard }, { shard: (shard + 1) % 4096, after: 5 }, { shard: 4096 }],
      limit: 5,
    },
  })
  expect(logs.body).toMatchObject({
    items: [
      { items: { length: 1 }, cursor: 1 },
      { problem: { status: 400, detail: expect.stringContaining('ends at added id 0, and 5 is') } },
      { problem: { status: 400 } },
    ],
  })
})

interface Refusal {
  readonly method?: string
  readonly path: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly status: number
  readonly says: string
}

const json = { 'content-type': 'application/json' }
const refusals: readonly Refusal[] = [
  { path: '/', status: 404, says: 'nothing at /' },
  { path: '/v1/datastore/trips', status: 404, says: 'nothing at' },
  { path: `/cells/${row}/BASE/7/8`, status: 404, says: 'nothing at' },
  { method: 'PATCH', path, status: 405, says: 'only PUT, GET, DELETE, HEAD' },
  { method: 'POST', path: `/cells/${row}`, status: 405, says: 'only GET' },
  { method: 'PUT', path: '/cells:batchPut', status: 405, says: 'only POST' },
  { path: '/v1/datastores/Trips/cells/x', status: 400, says: 'row key' },
  { path: `/v1/datastores/Trips/cells/${row}`, status: 400, says: 'datastore name' },
  { path: '/cells/123/BASE/7', status: 400, says: '"123" is not a UUID' },
  { path: `/cells/${row}/1a/7`, status: 400, says: 'column name "1a"' },
  { path: `/cells/${row}/a%2Fb/7`, status: 400, says: 'column name "a/b"' },
  { path: `/cells/${row}/%ff%zz/7`, status: 400, says: 'column name' },
  { path: `/cells/${row}/BASE/-1`, status: 400, says: 'ref key must be a whole number' },
  { path: `/cells/${row}/BASE/1.5`, status: 400, says: 'ref key must be a whole number' },
  { path: `/cells/${row}/BASE/1e3`, status: 400, says: 'ref key must be a whole number' },
  { path: `/cells/${row}/BASE/9007199254740992`, status: 400, says: '2^53 - 1' },
  { path: `/cells/${row}/BASE/${'9'.repeat(400)}`, status: 400, says: 'ref key' },
  { path: '/shards/4096/cells', status: 400, says: 'no shard 4096' },
  { path: '/shards/-1/cells', status: 400, says: 'the shard must be a whole number' },
  { path: '/shards/x/cells', status: 400, says: 'the shard must be a whole number' },
  { path: '/shards/1/cells?after=x', status: 400, says: 'after must be a whole number' },
  { path: '/shards/1/cells?since=yesterday', status: 400, says: 'since must be a time such as' },
  { path: '/shards/1/cells?since=2026-02-30', status: 400, says: 'since must be a time such as' },
  { path: '/shards/1/cells?since=1969-12-31', status: 400, says: 'from 1970 to 2255' },
  { path: '/shards/1/cells?after=1&since=2026-01-01', status: 400, says: 'either after or since' },
  { path: '/shards/1/cells?wait=61', status: 400, says: '0 to 60 seconds' },
  { path: '/shards/1/cells?wait=1.5', status: 400, says: 'wait must be a whole number' },
  { path: '/shards/1/cells?limit=0', status: 400, says: '1 to 1000' },
  { path: '/shards/1/cells?limit=1001', status: 400, says: '1 to 1000' },
  { path: `${path}?raed=any`, status: 400, says: 'no parameter "raed" here, only read' },
  { path: `${path}?read=all`, status: 400, says: 'read must be current or snapshot' },
  { path: `${path}?read=snapshot&read=snapshot`, status: 400, says: 'given twice' },
  { path: `${path}?max_staleness_ms=99`, status: 400, says: 'milliseconds from 100' },
  { path: `${path}?max_staleness_ms=1s`, status: 400, says: 'max_staleness_ms must be a whole' },
  { path: `${path}?read=current&max_staleness_ms=500`, status: 400, says: 'not with read=current' },
  { path: `/cells/${row}/BASE?limit=3`, status: 400, says: 'goes with all=true' },
  { path: `/cells/${row}/BASE?all=yes`, status: 400, says: 'all must be true or false' },
  {
    path: `/cells/${row}/BASE?all=true&cursor=-1`,
    status: 400,
    says: 'cursor must be a whole number',
  },
  { path: `/cells/${row}?cursor=1a`, status: 400, says: 'column name' },
  { path, headers: { 'trilithon-position': 'x' }, status: 400, says: 'Trilithon-Position' },
  { method: 'PUT', path, body: '', status: 400, says: 'no body' },
  { method: 'PUT', path, body: '{"a":', status: 400, says: 'not JSON' },
  { method: 'PUT', path, body: '{"a":1,"a":2}', status: 400, says: 'given twice' },
  {
    method: 'PUT',
    path,
    body: '[12345678901234567890]',
    status: 400,
    says: 'write it as a string',
  },
  { method: 'PUT', path, body: '"\\ud800"', status: 400, says: 'Unicode' },
  { method: 'PUT', path, body: '['.repeat(500_000), status: 400, says: 'not JSON' },
  { method: 'PUT', path, body: '['.repeat(200) + ']'.repeat(200), status: 400, says: 'nested' },
  { method: 'PUT', path: `${path}?if=absent`, body: '1', status: 400, says: 'no parameters' },
  { method: 'POST', path: '/cells:batchPut', body: '{}', status: 415, says: 'content-type' },
  {
    method: 'POST',
    path: '/cells:batchPut',
    headers: json,
    body: '[]',
    status: 400,
    says: 'the body must be an object with cells',
  },
  {
    method: 'POST',
    path: '/cells:batchPut',
    headers: json,
    body: '{}',
    status: 400,
    says: 'cells must be a list',
  },
  {
    ...{ method: 'POST', path: '/cells:batchPut', headers: json, body: '{"cells":[]}' },
    ...{ status: 400, says: 'at least one item' },
  },
  {
    ...{ method: 'POST', path: '/cells:batchPut', headers: json, body: '{"cells":[7]}' },
    ...{ status: 400, says: 'cells[0] must be an object' },
  },
  {
    ...{ method: 'POST', path: '/cells:batchGet', headers: json },
    ...{
      body: '{"cells":[{"rowKey":1,"column":"a"}]}',
      status: 400,
      says: 'cells[0].rowKey must be a text',
    },
  },
  {
    ...{ method: 'POST', path: '/cells:batchGet', headers: json },
    ...{ body: '{"cells":[{"rowKey":"a","column":"a","ref":1}]}', status: 400, says: '"ref"' },
  },
  {
    ...{ method: 'POST', path: '/shards:batchGet', headers: json },
    ...{
      body: '{"shards":[{"shard":1,"since":"x"}]}',
      status: 400,
      says: 'shards[0].since must be a time',
    },
  },
  {
    ...{ method: 'POST', path: '/shards:batchGet', headers: json },
    ...{ body: '{"shards":[{"shard":1}],"wait":-1}', status: 400, says: '0 to 60' },
  },
  ...['gzip', 'br', 'gzip, identity'].map((coding) => ({
    ...{ method: 'PUT', path, body: '1', headers: { 'content-encoding': coding } },
    ...{ status: 415, says: `not packed: the header Content-Encoding says "${coding}"` },
  })),
  {
    ...{ method: 'POST', path: '/cells:batchGet', body: '{"cells":[]}' },
    ...{ headers: { ...json, 'content-encoding': 'deflate' }, status: 415, says: '"deflate"' },
  },
  ...['utf-16', '"ISO-8859-1"', 'utf-8; charset=latin1'].map((charset) => ({
    ...{ method: 'PUT', path, body: '1' },
    ...{ headers: { 'content-type': `application/json; charset=${charset}` }, status: 415 },
    says: 'send the body in UTF-8',
  })),
  ...[
    ['If-Match', '"x"'],
    ['If-None-Match', '*'],
    ['If-Unmodified-Since', 'Fri, 27 Nov 2026 00:00:00 GMT'],
    ['Content-Range', 'bytes 0-1/5'],
  ].flatMap(([name = '', value = '']) =>
    [
      { method: 'PUT', path, body: '1', headers: { [name]: value } },
      { method: 'DELETE', path: '/indexes/ix', headers: { [name]: value } },
      {
        ...{ method: 'POST', path: '/cells:batchPut', body: '{"cells":[]}' },
        headers: { ...json, [name]: value },
      },
      {
        ...{ method: 'POST', path: '/shards/1/cells:purge', body: '{"before":"2026-01-01"}' },
        headers: { ...json, [name]: value },
      },
    ].map((one) => ({ ...one, status: 400, says: `the header ${name} is not possible here` })),
  ),
]

test.each(refusals)(
  'a wrong request is one clear problem: $method $path $body',
  async (refusal) => {
    const { method = 'GET', path: of, body, headers = {}, status, says } = refusal
    const { ask, bench } = createGatewayBench()
    const answer = await ask(method, of, { headers, ...(body !== undefined && { body }) })
    expect(answer.status).toBe(status)
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    expect(answer.body).toMatchObject({
      ...{ status, detail: expect.stringContaining(says), instance: expect.any(String) },
      ...{ type: expect.stringMatching(/^urn:trilithon:problem:/), retry: 'never' },
      code: status === 404 ? 'not-found' : 'invalid',
    })
    expect(bench.log.entryCount()).toBe(0)
  },
)

function tooLarge(
  bench: GatewayBench,
  body: NonNullable<RequestInit['body']>,
  headers = {},
): Promise<unknown> {
  return bench.ask('PUT', path, { body, headers, duplex: 'half' })
}

test('a body of more than a mebibyte is 413, told from its length, or when it has no end', async () => {
  const bench = createGatewayBench()
  const problem = {
    status: 413,
    body: { code: 'too-large', limit: 'cellBytesMax', limitValue: cellBytesMax },
  }
  const declared = { 'content-length': '2097152' }
  expect(await tooLarge(bench, '""', declared)).toMatchObject({
    ...{ ...problem, body: { ...problem.body, actual: 2_097_152 } },
  })
  let pulled = 0
  let wasCancelled = false
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      pulled += 1
      controller.enqueue(new Uint8Array(64 * 1024).fill(0x20))
    },
    cancel: () => void (wasCancelled = true),
  })
  expect(await tooLarge(bench, endless)).toMatchObject(problem)
  expect(pulled).toBeLessThan(300)
  expect(wasCancelled).toBe(true)
})

test('a body of exactly a mebibyte is stored and read', async () => {
  const { ask } = createGatewayBench()
  const body = 'x'.repeat(cellBytesMax - 2)
  expect(await ask('PUT', path, { body: JSON.stringify(body) })).toMatchObject({ status: 201 })
  expect(await ask('GET', path)).toMatchObject({ status: 200, body: { body } })
})

test('a body that is no UTF-8, or breaks off, is refused', async () => {
  const { ask } = createGatewayBench()
  expect(await ask('PUT', path, { body: Buffer.from('22ff22', 'hex') })).toMatchObject({
    ...{ status: 400, body: { detail: expect.stringContaining('UTF-8') } },
  })
  const broken = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.error(new Error('reset')),
  })
  expect(await ask('PUT', path, { body: broken, duplex: 'half' })).toMatchObject({
    ...{ status: 400, body: { detail: expect.stringContaining('before it was complete') } },
  })
})

test('a body that says that it is as it is, in UTF-8, is taken, and a read may have conditions', async () => {
  const { ask } = createGatewayBench()
  for (const [refKey, headers] of [
    { 'content-encoding': 'identity' },
    { 'content-type': 'application/json; charset=UTF-8' },
    { 'content-type': 'application/json; charset="utf-8"' },
    { 'content-type': 'application/x-www-form-urlencoded' },
  ].entries()) {
    const put = await ask('PUT', `/cells/${row}/SAID/${refKey}`, { body: '1', headers })
    expect(put.status).toBe(201)
  }
  const got = await ask('GET', `/cells/${row}/SAID/0`, { headers: { 'if-none-match': '"x"' } })
  expect(got.status).toBe(200)
})

test('members called __proto__ are members, and do no harm', async () => {
  const { ask } = createGatewayBench()
  const body = '{"__proto__":{"admin":true},"constructor":{"prototype":1},"toJSON":2}'
  await ask('PUT', path, { body })
  const { body: cell } = await ask('GET', path)
  expect(JSON.stringify(cell)).toContain(`"body":${body}`)
  expect('admin' in {}).toBe(false)
})

test('read=snapshot waits for no peer, and with a given position is not behind it', async () => {
  const gateway = createGatewayBench()
  const { ask, bench, replica } = gateway
  const other = bench.node('n2').store
  replica.isBehind = true
  const items = [{ rowKey: row, column: 'BASE', refKey: 7, body: Buffer.from([1]) }]
  const put = other.execute({ kind: 'put', datastore, items }, { timeoutMs: 1_000 })
  await settled(bench.world, put)
  expect(await ask('GET', `${path}?read=snapshot`)).toMatchObject({ status: 404 })
  expect(replica.currentReads).toBe(0)
  const headers = { 'trilithon-position': `trips/${shard}/1` }
  expect(await ask('GET', `${path}?read=snapshot`, { headers })).toMatchObject({
    body: { body: 1 },
  })
  expect(await ask('GET', `${path}?read=snapshot`)).toMatchObject({ body: { body: 1 } })
})

test.each([
  ['overloaded', 503, 'overloaded', 'safe'],
  ['request-lost', 504, 'unknown-outcome', 'check-first'],
  ['expired', 410, 'expired', 'never'],
] as const)('a put that fails gets the status of its outcome: %s', async (...expected) => {
  const [mishap, status, code, retry] = expected
  const { ask, replica } = createGatewayBench({ timeoutMs: 500 })
  replica.mishaps.push(mishap)
  const answer = await ask('PUT', path, { body: '1' })
  expect(answer).toMatchObject({ status, body: { code, retry, status } })
  expect(answer.headers.get('retry-after')).toBe(status === 503 ? '1' : null)
})

test('a node without its majority answers 503 to current reads', async () => {
  const { ask, replica } = createGatewayBench({ timeoutMs: 500 })
  replica.isCutOff = true
  expect(await ask('GET', path)).toMatchObject({ status: 503, body: { code: 'unavailable' } })
})

test('requests at work are bounded', async () => {
  const { ask, send, bench } = createGatewayBench({ requestsMax: 1 })
  const waiting = send('GET', `/shards/${shard}/cells?wait=5`)
  await passMs(bench.world, 100)
  expect(await ask('GET', path)).toMatchObject({ status: 503, body: { code: 'overloaded' } })
  expect(await settled(bench.world, waiting)).toMatchObject({ status: 200 })
  expect(await ask('GET', path)).toMatchObject({ status: 404 })
})

test('a client that leaves while it waits for new cells frees its place', async () => {
  const { ask, send, bench, replica } = createGatewayBench({ requestsMax: 1 })
  const gone = new AbortController()
  const waiting = send('GET', `/shards/${shard}/cells?wait=60`, { signal: gone.signal })
  await passMs(bench.world, 100)
  expect(replica.watches).toBe(1)
  gone.abort()
  await passMs(bench.world, 100)
  expect(replica.watches).toBe(0)
  expect(await ask('GET', path)).toMatchObject({ status: 404 })
  await settled(bench.world, waiting)
})

const twoShards = JSON.stringify({ shards: [{ shard, after: 0 }, { shard: 7 }] })

test.each([
  ['the versions of a column', 'GET', `/cells/${row}/BASE?all=true`, undefined],
  ['a wait for new cells', 'GET', `/shards/${shard}/cells?wait=1`, undefined],
  ['a batch', 'POST', '/shards:batchGet', twoShards],
])(
  'GATE-3: after its answer a request for %s listens to its connection no longer',
  async (_, method, path, body) => {
    const { app, bench } = createGatewayBench()
    const url = `http://127.0.0.1/v1/datastores/trips${path}`
    const headers = { 'content-type': 'application/json' }
    const request = new Request(url, { method, headers, ...(body !== undefined && { body }) })
    const listen = vi.spyOn(request.signal, 'addEventListener')
    const { status } = await settled(bench.world, Promise.resolve(app.fetch(request)))
    expect(status).toBe(200)
    expect(listen).toHaveBeenCalledTimes(1)
    expect(getEventListeners(request.signal, 'abort')).toEqual([])
  },
)

test('the owner hears of a bug, and the client gets 500 without the bug’s words', async () => {
  const told: unknown[] = []
  const { ask } = createGatewayBench({
    cells: { execute: () => Promise.reject(new Error('secret inner words')) },
    noteBug: (...noted) => {
      told.push(noted)
      return problem('internal', 'error 0badcafe')
    },
  })
  const answer = await ask('GET', path)
  const body = { code: 'internal', retry: 'check-first', detail: 'error 0badcafe' }
  expect(answer).toMatchObject({ status: 500, body })
  expect(JSON.stringify(answer.body)).not.toContain('secret')
  expect(told).toEqual([['http', new Error('secret inner words')]])
})
