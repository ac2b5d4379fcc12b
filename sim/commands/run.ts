/**
 * `sim run`: one seed, or many as a campaign; `sim check-determinism`: each seed of a range twice.
 */
import { writeFile } from 'node:fs/promises'
import { SingleBar } from 'cli-progress'
import { Option } from 'commander'
import { describeShortfall, outcomeOf, runCampaign, type CampaignSummary } from '../campaign.ts'
import { describeViolation } from '../checkers/referee.ts'
import { describeFailure, failureAsJson, mergeFailures } from '../failures.ts'
import { unjudged } from '../judged-rules.ts'
import { historyText } from '../history/lines.ts'
import type { History } from '../history/operation.ts'
import { exitCodes, replayLine, type RunResult } from '../result.ts'
import { Ending } from './ending.ts'
import { obstacleTo } from './scenario-file.ts'
import { timer } from './time.ts'
import {
  parseCount,
  parseFaults,
  parseJobs,
  parseRule,
  parseSeeds,
  parseTime,
  print,
  refuse,
  say,
  type AddCommand,
  type SeedRange,
} from './flags.ts'
import { toFlags, type Switches } from '../faults/swarm-faults.ts'

interface RunFlags {
  readonly seed?: number
  readonly seeds?: SeedRange
  readonly jobs: number
  readonly check: boolean
  readonly time?: number
  readonly json: boolean
  readonly jsonLines: boolean
  readonly trace: boolean
  readonly history?: string
  readonly stop: boolean
  readonly rules?: readonly string[]
  readonly faults?: readonly string[]
  readonly without?: readonly string[]
}

function toSwitches({ faults, without }: RunFlags): Switches {
  return { only: faults, without }
}

/** Flags that one seed has no use for, and flags that a campaign has none for: refused, not passed over. */
const ofCampaigns = ['seeds', 'jobs', 'time', 'stop', 'jsonLines']
const ofSeeds = ['seed', 'trace', 'history']

export const addRun: AddCommand = (program, finish) => {
  program
    .command('run')
    .description('run one seed, or a range of seeds as a campaign')
    .addOption(new Option('--seed <n>', 'one seed').argParser(parseCount).conflicts(ofCampaigns))
    .addOption(
      new Option('--seeds <a..b>', 'all seeds of a range').argParser(parseSeeds).conflicts(ofSeeds),
    )
    .option('--jobs <n>', 'processes to spread seeds over', parseJobs, 1)
    .option('--check', 'run each seed twice and compare the hashes', false)
    .option('--time <t>', 'with --seeds: begin no seed after this, such as 90s or 10m', parseTime)
    .option('--stop', 'end a campaign at the first failure', false)
    .option('--rules <ids...>', 'count violations of these rules only', parseRule)
    .option('--faults <names>', 'no faults but these, by their names', parseFaults)
    .option('--without <names>', 'all faults but these', parseFaults)
    .option('--trace', 'with --seed: write what happens to stderr', false)
    .option('--history <file>', 'with --seed: write what clients were told as JSON lines')
    .option('--json', 'print the result as JSON', false)
    .option('--json-lines', 'with --seeds: print each seed as it ends, a line each', false)
    .action(async (flags: RunFlags) => {
      finish(await run(flags))
    })
}

async function run(flags: RunFlags): Promise<number> {
  const { faults, without = [], history } = flags
  if (faults?.every((name) => without.includes(name)) === true) {
    return refuse('--without leaves none of --faults')
  }
  // Before the work, not after it.
  const obstacle = history === undefined ? undefined : await obstacleTo(history)
  if (obstacle !== undefined) return refuse(obstacle)
  if (flags.seeds !== undefined) return runMany(flags, flags.seeds)
  if (flags.seed !== undefined) return runOne(flags, flags.seed)
  return refuse('give --seed N or --seeds A..B')
}

async function runOne(flags: RunFlags, seed: number): Promise<number> {
  const { rules } = flags
  const switches = toSwitches(flags)
  const watch = (line: string): void => void process.stderr.write(`${line}\n`)
  let told: History = []
  const onHistory = (history: History): void => void (told = history)
  const { runSeed, runSeedChecked } = await import('../run.ts')
  const result = flags.trace
    ? await runSeed(seed, { rules, watch, onHistory }, switches)
    : await runSeedChecked(seed, flags.check, { rules, onHistory }, switches)
  if (flags.history !== undefined) {
    const problem = await keptProblem(flags.history, historyText(told))
    if (problem !== undefined) return refuse(problem)
  }
  const blind = rules === undefined ? [] : unjudged(result.judgements, rules)
  if (flags.json) print(JSON.stringify({ ...result, unjudged: blind }))
  else print([describeResult(result, switches), ...blind.map(describeBlind)].join('\n'))
  // A run by rules that judged nothing of it is no proof of anything (META-2).
  const isBlind = rules !== undefined && rules.every((rule) => blind.includes(rule))
  return exitCodes[result.outcome] || (isBlind ? exitCodes.crash : exitCodes.clean)
}

function describeBlind(rule: string): string {
  return describeShortfall(`nothing was judged by ${rule}`)
}

/** Writes the file; returns the problem when it cannot be written. */
async function keptProblem(path: string, text: string): Promise<string | undefined> {
  try {
    await writeFile(path, text)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : `${path} cannot be written`
  }
}

function describeResult(result: RunResult, switches: Switches): string {
  const { seed, outcome, hash, events, commits, simulatedSeconds, wallSeconds } = result
  const figures = `${events} events, ${commits} commits, ${simulatedSeconds.toFixed(1)} simulated s`
  const lines = [
    `options ${result.swarm}`,
    `seed ${seed}: ${outcome}, hash ${hash}, ${figures}, ${wallSeconds.toFixed(2)} s`,
    ...result.violations.map(describeViolation),
  ]
  if (outcome !== 'clean') lines.push(`replay: ${replayLine(seed, toFlags(switches))}`)
  return lines.join('\n')
}

async function runMany(flags: RunFlags, seeds: SeedRange): Promise<number> {
  const bar = process.stderr.isTTY
    ? new SingleBar({ format: '{bar} {value}/{total} seeds, {failed} failed, {eta} s left' })
    : undefined
  bar?.start(seeds.to - seeds.from + 1, 0, { failed: 0 })
  let failed = 0
  const ending: Ending = new Ending(() => process.exit(ending.exitCode))
  const hasTimeout = flags.time === undefined ? () => false : timer(flags.time)
  const summary = await runCampaign({
    ...seeds,
    isTimeUp: () => ending.signal.aborted || hasTimeout(),
    jobs: flags.jobs,
    check: flags.check,
    stopAtFailure: flags.stop,
    rules: flags.rules,
    switches: toSwitches(flags),
    onResult: (result, done) => {
      if (result.outcome !== 'clean') failed += 1
      bar?.update(done, { failed })
      if (flags.jsonLines) print(JSON.stringify(result))
    },
  })
  bar?.stop()
  ending.forget()
  const left = describeLeft(seeds, summary)
  if (left !== undefined && !flags.json && !flags.stop) say(`go on with --seeds ${left}`)
  if (flags.json) print(JSON.stringify({ ...summaryAsJson(summary, toSwitches(flags)), left }))
  else if (!flags.jsonLines) print(describeSummary(summary, toSwitches(flags)))
  // An interrupted campaign may have finished no seed, and is not judged by that.
  if (summary.failed.length === 0 && ending.by !== undefined) return ending.exitCode
  return exitCodes[outcomeOf(summary)]
}

/** Seeds are dealt in order, and those under way are waited for. */
function describeLeft({ from, to }: SeedRange, { seeds }: CampaignSummary): string | undefined {
  return from + seeds > to ? undefined : `${from + seeds}..${to}`
}

function summaryAsJson(summary: CampaignSummary, switches: Switches): object {
  const { failed, ...figures } = summary
  return {
    ...figures,
    violations: failed.length,
    failures: mergeFailures(failed).map(failureAsJson),
    failed: failed.map(({ seed, outcome, violations, hash, wallSeconds }) => ({
      seed,
      outcome,
      violations,
      hash,
      wallSeconds,
      replay: replayLine(seed, toFlags(switches)),
    })),
  }
}

function describeSummary(summary: CampaignSummary, switches: Switches): string {
  const { seeds, failed, events, commits, medianCommits, simulatedSeconds, wallSeconds } = summary
  const perSecond = Math.round(events / Math.max(wallSeconds, 0.001))
  const shares = Object.entries(summary.seedsPerThousand).map(
    ([name, share]) => `${name} ${(share / 10).toFixed(1)} %`,
  )
  return [
    ...failed.flatMap(({ seed, outcome, violations }) => [
      `seed ${seed}: ${outcome}; replay: ${replayLine(seed, toFlags(switches))}`,
      ...violations.slice(0, 2).map((one) => `  ${describeViolation(one)}`),
    ]),
    `in how many seeds: ${shares.join(', ')}`,
    ...summary.shortfalls.map(describeShortfall),
    ...mergeFailures(failed).map(describeFailure),
    `${seeds} seeds, ${failed.length} failed, ${events} events (${perSecond}/s), ${commits} commits ` +
      `(median ${medianCommits}), ${simulatedSeconds} simulated s in ${wallSeconds.toFixed(1)} s`,
  ].join('\n')
}
