/** `trilithon gateway`: a stateless process in front of the nodes, until a signal stops it. */
import type { Command } from 'commander'
import { gatewayConfigured } from '../gateway/gateway-config.ts'
import { GatewayServer } from '../gateway/server.ts'
import { addConfigFlags, configured } from './config-flags.ts'
import type { Options } from './options.ts'
import { openLog } from './process-log.ts'
import { runUntilTold } from './run-process.ts'
import { version } from './version.ts'

export function addGatewayCommand(program: Command): void {
  addConfigFlags(program.command('gateway'), gatewayConfigured)
    .description('run a stateless gateway in front of nodes until a signal stops it')
    .action(runGateway)
}

async function runGateway(options: Options): Promise<void> {
  const { config, files, warnings } = await configured(options, gatewayConfigured)
  const { logger, lost } = openLog(config.logLevel, { gateway: config.name })
  for (const { where, text } of warnings) logger.warn({ where }, text)
  if (config.insecure)
    logger.warn('insecure: every process that reaches this address can read and write')
  const start = { config, files, logger, lost, version, portFlag: '--listen' }
  await runUntilTold(() => GatewayServer.start(start), logger)
}
