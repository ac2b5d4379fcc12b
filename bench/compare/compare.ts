/**
 * `bench compare`: Trilithon beside other systems and beside the bare ceiling, in alternating rounds of
 * one run, every write synced by a majority. Ratios are of the same round; rates of different rounds
 * of a shared machine say little.
 */
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { countingSeconds } from '../commits.ts'
import type { Load } from '../load-process.ts'
import { machine, readReason, type Machine } from '../common.ts'
import { ceiling } from './ceiling.ts'
import { etcdGo } from './etcd-go.ts'
import { etcd } from './etcd.ts'
import { postgres } from './postgres.ts'
import { summarize, type Summary } from './summary.ts'
import type { Run, RunningSystem, StartOptions, System, SystemName } from './system.ts'
import { oneGroup, trilithon } from './trilithon.ts'

export type PeerName = 'etcd' | 'etcd-go' | 'postgres'
export const peers: Readonly<Record<PeerName, System>> = { etcd, 'etcd-go': etcdGo, postgres }

export interface CompareOptions {
  readonly against: readonly PeerName[]
  readonly operations: readonly Load['operation'][]
  readonly clients: readonly number[]
  readonly rounds: number
  readonly seconds: number
}

export interface CompareReport extends Summary {
  readonly bench: 'compare'
  readonly date: string
  readonly machine: Machine
  readonly options: CompareOptions
  /** Runs are shorter than those that count. */
  readonly isQuick: boolean
  readonly systems: Readonly<Partial<Record<SystemName, string>>>
  /** Systems that are not on this machine, with what brings them there. */
  readonly missing: Readonly<Missing>
  /** Systems that failed: their measurements from before stand. */
  readonly failed: readonly Failed[]
  readonly runs: readonly Run[]
}

type Missing = Partial<Record<SystemName, string>>

export interface Failed {
  readonly system: SystemName
  /** In words: which run, or its end. */
  readonly during: string
  readonly reason: string
}

/** The watcher of a comparison, which may end it. */
export interface Watcher {
  readonly signal: AbortSignal
  onMissing(name: SystemName, install: string): void
  onRun(progress: Progress): void
  onFailed(failed: Failed): void
}

export interface Progress {
  readonly done: number
  readonly all: number
  readonly run: Run
}

/** The engine compiles what is hot in the first run of a system; later ones are warm soon. */
const firstWarmUpSeconds = 10
const warmUpSeconds = 2

export async function benchCompare(
  options: CompareOptions,
  watcher: Watcher,
): Promise<CompareReport> {
  const others = options.against.map((name) => peers[name])
  return await compareSystems([trilithon, oneGroup, ...others, ceiling], options, watcher)
}

/** Reports all that was measured: a system that fails is left out from then on. */
export async function compareSystems(
  systems: readonly System[],
  options: CompareOptions,
  watcher: Watcher,
): Promise<CompareReport> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-compare-'))
  // PostgreSQL may be another user's, who has to get to its own folder in here.
  await chmod(folder, 0o711)
  const running = new Map<SystemName, RunningSystem>()
  const missing: Missing = {}
  const runs: Run[] = []
  const failed: Failed[] = []
  try {
    await startAll(systems, { folder, running, missing, options, watcher })
    await runAll(running, options, watcher, { runs, failed })
  } finally {
    failed.push(...(await stopAll(running)))
    await rm(folder, { recursive: true, force: true })
  }
  return {
    bench: 'compare',
    date: new Date().toISOString(),
    machine: machine(),
    options,
    isQuick: options.seconds < countingSeconds,
    systems: Object.fromEntries([...running].map(([name, { description }]) => [name, description])),
    ...{ missing, failed },
    ...summarize(runs),
    runs,
  }
}

interface Starting {
  readonly folder: string
  readonly running: Map<SystemName, RunningSystem>
  readonly missing: Missing
  readonly options: CompareOptions
  readonly watcher: Watcher
}

async function startAll(
  systems: readonly System[],
  { folder, running, missing, options, watcher }: Starting,
): Promise<void> {
  const { signal } = watcher
  const clientsMax = Math.max(...options.clients)
  for (const system of systems) {
    signal.throwIfAborted()
    const install = await system.missing()
    if (install !== undefined) watcher.onMissing(system.name, (missing[system.name] = install))
    else running.set(system.name, await startIn(folder, system, { signal, clientsMax }))
  }
}

/** All of them, also when one does not end as it should. */
async function stopAll(running: ReadonlyMap<SystemName, RunningSystem>): Promise<Failed[]> {
  const ends = [...running].map(([system, { stop }]) =>
    stop().then(
      () => undefined,
      (error: unknown) => ({ system, during: 'its end', reason: readReason(error) }),
    ),
  )
  return (await Promise.all(ends)).filter((one) => one !== undefined)
}

async function startIn(
  folder: string,
  system: System,
  options: StartOptions,
): Promise<RunningSystem> {
  const own = join(folder, system.name)
  await mkdir(own)
  return await system.start(own, options)
}

interface Planned {
  readonly round: number
  readonly system: SystemName
  readonly clients: number
  readonly operation: Load['operation']
}

/** As far as it has come. */
interface Measurements {
  readonly runs: Run[]
  readonly failed: Failed[]
}

async function runAll(
  running: ReadonlyMap<SystemName, RunningSystem>,
  options: CompareOptions,
  { signal, onRun, onFailed }: Watcher,
  { runs, failed }: Measurements,
): Promise<void> {
  const plan = planRuns(running, options)
  const warm = new Set<SystemName>()
  for (const [at, planned] of plan.entries()) {
    signal.throwIfAborted()
    const system = running.get(planned.system)
    if (system === undefined || failed.some((one) => one.system === planned.system)) continue
    try {
      const run = { ...planned, ...(await system.run(planLoad(planned, options, warm))) }
      runs.push(run)
      onRun({ done: at + 1, all: plan.length, run })
    } catch (error) {
      signal.throwIfAborted()
      const failure = toFailed(planned, error)
      failed.push(failure)
      onFailed(failure)
    }
  }
}

function planLoad(
  { system, clients, operation }: Planned,
  { seconds }: CompareOptions,
  warm: Set<SystemName>,
): Load {
  const isFirst = !warm.has(system)
  warm.add(system)
  const warmUp = isFirst ? firstWarmUpSeconds : warmUpSeconds
  return { clients, seconds, operation, warmUpSeconds: warmUp }
}

function toFailed({ system, round, clients, operation }: Planned, error: unknown): Failed {
  const during = `round ${round + 1}, ${clients} clients, ${operation}`
  return { system, during, reason: readReason(error) }
}

/** The system that is first in a round is last in the next: a machine that slows down does so for all. */
function planRuns(
  running: ReadonlyMap<SystemName, RunningSystem>,
  { clients, rounds, operations: asked }: CompareOptions,
): Planned[] {
  const plan: Planned[] = []
  for (const count of clients) {
    for (let round = 0; round < rounds; round++) {
      for (const operation of asked) {
        const able = [...running].filter(([, { operations }]) => operations.includes(operation))
        const names = able.map(([name]) => name)
        const order = round % 2 === 0 ? names : names.toReversed()
        plan.push(...order.map((system) => ({ round, system, clients: count, operation })))
      }
    }
  }
  return plan
}
