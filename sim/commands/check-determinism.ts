/** `sim check-determinism`: every seed of a range twice, hashes compared (META-1). */
import { outcomeOf, runCampaign } from '../campaign.ts'
import { exitCodes, replayLine } from '../result.ts'
import { parseJobs, parseSeeds, print, type AddCommand, type SeedRange } from './flags.ts'

interface CheckFlags {
  readonly seeds: SeedRange
  readonly jobs: number
}

export const addCheckDeterminism: AddCommand = (program, finish) => {
  program
    .command('check-determinism')
    .description('run every seed of a range twice and compare the courses they take')
    .requiredOption('--seeds <a..b>', 'the range', parseSeeds)
    .option('--jobs <n>', 'processes to spread seeds over', parseJobs, 1)
    .action(async (flags: CheckFlags) => {
      finish(await checkDeterminism(flags))
    })
}

async function checkDeterminism({ seeds, jobs }: CheckFlags): Promise<number> {
  const options = { ...seeds, jobs, check: true, stopAtFailure: false }
  const summary = await runCampaign({ ...options, onResult: () => undefined })
  const failed = summary.failed.map(
    ({ seed, outcome }) => `${outcome}: ${replayLine(seed)} --check`,
  )
  print([...failed, `${summary.seeds} seeds twice, ${failed.length} not clean`].join('\n'))
  // Marks that a few seeds did not reach are no matter of determinism.
  return failed.length === 0 ? 0 : exitCodes[outcomeOf(summary)]
}
