/**
 * The simulator's fault plan on real processes: three daemons under load while faults strike, then
 * all heals, the nodes must agree, and the history of all clients goes before the same judge.
 */
import { StoreError } from '../../src/base/errors.ts'
import type { ReadLevel } from '../../src/replica/local-replica.ts'
import { connect } from '../../src/client/connect.ts'
import { clientName } from '../endpoints.ts'
import { checkHistory, explain } from '../history/check.ts'
import { HistoryLog } from '../history/history-log.ts'
import type { History } from '../history/operation.ts'
import { recordClient, type CellCalls } from '../history/record-client.ts'
import { ProcessCluster } from './cluster.ts'
import { ProcessNemesis } from './nemesis.ts'
import type { ProcessPlan } from './plan.ts'
import { datastore, pause, ProcessWorkload } from './workload.ts'

export interface ProcessRunOptions {
  readonly plan: ProcessPlan
  /** The built command line. */
  readonly program: string
  /** Between two calls of one client, on average. */
  readonly thinkMeanMs?: number
  readonly onPhase?: (text: string) => void
  /** Ends the run at once, with all that it started. */
  readonly signal?: AbortSignal
}

export interface ProcessRunResult {
  readonly seed: number
  readonly seconds: number
  readonly outcome: 'clean' | 'safety' | 'liveness'
  /** What is wrong, in words. */
  readonly violations: readonly string[]
  readonly operations: number
  readonly acknowledged: number
  /** Calls that ended with an error, by its code. */
  readonly codes: Readonly<Record<string, number>>
  /** Faults that struck, by their names. */
  readonly faults: Readonly<Record<string, number>>
  readonly judgedInSeconds: number
  readonly history: History
}

const agreeWaitMs = 90_000
const agreePollMs = 100
const pageLimit = 1_000

export async function runOnProcesses(options: ProcessRunOptions): Promise<ProcessRunResult> {
  const { plan, program, thinkMeanMs = 15 } = options
  const say = options.onPhase ?? ((): void => undefined)
  const clients = Array.from({ length: plan.clientCount }, (_, i) => clientName(i))
  const cluster = await ProcessCluster.create({ program, clients })
  const log = new HistoryLog(micros)
  const workload = new ProcessWorkload({
    ...{ seed: plan.seed, log, clientCount: plan.clientCount, thinkMeanMs },
    nodes: () => cluster.nodes,
    urlsFor: (client, nodes) => cluster.urlsFor(client, nodes),
  })
  const nemesis = new ProcessNemesis({
    cluster,
    storm: (lengthMs) => {
      workload.storm(lengthMs)
    },
    killClient: (client, downMs) => {
      workload.killClient(client, downMs)
    },
  })
  try {
    say('starting three nodes')
    await cluster.start()
    say(`faults and load for ${plan.seconds} s`)
    await workload.start(clients)
    nemesis.start(plan.faults)
    await pause(plan.seconds * 1000, options.signal)
    options.signal?.throwIfAborted()
    await nemesis.end()
    say('healing')
    await cluster.heal()
    await workload.end()
    say('waiting for the nodes to agree')
    const lag = await waitForAgreement(cluster, workload.shards, log)
    const failures = cluster.daemons.flatMap(({ failure }) => failure ?? [])
    return resultOf(plan, log.history(), [...failures, ...lag], { workload, nemesis })
  } finally {
    await nemesis.end()
    await cluster.close()
  }
}

function resultOf(
  { seed, seconds }: ProcessPlan,
  history: History,
  others: readonly string[],
  { workload, nemesis }: { readonly workload: ProcessWorkload; readonly nemesis: ProcessNemesis },
): ProcessRunResult {
  const startedMicros = micros()
  const { anomalies, operationCount, acknowledgedCount } = checkHistory(history)
  const judgedInSeconds = (micros() - startedMicros) / 1e6
  const violations = [...anomalies.map((one) => explain(one, history)), ...others]
  const isClean = violations.length === 0
  return {
    ...{ seed, seconds, violations, judgedInSeconds, history },
    outcome: isClean ? 'clean' : anomalies.length > 0 ? 'safety' : 'liveness',
    ...{ operations: operationCount, acknowledged: acknowledgedCount },
    ...{ codes: workload.codes, faults: nemesis.counts },
  }
}

/** Each node alone shows all of every log, asked for itself; what is missing is told in words. */
async function waitForAgreement(
  cluster: ProcessCluster,
  shards: readonly number[],
  log: HistoryLog,
): Promise<readonly string[]> {
  const deadlineMs = performance.now() + agreeWaitMs
  const lengths = new Map<number, number>()
  const problems: string[] = []
  for (const level of ['current', 'any'] as const) {
    for (const { id, place } of cluster.daemons) {
      const client = await connect({ nodes: [place.url], timeoutMs: 5_000 })
      const { cells } = recordClient(client, { client: `reader-${level}-${id}`, log })
      for (const shard of shards) {
        const wanted = lengths.get(shard) ?? 0
        const length = await readUntil(cells(datastore), shard, { level, wanted }, deadlineMs)
        if (level === 'current') lengths.set(shard, Math.max(wanted, length))
        if (length >= wanted) continue
        problems.push(`${id} shows ${length} of ${wanted} cells of shard ${shard} (${level})`)
      }
      await client.close()
    }
  }
  return problems
}

/** The length of the log, once it is as long as wanted, or the time is up. */
async function readUntil(
  cells: CellCalls,
  shard: number,
  { level, wanted }: { readonly level: ReadLevel; readonly wanted: number },
  deadlineMs: number,
): Promise<number> {
  let length = 0
  for (;;) {
    length = (await readLog(cells, shard, level)) ?? length
    if (length >= wanted || performance.now() > deadlineMs) return length
    await pause(agreePollMs)
  }
}

/** Undefined when the node could not answer. */
async function readLog(
  cells: CellCalls,
  shard: number,
  level: ReadLevel,
): Promise<number | undefined> {
  try {
    for (let after = 0; ;) {
      const page = await cells.shardLog(shard, { after, limit: pageLimit, read: level })
      if (page.cells.length < pageLimit) return after + page.cells.length
      after = page.next
    }
  } catch (error) {
    if (error instanceof StoreError && error.retry === 'safe') return undefined
    throw error
  }
}

/** Of a clock that only goes forward, from the start of the process. */
function micros(): number {
  return Math.round(performance.now() * 1000)
}
