/** What runs come to: medians with their spread, and Trilithon's ratios to the others, round by round. */
import type { Run, SystemName } from './system.ts'

/** The median of some rounds, and the least and greatest of them. */
export interface Spread {
  readonly median: number
  readonly least: number
  readonly greatest: number
}

export interface Figures {
  readonly perSecond: Spread
  readonly p50Ms: Spread
  readonly p99Ms: Spread
  readonly serverCpuPer1000: Spread
  readonly clientCpuPer1000: Spread
  readonly failures: number
}

const ratioNames = ['commits', 'commitCpu', 'commitP50', 'reads', 'readCpu', 'readP50'] as const
export type RatioName = (typeof ratioNames)[number]

/** By number of clients. */
type ByClients<Value> = Readonly<Record<string, Value>>
type Ratios<Value> = Readonly<
  Partial<Record<SystemName, Readonly<Partial<Record<RatioName, ByClients<Value>>>>>>
>

export interface Summary {
  readonly figures: Readonly<
    Partial<Record<SystemName, Readonly<Partial<Record<Run['operation'], ByClients<Figures>>>>>>
  >
  /** Trilithon's figure over the other's, the median of the rounds: of rates more, of the rest less is better. */
  readonly ratios: Ratios<number>
  /** The least and the greatest of the rounds. */
  readonly ratioSpread: Ratios<readonly [number, number]>
}

export function summarize(runs: readonly Run[]): Summary {
  return {
    figures: figuresOf(runs),
    ratios: ratiosOf(runs, (values) => spreadOf(values).median),
    ratioSpread: ratiosOf(runs, (values) => {
      const { least, greatest } = spreadOf(values)
      return [least, greatest]
    }),
  }
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  const at = (place: number): number => rounded(sorted[place] ?? Number.NaN)
  const median =
    ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2
  return { median: rounded(median), least: at(0), greatest: at(sorted.length - 1) }
}

function rounded(value: number): number {
  return Number(value.toPrecision(5))
}

function figuresOf(runs: readonly Run[]): Summary['figures'] {
  return byKey(
    runs,
    ({ system }) => system,
    (ofSystem) =>
      byKey(
        ofSystem,
        ({ operation }) => operation,
        (ofOperation) =>
          byKey(
            ofOperation,
            ({ clients }) => `${clients}`,
            (same): Figures => {
              const spread = (of: (run: Run) => number): Spread => spreadOf(same.map(of))
              return {
                perSecond: spread(({ perSecond }) => perSecond),
                p50Ms: spread(({ p50Ms }) => p50Ms),
                p99Ms: spread(({ p99Ms }) => p99Ms),
                serverCpuPer1000: spread(({ serverCpuPer1000 }) => serverCpuPer1000),
                clientCpuPer1000: spread(({ clientCpuPer1000 }) => clientCpuPer1000),
                failures: same.reduce((sum, { failures }) => sum + failures, 0),
              }
            },
          ),
      ),
  )
}

function byKey<Value>(
  runs: readonly Run[],
  keyOf: (run: Run) => string,
  valueOf: (runs: readonly Run[]) => Value,
): Record<string, Value> {
  const keys = [...new Set(runs.map(keyOf))]
  return Object.fromEntries(
    keys.map((key) => [key, valueOf(runs.filter((run) => keyOf(run) === key))]),
  )
}

function ratiosOf<Value>(
  runs: readonly Run[],
  of: (values: readonly number[]) => Value,
): Ratios<Value> {
  const others = runs.filter(({ system }) => system !== 'trilithon')
  return byKey(
    others,
    ({ system }) => system,
    (theirs) => {
      const entries = ratioNames.flatMap((name) => {
        const values = byKey(
          theirs.filter(({ operation }) => operation === operationOf(name)),
          ({ clients }) => `${clients}`,
          (same) => of(same.flatMap((their) => ratioOf(name, their, runs))),
        )
        return Object.keys(values).length === 0 ? [] : [[name, values] as const]
      })
      return Object.fromEntries(entries)
    },
  )
}

function operationOf(name: RatioName): Run['operation'] {
  return name.startsWith('read') ? 'reads' : 'commits'
}

/** Of Trilithon's run in the same round. */
function ratioOf(name: RatioName, their: Run, runs: readonly Run[]): number[] {
  const ours = runs.find(
    ({ system, round, clients, operation }) =>
      system === 'trilithon' &&
      round === their.round &&
      clients === their.clients &&
      operation === their.operation,
  )
  return ours === undefined ? [] : [figureOf(name, ours) / figureOf(name, their)]
}

function figureOf(name: RatioName, run: Run): number {
  if (name.endsWith('Cpu')) return run.serverCpuPer1000
  return name.endsWith('P50') ? run.p50Ms : run.perSecond
}
