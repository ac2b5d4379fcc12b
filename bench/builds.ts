/**
 * `bench builds`: commits of this build beside those of another one, in short slices that take turns.
 * Both clusters run all the while, the other one idle. A shared machine changes within minutes by more than
 * most changes of the code do, and hardly within two slices: the ratio of each pair is what counts.
 */
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildIn, type Build } from './build.ts'
import { countingSeconds } from './commits.ts'
import { BenchError } from './common.ts'
import { deviceWrittenBytes } from './disk.ts'
import { LoadProcess } from './load-process.ts'
import {
  clusterCpuSeconds,
  clusterWrittenBytes,
  pause,
  startCluster,
  type BenchCluster,
} from './processes.ts'

export interface BuildsOptions {
  readonly clients: number
  /** Of one slice. */
  readonly seconds: number
  /** Of each build. */
  readonly slices: number
  readonly warmUp: number
  /** Seconds after each slice in which its nodes apply what they committed: that counts as their cost. */
  readonly rest: number
  readonly oneGroup?: boolean
  /** Of this build's nodes; absent: the default. The other build may not know it. */
  readonly logStore?: string
}

export const costNames = [
  'perSecond',
  'p50Ms',
  'p99Ms',
  'cpuPer1000',
  'kibPer1000',
  'deviceKibPer1000',
] as const
type CostName = (typeof costNames)[number]
/**
 * With the rest after the slice: CPU is that of the nodes, in seconds; KiB are what they write, as the system counts it
 * for processes; device KiB are what the disk wrote meanwhile, whichever process asked for it.
 */
export type Costs<Value> = Readonly<Record<CostName, Value>>

export interface Slice extends Costs<number> {
  readonly failures: number
}

/** The median of slices or of their ratios, and the quarters below and above which others lie. */
export interface Quartiles {
  readonly lower: number
  readonly median: number
  readonly upper: number
}

export interface BuildsReport {
  readonly bench: 'builds'
  readonly options: BuildsOptions
  /** Where no git tells of it, its folder. */
  readonly other: Build | { readonly folder: string }
  readonly figures: Readonly<Record<'own' | 'other', Costs<Quartiles>>>
  /** This build's over the other's, pair by pair: of a rate more, of the rest less is better. */
  readonly ratios: Costs<Quartiles>
  readonly failures: number
  readonly slices: readonly { readonly own: Slice; readonly other: Slice }[]
  readonly isQuick: boolean
}

/** The observer of the benchmark, which may end it. */
export interface BuildsWatcher {
  readonly signal: AbortSignal
  onPair(done: number, all: number, ratio: number): void
}

interface Side {
  readonly cluster: BenchCluster
  readonly client: LoadProcess
}

const ownDist = fileURLToPath(new URL('..', import.meta.url))

/** `folder`: a checkout that is built. Rejects with a BenchError where there is none. */
export async function benchBuilds(
  folder: string,
  options: BuildsOptions,
  watcher: BuildsWatcher,
): Promise<BuildsReport> {
  const otherDist = join(resolve(folder), 'dist')
  if (!existsSync(clientIn(otherDist))) {
    throw new BenchError(`there is no build in ${folder}; run npm run build there first`)
  }
  // As the run begins: it takes minutes, and the sources go on.
  const build = await buildIn(dirname(otherDist))
  const sides: Side[] = []
  try {
    const { logStore } = options
    const more = logStore === undefined ? [] : [`log_store: ${logStore}`]
    sides.push(await start(ownDist, options, watcher.signal, more))
    sides.push(await start(otherDist, options, watcher.signal))
    const [own, other] = sides
    if (own === undefined || other === undefined) throw new Error('both sides have started')
    const slices = await measure(own, other, options, watcher)
    return report(options, folder, build, slices)
  } finally {
    await Promise.all(sides.map(stop))
  }
}

function clientIn(dist: string): string {
  return join(dist, 'bench/load-client.js')
}

/** With the client library that belongs to it. */
async function start(
  dist: string,
  { oneGroup = false }: BuildsOptions,
  signal: AbortSignal,
  more: readonly string[] = [],
): Promise<Side> {
  const cluster = await startCluster(3, join(dist, 'src/cli/main.js'), more)
  try {
    const args = [cluster.urls.join(','), '100', ...(oneGroup ? ['one-group'] : [])]
    return { cluster, client: await LoadProcess.start(clientIn(dist), args, signal) }
  } catch (error) {
    await cluster.stop()
    throw error
  }
}

async function stop({ client, cluster }: Side): Promise<void> {
  await client.stop()
  await cluster.stop()
}

async function measure(
  own: Side,
  other: Side,
  options: BuildsOptions,
  { onPair }: BuildsWatcher,
): Promise<BuildsReport['slices']> {
  const { seconds, slices, warmUp } = options
  for (const side of [own, other]) await slice(side, options, warmUp)
  const measured: { own: Slice; other: Slice }[] = []
  while (measured.length < slices) {
    // The build that comes first has the other's last batches beside it: they change places.
    const isOwnFirst = measured.length % 2 === 0
    const first = await slice(isOwnFirst ? own : other, options, seconds)
    const second = await slice(isOwnFirst ? other : own, options, seconds)
    const pair = isOwnFirst ? { own: first, other: second } : { own: second, other: first }
    measured.push(pair)
    onPair(measured.length, slices, pair.own.perSecond / pair.other.perSecond)
  }
  return measured
}

async function slice(
  { cluster, client }: Side,
  { clients, rest }: BuildsOptions,
  seconds: number,
): Promise<Slice> {
  const before = await countUsed(cluster)
  const load = { clients, seconds, warmUpSeconds: 0, operation: 'commits' } as const
  const { operations, failures, elapsedMs, p50Ms, p99Ms } = await client.run(load, {
    onWarm: () => Promise.resolve(),
  })
  await pause(rest * 1_000)
  const after = await countUsed(cluster)
  const per1000 = (name: keyof Used): number => ((after[name] - before[name]) / operations) * 1000
  return {
    ...{ perSecond: operations / (elapsedMs / 1000), p50Ms, p99Ms },
    cpuPer1000: per1000('cpuSeconds'),
    kibPer1000: per1000('writtenBytes') / 1024,
    deviceKibPer1000: per1000('deviceBytes') / 1024,
    failures,
  }
}

interface Used {
  readonly cpuSeconds: number
  readonly writtenBytes: number
  readonly deviceBytes: number
}

async function countUsed(cluster: BenchCluster): Promise<Used> {
  return {
    cpuSeconds: await clusterCpuSeconds(cluster),
    writtenBytes: await clusterWrittenBytes(cluster),
    deviceBytes: await deviceWrittenBytes(),
  }
}

function report(
  options: BuildsOptions,
  folder: string,
  build: Build | undefined,
  slices: BuildsReport['slices'],
): BuildsReport {
  const [own, other] = [slices.map((pair) => pair.own), slices.map((pair) => pair.other)]
  return {
    bench: 'builds',
    options,
    other: build ?? { folder },
    figures: { own: computeQuartiles(own), other: computeQuartiles(other) },
    ratios: computeQuartiles(slices.map(computeRatios)),
    failures: [...own, ...other].reduce((sum, { failures }) => sum + failures, 0),
    slices,
    isQuick: options.seconds * options.slices < countingSeconds,
  }
}

function computeRatios({ own, other }: BuildsReport['slices'][number]): Costs<number> {
  return costs((name) => own[name] / other[name])
}

function computeQuartiles(values: readonly Costs<number>[]): Costs<Quartiles> {
  return costs((name) => quartiles(values.map((value) => value[name])))
}

function costs<Value>(of: (name: CostName) => Value): Costs<Value> {
  return {
    perSecond: of('perSecond'),
    p50Ms: of('p50Ms'),
    p99Ms: of('p99Ms'),
    cpuPer1000: of('cpuPer1000'),
    kibPer1000: of('kibPer1000'),
    deviceKibPer1000: of('deviceKibPer1000'),
  }
}

/** Between two values in proportion. */
export function quartiles(values: readonly number[]): Quartiles {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number => {
    const place = (sorted.length - 1) * share
    const below = sorted[Math.floor(place)] ?? Number.NaN
    const above = sorted[Math.ceil(place)] ?? Number.NaN
    return Number((below + (above - below) * (place % 1)).toPrecision(5))
  }
  return { lower: at(0.25), median: at(0.5), upper: at(0.75) }
}
