/** `trilithon node`: one node until it is told to stop. Logs are JSON lines on stderr. */
import type { Command } from 'commander'
import { pino, type Logger } from 'pino'
import { StoreError } from '../base/errors.ts'
import { Daemon } from '../node/daemon.ts'
import type { LogLevel } from '../node/config-values.ts'
import { addConfigFlags, configOf } from './config-flags.ts'
import { CliError, exitFailure } from './exit.ts'
import { apiOf } from './api.ts'
import { version } from './version.ts'
import type { Options } from './options.ts'

export function addNodeCommand(program: Command): void {
  addConfigFlags(program.command('node'))
    .description('run one node of a cluster until it is told to stop')
    .action(runNode)
}

async function runNode(options: Options): Promise<void> {
  const { config, files } = await configOf(options)
  const logger = createLogger(config.logLevel, { node: config.node })
  if (config.insecure) logger.warn('insecure: anyone who reaches this address can read and write')
  const daemon = await startOrExplain({ config, files, logger })
  const stopped = new Promise<'signal' | Error>((resolve) => {
    daemon.onFailure = resolve
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        logger.info({ signal }, 'told to stop')
        resolve('signal')
      })
    }
  })
  const why = await stopped
  // Whoever asks twice does not want to wait.
  const force = (signal: NodeJS.Signals): void => {
    logger.warn({ signal }, 'told again: ending at once')
    process.exit(exitFailure)
  }
  process.on('SIGTERM', force)
  process.on('SIGINT', force)
  await daemon.stop()
  if (why !== 'signal') throw new CliError(why.message, exitFailure)
}

type Start = Pick<Parameters<typeof Daemon.start>[0], 'config' | 'files' | 'logger'>

/** A node that cannot start ends with 1 and one sentence, whatever the code of the error. */
async function startOrExplain(start: Start): Promise<Daemon> {
  try {
    return await Daemon.start({ ...start, version, gateway: apiOf, portFlag: '--listen' })
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    throw new CliError(error.message, exitFailure)
  }
}

export function createLogger(level: LogLevel, fields: Readonly<Record<string, unknown>>): Logger {
  const options = { level, base: fields, timestamp: pino.stdTimeFunctions.isoTime }
  // Synchronous: the last lines of a process that ends are the ones that matter.
  return pino(options, pino.destination({ fd: 2, sync: true }))
}
