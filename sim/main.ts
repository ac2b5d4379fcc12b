/**
 * The simulator's command line, one file a command in `commands/`. Results go to stdout, talk and
 * progress to stderr; the exit code says what was found.
 */
import { Command, CommanderError } from 'commander'
import { CliError } from '../src/cli/exit.ts'
import { strict } from '../src/cli/strict.ts'
import { usageExitCode, type AddCommand } from './commands/flags.ts'

/**
 * The function that adds each command, in the order of the help. The program loads a file only for
 * its command: all of them, with the whole simulator, take three times as long as the one that
 * judges a history.
 */
const commands: ReadonlyMap<string, () => Promise<AddCommand>> = new Map([
  ['run', async () => (await import('./commands/run.ts')).addRun],
  ['replay', async () => (await import('./commands/replay.ts')).addReplay],
  ['shrink', async () => (await import('./commands/shrink.ts')).addShrink],
  ['explain', async () => (await import('./commands/explain.ts')).addExplain],
  ['history', async () => (await import('./commands/history.ts')).addHistory],
  ['processes', async () => (await import('./commands/processes.ts')).addProcesses],
  ['audit', async () => (await import('./commands/audit.ts')).addAudit],
  ['nightly', async () => (await import('./commands/nightly.ts')).addNightly],
  ['mutants', async () => (await import('./commands/mutants.ts')).addMutants],
  ['explore', async () => (await import('./commands/explore.ts')).addExplore],
  [
    'check-determinism',
    async () => (await import('./commands/check-determinism.ts')).addCheckDeterminism,
  ],
])

/** Help and a slip of the pen are about all of them. */
function commandsFor(word = ''): readonly (() => Promise<AddCommand>)[] {
  const asked = commands.get(word)
  return asked === undefined ? [...commands.values()] : [asked]
}

async function main(): Promise<number> {
  let exitCode = 0
  const program = new Command('sim')
    .description('Runs the real code in a simulated world of faults.')
    .exitOverride()
  for (const load of commandsFor(process.argv[2]))
    (await load())(program, (code) => (exitCode = code))
  strict(program)
  try {
    await program.parseAsync()
  } catch (error) {
    if (error instanceof CliError) {
      process.stderr.write(`error: ${error.message}\n`)
      return usageExitCode
    }
    if (!(error instanceof CommanderError)) throw error
    // Commander has reported the mistake, or shown the help.
    return error.exitCode === 0 ? 0 : usageExitCode
  }
  return exitCode
}

process.exitCode = await main()
