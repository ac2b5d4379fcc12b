/** `trilithon store`: looks into the data folder of a node that is stopped; only `convert` changes anything there. */
import type { Command } from 'commander'
import { addConvertCommand } from './store-convert.ts'
import { addDumpCommand } from './store-dump.ts'
import { addStatsCommand } from './store-stats.ts'
import { addVerifyCommand } from './store-verify.ts'

export function addStoreCommand(program: Command): void {
  const store = program
    .command('store')
    .description('check, count, print and convert what the data folder of a stopped node holds')
  addVerifyCommand(store)
  addStatsCommand(store)
  addDumpCommand(store)
  addConvertCommand(store)
}
