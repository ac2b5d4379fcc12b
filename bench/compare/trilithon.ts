/**
 * Trilithon: three nodes of this build, and its own client library in one process. Twice: with rows in
 * many entity groups, each with a log of its own, which is what it is made for; and with all of them in
 * one group, whose one log orders them as the one log of etcd or PostgreSQL does.
 */
import { fileURLToPath } from 'node:url'
import { LoadProcess, type Load } from '../load-process.ts'
import { grouped } from '../../src/cli/output.ts'
import {
  backlogBytes,
  clusterCpuSeconds,
  startCluster,
  waitDrained,
  type BenchCluster,
} from '../processes.ts'
import type { Measured, RunningSystem, System } from './system.ts'

const clientPath = fileURLToPath(new URL('./rows-client.js', import.meta.url))
const valueBytes = 100
const groupCount = 4_096

export const trilithon: System = {
  name: 'trilithon',
  missing: () => Promise.resolve(undefined),
  start: (_, { signal }) => start(groupCount, ['commits', 'reads'], signal),
}

export const oneGroup: System = {
  name: 'oneGroup',
  missing: () => Promise.resolve(undefined),
  start: (_, { signal }) => start(1, ['commits'], signal),
}

async function start(
  groups: number,
  operations: Load['operation'][],
  signal: AbortSignal,
): Promise<RunningSystem> {
  const cluster = await startCluster()
  try {
    const urls = cluster.urls.join(',')
    const client = await LoadProcess.start(clientPath, [urls, `${groups}`, `${valueBytes}`], signal)
    const where = groups === 1 ? 'all in one entity group' : `in ${grouped(groups)} entity groups`
    const what = `put of ${valueBytes} bytes, which reads nothing, current read of one of 1,000 rows`
    return {
      description: `this build, Node ${process.version}; its client library in one process; typed rows under one of a million keys, ${where}; ${what}`,
      operations,
      run: (load) => runLoad(cluster, client, load),
      stop: async () => {
        await client.stop()
        await cluster.stop()
      },
    }
  } catch (error) {
    await cluster.stop()
    throw error
  }
}

async function runLoad(cluster: BenchCluster, client: LoadProcess, load: Load): Promise<Measured> {
  const backlog: number[] = []
  let before = 0
  const result = await client.run(load, {
    onWarm: async () => {
      before = await clusterCpuSeconds(cluster)
    },
    onSecond: () => sample(cluster, backlog),
  })
  const drainStart = performance.now()
  await waitDrained(cluster)
  const drainSeconds = (performance.now() - drainStart) / 1000
  const { clientCpu, ...figures } = result
  const per1000 = (used: number): number => (used / result.operations) * 1000
  return {
    ...figures,
    drainSeconds,
    perSecond: result.operations / (result.elapsedMs / 1000 + drainSeconds),
    serverCpuPer1000: per1000((await clusterCpuSeconds(cluster)) - before),
    clientCpuPer1000: per1000(clientCpu),
    backlogBytes: backlog,
  }
}

async function sample(cluster: BenchCluster, backlog: number[]): Promise<void> {
  const bytes = await backlogBytes(cluster)
  backlog.push(bytes.reduce((sum, one) => sum + one, 0))
}
