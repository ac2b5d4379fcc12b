/**
 * `bench commits`: durable single-cell puts through three node processes on loopback. The clock of
 * commitsPerSecond stops when every data store has caught up; CPU includes applying.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import {
  backlogBytes,
  cpuSeconds,
  startCluster,
  waitDrained,
  type BenchCluster,
} from './processes.ts'

const clientPath = fileURLToPath(new URL('./commits-client.js', import.meta.url))

export interface CommitsOptions {
  readonly clients: number
  readonly seconds: number
  readonly valueBytes: number
}

export interface CommitsReport {
  readonly bench: 'commits'
  readonly clients: number
  readonly seconds: number
  readonly valueBytes: number
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

/** A figure counts only from a run at least this long. */
const countingSeconds = 60

interface ClientResult {
  readonly commits: number
  readonly failures: number
  readonly elapsedMs: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

export async function benchCommits(
  options: CommitsOptions,
  onSecond: (second: number, backlog: readonly number[]) => void,
): Promise<CommitsReport> {
  const cluster = await startCluster()
  try {
    return await measure(cluster, options, onSecond)
  } finally {
    await cluster.stop()
  }
}

async function measure(
  cluster: BenchCluster,
  options: CommitsOptions,
  onSecond: (second: number, backlog: readonly number[]) => void,
): Promise<CommitsReport> {
  const { clients, seconds, valueBytes } = options
  const args = [clientPath, cluster.urls.join(','), `${clients}`, `${seconds}`, `${valueBytes}`]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const pids = [...cluster.nodes.map((node) => node.child.pid ?? 0), child.pid ?? 0]
  const lines = createInterface({ input: child.stdout })
  const backlog: number[][] = []
  let before: readonly number[] = []
  let clientCpu = 0
  let result: ClientResult | undefined
  let timer: NodeJS.Timeout | undefined
  for await (const line of lines) {
    const message: unknown = JSON.parse(line)
    if (isResult(message)) result = message
    else {
      before = await Promise.all(pids.map(cpuSeconds))
      timer = setInterval(() => void sample(cluster, backlog, onSecond), 1000)
    }
    if (result !== undefined) clientCpu = await cpuSeconds(child.pid ?? 0)
  }
  clearInterval(timer)
  if (child.exitCode === null) await once(child, 'exit')
  if (result === undefined) throw new Error('the client process ended without a result')
  const drainStart = performance.now()
  await waitDrained(cluster)
  const drainSeconds = (performance.now() - drainStart) / 1000
  const after = await Promise.all(cluster.nodes.map((node) => cpuSeconds(node.child.pid ?? 0)))
  const per1000 = (used: number): number => (used / (result?.commits ?? 1)) * 1000
  const { commits, failures, elapsedMs, ...percentiles } = result
  return {
    ...{ bench: 'commits', clients, seconds, valueBytes, commits, failures },
    commitsPerSecond: commits / (elapsedMs / 1000 + drainSeconds),
    drainSeconds,
    ...{ p50Ms: percentiles.p50Ms, p95Ms: percentiles.p95Ms },
    ...{ p99Ms: percentiles.p99Ms, maxMs: percentiles.maxMs },
    cpuPer1000: {
      nodes: after.map((used, i) => per1000(used - (before[i] ?? 0))),
      client: per1000(clientCpu - (before[3] ?? 0)),
    },
    backlogBytes: backlog,
    isQuick: seconds < countingSeconds,
  }
}

async function sample(
  cluster: BenchCluster,
  backlog: number[][],
  onSecond: (second: number, backlog: readonly number[]) => void,
): Promise<void> {
  const bytes = await backlogBytes(cluster)
  backlog.push(bytes)
  onSecond(backlog.length, bytes)
}

function isResult(message: unknown): message is ClientResult {
  return (
    typeof message === 'object' &&
    message !== null &&
    'kind' in message &&
    message.kind === 'result'
  )
}
