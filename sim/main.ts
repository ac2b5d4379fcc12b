/**
 * The simulator's command line: `run` one seed or many, `mutants` to see that planted bugs are found.
 * Results go to stdout, talk and progress to stderr; the exit code says what was found.
 */
import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { SingleBar } from 'cli-progress'
import { outcomeOf, runCampaign, type CampaignSummary } from './campaign.ts'
import { describeViolation } from './checkers/referee.ts'
import type { Mutant } from './mutant.ts'
import { mutants } from './mutants.ts'
import { hunt, type HuntResult } from './mutant-hunt.ts'
import { exitCodes, replayLine, type RunResult } from './result.ts'
import { runSeed, runSeedChecked } from './run.ts'

const usageExitCode = 2

interface SeedRange {
  readonly from: number
  readonly to: number
}

interface RunFlags {
  readonly seed?: number
  readonly seeds?: SeedRange
  readonly jobs: number
  readonly check: boolean
  readonly json: boolean
  readonly trace: boolean
  readonly stop: boolean
  readonly rules?: readonly string[]
}

interface MutantFlags {
  readonly json: boolean
  readonly seeds: SeedRange
  readonly seconds: number
  readonly only?: readonly string[]
}

function parseCount(text: string): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value)) return value
  throw new InvalidArgumentError('expected a whole number')
}

function parseJobs(text: string): number {
  const value = parseCount(text)
  if (value >= 1 && value <= 256) return value
  throw new InvalidArgumentError('expected 1 to 256 processes')
}

function parseSeeds(text: string): SeedRange {
  const parts = /^(\d{1,15})\.\.(\d{1,15})$/.exec(text)
  const from = parts?.[1] === undefined ? Number.NaN : parseCount(parts[1])
  const to = parts?.[2] === undefined ? Number.NaN : parseCount(parts[2])
  if (from <= to) return { from, to }
  throw new InvalidArgumentError('expected a range such as 1..200')
}

async function run(flags: RunFlags): Promise<number> {
  if (flags.seeds !== undefined) return runMany(flags, flags.seeds)
  if (flags.seed !== undefined) return runOne(flags, flags.seed)
  process.stderr.write('error: give --seed N or --seeds A..B\n')
  return usageExitCode
}

async function runOne(flags: RunFlags, seed: number): Promise<number> {
  const { rules } = flags
  const result = flags.trace
    ? await runSeed(seed, { rules, watch: (line) => process.stderr.write(`${line}\n`) })
    : await runSeedChecked(seed, flags.check, { rules })
  if (flags.json) print(JSON.stringify(result))
  else print(describeResult(result))
  return exitCodes[result.outcome]
}

function describeResult(result: RunResult): string {
  const { seed, outcome, hash, events, commits, simulatedSeconds, wallSeconds } = result
  const figures = `${events} events, ${commits} commits, ${simulatedSeconds.toFixed(1)} simulated s`
  const lines = [
    `options ${result.swarm}`,
    `seed ${seed}: ${outcome}, hash ${hash}, ${figures}, ${wallSeconds.toFixed(2)} s`,
    ...result.violations.map(describeViolation),
  ]
  if (outcome !== 'clean') lines.push(`replay: ${replayLine(seed)}`)
  return lines.join('\n')
}

async function runMany(flags: RunFlags, seeds: SeedRange): Promise<number> {
  const bar = process.stderr.isTTY
    ? new SingleBar({ format: '{bar} {value}/{total} seeds, {failed} failed, {eta} s left' })
    : undefined
  bar?.start(seeds.to - seeds.from + 1, 0, { failed: 0 })
  let failed = 0
  const summary = await runCampaign({
    ...seeds,
    ...{ jobs: flags.jobs, check: flags.check, stopAtFailure: flags.stop },
    rules: flags.rules,
    onResult: (result, done) => {
      if (result.outcome !== 'clean') failed += 1
      bar?.update(done, { failed })
    },
  })
  bar?.stop()
  if (flags.json) print(JSON.stringify(summaryAsJson(summary)))
  else print(describeSummary(summary))
  return exitCodes[outcomeOf(summary)]
}

function summaryAsJson(summary: CampaignSummary): unknown {
  const { failed, ...figures } = summary
  return {
    ...figures,
    violations: failed.length,
    failed: failed.map(({ seed, outcome, violations, hash, wallSeconds }) => ({
      ...{ seed, outcome, violations, hash, wallSeconds },
      replay: replayLine(seed),
    })),
  }
}

function describeSummary(summary: CampaignSummary): string {
  const { seeds, failed, events, commits, medianCommits, simulatedSeconds, wallSeconds } = summary
  const perSecond = Math.round(events / Math.max(wallSeconds, 0.001))
  const shares = Object.entries(summary.seedsPerThousand).map(
    ([name, share]) => `${name} ${(share / 10).toFixed(1)} %`,
  )
  return [
    ...failed.flatMap(({ seed, outcome, violations }) => [
      `seed ${seed}: ${outcome}; replay: ${replayLine(seed)}`,
      ...violations.slice(0, 2).map((one) => `  ${describeViolation(one)}`),
    ]),
    `in how many seeds: ${shares.join(', ')}`,
    ...summary.shortfalls.map((shortfall) => `shortfall: ${shortfall}`),
    `${seeds} seeds, ${failed.length} failed, ${events} events (${perSecond}/s), ${commits} commits ` +
      `(median ${medianCommits}), ${simulatedSeconds} simulated s in ${wallSeconds.toFixed(1)} s`,
  ].join('\n')
}

async function runMutants(flags: MutantFlags): Promise<number> {
  const { only, seeds, seconds } = flags
  const chosen = mutants.filter((mutant) => only === undefined || only.includes(mutant.id))
  if (chosen.length === 0) {
    process.stderr.write(`error: no mutant is named ${only?.join(', ') ?? ''}\n`)
    return usageExitCode
  }
  const results: HuntResult[] = []
  for (const mutant of chosen) results.push(await huntAloud(mutant, seeds, seconds))
  const found = results.filter((result) => result.isAsExpected).length
  if (flags.json) print(JSON.stringify({ found, total: results.length, mutants: results }))
  else print(`${results.map(describeHunt).join('\n')}\n${found}/${results.length} as expected`)
  return found === results.length ? 0 : exitCodes.crash
}

async function huntAloud(mutant: Mutant, seeds: SeedRange, seconds: number): Promise<HuntResult> {
  process.stderr.write(`${mutant.id}: ${mutant.title}\n`)
  return hunt(mutant, { ...seeds, secondsMax: seconds })
}

function describeHunt(result: HuntResult): string {
  const { id, seedsTried, seconds, foundBy, foundAtSeed } = result
  const outcome =
    foundAtSeed === undefined ? 'not found' : `found at seed ${foundAtSeed} by ${foundBy ?? '?'}`
  return `${id.padEnd(8)} ${outcome}, ${seedsTried} seeds, ${seconds.toFixed(1)} s`
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

async function main(): Promise<number> {
  let exitCode = 0
  const program = new Command('sim')
    .description('Runs the real code in a simulated world of faults.')
    .exitOverride()
  program
    .command('run')
    .description('run one seed, or a range of seeds as a campaign')
    .option('--seed <n>', 'one seed', parseCount)
    .option('--seeds <a..b>', 'all seeds of a range', parseSeeds)
    .option('--jobs <n>', 'processes to spread seeds over', parseJobs, 1)
    .option('--check', 'run each seed twice and compare the hashes', false)
    .option('--stop', 'end a campaign at the first failure', false)
    .option('--rules <ids...>', 'count violations of these rules only')
    .option('--trace', 'with --seed: write what happens to stderr', false)
    .option('--json', 'print the result as JSON', false)
    .action(async (flags: RunFlags) => {
      exitCode = await run(flags)
    })
  program
    .command('mutants')
    .description('plant known bugs in a copy of the sources and see that they are found')
    .option('--only <ids...>', 'these only')
    .option('--seeds <a..b>', 'seeds to look in', parseSeeds, { from: 1, to: 2000 })
    .option('--seconds <n>', 'time for each', parseCount, 600)
    .option('--json', 'print the table as JSON', false)
    .action(async (flags: MutantFlags) => {
      exitCode = await runMutants(flags)
    })
  try {
    await program.parseAsync()
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // Commander has said what is wrong, or shown the help that was asked for.
    return error.exitCode === 0 ? 0 : usageExitCode
  }
  return exitCode
}

process.exitCode = await main()
