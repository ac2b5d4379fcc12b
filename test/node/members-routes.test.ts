/** The voters of a replica set over HTTP, changes of them that operators begin, and refusals in words. */
import { expect, onTestFinished, test } from 'vitest'
import { StoreError, type StoreErrorCode } from '../../src/base/errors.ts'
import { nodeId, storeId, type NodeId } from '../../src/base/ids.ts'
import type { Change } from '../../src/members/change.ts'
import type { MembersPort } from '../../src/members/report.ts'
import { authorization } from '../../src/node/authorization.ts'
import { createMetrics } from '../../src/node/metrics.ts'
import { operationRoutes } from '../../src/node/operations.ts'

const secret = 'a secret of sufficient length'
const trusted = { authorization: `Bearer ${secret}` }
const sinceMicros = Date.UTC(2026, 0, 31, 8, 30) * 1_000
const since = '2026-01-31T08:30:00.000000Z'
const store = storeId('30541edc-3175-4700-9226-c2bc18fbfb5c')
const members = [
  { node: nodeId('n1'), storeId: store, isAlive: true, epoch: 1, standing: 'voting' },
  { node: nodeId('n2'), isAlive: false, standing: 'unknown' },
] as const
const adding: Change = {
  ...{ number: 3, kind: 'add', phase: 'copying', node: nodeId('n4'), seat: 8193, sinceMicros },
}
const joining: Change = { ...adding, number: 5, kind: 'add-reader' }
const removing: Change = {
  ...{ number: 4, kind: 'remove', phase: 'sealing', node: nodeId('n3'), sinceMicros },
}
const replacing: Change = {
  ...{ number: 1, kind: 'replace', phase: 'copying', node: nodeId('n2'), seat: 4097, sinceMicros },
}

interface Answer {
  readonly status: number
  readonly body: unknown
  readonly allow: string | undefined
}

/** Each call that has come through; `refusal`: the answer to the next one. */
class Bench {
  readonly calls: string[] = []
  refusal: StoreError | undefined
  change: Change | undefined
  isOpen = true
  readonly ask: (method: string, path: string, headers?: Record<string, string>) => Promise<Answer>

  constructor(isGateway = false) {
    const metrics = createMetrics({ node: 'x' })
    onTestFinished(() => metrics.close())
    const port = this.#port()
    const access = {
      mayUse: authorization(secret),
      find: () => (this.isOpen ? port : undefined),
    }
    const app = operationRoutes(
      {
        ...{ name: () => 'x', isAlive: () => true, checks: () => [], status: () => ({}) },
        ...{ figures: () => [], ...(!isGateway && { members: access }) },
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

  #port(): MembersPort {
    const answer = async (call: string, change: Change): Promise<{ readonly change: Change }> => {
      this.calls.push(call)
      if (this.refusal !== undefined) throw this.refusal
      return { change }
    }
    const report = (): MembersPort['report'] => ({
      ...{ epoch: 1, standing: 'voting', blockedGroups: 0, members, canLose: 0 },
      ...(this.change !== undefined && { change: this.change }),
    })
    return {
      get report() {
        return report()
      },
      replace: (node: NodeId) => answer(`replace ${node}`, replacing),
      add: (node: NodeId, url: string) => answer(`add ${node} ${url}`, adding),
      addReader: (node: NodeId, url: string) => answer(`add-reader ${node} ${url}`, joining),
      promote: (node: NodeId) => answer(`promote ${node}`, { ...joining, kind: 'promote' }),
      demote: (node: NodeId) => answer(`demote ${node}`, { ...removing, kind: 'demote' }),
      remove: (node: NodeId) => answer(`remove ${node}`, removing),
      renew: () => answer('renew', { number: 2, kind: 'renew', phase: 'sealing', sinceMicros }),
      cancel: (number?: number) =>
        answer(number === undefined ? 'cancel' : `cancel ${number}`, {
          ...replacing,
          phase: 'given-up',
        }),
      raise: () => Promise.reject(new StoreError('internal', 'not asked here')),
    }
  }
}

const replace = '/members/replace?node=n2'
const add = `/members/add?${new URLSearchParams({ node: 'n4', url: 'ws://10.0.0.4:4700/' }).toString()}`
const remove = '/members/remove?node=n3'
const addReader = add.replace('/add', '/add-reader')
const [promote, demote] = ['/members/promote?node=n4', '/members/demote?node=n3']
const changes = [
  ...[replace, add, addReader, promote, demote, remove, '/members/renew', '/members/cancel'],
]

test('GET tells the voters and the last change, its moment in words too, and is open', async () => {
  const bench = new Bench()
  const report = { epoch: 1, standing: 'voting', blockedGroups: 0, canLose: 0, members }
  expect(await bench.ask('GET', '/members', {})).toEqual({
    ...{ status: 200, body: report, allow: undefined },
  })
  bench.change = { ...replacing, store }
  expect(await bench.ask('GET', '/members', {})).toMatchObject({
    body: { ...report, change: { ...replacing, store, since } },
  })
  expect(await bench.ask('HEAD', '/members', {})).toMatchObject({ status: 200 })
  expect(bench.calls).toEqual([])
})

test('POST begins a change or gives it up, and tells which one', async () => {
  const { ask, calls } = new Bench()
  expect(await ask('POST', replace)).toEqual({
    ...{ status: 202, body: { change: { ...replacing, since } }, allow: undefined },
  })
  expect(await ask('POST', add)).toMatchObject({ status: 202, body: { change: adding } })
  expect(await ask('POST', remove)).toMatchObject({ status: 202, body: { change: removing } })
  expect(await ask('POST', '/members/renew')).toMatchObject({
    ...{ status: 202, body: { change: { number: 2, kind: 'renew', phase: 'sealing', since } } },
  })
  expect(await ask('POST', '/members/cancel')).toMatchObject({
    ...{ status: 202, body: { change: { number: 1, phase: 'given-up', since } } },
  })
  expect(await ask('POST', addReader)).toMatchObject({ status: 202, body: { change: joining } })
  expect(await ask('POST', promote)).toMatchObject({ body: { change: { kind: 'promote' } } })
  expect(await ask('POST', demote)).toMatchObject({ body: { change: { kind: 'demote' } } })
  const added = 'add n4 http://10.0.0.4:4700'
  const read = 'add-reader n4 http://10.0.0.4:4700'
  const readers = [read, 'promote n4', 'demote n3']
  expect(calls).toEqual(['replace n2', added, 'remove n3', 'renew', 'cancel', ...readers])
})

test.for(changes)('POST %s without the secret or with a body changes nothing', async (path) => {
  const { ask, calls } = new Bench()
  for (const headers of [{}, { authorization: 'Bearer another secret, of a length' }]) {
    expect(await ask('POST', path, headers)).toMatchObject({
      ...{ status: 401, body: { code: 'forbidden' } },
    })
  }
  expect(await ask('POST', path, { ...trusted, 'content-length': '2' })).toMatchObject({
    ...{ status: 400, body: { detail: 'this request takes no body' } },
  })
  expect(calls).toEqual([])
})

test.for(['GET /members', ...changes.map((path) => `POST ${path}`)])(
  '%s: a gateway has no stores, and a node that starts says so',
  async (request) => {
    const [method = '', path = ''] = request.split(' ')
    expect(await new Bench(true).ask(method, path)).toMatchObject({
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

test.for(changes)('POST %s keeps the code and the words of a refusal', async (path) => {
  const bench = new Bench()
  const cases: readonly (readonly [StoreErrorCode, number])[] = [
    ['invalid', 400],
    ['unavailable', 503],
  ]
  for (const [code, status] of cases) {
    bench.refusal = new StoreError(code, 'no, do that')
    expect(await bench.ask('POST', path)).toMatchObject({
      ...{ status, body: { code, detail: 'no, do that' } },
    })
  }
})

test.for([
  ['DELETE', '/members', 'GET', '/members is asked with GET, not DELETE'],
  ['POST', '/members', 'GET', '/members is asked with GET, not POST'],
  ['GET', replace, 'POST', '/members/replace is asked with POST, not GET'],
  ['GET', '/members/cancel', 'POST', '/members/cancel is asked with POST, not GET'],
] as const)('%s %s is another method', async ([method, path, allow, detail]) => {
  expect(await new Bench().ask(method, path)).toMatchObject({
    ...{ status: 405, allow, body: { detail } },
  })
})

test.for([
  ['/members/replace', 'the parameter node is missing: the node whose store is replaced\n'],
  [`${replace}&node=n3`, 'the parameter node is given twice\n'],
  [`${replace}&force=true`, 'there is no parameter "force" here, only node\n'],
  [
    '/members/add?node=n4',
    'the parameter url is missing: where the others reach it: scheme, host and port\n',
  ],
  ['/members/remove', 'the parameter node is missing: the node that leaves\n'],
  ['/members/renew?node=n2', 'this request takes no parameters\n'],
] as const)('POST %s has other parameters', async ([path, body]) => {
  const { ask, calls } = new Bench()
  expect(await ask('POST', path)).toMatchObject({ status: 400, body })
  expect(calls).toEqual([])
})

test.for([
  ['ten', 'url: wants a URL such as http://127.0.0.1:4700, not "ten"'],
  [
    'http://10.0.0.4:4700/x',
    'url: wants a URL such as http://127.0.0.1:4700, not "http://10.0.0.4:4700/x": only scheme, host and port',
  ],
  [
    'http://10.0.0.4:0',
    'url: wants a URL such as http://127.0.0.1:4700, not "http://10.0.0.4:0": no process can be called at port 0',
  ],
  [
    'http://0.0.0.0:4700',
    'url: "http://0.0.0.0:4700" is an address to listen on: the others would reach themselves by it',
  ],
] as const)('POST /members/add refuses the url %s', async ([url, detail]) => {
  const { ask, calls } = new Bench()
  const query = new URLSearchParams({ node: 'n4', url }).toString()
  expect(await ask('POST', `/members/add?${query}`)).toMatchObject({
    ...{ status: 400, body: { code: 'invalid', detail } },
  })
  expect(calls).toEqual([])
})

test('a name that no node can have is refused, and changes nothing', async () => {
  const { ask, calls } = new Bench()
  expect(await ask('POST', '/members/replace?node=N%202')).toMatchObject({
    ...{ status: 400, body: { code: 'invalid', detail: 'node: "N 2" names no node' } },
  })
  expect(calls).toEqual([])
})

test('a change is given up by its number, which has to be one', async () => {
  const bench = new Bench()
  expect((await bench.ask('POST', '/members/cancel?number=7')).status).toBe(202)
  expect(bench.calls).toEqual(['cancel 7'])
  for (const odd of ['0', '-1', 'x', '1.5', '']) {
    const { status, body } = await bench.ask('POST', `/members/cancel?number=${odd}`)
    expect([status, body], odd).toMatchObject([400, { detail: expect.stringContaining('number') }])
  }
  expect(bench.calls).toHaveLength(1)
})
