import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { expect, test } from 'vitest'
import { shardOf } from '../../src/client/row-shard.ts'
import { openApiDocument } from '../../src/gateway/openapi.ts'
import { createMetrics } from '../../src/node/metrics.ts'
import { operationRoutes } from '../../src/node/operations.ts'
import { openCellTables } from '../../src/cells/cell-table.ts'
import { checkDefinition } from '../../src/cells/index-definition.ts'
import { applyIndex } from '../../src/cells/index-registry.ts'
import { LocalGroups } from '../../src/txn/local-groups.ts'
import { rowKey, settled } from '../cells/kit.ts'
import { makeReady } from '../cells/ready-index.ts'
import { createGatewayBench, type GatewayBench, type Init } from './kit.ts'

const row = rowKey(1)
const shard = shardOf(row)

/** `document.a.b` of what is not known to have it. */
function at(value: unknown, ...path: readonly string[]): unknown {
  let found: unknown = value
  for (const name of path) {
    found = new Map(members(found)).get(name)
  }
  return found
}

function members(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : []
}

/** Checks values against the schemas of a document. */
function validatorOf(document: unknown): Ajv2020 {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'doc', ...Object.fromEntries(members(document)) })
  return ajv
}

async function served(): Promise<unknown> {
  const { ask } = createGatewayBench({ version: '1.2.3' })
  const answer = await ask('GET', '/openapi.json')
  expect(answer.status).toBe(200)
  return answer.body
}

test('the document that is served is sound OpenAPI 3.1, by the rules of a linter', async () => {
  const document = await served()
  expect(document).toMatchObject({ openapi: '3.1.0', info: { version: '1.2.3' } })
  // Nothing that a client sends can be wrong for a question about health.
  const rules = { 'operation-4xx-response': 'off' } as const
  const config = await createConfig({ extends: ['recommended-strict'], rules })
  const found = await lintFromString({ source: JSON.stringify(document), config })
  const told = found.map(({ ruleId, message, location }) => {
    return `${ruleId}: ${message} (${location[0]?.pointer ?? ''})`
  })
  expect(told).toEqual([])
})

test('the linter finds what is wrong', async () => {
  const document = JSON.stringify(await served()).replace('#/components/schemas/Cell"', '#/gone"')
  const config = await createConfig({ extends: ['recommended-strict'] })
  const found = await lintFromString({ source: document, config })
  expect(found.map(({ ruleId }) => ruleId)).toContain('no-unresolved-refs')
})

test('every route of the applications is in the document, and every path of it is a route', () => {
  const { app } = createGatewayBench()
  const metrics = createMetrics({})
  const self = {
    ...{ name: () => '', isAlive: () => true, checks: () => [] },
    ...{ status: () => ({}), figures: () => [] },
  }
  const operations = operationRoutes(self, metrics, systemClock)
  metrics.close()
  const routed = [...app.routes, ...operations.routes]
    .filter(({ method, path }) => method !== 'ALL' && path !== '/openapi.json')
    .map(({ method, path }) => `${method} ${path.replaceAll(/\/:(\w+)/g, '/{$1}')}`)
  const described = members(openApiDocument('1')['paths']).flatMap(([path, methods]) =>
    members(methods).map(([method]) => `${method.toUpperCase()} ${path}`),
  )
  expect(described.sort()).toEqual(routed.sort())
})

interface Sent {
  readonly method: string
  /** As in the document. */
  readonly path: string
  readonly query?: string
  readonly init?: Init
  readonly status: number
}

const name = { rowKey: row, column: 'BASE' }
const json = (value: unknown): { readonly init: Init } => ({ init: { json: value } })
const put = '/cells/{rowKey}/{column}/{refKey}'

/** One after another, on one store; each answer must be what the document says. */
const exchanges: readonly Sent[] = [
  { method: 'PUT', path: put, ...json({ fare: 12.5 }), status: 201 },
  { method: 'PUT', path: put, ...json({ fare: 12.5 }), status: 200 },
  { method: 'PUT', path: put, ...json({ fare: 13 }), status: 409 },
  { method: 'PUT', path: put, init: { body: '{' }, status: 400 },
  { method: 'PUT', path: put, init: { body: `"${'x'.repeat(1 << 20)}"` }, status: 413 },
  { method: 'GET', path: put, status: 200 },
  { method: 'GET', path: put, query: '?read=snapshot', status: 200 },
  { method: 'GET', path: put, query: '?read=some', status: 400 },
  { method: 'GET', path: put, query: '?max_staleness_ms=500', status: 200 },
  { method: 'GET', path: put, query: '?max_staleness_ms=5', status: 400 },
  { method: 'GET', path: '/cells/{rowKey}/{column}', status: 200 },
  { method: 'GET', path: '/cells/{rowKey}/{column}', query: '?all=true&limit=1', status: 200 },
  { method: 'GET', path: '/cells/{rowKey}', status: 200 },
  { method: 'GET', path: '/shards/{shard}/cells', query: '?limit=1', status: 200 },
  { method: 'GET', path: '/shards/{shard}/cells', query: '?since=2020-01-01', status: 200 },
  {
    ...{ method: 'POST', path: '/cells:batchPut', status: 200 },
    ...json({
      cells: [
        { ...name, refKey: 2, body: null },
        { ...name, refKey: 7, body: 1 },
      ],
    }),
  },
  {
    ...{ method: 'POST', path: '/cells:batchGet', status: 200 },
    ...json({ cells: [{ ...name }, { ...name, refKey: 99 }, { ...name, rowKey: '7' }] }),
  },
  { method: 'POST', path: '/cells:batchGet', ...json({ cells: [] }), status: 400 },
  {
    ...{ method: 'POST', path: '/shards:batchGet', status: 200 },
    ...json({ shards: [{ shard }, { shard: 1, after: 3 }], limit: 3, wait: 0 }),
  },
]

const purge = '/shards/{shard}/cells:purge'
const purges: readonly Sent[] = [
  { method: 'POST', path: purge, ...json({ before: '2200-01-01', limit: 1 }), status: 200 },
  { method: 'POST', path: purge, ...json({ before: '2020-01-01', column: 'BASE' }), status: 200 },
  { method: 'POST', path: purge, ...json({ before: 'yesterday' }), status: 400 },
  { method: 'POST', path: purge, ...json({ before: '2020-01-01', limit: 201 }), status: 400 },
  { method: 'POST', path: purge, ...json({ before: '2020-01-01', keepLatest: 1 }), status: 400 },
  { method: 'PUT', path: put, ...json({ fare: 12.5 }), status: 200 },
  { method: 'DELETE', path: put, status: 200 },
]

const found = '/indexes/{name}'
const queries: readonly Sent[] = [
  { method: 'GET', path: found, query: '?city=Berlin&select=city&limit=2', status: 200 },
  { method: 'GET', path: found, query: '?fare.gte=1', status: 400 },
  { method: 'DELETE', path: found, query: '?grace=many', status: 400 },
  { method: 'DELETE', path: found, query: '?grace=86401', status: 400 },
  { method: 'DELETE', path: found, status: 202 },
  { method: 'GET', path: found, query: '?city=Berlin', status: 404 },
  { method: 'DELETE', path: found, query: '?grace=0', status: 200 },
  { method: 'DELETE', path: found, query: '?grace=0', status: 404 },
]

/** An index with nothing in it. */
async function declareIndex({ bench, replica }: GatewayBench, isBuilt = true): Promise<void> {
  const columns = [{ column_key: 'BASE', fields: [{ field: 'city', type: 'string' }] }]
  const checked = checkDefinition({ table: 'by_city', datastore: 'trips', column_defs: columns })
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems))
  const clock = bench.clockOf('indexes')
  const tables = openCellTables(new LocalGroups(replica), { clock, random: bench.random })
  await settled(bench.world, applyIndex(tables, checked.definition, clock))
  if (!isBuilt) return
  await settled(bench.world, makeReady(tables, clock, { ...checked.definition, number: 1 }))
}

const all = '/v1/datastores'
const declarations: readonly Sent[] = [
  { method: 'GET', path: '', status: 404 },
  { method: 'PUT', path: '', ...json({ shards: 3 }), status: 400 },
  { method: 'PUT', path: '', ...json({ placement: {} }), status: 400 },
  { method: 'PUT', path: '', ...json({ shards: 64, placement: { region: 'eu' } }), status: 409 },
  { method: 'GET', path: all, status: 200 },
  { method: 'PUT', path: '', ...json({ shards: 4096 }), status: 201 },
  { method: 'PUT', path: '', ...json({}), status: 200 },
  { method: 'PUT', path: '', ...json({ placement: { set: 'west' } }), status: 409 },
  { method: 'GET', path: '', status: 200 },
  { method: 'GET', path: all, status: 200 },
]

const segments: Readonly<Record<string, string>> = {
  ...{ rowKey: row, column: 'BASE', refKey: '7', shard: String(shard), name: 'by_city' },
}

test('answers and accepted bodies have the forms that the document gives them', async () => {
  const document = await served()
  const ajv = validatorOf(document)
  const gateway = createGatewayBench()
  const { ask } = gateway
  await declareIndex(gateway)
  const tried = new Set<string>()
  for (const { method, path, query = '', init, status } of [
    ...exchanges,
    ...queries,
    ...purges,
    ...declarations,
  ]) {
    const url = path.replaceAll(/\{(\w+)\}/g, (_, segment: string) => segments[segment] ?? '')
    const answer = await ask(method, url + query, init)
    expect(answer.status, `${method} ${url}${query}`).toBe(status)
    const pointer = path === all ? all : `${all}/{datastore}${path}`
    const operation = at(document, 'paths', pointer, method.toLowerCase())
    tried.add(String(at(operation, 'operationId')))
    const [type = ''] = (answer.headers.get('content-type') ?? '').split(';')
    const schema = at(operation, 'responses', String(status), 'content', type, 'schema')
    expect(schema, `${method} ${path} ${status} is described`).toBeDefined()
    const isFine = ajv.validate(inDocument(schema), answer.body)
    expect(isFine, `${method} ${url} ${status}: ${ajv.errorsText()}`).toBe(true)
    if (init?.json === undefined || status >= 300) continue
    const asked = at(operation, 'requestBody', 'content', 'application/json', 'schema')
    expect(ajv.validate(inDocument(asked), init.json), ajv.errorsText()).toBe(true)
  }
  const described = members(at(document, 'paths')).flatMap(([, methods]) =>
    members(methods).map(([, operation]) => String(at(operation, 'operationId'))),
  )
  const operations = [
    ...['greet', 'isAlive', 'isReady', 'getStatus', 'getErase', 'getMetrics'],
    ...['getComparison', 'compare', 'resolve', 'getScrub', 'scrub'],
    ...['findGroup', 'getSet', 'addSet', 'giveBuckets', 'keepBuckets'],
    ...['getUpgrade', 'finalizeUpgrade'],
    ...['getMembers', 'replaceMember', 'addMember', 'removeMember', 'renewMembers', 'cancelChange'],
    ...['addReader', 'promoteMember', 'demoteMember'],
  ]
  expect([...tried, ...operations].sort()).toEqual(described.sort())
})

test('a query of an index that is being built gets 503 and says why', async () => {
  const gateway = createGatewayBench()
  await declareIndex(gateway, false)
  const { status, body } = await gateway.ask('GET', '/indexes/by_city?city=Berlin')
  expect(status).toBe(503)
  expect(body).toMatchObject({ code: 'unavailable', retry: 'safe', index: 'declared' })
  const document = await served()
  const problem = at(document, 'components', 'schemas', 'Problem')
  expect(validatorOf(document).validate(inDocument(problem), body)).toBe(true)
})

/** A schema whose references are into the document. */
function inDocument(schema: unknown): object {
  const parsed: object = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"doc#/'))
  return parsed
}

test('the gateway refuses requests that the document does not allow', async () => {
  const document = await served()
  const ajv = validatorOf(document)
  const { ask } = createGatewayBench()
  const bodies: readonly (readonly [path: string, schema: string, body: unknown])[] = [
    ['/cells:batchPut', 'PutBatch', { cells: [{ ...name, refKey: 1, body: 1, more: 1 }] }],
    ['/cells:batchPut', 'PutBatch', { cells: [{ ...name, body: 1 }] }],
    ['/cells:batchGet', 'GetBatch', { cells: [{ rowKey: row }] }],
    ['/cells:batchGet', 'GetBatch', { cells: Array.from({ length: 1001 }, () => name) }],
    ['/shards:batchGet', 'LogBatch', { shards: [{ shard: 1, after: 1, since: '2020-01-01' }] }],
    ['/shards:batchGet', 'LogBatch', { shards: [{ shard: 1 }], limit: 0 }],
    ['/shards:batchGet', 'LogBatch', { shards: [{ shard: 1 }], wait: 61 }],
  ]
  for (const [path, schema, body] of bodies) {
    expect(ajv.validate({ $ref: `doc#/components/schemas/${schema}` }, body)).toBe(false)
    const { status } = await ask('POST', path, { json: body })
    expect([400, 413], `${path} ${JSON.stringify(body).slice(0, 80)}`).toContain(status)
  }
})
