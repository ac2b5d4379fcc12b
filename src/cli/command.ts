/** The `trilithon` command: one file a verb; this one puts them together and sets the exit code. */
import { Command } from 'commander'
import { unknownWord } from '../base/suggest.ts'
import {
  CliError,
  endStuck,
  exitOk,
  exitUsage,
  isStuck,
  reportFailure,
  reportLostOutput,
} from './exit.ts'
import { writtenOut } from './output.ts'
import { strict } from './strict.ts'
import { version } from './version.ts'

type AddVerb = (program: Command) => void

/**
 * The function that adds each verb, in the order of the help. The command loads a verb's file when the user
 * calls the verb. Loading all of them, with all parts of a node, takes twice as long as the one for cells.
 */
const verbs: ReadonlyMap<string, () => Promise<AddVerb>> = new Map([
  ['demo', async () => (await import('./demo.ts')).addDemoCommand],
  ['node', async () => (await import('./node.ts')).addNodeCommand],
  ['gateway', async () => (await import('./gateway.ts')).addGatewayCommand],
  ['status', async () => (await import('./status.ts')).addStatusCommand],
  ['nodes', async () => (await import('./nodes.ts')).addNodesCommand],
  ['changes', async () => (await import('./changes.ts')).addChangesCommand],
  ['groups', async () => (await import('./groups.ts')).addGroupsCommand],
  ['sets', async () => (await import('./sets.ts')).addSetsCommand],
  ['cells', async () => (await import('./cells.ts')).addCellsCommand],
  ['datastore', async () => (await import('./datastore.ts')).addDatastoreCommand],
  ['schema', async () => (await import('./schema.ts')).addSchemaCommand],
  ['load', async () => (await import('./load.ts')).addTableLoadCommand],
  ['rows', async () => (await import('./rows.ts')).addRowsCommand],
  ['purge', async () => (await import('./purge.ts')).addPurgeRowCommand],
  ['hold', async () => (await import('./hold.ts')).addHoldCommand],
  ['erase', async () => (await import('./erase.ts')).addEraseCommand],
  ['compare', async () => (await import('./compare.ts')).addCompareCommand],
  ['scrub', async () => (await import('./scrub.ts')).addScrubCommand],
  ['trigger', async () => (await import('./trigger.ts')).addTriggerCommand],
  ['queue', async () => (await import('./queue.ts')).addQueueCommand],
  ['upgrade', async () => (await import('./upgrade.ts')).addUpgradeCommand],
  ['recover', async () => (await import('./recover.ts')).addRecoverCommand],
  ['store', async () => (await import('./store.ts')).addStoreCommand],
  ['index', async () => (await import('./index.ts')).addIndexCommand],
  ['config', async () => (await import('./config.ts')).addConfigCommand],
  ['completion', async () => (await import('./completion.ts')).addCompletionCommand],
])

/** Help, completion and a slip of the pen are about all of them. */
function verbsFor(word = ''): readonly (() => Promise<AddVerb>)[] {
  if (word === '--version' || word === '-V') return []
  const asked = word === 'completion' ? undefined : verbs.get(word)
  return asked === undefined ? [...verbs.values()] : [asked]
}

async function buildProgram(): Promise<Command> {
  const program = new Command('trilithon')
    .description('a replicated database: three nodes hold each other up')
    .version(version, '-V, --version')
    .exitOverride()
    // Behind a verb, a flag is that verb's: its --version is not this program's.
    .enablePositionalOptions()
    .showHelpAfterError('(add --help for what there is)')
    .addHelpText(
      'after',
      '\nExit codes: 0 ok, 1 failure, 2 usage, 3 something else is there, 4 unavailable, 5 outcome unknown, 6 damage found.',
    )
  for (const addVerb of verbsFor(process.argv[2])) (await addVerb())(program)
  strict(program)
  return program
}

/** Commander shows the general help for a command that is none. */
function refuseUnknownHelp(verb: string | undefined, about: string | undefined): void {
  if (verb !== 'help' || about === undefined || about.startsWith('-')) return
  if (about === 'help' || verbs.has(about)) return
  throw new CliError(unknownWord('command', about, [...verbs.keys()]), exitUsage)
}

/** The exit code is that of the last failure. */
function endWith(code: number): void {
  if (code !== exitOk) process.exitCode = code
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  endWith(reportLostOutput(error))
  // A command that has failed with its last words says so with its own code.
  setImmediate(() => process.exit())
})
// Messages to a closed stderr end nothing.
process.stderr.on('error', () => undefined)

try {
  const program = await buildProgram()
  refuseUnknownHelp(process.argv[2], process.argv[3])
  await program.parseAsync()
} catch (error) {
  endWith(reportFailure(error))
}
await writtenOut()
if (isStuck()) endStuck()
// A connection or a timer that a verb left open must not keep a finished command alive.
process.exit()
