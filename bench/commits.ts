/**
 * `bench commits`: durable single-cell puts through three node processes on loopback. The clock of
 * commitsPerSecond stops when every data store has caught up; CPU includes applying.
 */
import { fileURLToPath } from 'node:url'
import { LoadProcess, type Loaded } from './load-process.ts'
import {
  backlogBytes,
  cpuSeconds,
  startCluster,
  waitDrained,
  type BenchCluster,
} from './processes.ts'

/** The client process of benches; run with the URLs of nodes, the size of a value, and `one-group` if so. */
export const loadClientPath: string = fileURLToPath(new URL('./load-client.js', import.meta.url))

export interface CommitsOptions {
  readonly clients: number
  readonly seconds: number
  readonly valueBytes: number
  /** All in one entity group, no two of one row and ref key; else all over the groups of the datastore. */
  readonly oneGroup?: boolean
}

export interface CommitsReport {
  readonly bench: 'commits'
  readonly clients: number
  readonly seconds: number
  readonly valueBytes: number
  readonly oneGroup: boolean
  readonly commits: number
  readonly failures: number
  /** Commits over the time from the first of them until all overlays were empty. */
  readonly commitsPerSecond: number
  readonly drainSeconds: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  /** CPU seconds per 1,000 commits: each node, and the client process. */
  readonly cpuPer1000: { readonly nodes: readonly number[]; readonly client: number }
  /** Overlay bytes of the three nodes, each second. */
  readonly backlogBytes: readonly (readonly number[])[]
  readonly isQuick: boolean
}

/** The observer of the benchmark, which may end it. */
export interface CommitsWatcher {
  readonly signal: AbortSignal
  onSecond(second: number, backlog: readonly number[]): void
}

/** A figure counts only from a run at least this long. */
export const countingSeconds = 60
/** Long enough for the engine to have compiled what is hot: a daemon runs for days. */
const warmUpSeconds = 10

export async function benchCommits(
  options: CommitsOptions,
  watcher: CommitsWatcher,
): Promise<CommitsReport> {
  const cluster = await startCluster()
  try {
    return await measure(cluster, options, watcher)
  } finally {
    await cluster.stop()
  }
}

async function measure(
  cluster: BenchCluster,
  options: CommitsOptions,
  { signal, onSecond }: CommitsWatcher,
): Promise<CommitsReport> {
  const { clients, seconds, valueBytes, oneGroup = false } = options
  const args = [cluster.urls.join(','), `${valueBytes}`, ...(oneGroup ? ['one-group'] : [])]
  const client = await LoadProcess.start(loadClientPath, args, signal)
  const backlog: number[][] = []
  let before: readonly number[] = []
  const load = { clients, seconds, warmUpSeconds, operation: 'commits' } as const
  const watcher = {
    onWarm: async () => {
      before = await nodesCpu(cluster)
    },
    onSecond: () => sample(cluster, backlog, onSecond),
  }
  let result: Loaded
  try {
    result = await client.run(load, watcher)
  } finally {
    await client.stop()
  }
  const drainStart = performance.now()
  await waitDrained(cluster)
  const drainSeconds = (performance.now() - drainStart) / 1000
  const after = await nodesCpu(cluster)
  const { operations: commits, failures, elapsedMs, clientCpu, ...percentiles } = result
  const per1000 = (used: number): number => (used / commits) * 1000
  return {
    ...{ bench: 'commits', clients, seconds, valueBytes, oneGroup, commits, failures },
    commitsPerSecond: commits / (elapsedMs / 1000 + drainSeconds),
    drainSeconds,
    ...percentiles,
    cpuPer1000: {
      nodes: after.map((used, i) => per1000(used - (before[i] ?? 0))),
      client: per1000(clientCpu),
    },
    backlogBytes: backlog,
    isQuick: seconds < countingSeconds,
  }
}

function nodesCpu(cluster: BenchCluster): Promise<number[]> {
  return Promise.all(cluster.nodes.map(({ child }) => cpuSeconds(child.pid ?? 0)))
}

async function sample(
  cluster: BenchCluster,
  backlog: number[][],
  onSecond: CommitsWatcher['onSecond'],
): Promise<void> {
  const bytes = await backlogBytes(cluster)
  backlog.push(bytes)
  onSecond(backlog.length, bytes)
}
