/**
 * The simulator's command line, one file a command in `commands/`. Results go to stdout, talk and
 * progress to stderr; the exit code says what was found.
 */
import { Command, CommanderError } from 'commander'
import { addAudit } from './commands/audit.ts'
import { addCheckDeterminism } from './commands/check-determinism.ts'
import { addExplore } from './commands/explore.ts'
import { usageExitCode, type AddCommand } from './commands/flags.ts'
import { addExplain } from './commands/explain.ts'
import { addHistory } from './commands/history.ts'
import { addMutants } from './commands/mutants.ts'
import { addNightly } from './commands/nightly.ts'
import { addProcesses } from './commands/processes.ts'
import { addReplay } from './commands/replay.ts'
import { addRun } from './commands/run.ts'
import { addShrink } from './commands/shrink.ts'

const commands: readonly AddCommand[] = [
  addRun,
  addReplay,
  addShrink,
  addExplain,
  addHistory,
  addProcesses,
  addAudit,
  addNightly,
  addMutants,
  addExplore,
  addCheckDeterminism,
]

async function main(): Promise<number> {
  let exitCode = 0
  const program = new Command('sim')
    .description('Runs the real code in a simulated world of faults.')
    .exitOverride()
  for (const add of commands) add(program, (code) => (exitCode = code))
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
