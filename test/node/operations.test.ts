/** Requests that any visitor may make of a process, at any rate. */
import { expect, test } from 'vitest'
import { createMetrics } from '../../src/node/metrics.ts'
import { operationRoutes, sharing } from '../../src/node/operations.ts'

test('a page is shown for twenty times as long as it took to make', async () => {
  let nowMs = 0
  let made = 0
  const page = sharing({ monotonicMs: () => nowMs }, async () => {
    nowMs += 5
    return (made += 1)
  })
  // It is being made: a visitor that asks meanwhile waits for the same.
  expect(await Promise.all([page(), page()])).toEqual([1, 1])
  nowMs = 104
  expect(await page()).toBe(1)
  nowMs = 105
  expect(await page()).toBe(2)
})

test('a page that failed is made anew for the next who asks', async () => {
  let nowMs = 0
  let made = 0
  const page = sharing({ monotonicMs: () => nowMs }, async () => {
    nowMs += 5
    made += 1
    if (made === 1) throw new Error('no figures')
    return made
  })
  const both = await Promise.allSettled([page(), page()])
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(made).toBe(1)
  expect(await page()).toBe(2)
  expect(await page()).toBe(2)
})

test('parameters that are not known are refused, as they are everywhere', async () => {
  const clock = { monotonicMs: () => 0 }
  const metrics = createMetrics({ node: 'x' })
  const self = {
    name: () => 'x',
    isAlive: () => true,
    checks: () => [{ name: 'a', ok: true, text: 'well' }],
    status: () => ({ state: 'running' }),
    figures: () => [],
  }
  const app = operationRoutes(self, metrics, clock)
  const said = async (path: string): Promise<readonly [number, string]> => {
    const response = await app.request(path)
    return [response.status, await response.text()]
  }
  expect(await said('/readyz?verbose')).toEqual([200, '[+] a: well\nready\n'])
  expect(await said('/readyz?verbos')).toEqual([
    400,
    'there is no parameter "verbos" here, only verbose\n',
  ])
  expect(await said('/readyz?verbose&verbose')).toEqual([
    400,
    'the parameter verbose is given twice\n',
  ])
  expect(await said('/readyz?verbose=true')).toEqual([200, '[+] a: well\nready\n'])
  expect(await said('/readyz?verbose=false')).toEqual([200, 'ready\n'])
  for (const value of ['0', 'x', 'TRUE']) {
    const text = 'verbose must be true or false, or stand without a value\n'
    expect(await said(`/readyz?verbose=${value}`)).toEqual([400, text])
  }
  const posted = await app.request('/livez', { method: 'POST' })
  expect(posted.status).toBe(405)
  expect(posted.headers.get('allow')).toBe('GET')
  expect(await posted.json()).toMatchObject({
    ...{ status: 405, detail: '/livez is asked with GET, not POST' },
  })
  expect((await app.request('/livez', { method: 'HEAD' })).status).toBe(200)
  for (const path of ['/?x=1', '/livez?x', '/status?x=1', '/metrics?name=a']) {
    expect(await said(path)).toEqual([400, 'this request takes no parameters\n'])
  }
  metrics.close()
})
