/** `sim mutants`: planted bugs, each of which must be found. */
import { medianOf } from '../median.ts'
import type { Mutant } from '../mutant.ts'
import { hunt, type HuntOptions, type HuntResult } from '../mutant-hunt.ts'
import { mutants } from '../mutants.ts'
import { exitCodes } from '../result.ts'
import {
  parseCount,
  parseJobs,
  parseSeeds,
  print,
  refuse,
  say,
  type AddCommand,
  type SeedRange,
} from './flags.ts'

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
    .option('--only <ids...>', 'these only')
    .option('--seeds <a..b>', 'seeds to look in', parseSeeds, { from: 1, to: 2000 })
    .option('--seconds <n>', 'time for each', parseCount, 600)
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
  const unknown = only?.filter((id) => mutants.every((mutant) => mutant.id !== id)) ?? []
  if (unknown.length > 0) return refuse(`no mutant is named ${unknown.join(', ')}`)
  const chosen = mutants.filter((mutant) => only === undefined || only.includes(mutant.id))
  const results = await huntAll(chosen, optionsOf(flags), jobs)
  const found = results.filter((result) => result.isAsExpected).length
  const medianEvents = medianOf(results.flatMap(({ events }) => events ?? []))
  const summary = { found, total: results.length, medianEvents }
  if (flags.json) print(JSON.stringify({ ...summary, mutants: results }))
  else print([...results.map(describeHunt), describe(summary)].join('\n'))
  return found === results.length ? 0 : exitCodes.crash
}

function optionsOf({ seeds, seconds, quick, shrinkSeconds, keep }: MutantFlags): HuntOptions {
  return {
    ...seeds,
    secondsMax: quick ? Math.min(seconds, quickSeconds) : seconds,
    shrinkSeconds: quick ? 0 : shrinkSeconds,
    keepIn: keep,
  }
}

/** So many at a time, in the order of the bank; the results in that order too. */
async function huntAll(
  chosen: readonly Mutant[],
  options: HuntOptions,
  jobs: number,
): Promise<readonly HuntResult[]> {
  const results: HuntResult[] = []
  let next = 0
  const work = async (): Promise<void> => {
    for (let i = next++; i < chosen.length; i = next++) {
      const mutant = chosen[i]
      if (mutant === undefined) return
      const result = await hunt(mutant, options)
      results[i] = result
      say(`${describeHunt(result)}: ${mutant.title}`)
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  return results
}

function describe({
  found,
  total,
  medianEvents,
}: {
  readonly found: number
  readonly total: number
  readonly medianEvents: number | undefined
}): string {
  const size = medianEvents === undefined ? '' : `, median ${medianEvents} events when shrunk`
  return `${found}/${total} as expected${size}`
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
