/** Summaries of starts and slices: medians with their spread, and ratios to the smallest size. */
import { computeSpread, type Spread } from '../compare/summary.ts'
import type { Memory } from '../processes.ts'
import type { Filled } from './fill.ts'
import type { Start } from './site.ts'
import type { Slice, Work } from './work.ts'

export interface StartFigures {
  readonly seconds: Spread
  readonly cpuSeconds: Spread
  /** Of the median of the rounds, each by itself. */
  readonly memory: Memory
}

export interface WorkFigures {
  readonly perSecond: Spread
  readonly cpuMicros: Spread
  readonly p50Ms: Spread
  readonly p99Ms: Spread
  readonly failures: number
  /** CPU of an operation over that at the smallest size in the same round. */
  readonly cpuRatio: Spread
  /** The rate at the smallest size over this one in the same round: as CPU, less is better. */
  readonly timeRatio: Spread
}

/** One size. */
export interface SizeFigures {
  readonly groups: number
  readonly filled: Filled
  readonly start: StartFigures
  /** After all slices, with the client still there. */
  readonly memoryAfterWork: Memory
  readonly work: Readonly<Record<Work, WorkFigures>>
}

export function startFigures(starts: readonly Start[]): StartFigures {
  const median = (of: (start: Start) => number): number => computeSpread(starts.map(of)).median
  return {
    seconds: computeSpread(starts.map(({ seconds }) => seconds)),
    cpuSeconds: computeSpread(starts.map(({ cpuSeconds }) => cpuSeconds)),
    memory: {
      resident: median(({ memory }) => memory.resident),
      peak: median(({ memory }) => memory.peak),
      own: median(({ memory }) => memory.own),
    },
  }
}

/** Of the slices of all sizes, the figures of this one; `smallest` is the size it is compared with. */
export function workFigures(
  slices: readonly Slice[],
  groups: number,
  smallest: number,
): Record<Work, WorkFigures> {
  const of = (work: Work): WorkFigures => {
    const same = slices.filter((slice) => slice.work === work)
    return summarizeWork(
      same.filter((slice) => slice.groups === groups),
      same.filter((slice) => slice.groups === smallest),
    )
  }
  return {
    commits: of('commits'),
    reads: of('reads'),
    commitsOfSome: of('commitsOfSome'),
    readsOfSome: of('readsOfSome'),
  }
}

function summarizeWork(slices: readonly Slice[], smallest: readonly Slice[]): WorkFigures {
  const spread = (of: (slice: Slice) => number): Spread => computeSpread(slices.map(of))
  const ratio = (of: (slice: Slice, base: Slice) => number): Spread =>
    computeSpread(
      slices.flatMap((slice) => {
        const base = smallest.find(({ round }) => round === slice.round)
        return base === undefined ? [] : [of(slice, base)]
      }),
    )
  return {
    perSecond: spread(({ perSecond }) => perSecond),
    cpuMicros: spread(({ cpuMicros }) => cpuMicros),
    p50Ms: spread(({ p50Ms }) => p50Ms),
    p99Ms: spread(({ p99Ms }) => p99Ms),
    failures: slices.reduce((sum, { failures }) => sum + failures, 0),
    cpuRatio: ratio((slice, base) => slice.cpuMicros / base.cpuMicros),
    timeRatio: ratio((slice, base) => base.perSecond / slice.perSecond),
  }
}
