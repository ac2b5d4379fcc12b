/** The settings of a node as flags of a command, and a configuration loaded from all sources. */
import { Option, type Command } from 'commander'
import { allSettings, buildConfig } from '../config/config.ts'
import type { ConfigSources } from '../config/gather.ts'
import { loadConfig, type BuildResult, type FileNames, type LoadResult } from '../config/load.ts'
import { nameFlag, type Setting } from '../config/settings.ts'
import type { NodeConfig } from '../config/node-config.ts'
import { CliError, exitUsage } from './exit.ts'
import type { Options } from './options.ts'

type Loaded<Config> = LoadResult<Config> & { readonly ok: true }

/** A process that is configured: its settings, and the function that makes a configuration of them. */
export interface Configured<Config> {
  readonly settings: readonly Setting[]
  build(sources: ConfigSources): BuildResult<Config>
}

export const nodeConfigured: Configured<NodeConfig> = { settings: allSettings, build: buildConfig }

/** Adds `--config` and a flag for every setting; those of limits are too many to list in help. */
export function addConfigFlags(
  command: Command,
  { settings }: { readonly settings: readonly Setting[] } = nodeConfigured,
): Command {
  command.option('--config <FILE>', 'configuration file (YAML)')
  for (const setting of settings) command.addOption(buildOption(setting))
  const limit = settings.find(({ name }) => name.startsWith('limits.'))
  const more =
    limit === undefined
      ? ''
      : `Every limit has a flag too, such as ${nameFlag(limit.name)}: see "trilithon config print".\n`
  return command.addHelpText(
    'after',
    `\n${more}A flag wins over the environment (TRILITHON_LISTEN …), which wins over the file.`,
  )
}

function buildOption({ name, argument, what, fallback }: Setting): Option {
  const isSwitch = name === 'insecure'
  const hasDefault = fallback !== undefined && !isSwitch
  const text = hasDefault ? `${what} (default: ${fallback})` : what
  const option = new Option(isSwitch ? nameFlag(name) : `${nameFlag(name)} <${argument}>`, text)
  return name.startsWith('limits.') ? option.hideHelp() : option
}

/** The configuration of a node, or a CliError with every problem on a line of its own. */
export function loadNodeConfig(options: Options): Promise<Loaded<NodeConfig>> {
  return configured(options, nodeConfigured)
}

/** As `loadNodeConfig`, for any process. */
export async function configured<Config extends FileNames>(
  options: Options,
  what: Configured<Config>,
): Promise<Loaded<Config>> {
  const result = await loadedFrom(options, what)
  if (result.ok) return result
  const lines = result.problems.map(({ where, text }) => `  ${where}: ${text}`)
  const head = `the configuration has ${lines.length === 1 ? 'a problem' : `${lines.length} problems`}`
  throw new CliError(`${head}:\n${lines.join('\n')}`, exitUsage)
}

/** The configuration, or what is wrong with it as data. */
export function loadedFrom<Config extends FileNames>(
  options: Options,
  { settings, build }: Configured<Config>,
): Promise<LoadResult<Config>> {
  const file = typeof options['config'] === 'string' ? options['config'] : undefined
  const flags = new Map<string, string>()
  for (const setting of settings) {
    const value = options[buildOption(setting).attributeName()]
    if (value !== undefined) flags.set(setting.name, String(value))
  }
  const sources = { file, environment: process.env, flags, workingFolder: process.cwd() }
  return loadConfig(sources, build)
}
