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
import { machine, type Machine } from '../common.ts'
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
  readonly missing: Readonly<Partial<Record<SystemName, string>>>
  readonly runs: readonly Run[]
}

/** Who watches a comparison, and may end it. */
export interface Watcher {
  readonly signal: AbortSignal
  onMissing(name: SystemName, install: string): void
  onRun(progress: Progress): void
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
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-compare-'))
  // PostgreSQL may be another user's, who has to get to its own folder in here.
  await chmod(folder, 0o711)
  const running = new Map<SystemName, RunningSystem>()
  try {
    const missing: Partial<Record<SystemName, string>> = {}
    const others = options.against.map((name) => peers[name])
    for (const system of [trilithon, oneGroup, ...others, ceiling]) {
      watcher.signal.throwIfAborted()
      const install = await system.missing()
      if (install === undefined) running.set(system.name, await startIn(folder, system, watcher))
      else watcher.onMissing(system.name, (missing[system.name] = install))
    }
    const runs = await runAll(running, options, watcher)
    return {
      bench: 'compare',
      date: new Date().toISOString(),
      machine: machine(),
      options,
      isQuick: options.seconds < countingSeconds,
      systems: Object.fromEntries(
        [...running].map(([name, { description }]) => [name, description]),
      ),
      missing,
      ...summarize(runs),
      runs,
    }
  } finally {
    for (const system of running.values()) await system.stop()
    await rm(folder, { recursive: true, force: true })
  }
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

async function runAll(
  running: ReadonlyMap<SystemName, RunningSystem>,
  options: CompareOptions,
  { signal, onRun }: Watcher,
): Promise<Run[]> {
  const { seconds } = options
  const plan = planOf(running, options)
  const runs: Run[] = []
  const warm = new Set<SystemName>()
  for (const planned of plan) {
    signal.throwIfAborted()
    const system = running.get(planned.system)
    if (system === undefined) continue
    const isFirst = !warm.has(planned.system)
    warm.add(planned.system)
    const { clients: count, operation } = planned
    const measured = await system.run({
      ...{ clients: count, seconds, operation },
      warmUpSeconds: isFirst ? firstWarmUpSeconds : warmUpSeconds,
    })
    const run = { ...planned, ...measured }
    runs.push(run)
    onRun({ done: runs.length, all: plan.length, run })
  }
  return runs
}

/** Who is first in a round is last in the next one: a machine that slows down does so for all. */
function planOf(
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
