/**
 * `bench scale`: what one node of many entity groups costs beside one of few. A data folder for each
 * size, each with a daemon of its own: how long it takes to start and what memory that needs, what a
 * commit and a current read cost in slices that change from size to size, and a start after `kill -9`.
 *
 * Folders are in the operating system's cache when nodes start: the bench measures the node, not the
 * disk.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { countingSeconds } from '../commits.ts'
import { machine, type Machine } from '../common.ts'
import { pause, type Memory } from '../processes.ts'
import { copySite, fillSite, nameSize, type Filled } from './fill.ts'
import type { Site, Start } from './site.ts'
import { startFigures, workFigures, type SizeFigures } from './summary.ts'
import { Worker, works, type Slice } from './work.ts'

export interface ScaleOptions {
  /** Sizes, ascending. */
  readonly groups: readonly number[]
  readonly rowsPerGroup: number
  readonly clients: number
  readonly rounds: number
  /** Of each slice. */
  readonly seconds: number
  /** Of each kind of work at each size before the first slice. */
  readonly warmUp: number
  /** Where filled folders are kept, and taken from; absent: they are removed with the rest. */
  readonly keep?: string
}

export interface ScaleReport {
  readonly bench: 'scale'
  readonly date: string
  readonly machine: Machine
  readonly options: ScaleOptions
  /** The slices of one kind of work at one size are shorter, in all, than what counts. */
  readonly isQuick: boolean
  readonly sizes: readonly SizeFigures[]
  /** At the largest size, after a `kill -9` under commits. */
  readonly recovery: Start & { readonly groups: number }
  readonly slices: readonly Slice[]
}

/** The watcher of this bench, which may end it. */
export interface ScaleWatcher {
  readonly signal: AbortSignal
  onFill(groups: number, done: number): void
  onFilled(filled: Filled): void
  onStart(groups: number, start: Start): void
  onSlice(done: number, all: number, slice: Slice): void
}

/** One size, as far as it has come. */
interface Subject {
  readonly site: Site
  readonly filled: Filled
  readonly starts: Start[]
}

export async function benchScale(
  options: ScaleOptions,
  watcher: ScaleWatcher,
): Promise<ScaleReport> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-scale-'))
  const subjects: Subject[] = []
  try {
    for (const groups of options.groups) {
      subjects.push({ ...(await makeSite(folder, groups, options, watcher)), starts: [] })
    }
    await measureStarts(subjects, options.rounds, watcher)
    const { slices, memories } = await measureWork(subjects, options, watcher)
    const recovery = await measureRecovery(subjects, options, watcher)
    return {
      bench: 'scale',
      date: new Date().toISOString(),
      machine: machine(),
      options,
      isQuick: options.rounds * options.seconds < countingSeconds,
      sizes: subjects.map((subject) => summarizeSize(subject, subjects, slices, memories)),
      recovery,
      slices,
    }
  } finally {
    for (const { site } of subjects) await site.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function makeSite(
  folder: string,
  groups: number,
  { keep, rowsPerGroup }: ScaleOptions,
  { signal, onFill, onFilled }: ScaleWatcher,
): Promise<{ readonly site: Site; readonly filled: Filled }> {
  const size = { groups, rowsPerGroup }
  const own = join(folder, nameSize(size))
  const fill = { signal, onProgress: onFill }
  const made = await (keep === undefined
    ? fillSite(own, size, fill)
    : copySite(keep, own, size, fill))
  onFilled(made.filled)
  return made
}

/** One process at a time, of one size after the other; all of them run at the end. */
async function measureStarts(
  subjects: readonly Subject[],
  rounds: number,
  { signal, onStart }: ScaleWatcher,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (const { site, starts } of inTurn(subjects, round)) {
      const start = await site.start(signal)
      starts.push(start)
      onStart(site.groups, start)
      if (round < rounds - 1) await site.stop()
    }
  }
}

async function measureWork(
  subjects: readonly Subject[],
  options: ScaleOptions,
  watcher: ScaleWatcher,
): Promise<{ readonly slices: Slice[]; readonly memories: ReadonlyMap<Site, Memory> }> {
  const { signal } = watcher
  const workers: Worker[] = []
  try {
    for (const { site } of subjects) {
      workers.push(await Worker.open(site, findSmallest(subjects), signal))
    }
    const slices = await runSlices(workers, options, watcher)
    const memories = new Map<Site, Memory>()
    for (const { site } of subjects) memories.set(site, await site.memory())
    return { slices, memories }
  } finally {
    for (const worker of workers) await worker.close()
  }
}

async function runSlices(
  workers: readonly Worker[],
  options: ScaleOptions,
  { signal, onSlice }: ScaleWatcher,
): Promise<Slice[]> {
  const { clients, rounds, seconds, warmUp } = options
  for (const worker of workers) {
    for (const work of works) await worker.load(work, { clients, seconds: warmUp, signal })
    await worker.site.settled()
  }
  const slices: Slice[] = []
  const all = rounds * works.length * workers.length
  for (let round = 0; round < rounds; round++) {
    for (const work of works) {
      for (const worker of inTurn(workers, round)) {
        signal.throwIfAborted()
        const slice = { round, ...(await worker.slice(work, { clients, seconds, signal })) }
        slices.push(slice)
        onSlice(slices.length, all, slice)
      }
    }
  }
  return slices
}

/** The one that is first in a round is last in the next: a machine that slows down does so for all. */
function inTurn<One>(all: readonly One[], round: number): readonly One[] {
  return round % 2 === 0 ? all : all.toReversed()
}

/** The largest node is killed under commits; the others are stopped before. */
async function measureRecovery(
  subjects: readonly Subject[],
  { clients, seconds }: ScaleOptions,
  { signal }: ScaleWatcher,
): Promise<ScaleReport['recovery']> {
  const last = subjects.at(-1)
  if (last === undefined) throw new Error('there is a size')
  for (const { site } of subjects) if (site !== last.site) await site.stop()
  const dead = new AbortController()
  const either = AbortSignal.any([signal, dead.signal])
  const worker = await Worker.open(last.site, last.site.groups, either)
  const load = worker.load('commits', { clients, seconds: seconds * 2, signal: either })
  await pause(seconds * 1000)
  await last.site.stop('SIGKILL')
  // No node is left to answer the commits under way.
  dead.abort()
  await load
  signal.throwIfAborted()
  return { groups: last.site.groups, ...(await last.site.start(signal)) }
}

function findSmallest(subjects: readonly Subject[]): number {
  return subjects[0]?.site.groups ?? 0
}

function summarizeSize(
  { site, filled, starts }: Subject,
  subjects: readonly Subject[],
  slices: readonly Slice[],
  memories: ReadonlyMap<Site, Memory>,
): SizeFigures {
  const memoryAfterWork = memories.get(site)
  if (memoryAfterWork === undefined) throw new Error('every size was worked on')
  return {
    ...{ groups: site.groups, filled, memoryAfterWork },
    start: startFigures(starts),
    work: workFigures(slices, site.groups, findSmallest(subjects)),
  }
}
