/** `trilithon node`: one node until a signal stops it. Logs are JSON lines on stderr. */
import type { Command } from 'commander'
import { LastingDaemon } from '../node/lasting-daemon.ts'
import { buildApi } from './api.ts'
import { addConfigFlags, loadNodeConfig } from './config-flags.ts'
import type { Options } from './options.ts'
import { openLog } from './process-log.ts'
import { runUntilTold } from './run-process.ts'
import { version } from './version.ts'

export function addNodeCommand(program: Command): void {
  addConfigFlags(program.command('node'))
    .description('run one node of a cluster until a signal stops it')
    .action(runNode)
}

async function runNode(options: Options): Promise<void> {
  const { config, files, warnings } = await loadNodeConfig(options)
  const { logger, lost } = openLog(config.logLevel, { node: config.node })
  for (const { where, text } of warnings) logger.warn({ where }, text)
  if (config.insecure)
    logger.warn('insecure: every process that reaches this address can read and write')
  const start = { config, files, logger, lost, version, gateway: buildApi, portFlag: '--listen' }
  await runUntilTold(() => LastingDaemon.start(start), logger)
}
