/**
 * `sim nightly`: runs seeds that never ran before, for a given time, and fills a folder with its
 * finds. For each kind of failure it holds the first seed, shrunk to a scenario file, with its
 * explanation. The next run continues with the seed after the last.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileFailure } from '../../src/adapters/file-failure.ts'
import { describeShortfall, runCampaign, outcomeOf, type CampaignSummary } from '../campaign.ts'
import { describeExplanation, explain } from '../scenarios/explain.ts'
import { describeFailure, mergeFailures } from '../failures.ts'
import { exitCodes, replayLine, type RunResult } from '../result.ts'
import { describeSize, buildScenario, measureScenario } from '../scenarios/scenario.ts'
import { Ending } from './ending.ts'
import { parseCount, parseJobs, parseTime, print, refuse, say, type AddCommand } from './flags.ts'
import { ProgressLine } from './progress-line.ts'
import { writeScenario } from './scenario-file.ts'
import { stopwatch, timer } from './time.ts'

interface NightlyFlags {
  readonly time: number
  readonly keep: string
  readonly jobs: number
  readonly shrinkTime: number
  readonly from?: number
  readonly check: boolean
}

const defaultShrinkSeconds = 300
/** Seeds below are for people, tests and planted bugs. */
const firstSeed = 1_000_000

export const addNightly: AddCommand = (program, finish) => {
  program
    .command('nightly')
    .description('run new seeds for a given time, and keep what they find')
    .requiredOption('--time <t>', 'how long, such as 30m or 8h', parseTime)
    .requiredOption('--keep <folder>', 'where findings go, and where the next seed is noted')
    .option('--from <n>', 'begin here, not where the last time ended', parseCount)
    .option('--jobs <n>', 'processes to spread seeds over', parseJobs, 1)
    .option('--check', 'run each seed twice and compare the hashes', false)
    .option('--shrink-time <t>', 'for each kind of failure', parseTime, defaultShrinkSeconds)
    .action(async (flags: NightlyFlags) => {
      finish(await nightly(flags))
    })
}

async function nightly(flags: NightlyFlags): Promise<number> {
  const { keep, jobs, check, time } = flags
  try {
    await mkdir(keep, { recursive: true })
  } catch (error) {
    return refuse(`${keep} cannot be the folder of findings: ${fileFailure(error)}`)
  }
  const from = flags.from ?? (await nextSeed(keep))
  if (from === undefined) return refuse(`${join(keep, 'next.json')} is not what nightly wrote`)
  const line = new ProgressLine()
  const secondsSpent = stopwatch()
  const ending: Ending = new Ending(() => process.exit(ending.exitCode))
  const isOver = timer(time)
  let failed = 0
  const summary = await runCampaign({
    from,
    to: Number.MAX_SAFE_INTEGER,
    jobs,
    check,
    stopAtFailure: false,
    isTimeUp: () => ending.signal.aborted || isOver(),
    onResult: (result, done) => {
      if (result.outcome !== 'clean') failed += 1
      const left = Math.max(0, time - secondsSpent()).toFixed(0)
      line.show(`${failed}`, `${done} seeds, ${failed} failed, ${left} s left`)
    },
  })
  line.end()
  await keepFindings(summary, flags, ending.signal)
  await writeNext(keep, from + summary.seeds)
  ending.forget()
  const failures = `${summary.seeds} seeds from ${from}, ${summary.failed.length} failed`
  print([...summary.shortfalls.map(describeShortfall), failures].join('\n'))
  if (summary.failed.length === 0 && ending.by !== undefined) return ending.exitCode
  return exitCodes[outcomeOf(summary)]
}

/** Where the last time ended; undefined when what is there cannot be read. */
async function nextSeed(folder: string): Promise<number | undefined> {
  let text: string
  try {
    text = await readFile(join(folder, 'next.json'), 'utf8')
  } catch {
    // No last time.
    return firstSeed
  }
  const seed = /^\{"seed":(\d{1,15})\}\s*$/.exec(text)?.[1]
  return seed === undefined ? undefined : Number(seed)
}

async function writeNext(folder: string, seed: number): Promise<void> {
  const path = join(folder, 'next.json')
  await writeFile(`${path}.new`, `${JSON.stringify({ seed })}\n`)
  await rename(`${path}.new`, path)
}

/**
 * All failures in one list; of each kind the first one, shrunk as far as there is time, and
 * explained.
 */
async function keepFindings(
  summary: CampaignSummary,
  flags: NightlyFlags,
  signal: AbortSignal,
): Promise<void> {
  for (const failure of mergeFailures(summary.failed)) {
    const { rule, seeds, first } = failure
    const path = join(flags.keep, `${first.outcome}-${rule}-${first.seed}`)
    await writeFile(`${path}.seeds.txt`, seeds.map((seed) => `${replayLine(seed)}\n`).join(''))
    say(describeFailure(failure))
    await keepShrunk(path, first, flags, signal)
  }
}

async function keepShrunk(
  path: string,
  found: RunResult,
  flags: NightlyFlags,
  signal: AbortSignal,
): Promise<void> {
  const line = new ProgressLine()
  const isOver = timer(flags.shrinkTime)
  const { drawPlan } = await import('../run.ts')
  const { shrink } = await import('../scenarios/shrink.ts')
  const shrunk = await shrink({
    plan: drawPlan(found.seed),
    rules: undefined,
    isTimeUp: () => signal.aborted || isOver(),
    onProgress: ({ step, runs, size }) => {
      line.show(step, `shrinking seed ${found.seed}: ${step}: ${describeSize(size)}, ${runs} runs`)
    },
  })
  line.end()
  // A failure of only the second run, or by a worker's end, cannot be shrunk.
  if (shrunk === undefined) return
  const scenario = buildScenario(`seed ${found.seed}`, shrunk.plan, shrunk.result)
  await writeScenario(`${path}.json`, scenario)
  const explanation = await explain(scenario)
  if (explanation === undefined) return
  await writeFile(`${path}.txt`, `${describeExplanation(explanation)}\n`)
  say(`${path}.json: ${describeSize(measureScenario(shrunk.plan))}`)
}
