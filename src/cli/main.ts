#!/usr/bin/env -S node --max-semi-space-size=32
/**
 * The `trilithon` command: one file a verb; this one puts them together and sets the exit code.
 *
 * What a node holds of a commit lives until its batch is durable, some tens of milliseconds: in the
 * engine's own young generation (16 MiB) a quarter of it is copied at each collection, in 32 MiB far
 * less. That can only be said to the engine as it starts, so it stands in the line above.
 */
import { Command } from 'commander'
import { addCellsCommand } from './cells.ts'
import { addCompletionCommand } from './completion.ts'
import { addConfigCommand } from './config.ts'
import { addDemoCommand } from './demo.ts'
import { reportFailure } from './exit.ts'
import { addGatewayCommand } from './gateway.ts'
import { addTableLoadCommand } from './load.ts'
import { addIndexCommand } from './index.ts'
import { addNodeCommand } from './node.ts'
import { addQueueCommand } from './queue.ts'
import { addRowsCommand } from './rows.ts'
import { addSchemaCommand } from './schema.ts'
import { addStatusCommand } from './status.ts'
import { addTriggerCommand } from './trigger.ts'
import { version } from './version.ts'

function buildProgram(): Command {
  const program = new Command('trilithon')
    .description('a replicated database: three nodes hold each other up')
    .version(version, '-V, --version')
    .exitOverride()
    .showHelpAfterError('(add --help for what there is)')
    .addHelpText(
      'after',
      '\nExit codes: 0 ok, 1 failure, 2 usage, 3 conflict, 4 unavailable, 5 outcome unknown.',
    )
  addDemoCommand(program)
  addNodeCommand(program)
  addGatewayCommand(program)
  addStatusCommand(program)
  addCellsCommand(program)
  addSchemaCommand(program)
  addTableLoadCommand(program)
  addRowsCommand(program)
  addTriggerCommand(program)
  addQueueCommand(program)
  addIndexCommand(program)
  addConfigCommand(program)
  addCompletionCommand(program)
  return program
}

// A reader that closed the pipe (such as head) has had enough: that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : 1)
})

try {
  await buildProgram().parseAsync()
} catch (error) {
  process.exitCode = reportFailure(error)
}
// Whatever a verb left open must not keep a finished command alive.
process.exit()
