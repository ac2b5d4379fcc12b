/** `trilithon node`: one node until a signal stops it. Logs are JSON lines on stderr. */
import type { Command } from 'commander'
import { actingAs, type Versions } from '../base/cluster-version.ts'
import { actAsVariable } from '../config/gather.ts'
import { LastingDaemon } from '../node/lasting-daemon.ts'
import { buildApi } from './api.ts'
import { addConfigFlags, loadNodeConfig } from './config-flags.ts'
import { CliError, exitUsage } from './exit.ts'
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
  const supports = readBuild(process.env[actAsVariable])
  if (supports !== undefined) logger.warn(supports, 'acts as an earlier build: for tests alone')
  const acting = { ...start, ...(supports && { supports }) }
  await runUntilTold(() => LastingDaemon.start(acting), logger)
}

/** Undefined: it acts as what it is. */
function readBuild(text: string | undefined): Versions | undefined {
  if (text === undefined) return undefined
  try {
    return actingAs(/^[0-9]+$/.test(text) ? Number(text) : Number.NaN)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new CliError(`${actAsVariable}: ${error.message}`, exitUsage)
  }
}
