/** Clients send more over HTTP than the gateway can do: it refuses before it works on a request. */
import { expect, test } from 'vitest'
import { gatewayFetch } from '../../src/gateway/http.ts'
import { laneOfHttp } from '../../src/gateway/early-refusal.ts'
import { routes } from '../../src/gateway/routes.ts'
import { Admission, defaultAdmissionLimits } from '../../src/node/admission.ts'
import { defaultWorkLimits } from '../../src/node/work-limit.ts'
import { Slices } from '../../src/ports/slices.ts'
import { noteBug } from '../bugs.ts'
import { createBench, passMs, rowKey } from '../cells/kit.ts'

const cellPath = `http://node/v1/datastores/trips/cells/${rowKey(1)}/BASE/0`

test('LOAD-5: the gateway refuses excess writes before routing, with Retry-After, and serves reads', async () => {
  const bench = createBench()
  const clock = bench.clockOf('n1')
  const work = { ...defaultWorkLimits, startMax: 1, leastMax: 1 }
  const admission = new Admission(clock, { ...defaultAdmissionLimits, work, fewMax: 1 })
  const { store } = bench.node('n1')
  const asked: string[] = []
  const cells = {
    execute: (...[operation, options]: Parameters<typeof store.execute>) => {
      asked.push(operation.kind)
      return store.execute(operation, options)
    },
  }
  const fetch = gatewayFetch({ cells, slices: new Slices(clock), admission, noteBug })
  const put = (): Response | Promise<Response> =>
    fetch(new Request(cellPath, { method: 'PUT', body: '{"a":1}' }))
  // One write is at work for good, from a client link, and more and more wait behind it.
  void admission.pass('writes', 60_000)
  for (let i = 0; i < 100; i++) {
    void admission.pass('writes', 60_000)
    await passMs(bench.world, 20)
  }
  const refused = await put()
  expect(refused.status).toBe(503)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  expect(refused.headers.get('content-type')).toBe('application/problem+json')
  const told: unknown = await refused.json()
  expect(told).toMatchObject({
    type: 'urn:trilithon:problem:overloaded',
    code: 'overloaded',
    retry: 'safe',
    retryAfterMs: expect.any(Number),
  })
  // The gateway does not read a request that it refuses so: it does not say that this is no cell.
  const none = 'http://node/v1/nothing'
  expect((await fetch(new Request(none, { method: 'PUT', body: '{' }))).status).toBe(503)
  expect(asked).toEqual([])
  const got = fetch(new Request(cellPath))
  await passMs(bench.world, 100)
  expect((await got).status).toBe(404)
  expect((await fetch(new Request('http://node/openapi.json'))).status).toBe(200)
})

test('LOAD-5: each route waits in the lane of what it does', () => {
  const writing = routes.filter(({ method, path }) => laneOfHttp(method, path) === 'writes')
  expect(writing.map(({ operationId }) => operationId).toSorted()).toEqual([
    'batchPutCells',
    'declareDatastore',
    'dropIndex',
    'purgeCell',
    'purgeShard',
    'putCell',
  ])
})
