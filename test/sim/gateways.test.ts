/** Gateways in the simulated world, and the HTTP client that asks them. */
import { expect, test } from 'vitest'
import type { Fault } from '../../sim/faults/fault.ts'
import type { GatewayOptions } from '../../sim/cluster/gateway-draw.ts'
import { HttpCaller } from '../../sim/workloads/http-caller.ts'
import { answered, type HttpAnswer, type HttpFrame } from '../../sim/cluster/http-wire.ts'
import { SeededRandom } from '../../sim/world/random.ts'
import { runPlan, type RunPlan } from '../../sim/run.ts'
import { drawSwarm } from '../../sim/swarm.ts'
import { noFaultRates } from '../../sim/faults/swarm-faults.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import type { TransportHandlers } from '../../src/ports/transport.ts'

const second = 1_000_000

const gateways: GatewayOptions = {
  ...{ count: 2, webClientCount: 2, batchCallerCount: 3, askTimeoutMs: 1_000, triesMax: 3 },
  ...{ tryTimeoutMs: 200, failuresMax: 1, openMs: 500 },
}

/** Cells alone: with tables and queues a run takes several times as long. */
function planOf(faults: readonly Fault[]): RunPlan {
  const options = drawSwarm(1, { only: [] })
  const workload = {
    ...{ ...options.workload, clientCount: 4, operationsPerClient: 40, gateways },
    ...{ tableSessionCount: 0, queues: { ...options.workload.queues, sessionCount: 0 } },
  }
  const skew = { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 }
  return {
    options: {
      ...{ ...options, nodeCount: 3, setCount: 1, skews: [skew, skew, skew] },
      healing: { isCoreFirst: false, coreOrder: ['n1', 'n2', 'n3'], rest: 'down' },
      ...{ faultRates: noFaultRates(6 * second), workload },
    },
    faults,
  }
}

test('cells go over HTTP and through the library, judged as one history', async () => {
  const { outcome, violations, coverage } = await runPlan(planOf([]))
  expect([outcome, violations]).toEqual(['clean', []])
  for (const name of ['PUT 201', 'PUT 409', 'GET 200', 'batch of puts', 'batch of gets']) {
    expect(coverage[`gateway: ${name}`], name).toBeGreaterThan(0)
  }
})

test('answers stay true and repeatable while gateways die and stand still and nodes are cut off', async () => {
  const deaths = [1, 2, 3, 4].map((i): Fault => {
    return { kind: 'client-death', atMicros: i * second, client: 'gw1', downMicros: 200_000 }
  })
  const pause: Fault = {
    kind: 'client-pause',
    atMicros: second,
    client: 'gw2',
    lengthMicros: second,
  }
  const ways = [
    ['gw1', 'n1'],
    ['n1', 'gw1'],
    ['gw2', 'n1'],
    ['n1', 'gw2'],
  ] as const
  const cut: Fault = {
    ...{ kind: 'cut', atMicros: 3 * second, lengthMicros: 3 * second, ways, resets: false },
  }
  const plan = planOf([...deaths, pause, cut])
  const result = await runPlan(plan)
  expect([result.outcome, result.violations]).toEqual(['clean', []])
  expect(result.coverage['client-death']).toBe(4)
  expect(result.coverage['client-pause']).toBe(1)
  expect((await runPlan(plan)).hash).toBe(result.hash)
})

test('LIVE-1: where all are far from one another, applications wait for answers that come', async () => {
  const { options, faults } = planOf([])
  const link = { ...options.link, delayMinMicros: 1_700, far: 1_000_000, farFactor: 20 }
  const hurried = { ...gateways, askTimeoutMs: 200, tryTimeoutMs: 50 }
  const workload = { ...options.workload, gateways: hurried }
  const { outcome, violations } = await runPlan({ options: { ...options, link, workload }, faults })
  expect([outcome, violations]).toEqual(['clean', []])
})

test('a request goes to an application as a server would hand it on', async () => {
  const serve = async (request: Request): Promise<Response> => {
    const text = `${request.method} ${new URL(request.url).pathname} ${await request.text()}`
    return new Response(text, { status: 201, headers: { b: '2', a: '1' } })
  }
  const request = { method: 'PUT', path: '/x?y=1', headers: { 'x-a': '1' }, body: '{}' } as const
  const { status, headers, body } = await answered(serve, 'gw1', request)
  expect([status, body]).toEqual([201, 'PUT /x {}'])
  expect(Object.keys(headers)).toEqual(['a', 'b', 'content-type'])
})

/** Answers in turn; undefined: none comes, since the connection breaks. */
function callerOf(answers: (HttpAnswer | undefined)[]): {
  readonly caller: HttpCaller
  readonly asked: string[]
} {
  const asked: string[] = []
  let handlers: TransportHandlers<HttpFrame> | undefined
  const transport = {
    start: (given: TransportHandlers<HttpFrame>) => void (handlers = given),
    send: (to: string, { id }: HttpFrame): boolean => {
      asked.push(to)
      const answer = answers.shift()
      queueMicrotask(() => {
        if (answer === undefined) handlers?.onLink(to, 'down', {})
        else handlers?.onFrame(to, { kind: 'answer', id, answer })
      })
      return true
    },
    isUp: () => true,
    close: () => Promise.resolve(),
  }
  const random = new SeededRandom('caller')
  const caller = new HttpCaller({
    ...{ transport, clock: systemClock, random, gateways: ['gw1', 'gw2'] },
    ...{ tryTimeoutMs: 1_000, triesMax: 3 },
  })
  return { caller, asked }
}

const written: HttpAnswer = { status: 201, headers: {}, body: '{}' }
const put = { method: 'PUT', path: '/', headers: {}, body: '{}' } as const

function problemOf(status: number, code: string): HttpAnswer {
  return { status, headers: {}, body: JSON.stringify({ code, detail: code }) }
}

test('the caller tries gateways in turn until one gives a final answer', async () => {
  const { caller, asked } = callerOf([problemOf(503, 'closed'), undefined, written])
  expect(await caller.ask(put, true)).toEqual({ answer: written, isRepeated: true })
  expect(asked).toEqual(['gw2', 'gw1', 'gw2'])
  const refused = callerOf([problemOf(503, 'unavailable'), problemOf(409, 'immutable')])
  const told = await refused.caller.ask(put, true)
  expect([told.answer.status, told.isRepeated]).toEqual([409, false])
})

test('a write of which one try may have been carried out has no known outcome', async () => {
  const unavailable = problemOf(503, 'unavailable')
  const lost = callerOf([undefined, unavailable, unavailable])
  await expect(lost.caller.ask(put, true)).rejects.toMatchObject({ code: 'unknown-outcome' })
  const sure = callerOf([unavailable, unavailable, unavailable])
  await expect(sure.caller.ask(put, true)).rejects.toMatchObject({ code: 'unavailable' })
  const read = callerOf([undefined, undefined, undefined])
  await expect(read.caller.ask({ ...put, method: 'GET' }, false)).rejects.toMatchObject({
    code: 'unavailable',
  })
})
