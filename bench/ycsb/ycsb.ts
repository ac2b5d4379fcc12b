/**
 * `bench ycsb`: core workloads of YCSB on typed tables, against three daemons on loopback, each write
 * synced by a majority of them, and one client process: this one.
 */
import { countingSeconds } from '../commits.ts'
import { runMixed, type LoadResult } from '../load.ts'
import { machine, openClient, type Machine } from '../common.ts'
import { cpuSeconds, startCluster, waitDrained, type BenchCluster } from '../processes.ts'
import { fillPosts, fillUsers } from './fill.ts'
import { authorCount, Records } from './records.ts'
import { kinds, makeWorkload, type Kind, type Tally, type WorkloadName } from './workloads.ts'

export interface YcsbOptions {
  readonly workloads: readonly WorkloadName[]
  readonly records: number
  readonly clients: number
  /** Of each workload, after its warm-up. */
  readonly seconds: number
  readonly warmUp: number
}

export interface KindFigures extends Omit<LoadResult, 'elapsedMs'> {
  readonly perSecond: number
}

export interface WorkloadFigures {
  readonly workload: WorkloadName
  readonly operations: number
  readonly failures: number
  /** Failures by the code of their error: `contention` after as many reruns as there may be. */
  readonly failuresByCode: Readonly<Record<string, number>>
  /** All operations, over the time until everything was where it stays. */
  readonly perSecond: number
  readonly drainSeconds: number
  readonly kinds: Readonly<Partial<Record<Kind, KindFigures>>>
  /** CPU seconds per 1,000 operations: each node, what follows included, and the client. */
  readonly cpuPer1000: { readonly nodes: readonly number[]; readonly client: number }
  /** Rows a scan gave, on average; absent without scans. */
  readonly rowsPerScan?: number
  /** Runs of transactions that were repeated after a conflict. */
  readonly reruns: number
}

export interface YcsbReport {
  readonly bench: 'ycsb'
  readonly date: string
  readonly machine: Machine
  readonly options: YcsbOptions
  readonly isQuick: boolean
  /** The load phase. */
  readonly loaded: readonly Loaded[]
  readonly workloads: readonly WorkloadFigures[]
}

export interface Loaded {
  readonly table: 'User' | 'Post'
  readonly rows: number
  readonly seconds: number
}

/** The observer of the benchmark, which may end it. */
export interface YcsbWatcher {
  readonly signal: AbortSignal
  onLoad(table: Loaded['table'], rows: number, done: number): void
  onLoaded(loaded: Loaded): void
  onWorkload(figures: WorkloadFigures): void
}

export async function benchYcsb(options: YcsbOptions, watcher: YcsbWatcher): Promise<YcsbReport> {
  const cluster = await startCluster()
  try {
    const client = await openClient(cluster.urls, watcher.signal)
    try {
      const records = await Records.open(client)
      const loaded = await load(records, options, watcher)
      const workloads: WorkloadFigures[] = []
      for (const name of options.workloads) {
        const figures = await measure(cluster, records, name, options, watcher.signal)
        workloads.push(figures)
        watcher.onWorkload(figures)
      }
      return {
        bench: 'ycsb',
        date: new Date().toISOString(),
        machine: machine(),
        options,
        isQuick: options.seconds < countingSeconds,
        ...{ loaded, workloads },
      }
    } finally {
      await client.close()
    }
  } finally {
    await cluster.stop()
  }
}

/** Loads the tables that the workloads ask for, and no more. */
async function load(
  records: Records,
  { workloads, records: count }: YcsbOptions,
  { signal, onLoad, onLoaded }: YcsbWatcher,
): Promise<readonly Loaded[]> {
  const hasScans = workloads.includes('e')
  const users = workloads.some((name) => name !== 'e') ? count : authorCount(count)
  const tables = [
    { table: 'User', rows: users, fill: fillUsers },
    { table: 'Post', rows: hasScans ? count : 0, fill: fillPosts },
  ] as const
  const all: Loaded[] = []
  for (const { table, rows, fill } of tables) {
    if (rows === 0) continue
    const began = performance.now()
    await fill(records, rows, { signal, onProgress: (done) => onLoad(table, rows, done) })
    const loaded = { table, rows, seconds: (performance.now() - began) / 1000 }
    all.push(loaded)
    onLoaded(loaded)
  }
  return all
}

async function measure(
  cluster: BenchCluster,
  records: Records,
  workload: WorkloadName,
  { records: count, clients, seconds, warmUp }: YcsbOptions,
  signal: AbortSignal,
): Promise<WorkloadFigures> {
  const tally: Tally = { scanned: 0, reruns: 0 }
  const draw = makeWorkload(workload, records, count, tally)
  await runMixed(clients, warmUp, draw, signal)
  await waitDrained(cluster)
  Object.assign(tally, { scanned: 0, reruns: 0 })
  const before = await readCpu(cluster)
  const { elapsedMs, byKind, failures } = await runMixed(clients, seconds, draw, signal)
  const client = clientCpu() - before.client
  signal.throwIfAborted()
  const drainStart = performance.now()
  await waitDrained(cluster)
  const drainSeconds = (performance.now() - drainStart) / 1000
  const { nodes } = await readCpu(cluster)
  const results = [...byKind.values()]
  const operations = sum(results.map((result) => result.operations))
  const per1000 = (used: number): number => (used / operations) * 1000
  const scans = byKind.get('scan')?.operations ?? 0
  return {
    ...{ workload, operations, drainSeconds, reruns: tally.reruns },
    failures: sum(Object.values(failures)),
    failuresByCode: failures,
    perSecond: operations / (elapsedMs / 1000 + drainSeconds),
    kinds: kindFigures(byKind),
    cpuPer1000: {
      nodes: nodes.map((used, i) => per1000(used - (before.nodes[i] ?? 0))),
      client: per1000(client),
    },
    ...(scans > 0 && { rowsPerScan: tally.scanned / scans }),
  }
}

function kindFigures(byKind: ReadonlyMap<Kind, LoadResult>): WorkloadFigures['kinds'] {
  const figures: Partial<Record<Kind, KindFigures>> = {}
  for (const kind of kinds) {
    const result = byKind.get(kind)
    if (result === undefined) continue
    const { elapsedMs, ...rest } = result
    figures[kind] = { ...rest, perSecond: rest.operations / (elapsedMs / 1000) }
  }
  return figures
}

interface Used {
  readonly nodes: readonly number[]
  readonly client: number
}

async function readCpu({ nodes }: BenchCluster): Promise<Used> {
  const used = await Promise.all(nodes.map(({ child }) => cpuSeconds(child.pid ?? 0)))
  return { nodes: used, client: clientCpu() }
}

/** User and system seconds of this process. */
function clientCpu(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
