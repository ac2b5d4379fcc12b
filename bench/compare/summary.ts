/** Summaries of runs: medians with their spread, and Trilithon's ratios to the others, round by round. */
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
  /** The same of its rows in one entity group. */
  readonly oneGroupRatios: Ratios<number>
  readonly oneGroupRatioSpread: Ratios<readonly [number, number]>
}

type Own = 'trilithon' | 'oneGroup'

export function summarize(runs: readonly Run[]): Summary {
  return {
    figures: summarizeRuns(runs),
    ratios: computeRatios('trilithon', runs, median),
    ratioSpread: computeRatios('trilithon', runs, ends),
    oneGroupRatios: computeRatios('oneGroup', runs, median),
    oneGroupRatioSpread: computeRatios('oneGroup', runs, ends),
  }
}

function median(values: readonly number[]): number {
  return computeSpread(values).median
}

function ends(values: readonly number[]): readonly [number, number] {
  const { least, greatest } = computeSpread(values)
  return [least, greatest]
}

export function computeSpread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  const at = (place: number): number => rounded(sorted[place] ?? Number.NaN)
  const between =
    ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2
  return { median: rounded(between), least: at(0), greatest: at(sorted.length - 1) }
}

function rounded(value: number): number {
  return Number(value.toPrecision(5))
}

function summarizeRuns(runs: readonly Run[]): Summary['figures'] {
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
              const spread = (of: (run: Run) => number): Spread => computeSpread(same.map(of))
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

function byKey<Item, Value>(
  items: readonly Item[],
  toKey: (item: Item) => string,
  summarizeItems: (items: readonly Item[]) => Value,
): Record<string, Value> {
  const keys = [...new Set(items.map(toKey))]
  return Object.fromEntries(
    keys.map((key) => [key, summarizeItems(items.filter((item) => toKey(item) === key))]),
  )
}

function computeRatios<Value>(
  own: Own,
  runs: readonly Run[],
  of: (values: readonly number[]) => Value,
): Ratios<Value> {
  const ours = runs.filter(({ system }) => system === own)
  const others = runs.filter(({ system }) => system !== 'trilithon' && system !== 'oneGroup')
  return byKey(
    others,
    ({ system }) => system,
    (theirs) => {
      const entries = ratioNames.flatMap((name) => {
        const compared = theirs.flatMap((their) => {
          const our = ours.find((one) => isBeside(one, their))
          return their.operation === pickOperation(name) && our ? [{ our, their }] : []
        })
        const values = byKey(
          compared,
          ({ their }) => `${their.clients}`,
          (same) =>
            of(same.map(({ our, their }) => readFigure(name, our) / readFigure(name, their))),
        )
        return Object.keys(values).length === 0 ? [] : [[name, values] as const]
      })
      return Object.fromEntries(entries)
    },
  )
}

function pickOperation(name: RatioName): Run['operation'] {
  return name.startsWith('read') ? 'reads' : 'commits'
}

/** Of the same round. */
function isBeside(one: Run, { round, clients, operation }: Run): boolean {
  return one.round === round && one.clients === clients && one.operation === operation
}

function readFigure(name: RatioName, run: Run): number {
  if (name.endsWith('Cpu')) return run.serverCpuPer1000
  return name.endsWith('P50') ? run.p50Ms : run.perSecond
}
