/** Rounds that operators begin over HTTP: the right to, and refusals in words. */
import { expect, onTestFinished, test } from 'vitest'
import { StoreError, type StoreErrorCode } from '../../src/base/errors.ts'
import { bytesOfGroup } from '../../src/base/ids.ts'
import { authorization } from '../../src/node/authorization.ts'
import { createMetrics } from '../../src/node/metrics.ts'
import { operationRoutes } from '../../src/node/operations.ts'
import type { UpkeepAccess } from '../../src/node/upkeep-routes.ts'

const secret = 'a secret of sufficient length'
const trusted = { authorization: `Bearer ${secret}` }

/** Each call that has come through; `refusal`: the answer to the next decision. */
class Bench {
  readonly calls: string[] = []
  refusal: StoreErrorCode | undefined
  isOpen = true
  readonly ask: (method: string, path: string, headers?: Record<string, string>) => Promise<Answer>

  constructor(isGateway = false) {
    const metrics = createMetrics({ node: 'x' })
    onTestFinished(() => metrics.close())
    const begin = (name: string) => () => {
      this.calls.push(name)
      return { round: 3, isJoined: false }
    }
    const rounds = { incarnation: 1, isUnderWay: false }
    const upkeep: ReturnType<UpkeepAccess['find']> = {
      ...{ compare: begin('compare'), scrub: begin('scrub') },
      compareReport: {
        ...{ ...rounds, ended: 2, rounds: 0, groups: 0, differences: 0, unequal: 0 },
        ...{ uncompared: 0, mended: 0, aside: 0, open: 0, undecided: 1 },
        ...{ isCounting: true, countedGroups: 4 },
      },
      scrubReport: {
        ...{ ...rounds, ended: 5, scrubbedBytes: 1, scrubbedPart: 1, scrubPasses: 3, aside: 0 },
        ...{ logScrubbedBytes: 1, logScrubbedPart: 1, logScrubPasses: 3, scrubLogDamages: 0 },
        ...{ rowScrubPasses: 4, rowScrubbedGroups: 2, rowScrubWrong: 0 },
      },
      groupLists: { asideGroups: [], undecidedGroups: ['6162'] },
      resolve: (group, from) => {
        this.calls.push(`${Buffer.from(bytesOfGroup(group)).toString()} from ${from}`)
        const { refusal } = this
        return refusal === undefined
          ? Promise.resolve()
          : Promise.reject(new StoreError(refusal, 'no, do that'))
      },
    }
    const access: UpkeepAccess = {
      mayUse: authorization(secret),
      find: () => (this.isOpen ? upkeep : undefined),
    }
    const app = operationRoutes(
      {
        ...{ name: () => 'x', isAlive: () => true, checks: () => [], status: () => ({}) },
        ...{ figures: () => [], ...(!isGateway && { upkeep: access }) },
      },
      metrics,
      { monotonicMs: () => 0 },
    )
    this.ask = async (method, path, headers = trusted) => {
      const response = await app.request(path, { method, headers })
      const text = await response.text()
      const isJson = text !== '' && response.headers.get('content-type')?.includes('json') === true
      const body: unknown = isJson ? JSON.parse(text) : text
      return { status: response.status, body, allow: response.headers.get('allow') ?? undefined }
    }
  }
}

interface Answer {
  readonly status: number
  readonly body: unknown
  readonly allow: string | undefined
}

test('POST begins a round and tells its number; GET begins nothing', async () => {
  const { ask, calls } = new Bench()
  expect(await ask('POST', '/compare')).toMatchObject({
    ...{ status: 202, body: { round: 3, isJoined: false, ended: 2, undecidedGroups: ['6162'] } },
  })
  expect(await ask('POST', '/scrub')).toMatchObject({ status: 202, body: { round: 3, ended: 5 } })
  expect(calls).toEqual(['compare', 'scrub'])
  expect(await ask('GET', '/scrub')).toMatchObject({ status: 200, body: { ended: 5 } })
  expect(await ask('HEAD', '/compare')).toMatchObject({ status: 200 })
  expect(calls).toHaveLength(2)
})

test('figures are open, and names of groups take the secret', async () => {
  const { ask } = new Bench()
  const { body } = await ask('GET', '/compare', {})
  expect(body).toMatchObject({ ended: 2, undecided: 1 })
  expect(JSON.stringify(body)).not.toContain('6162')
  expect(await ask('GET', '/compare')).toMatchObject({ body: { undecidedGroups: ['6162'] } })
})

const decision = '/compare/resolve?group=6162&from=b'

test.for(['/compare', '/scrub', decision])(
  'POST %s without the secret is refused, and begins nothing',
  async (path) => {
    const { ask, calls } = new Bench()
    for (const headers of [{}, { authorization: 'Bearer another secret, of a length' }]) {
      expect(await ask('POST', path, headers)).toMatchObject({
        ...{ status: 401, body: { code: 'forbidden' } },
      })
    }
    expect(calls).toEqual([])
  },
)

test.for([
  ['POST', '/compare'],
  ['GET', '/compare'],
  ['POST', '/scrub'],
  ['GET', '/scrub'],
  ['POST', decision],
] as const)(
  '%s %s: a gateway has no stores, and a node that starts says so',
  async ([method, path]) => {
    const gateway = await new Bench(true).ask(method, path)
    expect(gateway).toMatchObject({
      ...{ status: 404, body: { detail: 'a gateway has no stores: ask a node' } },
    })
    const bench = new Bench()
    bench.isOpen = false
    expect(await bench.ask(method, path)).toMatchObject({
      ...{ status: 503, body: { detail: 'the stores are being opened, or closed: ask again' } },
    })
    expect(bench.calls).toEqual([])
  },
)

test.for([
  ['DELETE', '/compare', 'GET, POST', '/compare is asked with GET or POST, not DELETE'],
  ['PUT', '/scrub', 'GET, POST', '/scrub is asked with GET or POST, not PUT'],
  ['GET', decision, 'POST', '/compare/resolve is asked with POST, not GET'],
] as const)('%s %s is another method', async ([method, path, allow, detail]) => {
  expect(await new Bench().ask(method, path)).toMatchObject({
    ...{ status: 405, allow, body: { detail } },
  })
})

test.for([
  ['/compare?now', 'this request takes no parameters\n'],
  ['/scrub?pace=1', 'this request takes no parameters\n'],
  ['/compare/resolve', 'the parameter group is missing: the name of the group in hexadecimal, as'],
  ['/compare/resolve?group=61', 'the parameter from is missing: the node whose rows are taken\n'],
  ['/compare/resolve?group=61&from=', 'the parameter from is missing'],
  [`${decision}&from=c`, 'the parameter from is given twice\n'],
  [`${decision}&yes=true`, 'there is no parameter "yes" here, only group, from\n'],
] as const)('POST %s has other parameters', async ([path, words]) => {
  const { ask, calls } = new Bench()
  const { status, body } = await ask('POST', path)
  expect([status, String(body).slice(0, words.length)]).toEqual([400, words])
  expect(calls).toEqual([])
})

test('a body is refused, since nothing would read it', async () => {
  const { ask, calls } = new Bench()
  for (const more of [{ 'content-length': '2' }, { 'transfer-encoding': 'chunked' }]) {
    expect(await ask('POST', '/scrub', { ...trusted, ...more })).toMatchObject({
      ...{ status: 400, body: { detail: 'this request takes no body' } },
    })
  }
  expect(calls).toEqual([])
})

test('HEAL-8: a decision names the group in hexadecimal and a node, and refusals keep their words', async () => {
  const bench = new Bench()
  expect(await bench.ask('POST', decision)).toEqual({
    ...{ status: 202, body: { group: '6162', from: 'b' }, allow: undefined },
  })
  expect(bench.calls).toEqual(['ab from b'])
  for (const name of ['6', '6G', 'AB', '61'.repeat(1_025)]) {
    const answer = await bench.ask('POST', `/compare/resolve?group=${name}&from=b`)
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid' } })
    expect(answer.body).toMatchObject({ detail: expect.stringContaining('compare status lists') })
  }
  expect(await bench.ask('POST', '/compare/resolve?group=61&from=B%20b')).toMatchObject({
    ...{ status: 400, body: { detail: 'from: "B b" names no node' } },
  })
  expect(bench.calls).toHaveLength(1)
  for (const [code, status] of [
    ['invalid', 400],
    ['not-found', 404],
    ['unavailable', 503],
  ] as const) {
    bench.refusal = code
    expect(await bench.ask('POST', decision)).toMatchObject({
      ...{ status, body: { code, detail: 'no, do that' } },
    })
  }
})
