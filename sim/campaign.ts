/**
 * Many seeds: run here or spread over processes, summed up, and judged as a whole. A campaign in
 * which a kind of fault never struck, or too little happened, proves nothing and fails (META-2).
 */
import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expectedCounts } from './coverage.ts'
import { unjudged } from './judged-rules.ts'
import type { RunOutcome, RunResult } from './result.ts'
import { stackLinesMax } from './run-error.ts'
import type { Switches } from './faults/swarm-faults.ts'

export interface CampaignOptions {
  readonly from: number
  /** Included. */
  readonly to: number
  readonly jobs: number
  /** Each seed twice, hashes compared. */
  readonly check: boolean
  /** Stop at the first seed that is not clean. */
  readonly stopAtFailure: boolean
  /** No further seed is begun once this says so. */
  readonly isTimeUp?: (() => boolean) | undefined
  /** Rules that count; all of them when absent. */
  readonly rules?: readonly string[] | undefined
  /** Faults that are left out of the seeds' draws. */
  readonly switches?: Switches | undefined
  onResult(result: RunResult, done: number): void
}

export interface CampaignSummary {
  readonly seeds: number
  readonly failed: readonly RunResult[]
  readonly events: number
  readonly commits: number
  readonly medianCommits: number
  readonly simulatedSeconds: number
  readonly wallSeconds: number
  /** How often each thing happened in all. */
  readonly coverage: Readonly<Record<string, number>>
  /** How often each rule was held to something. */
  readonly judgements: Readonly<Record<string, number>>
  /** In how many seeds of a thousand. */
  readonly seedsPerThousand: Readonly<Record<string, number>>
  /** Why the campaign as a whole proves too little; empty when it does not. */
  readonly shortfalls: readonly string[]
}

/** Fewer seeds than this need not have met every fault. */
const judgedSeedsMin = 200
const medianCommitsMin = 200
/** Things that must happen in this many seeds of a thousand. */
const sharesMin: Readonly<Record<string, number>> = {
  'lost-write': 300,
  'leader changed': 300,
  "adopted another's": 100,
}

/**
 * Told to V8 in a process that runs seeds: a new space in which most of what a run makes is dead
 * before it is looked at, and an old one that is seldom gone through, since code that nothing
 * refers to at that moment has to be optimized again after it. Code is optimized later and in
 * smaller pieces than V8 would by itself: a run goes through all of the program, and optimizing was
 * a fifth of what its process did. Errors are a part of most runs, and the deeper their stacks, the
 * longer it takes to make them.
 */
export const v8Flags: readonly string[] = [
  '--min-semi-space-size=64',
  '--max-semi-space-size=64',
  '--initial-old-space-size=256',
  '--interrupt-budget=270336',
  '--max-inlined-bytecode-size-cumulative=460',
  `--stack-trace-limit=${stackLinesMax}`,
]

/** Of one job, seeds are run by this process if it was started with room for them. */
export async function runCampaign(options: CampaignOptions): Promise<CampaignSummary> {
  const startedMs = process.hrtime.bigint()
  const isRoomy = v8Flags.every((flag) => process.execArgv.includes(flag))
  const isHere = options.jobs === 1 && isRoomy
  const results = isHere ? await runHere(options) : await runSpread(options)
  const wallSeconds = Number(process.hrtime.bigint() - startedMs) / 1e9
  return summarise(
    results.sort((a, b) => a.seed - b.seed),
    wallSeconds,
    options,
  )
}

/** Loads the simulated world: a command line that is refused, and a parent of workers, do without it. */
async function runHere(options: CampaignOptions): Promise<RunResult[]> {
  const { runSeedChecked } = await import('./run.ts')
  const results: RunResult[] = []
  for (let seed = options.from; seed <= options.to; seed++) {
    if (options.isTimeUp?.() === true) break
    const result = await runSeedChecked(
      seed,
      options.check,
      { rules: options.rules },
      options.switches,
    )
    results.push(result)
    options.onResult(result, results.length)
    if (result.outcome !== 'clean' && options.stopAtFailure) break
  }
  return results
}

/** Deals seeds to processes one by one; a process that dies counts as a crash of its seed. */
async function runSpread(options: CampaignOptions): Promise<RunResult[]> {
  const results: RunResult[] = []
  let next = options.from
  const draw = (): number | undefined =>
    next <= options.to && options.isTimeUp?.() !== true ? next++ : undefined
  const onResult = (result: RunResult): void => {
    results.push(result)
    options.onResult(result, results.length)
    if (result.outcome !== 'clean' && options.stopAtFailure) next = options.to + 1
  }
  const count = Math.min(options.jobs, options.to - options.from + 1)
  const workers = Array.from({ length: count }, forkWorker)
  // A worker may be in a loop, and not notice the end of its parent.
  const killAll = (): void => workers.forEach((worker) => void worker.kill('SIGKILL'))
  process.once('exit', killAll)
  await Promise.all(workers.map((worker) => work(worker, options, draw, onResult)))
  process.off('exit', killAll)
  return results
}

function work(
  child: ChildProcess,
  { check, rules, switches }: CampaignOptions,
  draw: () => number | undefined,
  onResult: (result: RunResult) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let seed = draw()
    const goOn = (): void => {
      if (seed === undefined) child.disconnect()
      else child.send({ seed, check, rules, switches })
    }
    child.on('message', (result: RunResult) => {
      onResult(result)
      seed = draw()
      goOn()
    })
    child.on('error', reject)
    child.on('exit', () => {
      if (seed === undefined) resolve()
      else reject(new Error(`the process that ran seed ${seed} ended`))
    })
    goOn()
  })
}

/** Apart from the terminal, whose signals are for the campaign: it lets the seeds under way end. */
function forkWorker(): ChildProcess {
  const self = fileURLToPath(import.meta.url)
  const execArgv = [...process.execArgv, ...v8Flags]
  const path = self.replace(/campaign(\.[jt]s)$/, 'campaign-worker$1')
  return fork(path, { execArgv, detached: true })
}

export function summarise(
  results: readonly RunResult[],
  wallSeconds: number,
  { switches = {}, rules }: Pick<CampaignOptions, 'switches' | 'rules'> = {},
): CampaignSummary {
  const coverage: Record<string, number> = {}
  const judgements: Record<string, number> = {}
  const seedsWith: Record<string, number> = {}
  for (const result of results) {
    for (const [name, count] of Object.entries(result.coverage)) {
      coverage[name] = (coverage[name] ?? 0) + count
      seedsWith[name] = (seedsWith[name] ?? 0) + 1
    }
    for (const [rule, count] of Object.entries(result.judgements)) {
      judgements[rule] = (judgements[rule] ?? 0) + count
    }
  }
  const seedsPerThousand = Object.fromEntries(
    Object.entries(seedsWith)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, count]) => [name, Math.round((1000 * count) / results.length)]),
  )
  const commitCounts = results.map((result) => result.commits).sort((a, b) => a - b)
  const medianCommits = commitCounts[Math.floor(commitCounts.length / 2)] ?? 0
  return {
    seeds: results.length,
    failed: results.filter((result) => result.outcome !== 'clean'),
    events: addUp(results.map((result) => result.events)),
    commits: addUp(commitCounts),
    medianCommits,
    simulatedSeconds: Math.round(addUp(results.map((result) => result.simulatedSeconds))),
    wallSeconds,
    coverage,
    judgements,
    seedsPerThousand,
    shortfalls: [
      ...findShortfalls(results.length, medianCommits, seedsPerThousand, switches),
      ...blindSpots(results.length, judgements, switches, rules),
    ],
  }
}

/** A line for one shortfall of a campaign, opened by its rule as violations are. */
export function describeShortfall(shortfall: string): string {
  return `META-2: ${shortfall}`
}

function findShortfalls(
  seeds: number,
  medianCommits: number,
  seedsPerThousand: Readonly<Record<string, number>>,
  switches: Switches,
): string[] {
  if (seeds < judgedSeedsMin) return []
  const missing = expectedCounts(switches)
    .filter((name) => seedsPerThousand[name] === undefined)
    .map((name) => `the fault "${name}" never struck`)
  const rare = Object.entries(sharesMin)
    .filter(([name, least]) => isWhole(switches) && (seedsPerThousand[name] ?? 0) < least)
    .map(
      ([name, least]) =>
        `"${name}" in ${seedsPerThousand[name] ?? 0} of 1,000 seeds, not in ${least}`,
    )
  const idle =
    medianCommits < medianCommitsMin
      ? [`the median seed committed ${medianCommits} transactions, not ${medianCommitsMin}`]
      : []
  return [...missing, ...rare, ...idle]
}

/** Rules that the caller names must judge something, even with few seeds. */
function blindSpots(
  seeds: number,
  judgements: Readonly<Record<string, number>>,
  switches: Switches,
  rules: readonly string[] | undefined,
): string[] {
  if (seeds === 0) return ['no seed was run']
  if (rules === undefined && (seeds < judgedSeedsMin || !isWhole(switches))) return []
  return unjudged(judgements, rules).map((rule) => `nothing was judged by ${rule}`)
}

function isWhole({ only, without }: Switches): boolean {
  return only === undefined && without === undefined
}

function addUp(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0)
}

/** The worst thing that happened, for an exit code. */
export function outcomeOf(summary: CampaignSummary): RunOutcome {
  const order: readonly RunOutcome[] = ['safety', 'crash', 'nondeterminism', 'liveness']
  const found = order.find((outcome) => summary.failed.some((one) => one.outcome === outcome))
  if (found !== undefined) return found
  return summary.shortfalls.length > 0 ? 'crash' : 'clean'
}
