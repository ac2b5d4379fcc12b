/** The simulator's command begins here. */
import { runCommand } from './commands/program.ts'

process.exitCode = await runCommand(process.argv.slice(2))
