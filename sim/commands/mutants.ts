/** `sim mutants`: planted bugs, each of which must be found. */
import { mapConcurrently } from '../../src/base/concurrency.ts'
import { computeMedian } from '../median.ts'
import type { Mutant } from '../mutants/mutant.ts'
import { hunt, type HuntOptions, type HuntResult } from '../mutants/mutant-hunt.ts'
import { mutants } from '../mutants/mutants.ts'
import { exitCodes } from '../result.ts'
import { Ending } from './ending.ts'
import {
  parseCount,
  parseJobs,
  parsePositive,
  parseSeeds,
  print,
  say,
  type AddCommand,
  type SeedRange,
} from './flags.ts'
import { parseMutants } from './mutant-flags.ts'

interface MutantFlags {
  readonly json: boolean
  readonly quick: boolean
  readonly seeds: SeedRange
  readonly seconds: number
  readonly shrinkSeconds: number
  readonly keep?: string
  readonly jobs: number
  readonly only?: readonly string[]
}

/** Enough for nearly all of them; for a look after a change. */
const quickSeconds = 60

export const addMutants: AddCommand = (program, finish) => {
  program
    .command('mutants')
    .description('plant known bugs in copies of the sources and see that they are found')
    .option('--only <ids...>', 'these only', parseMutants)
    .option('--seeds <a..b>', 'seeds to look in', parseSeeds, { from: 1, to: 2000 })
    .option('--seconds <n>', 'time for each', parsePositive, 600)
    .option('--shrink-seconds <n>', 'time to shrink what is found; 0 for none', parseCount, 120)
    .option('--quick', `${quickSeconds} s for each at most, and nothing is shrunk`, false)
    .option('--keep <folder>', 'write each shrunk scenario there, under its bug')
    .option('--jobs <n>', 'how many to look for at a time', parseJobs, 1)
    .option('--json', 'print the table as JSON', false)
    .action(async (flags: MutantFlags) => {
      finish(await runMutants(flags))
    })
}

async function runMutants(flags: MutantFlags): Promise<number> {
  const { only, jobs } = flags
  const chosen = mutants.filter((mutant) => only === undefined || only.includes(mutant.id))
  const ending = new Ending()
  const results = await huntAll(chosen, { ...toHuntOptions(flags), signal: ending.signal }, jobs)
  ending.forget()
  const found = results.filter((result) => result.isAsExpected).length
  const medianEvents = computeMedian(results.flatMap(({ events }) => events ?? []))
  const left = chosen.map(({ id }) => id).filter((id) => results.every((one) => one.id !== id))
  const summary = { found, total: results.length, medianEvents, left }
  if (flags.json) print(JSON.stringify({ ...summary, mutants: results }))
  else print([...results.map(describeHunt), describe(summary)].join('\n'))
  if (ending.by !== undefined) return ending.exitCode
  return found === results.length ? 0 : exitCodes.crash
}

function toHuntOptions(flags: MutantFlags): Omit<HuntOptions, 'signal'> {
  const { seeds, seconds, quick, shrinkSeconds, keep } = flags
  return {
    ...seeds,
    secondsMax: quick ? Math.min(seconds, quickSeconds) : seconds,
    shrinkSeconds: quick ? 0 : shrinkSeconds,
    keepIn: keep,
  }
}

/**
 * Runs this many at a time, in the order of the bank. The results are in that order too, up to a
 * signal to end.
 */
async function huntAll(
  chosen: readonly Mutant[],
  options: HuntOptions,
  jobs: number,
): Promise<readonly HuntResult[]> {
  const results = new Map<Mutant, HuntResult>()
  try {
    await mapConcurrently(chosen, jobs, async (mutant) => {
      const result = await hunt(mutant, options)
      results.set(mutant, result)
      say(`${describeHunt(result)}: ${mutant.title}`)
    })
  } catch (error) {
    if (options.signal?.aborted !== true) throw error
  }
  return chosen.flatMap((mutant) => results.get(mutant) ?? [])
}

interface Summary {
  readonly found: number
  readonly total: number
  readonly medianEvents: number | undefined
  /** Not looked for yet, when a signal ended the hunt. */
  readonly left: readonly string[]
}

function describe({ found, total, medianEvents, left }: Summary): string {
  const size = medianEvents === undefined ? '' : `, median ${medianEvents} events when shrunk`
  const rest = left.length === 0 ? '' : `; ended before the others: --only ${left.join(' ')}`
  return `${found}/${total} as expected${size}${rest}`
}

function describeHunt(result: HuntResult): string {
  const { id, seedsTried, scopesTried, seconds, foundBy, events } = result
  const place = placeFound(result)
  const outcome = place === undefined ? 'not found' : `found ${place} by ${foundBy ?? '?'}`
  const tried =
    scopesTried === undefined ? `${seedsTried} seeds` : `searched ${scopesTried.join(' ')}`
  const size = events === undefined ? '' : `, in ${events} events`
  return `${id.padEnd(8)} ${outcome}, ${tried}, ${seconds.toFixed(1)} s${size}`
}

function placeFound({ foundAtSeed, foundInScope }: HuntResult): string | undefined {
  if (foundInScope !== undefined) return `in scope ${foundInScope}`
  return foundAtSeed === undefined ? undefined : `at seed ${foundAtSeed}`
}
