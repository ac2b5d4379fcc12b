/** The result of a comparison, given its runs; the runs themselves are a bench. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import type { Stamped } from '../../bench/build.ts'
import type { CompareReport } from '../../bench/compare/compare.ts'
import { renderPage } from '../../bench/compare/page.ts'
import { findProgram, treeCpuSeconds, waitedCpuSeconds } from '../../bench/compare/servers.ts'
import { computeSpread, summarize } from '../../bench/compare/summary.ts'
import type { Run } from '../../bench/compare/system.ts'
import { summarizeLoad, runLoops, runMixed } from '../../bench/load.ts'
import { StoreError } from '../../src/base/errors.ts'

function run(
  system: Run['system'],
  round: number,
  perSecond: number,
  rest: Partial<Run> = {},
): Run {
  return {
    ...{ system, round, perSecond, clients: 64, operation: 'commits' },
    ...{ operations: 100, failures: 0, elapsedMs: 1_000, drainSeconds: 0 },
    ...{ p50Ms: 2, p95Ms: 3, p99Ms: 4, maxMs: 5 },
    ...{ serverCpuPer1000: 0.5, clientCpuPer1000: 0.1, backlogBytes: [] },
    ...rest,
  }
}

const runs = [
  run('trilithon', 0, 200),
  run('etcd', 0, 100),
  // The machine is slow here, for both alike.
  run('trilithon', 1, 60, { p50Ms: 8 }),
  run('etcd', 1, 20, { p50Ms: 4, failures: 2 }),
  run('trilithon', 2, 210),
  run('etcd', 2, 100),
  run('trilithon', 0, 900, { operation: 'reads', clients: 1 }),
  run('etcd', 0, 300, { operation: 'reads', clients: 1, serverCpuPer1000: 0.25 }),
  run('ceiling', 0, 400),
  run('oneGroup', 0, 300),
  run('oneGroup', 1, 80),
]

test('a median has its spread beside it', () => {
  expect(computeSpread([3, 1, 2])).toEqual({ median: 2, least: 1, greatest: 3 })
  expect(computeSpread([4, 1])).toEqual({ median: 2.5, least: 1, greatest: 4 })
})

test('ratios are of the same round, and the median of the rounds', () => {
  const { ratios, ratioSpread, figures } = summarize(runs)
  // Of the medians of the rates it would be 2.
  expect(ratios.etcd?.commits?.['64']).toBe(2.1)
  expect(ratioSpread.etcd?.commits?.['64']).toEqual([2, 3])
  expect(ratios.etcd?.commitP50?.['64']).toBe(1)
  expect(ratios.etcd?.reads?.['1']).toBe(3)
  expect(ratios.etcd?.readCpu?.['1']).toBe(2)
  expect(ratios.ceiling).toEqual({
    commits: { 64: 0.5 },
    commitCpu: { 64: 1 },
    commitP50: { 64: 1 },
  })
  expect(Object.keys(ratios)).toEqual(['etcd', 'ceiling'])
  expect(figures.etcd?.commits?.['64']).toMatchObject({
    perSecond: { median: 100, least: 20, greatest: 100 },
    failures: 2,
  })
})

test('rows of one group are compared as well, with what was measured beside them', () => {
  const { oneGroupRatios, oneGroupRatioSpread } = summarize(runs)
  expect(oneGroupRatios.etcd?.commits).toEqual({ 64: 3.5 })
  expect(oneGroupRatioSpread.etcd?.commits).toEqual({ 64: [3, 4] })
  expect(oneGroupRatios.etcd?.reads).toBeUndefined()
  expect(oneGroupRatios.ceiling?.commits).toEqual({ 64: 0.75 })
})

test('the page holds the figures, what is missing, and nothing that ends its script', async () => {
  const report: Stamped<CompareReport> = {
    build: { revision: '0123456789abcdef', isChanged: true },
    ...{ bench: 'compare', date: '2026-01-02T03:04:05.000Z', isQuick: true },
    machine: { cpus: 2, model: '</script><b>' },
    options: {
      against: ['etcd', 'postgres'],
      operations: ['commits', 'reads'],
      clients: [1, 64],
      rounds: 3,
      seconds: 2,
    },
    systems: { trilithon: 'this build', etcd: 'etcd 3' },
    missing: { postgres: 'apt-get install postgresql-15' },
    failed: [{ system: 'etcd', during: 'round 3', reason: 'it has no <space>' }],
    ...summarize(runs),
    runs,
  }
  const page = (await renderPage(report)).replaceAll(/\s+/g, ' ')
  expect(page).toContain('2.10 <small>2.00–3.00</small>')
  expect(page).toContain('apt-get install postgresql-15')
  expect(page).toContain('whose figures do not count')
  expect(page).toContain('revision 0123456789ab, changed since')
  expect(page).toContain(
    'failed in round 3, and no more is measured of it: it has no &lt;space&gt;',
  )
  expect(page).not.toContain('</script><b>')
  expect(page).toContain('&lt;/script&gt;&lt;b&gt;')
})

test('loops wait for their answers, and a failed operation has no latency', async () => {
  let atOnce = 0
  let most = 0
  let count = 0
  const result = await runLoops(3, 0.05, async () => {
    most = Math.max(most, ++atOnce)
    await new Promise((resolve) => setTimeout(resolve, 2))
    atOnce -= 1
    if (++count % 5 === 0) throw new Error('every fifth one')
  })
  expect(most).toBe(3)
  expect(result.operations + result.failures).toBe(count)
  expect(result.failures).toBe(Math.floor(count / 5))
  const latencies = Array.from({ length: 100 }, (_, i) => 100 - i)
  expect(summarizeLoad(latencies, 0, 1)).toMatchObject({
    p50Ms: 51,
    p95Ms: 96,
    p99Ms: 100,
    maxMs: 100,
  })
})

test('each kind of operation has its own results, and failures are counted by code', async () => {
  let count = 0
  const operations = [
    { kind: 'good', run: () => new Promise((resolve) => setTimeout(resolve, 2)) },
    { kind: 'bad', run: () => Promise.reject(new StoreError('contention', 'somebody else did')) },
  ] as const
  const draw = (): (typeof operations)[number] => operations[count++ % 2 === 0 ? 0 : 1]
  const { byKind, failures } = await runMixed(1, 0.05, draw)
  expect(byKind.get('good')).toMatchObject({ failures: 0 })
  expect(byKind.get('bad')).toMatchObject({ operations: 0, failures: failures['contention'] })
  const stopped = AbortSignal.abort()
  expect((await runMixed(4, 60, draw, stopped)).byKind.size).toBe(0)
})

test('programs are found by name, and processor time is counted with that of children', async () => {
  expect(await findProgram('sh')).toMatch(/\/sh$/)
  expect(await findProgram('no-such-program-as-this')).toBeUndefined()
  expect(await treeCpuSeconds(process.pid)).toBeGreaterThan(0)
})

test('the system time of a program counts for its client', async () => {
  const before = await waitedCpuSeconds()
  // Mostly the system's time; `times` tells of the shell, and of what it has waited for.
  const script =
    'dd if=/dev/zero of=/dev/null bs=1 count=2000000 2>&1 >/dev/null | cat >/dev/null; times'
  const { stdout } = await promisify(execFile)('sh', ['-c', script])
  const told = [...stdout.matchAll(/(\d+)m([\d.]+)s/g)]
    .map(([, minutes, seconds]) => 60 * Number(minutes) + Number(seconds))
    .reduce((sum, one) => sum + one, 0)
  expect(told).toBeGreaterThan(0.1)
  expect(Math.abs((await waitedCpuSeconds()) - before - told)).toBeLessThan(0.05)
})
