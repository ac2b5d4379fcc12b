/** The builds of a replica set over HTTP, the next cluster version, and a process that acts as a build of before. */
import { expect, onTestFinished, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { nodeId } from '../../src/base/ids.ts'
import type { MembersPort } from '../../src/members/report.ts'
import { authorization } from '../../src/node/authorization.ts'
import { createMetrics } from '../../src/node/metrics.ts'
import { findParameterProblem } from '../../src/node/operation-answer.ts'
import { isOperation, operationAnswers, operationRoutes } from '../../src/node/operations.ts'

const secret = 'a secret of sufficient length'
const trusted = { authorization: `Bearer ${secret}` }
const [n1, n2] = [nodeId('n1'), nodeId('n2')]
const both = { min: 1, max: 2 }
const report: MembersPort['report'] = {
  ...{ epoch: 1, standing: 'voting', blockedGroups: 0, canLose: 0, version: 1 },
  members: [
    { node: n1, isAlive: true, standing: 'voting', supports: both, version: 1 },
    { node: n2, isAlive: false, standing: 'unknown' },
  ],
}
const nodes = [{ id: 'n1', url: 'http://h:1', set: 'main' }]

type Ask = (method: string, path: string, headers?: Record<string, string>) => Promise<unknown[]>

function serving(raise: MembersPort['raise']): Ask {
  const metrics = createMetrics({ node: 'x' })
  onTestFinished(() => metrics.close())
  const refuse = (): never => {
    throw new StoreError('internal', 'not asked here')
  }
  const port: MembersPort = {
    ...{ report, raise, replace: refuse, add: refuse, addReader: refuse, promote: refuse },
    ...{ demote: refuse, remove: refuse, renew: refuse, cancel: refuse },
  }
  const urls = new Map([['n1', 'http://h:1']])
  const app = operationRoutes(
    {
      ...{ name: () => 'x', isAlive: () => true, checks: () => [], status: () => ({}) },
      figures: () => [],
      upgrade: {
        ...{ mayUse: authorization(secret), find: () => port },
        self: () => ({ node: 'n1', set: 'main', build: '9.9.9', nodes, urls }),
      },
    },
    metrics,
    { monotonicMs: () => 0 },
  )
  return async (method, path, headers = trusted) => {
    const response = await app.request(path, { method, headers })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') === true
    const body: unknown = isJson ? JSON.parse(text) : text
    return [response.status, body]
  }
}

test('GET tells the builds and the version in force, and is open', async () => {
  const ask = serving(async (version) => ({ version }))
  expect(await ask('GET', '/upgrade', {})).toEqual([
    200,
    {
      ...{ node: 'n1', set: 'main', build: '9.9.9', supports: both, version: 1, epoch: 1, nodes },
      members: [
        { node: 'n1', url: 'http://h:1', isAlive: true, supports: both, version: 1 },
        { node: 'n2', isAlive: false },
      ],
    },
  ])
})

test('UPG-2: POST raises the version with the secret, and refuses in words', async () => {
  const ask = serving(async (version) => {
    if (version === 2) return { version }
    throw new StoreError('unavailable', 'n2 does not answer here')
  })
  expect(await ask('POST', '/upgrade/finalize?to=2')).toEqual([200, { version: 2 }])
  expect((await ask('POST', '/upgrade/finalize?to=2', {}))[0]).toBe(401)
  const [status, problem] = await ask('POST', '/upgrade/finalize?to=3')
  expect([status, problem]).toMatchObject([503, { detail: 'n2 does not answer here' }])
  for (const odd of ['0', '-1', '1.5', 'x', '2x', '1000001']) {
    const refused = await ask('POST', `/upgrade/finalize?to=${odd}`)
    expect(refused, odd).toMatchObject([400, { detail: expect.stringContaining('no cluster') }])
  }
  expect((await ask('POST', '/upgrade/finalize'))[0]).toBe(400)
})

test('UPG-3: a process that acts as a build of before knows none of these requests, nor the number of a change', () => {
  const asked = ['/upgrade', '/upgrade/finalize', '/members'].map((path) => {
    const request = new Request(`http://h${path}`)
    return [isOperation(request), isOperation(request, 2), isOperation(request, 1)]
  })
  expect(asked).toEqual([
    [true, true, false],
    [true, true, false],
    [true, true, true],
  ])
  const cancel = operationAnswers.find(({ path }) => path === '/members/cancel') ?? {}
  const given = new URLSearchParams({ number: '3' })
  expect(findParameterProblem(cancel, given)).toBe(undefined)
  expect(findParameterProblem(cancel, given, 1)).toBe('this request takes no parameters')
  expect(findParameterProblem(cancel, new URLSearchParams({ x: '3' }))).toBe(
    'there is no parameter "x" here, only number',
  )
})
