/**
 * The simulator's command line, one file a command beside this one. Results go to stdout, talk and
 * progress to stderr; the exit code says whether a rule was broken.
 */
import { Command, CommanderError } from 'commander'
import { CliError } from '../../src/cli/exit.ts'
import { strict } from '../../src/cli/strict.ts'
import { usageExitCode, type AddCommand } from './flags.ts'

/**
 * The function that adds each command, in the order of the help. The program loads a file only for
 * its command: all of them, with the whole simulator, take three times as long as the one that
 * judges a history.
 */
const commands: ReadonlyMap<string, () => Promise<AddCommand>> = new Map([
  ['run', async () => (await import('./run.ts')).addRun],
  ['replay', async () => (await import('./replay.ts')).addReplay],
  ['shrink', async () => (await import('./shrink.ts')).addShrink],
  ['explain', async () => (await import('./explain.ts')).addExplain],
  ['history', async () => (await import('./history.ts')).addHistory],
  ['processes', async () => (await import('./processes.ts')).addProcesses],
  ['audit', async () => (await import('./audit.ts')).addAudit],
  ['nightly', async () => (await import('./nightly.ts')).addNightly],
  ['mutants', async () => (await import('./mutants.ts')).addMutants],
  ['explore', async () => (await import('./explore.ts')).addExplore],
  ['check-determinism', async () => (await import('./check-determinism.ts')).addCheckDeterminism],
])

/** Help and a slip of the pen are about all of them. */
function commandsFor(word = ''): readonly (() => Promise<AddCommand>)[] {
  const asked = commands.get(word)
  return asked === undefined ? [...commands.values()] : [asked]
}

/** Runs the command that the words name, to its end; gives the exit code. */
export async function runCommand(words: readonly string[]): Promise<number> {
  let exitCode = 0
  const program = new Command('sim')
    .description('Runs the real code in a simulated world of faults.')
    .exitOverride()
  for (const load of commandsFor(words[0])) (await load())(program, (code) => (exitCode = code))
  strict(program)
  try {
    await program.parseAsync(words, { from: 'user' })
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
