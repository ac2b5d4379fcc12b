/** A comparison of systems that fail, and of what cannot be compared. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  compareSystems,
  type CompareOptions,
  type Failed,
  type Watcher,
} from '../../bench/compare/compare.ts'
import { connectionsMax } from '../../bench/compare/postgres.ts'
import type { Measured, System, SystemName } from '../../bench/compare/system.ts'
import { describeCompare } from '../../bench/describe.ts'
import { clientCounts, peerNames } from '../../bench/flags.ts'
import { withFolder } from '../cluster/harness.ts'
import { runBench } from './program.ts'

const measured: Measured = {
  ...{ operations: 100, failures: 0, elapsedMs: 1_000, drainSeconds: 0, perSecond: 100 },
  ...{ p50Ms: 2, p95Ms: 3, p99Ms: 4, maxMs: 5 },
  ...{ serverCpuPer1000: 0.5, clientCpuPer1000: 0.1, backlogBytes: [] },
}

const options: CompareOptions = {
  ...{ against: ['etcd'], operations: ['commits'], clients: [1, 8], rounds: 2, seconds: 1 },
}

interface Fake {
  readonly failsInRun?: number
  readonly failsToStop?: boolean
}

class FakeSystem implements System {
  readonly name: SystemName
  readonly #how: Fake
  #runs = 0
  isStopped = false
  clientsMax = 0

  constructor(name: SystemName, how: Fake = {}) {
    this.name = name
    this.#how = how
  }

  async missing(): Promise<undefined> {}

  start: System['start'] = async (_, { clientsMax }) => {
    this.clientsMax = clientsMax
    return { description: 'a fake', operations: ['commits'], run: this.#run, stop: this.#stop }
  }

  #run = async (): Promise<Measured> => {
    if (++this.#runs === this.#how.failsInRun) throw new Error('out of space')
    return measured
  }

  #stop = async (): Promise<void> => {
    this.isStopped = true
    if (this.#how.failsToStop === true) throw new Error('it does not end')
  }
}

function watcher(told: Failed[] = [], signal = new AbortController().signal): Watcher {
  return { signal, onMissing: () => {}, onRun: () => {}, onFailed: (one) => told.push(one) }
}

test('a comparison keeps its measurements when one system fails, and the others go on', async () => {
  const told: Failed[] = []
  const systems = [new FakeSystem('trilithon'), new FakeSystem('etcd', { failsInRun: 3 })]
  const report = await compareSystems(systems, options, watcher(told))
  const clientsOf = (system: SystemName): number[] =>
    report.runs.filter((run) => run.system === system).map(({ clients }) => clients)
  expect(clientsOf('trilithon')).toEqual([1, 1, 8, 8])
  expect(clientsOf('etcd')).toEqual([1, 1])
  expect(report.ratios.etcd?.commits).toEqual({ 1: 1 })
  const failure = { system: 'etcd', during: 'round 1, 8 clients, commits', reason: 'out of space' }
  expect(report.failed).toEqual([failure])
  expect(told).toEqual([failure])
  expect(describeCompare(report)).toContain('etcd failed in round 1, 8 clients, commits')
})

test('all are stopped, also after one that does not end as it should', async () => {
  const systems = [new FakeSystem('trilithon', { failsToStop: true }), new FakeSystem('etcd')]
  const { runs, failed } = await compareSystems(systems, options, watcher())
  expect(runs).toHaveLength(8)
  expect(systems.every(({ isStopped }) => isStopped)).toBe(true)
  expect(failed).toEqual([{ system: 'trilithon', during: 'its end', reason: 'it does not end' }])
})

test('a stopped comparison reports nothing, and does not count as a failure', async () => {
  const stopping = new AbortController()
  const system = new FakeSystem('trilithon')
  const run = compareSystems([system], options, {
    ...watcher([], stopping.signal),
    onRun: () => stopping.abort(),
  })
  await expect(run).rejects.toThrow('aborted')
  expect(system.isStopped).toBe(true)
})

test('systems learn the largest number of clients, and PostgreSQL allows that many connections', async () => {
  const system = new FakeSystem('postgres')
  await compareSystems([system], options, watcher())
  expect(system.clientsMax).toBe(8)
  // Three are kept for those who look after it.
  expect(connectionsMax(500)).toBeGreaterThan(500 + 3)
})

test('a system named twice is compared once', () => {
  expect(peerNames('etcd,postgres,etcd')).toEqual(['etcd', 'postgres'])
})

test('bench refuses more clients than one client library can keep in flight', async () => {
  for (const verb of ['commits', 'compare']) {
    expect(await runBench([verb, '--clients', '5000'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('a whole number from 1 to 4096 is wanted'),
    })
  }
  expect(clientCounts('64,1,64')).toEqual([64, 1])
})

test('bench reports an unwritable page before it runs anything', () =>
  withFolder(async (folder) => {
    for (const page of [join(folder, 'none', 'page.html'), folder]) {
      const { code, stdout, stderr } = await runBench(['compare', '--page', page], { folder })
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(/^bench: the page .* cannot be written: .*\n$/)
    }
    expect(await readdir(folder)).toEqual([])
  }))
