/**
 * The simulator's fault plan on real processes: three daemons under load while faults strike, then
 * all heals, the nodes must agree, and the history of all clients goes before the same judge.
 */
import { compareText } from '../../src/base/bytes.ts'
import { StoreError } from '../../src/base/errors.ts'
import type { ReplicaReadLevel } from '../../src/group/replica-port.ts'
import { connect } from '../../src/client/connect.ts'
import { clientName } from '../cluster/endpoints.ts'
import { checkHistory, explain } from '../history/check.ts'
import { HistoryLog } from '../history/history-log.ts'
import type { History } from '../history/operation.ts'
import { recordClient, type CellCalls } from '../history/record-client.ts'
import { ProcessCluster } from './cluster.ts'
import { ProcessNemesis } from './nemesis.ts'
import { nameFault, type ProcessPlan } from './plan.ts'
import { Replacements } from './replacements.ts'
import { datastore, pause, ProcessWorkload } from './workload.ts'

export interface ProcessRunOptions {
  readonly plan: ProcessPlan
  /** The built command line. */
  readonly program: string
  /** Between two calls of one client, on average. */
  readonly thinkMeanMs?: number
  /** Seconds from the replacement of a lost disk to the next such loss, on average; absent: none is lost. */
  readonly replaceSeconds?: number
  readonly onPhase?: (text: string) => void
  /** Called about once a second while faults strike. */
  readonly onProgress?: (progress: ProcessProgress) => void
  /** Ends the run at once, with all that it started: it rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

export interface ProcessProgress {
  readonly seconds: number
  readonly calls: number
  /** Faults that have struck so far, by their names. */
  readonly faults: Readonly<Record<string, number>>
}

/**
 * - `safety`: the history is wrong
 * - `crash`: a node ended by itself, or a client failed as no client should
 * - `liveness`: after everything healed, something did not get done
 */
export type ProcessOutcome = 'clean' | 'safety' | 'liveness' | 'crash'

export interface ProcessRunResult {
  readonly seed: number
  readonly seconds: number
  readonly outcome: ProcessOutcome
  /** The violations, in words. */
  readonly violations: readonly string[]
  readonly operations: number
  readonly acknowledged: number
  /** Calls that ended with an error, by its code. */
  readonly codes: Readonly<Record<string, number>>
  /** Faults that struck, by their names. */
  readonly faults: Readonly<Record<string, number>>
  /** Stores that were replaced by empty ones. */
  readonly replaced: number
  /** Names of faults in the plan of which none struck: there was nothing for them to strike. */
  readonly neverStruck: readonly string[]
  readonly judgedInSeconds: number
  readonly history: History
}

const agreeWaitMs = 90_000
const agreePollMs = 100
const pageLimit = 1_000
const progressEveryMs = 1_000

export async function runOnProcesses(options: ProcessRunOptions): Promise<ProcessRunResult> {
  const { plan, program, thinkMeanMs = 15, signal } = options
  const clients = Array.from({ length: plan.clientCount }, (_, i) => clientName(i))
  const cluster = await ProcessCluster.create({ program, clients })
  const log = new HistoryLog(micros)
  const workload = new ProcessWorkload({
    seed: plan.seed,
    log,
    thinkMeanMs,
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
  const replacements = new Replacements({
    ...{ seed: plan.seed, daemons: cluster.daemons },
    everySeconds: options.replaceSeconds ?? Number.POSITIVE_INFINITY,
    dataFolder: (id) => cluster.dataFolder(id),
  })
  const parts = { cluster, clients, log, workload, nemesis, replacements }
  try {
    return await beforeAbort(signal, carryOut(options, parts))
  } finally {
    await Promise.all([nemesis.end(), workload.abandon(), replacements.abandon()])
    await cluster.close()
  }
}

interface Parts {
  readonly cluster: ProcessCluster
  readonly clients: readonly string[]
  readonly log: HistoryLog
  readonly workload: ProcessWorkload
  readonly nemesis: ProcessNemesis
  readonly replacements: Replacements
}

async function carryOut(options: ProcessRunOptions, parts: Parts): Promise<ProcessRunResult> {
  const { plan } = options
  const { cluster, clients, log, workload, nemesis, replacements } = parts
  const say = options.onPhase ?? ((): void => undefined)
  say('starting three nodes')
  await cluster.start()
  say(`faults and load for ${plan.seconds} s`)
  await workload.start(clients)
  nemesis.start(plan.faults)
  if (options.replaceSeconds !== undefined) replacements.start()
  await watch(options, parts)
  options.signal?.throwIfAborted()
  await nemesis.end()
  say('healing')
  let notReplaced: string | undefined
  const unhealed = await captureProblem(
    cluster.heal(async () => {
      notReplaced = await replacements.end()
    }),
  )
  await workload.end()
  say('waiting for the nodes to agree')
  const lags =
    unhealed === undefined ? await waitForAgreement(cluster, workload.shards, log) : [unhealed]
  const late = notReplaced === undefined ? lags : [notReplaced, ...lags]
  const { failure } = workload
  const failed = failure === undefined ? [] : [`a client failed: ${describeError(failure)}`]
  const ended = cluster.daemons.flatMap((daemon) => daemon.failure ?? [])
  say('judging what clients were told')
  return buildResult(plan, log.history(), { crashes: [...ended, ...failed], lags: late }, parts)
}

/** Until the time of the faults is over. */
async function watch({ plan, signal, onProgress }: ProcessRunOptions, parts: Parts): Promise<void> {
  const startedMs = performance.now()
  for (;;) {
    const spentMs = performance.now() - startedMs
    const leftMs = plan.seconds * 1000 - spentMs
    if (leftMs <= 0 || signal?.aborted === true) return
    const { log, nemesis } = parts
    onProgress?.({ seconds: Math.floor(spentMs / 1000), calls: log.length, faults: nemesis.counts })
    await pause(Math.min(leftMs, progressEveryMs), signal)
  }
}

/** The result of the work, unless the signal comes first. */
function beforeAbort<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      // The signal's reason says why.
      reject(signal.reason)
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', stop)
    })
  })
}

async function captureProblem(work: Promise<void>): Promise<string | undefined> {
  try {
    await work
    return undefined
  } catch (error) {
    return describeError(error)
  }
}

function describeError(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

interface Others {
  readonly crashes: readonly string[]
  readonly lags: readonly string[]
}

function buildResult(
  { seed, seconds, faults }: ProcessPlan,
  history: History,
  { crashes, lags }: Others,
  { workload, nemesis, replacements }: Parts,
): ProcessRunResult {
  const startedMicros = micros()
  const { anomalies, operationCount, acknowledgedCount } = checkHistory(history)
  const judgedInSeconds = (micros() - startedMicros) / 1e6
  const violations = [...anomalies.map((one) => explain(one, history)), ...crashes, ...lags]
  const broken = crashes.length > 0 ? 'crash' : lags.length > 0 ? 'liveness' : 'clean'
  const { counts } = nemesis
  const planned = [...new Set(faults.map(nameFault))]
  return {
    seed,
    seconds,
    violations,
    judgedInSeconds,
    history,
    outcome: anomalies.length > 0 ? 'safety' : broken,
    operations: operationCount,
    acknowledged: acknowledgedCount,
    codes: workload.codes,
    faults: counts,
    replaced: replacements.count,
    neverStruck: planned.filter((name) => counts[name] === undefined).toSorted(compareText),
  }
}

/**
 * Waits until each node alone shows all of every log. Returns in words any entries that are
 * missing.
 */
async function waitForAgreement(
  cluster: ProcessCluster,
  shards: readonly number[],
  log: HistoryLog,
): Promise<readonly string[]> {
  const deadlineMs = performance.now() + agreeWaitMs
  const lengths = new Map<number, number>()
  const problems: string[] = []
  for (const level of ['current', 'snapshot'] as const) {
    for (const { id, place } of cluster.daemons) {
      const client = await connect({
        endpoints: [place.url ?? ''],
        follow: false,
        timeoutMs: 5_000,
      })
      const { cells } = recordClient(client, { client: `reader-${level}-${id}`, log })
      for (const shard of shards) {
        const wanted = lengths.get(shard) ?? 0
        const length = await readUntil(cells(datastore), shard, { level, wanted }, deadlineMs)
        if (length === undefined) {
          problems.push(`${id} tells nothing of shard ${shard} (${level})`)
          continue
        }
        if (level === 'current') lengths.set(shard, Math.max(wanted, length))
        if (length >= wanted) continue
        problems.push(`${id} shows ${length} of ${wanted} cells of shard ${shard} (${level})`)
      }
      await client.close()
    }
  }
  return problems
}

/**
 * The length of the log, once it is as long as wanted, or the time is up; undefined: no answer came
 * at all.
 */
export async function readUntil(
  cells: Pick<CellCalls, 'shardLog'>,
  shard: number,
  { level, wanted }: { readonly level: ReplicaReadLevel; readonly wanted: number },
  deadlineMs: number,
): Promise<number | undefined> {
  let length: number | undefined
  for (;;) {
    length = (await readLog(cells, shard, level)) ?? length
    const isThere = length !== undefined && length >= wanted
    if (isThere || performance.now() > deadlineMs) return length
    await pause(agreePollMs)
  }
}

/** Undefined when the node could not answer. */
async function readLog(
  cells: Pick<CellCalls, 'shardLog'>,
  shard: number,
  level: ReplicaReadLevel,
): Promise<number | undefined> {
  try {
    for (let after = 0; ;) {
      const page = await cells.shardLog(shard, { after, limit: pageLimit, read: level })
      if (page.items.length < pageLimit) return after + page.items.length
      after = page.cursor
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
