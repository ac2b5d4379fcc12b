/** The settings of a node as flags of a command, and a configuration loaded from all sources. */
import { Option, type Command } from 'commander'
import { allSettings, flagOf, limitSettings } from '../node/config-settings.ts'
import { loadConfig, type LoadResult } from '../node/config-load.ts'
import { CliError, exitUsage } from './exit.ts'
import type { Options } from './options.ts'

type Loaded = LoadResult & { readonly ok: true }

/** Adds `--config` and a flag for every setting; those of limits are too many to list in help. */
export function addConfigFlags(command: Command): Command {
  command.option('--config <FILE>', 'configuration file (YAML)')
  for (const setting of allSettings) command.addOption(optionOf(setting))
  const limit = limitSettings[0]
  const example = limit === undefined ? '' : `such as ${flagOf(limit.name)}`
  return command.addHelpText(
    'after',
    `\nEvery limit has a flag too, ${example}: see "trilithon config print".\n` +
      'A flag wins over the environment (TRILITHON_LISTEN …), which wins over the file.',
  )
}

type Setting = (typeof allSettings)[number]

function optionOf({ name, argument, what, fallback }: Setting): Option {
  const isSwitch = name === 'insecure'
  const hasDefault = fallback !== undefined && !isSwitch
  const text = hasDefault ? `${what} (default: ${fallback})` : what
  const option = new Option(isSwitch ? flagOf(name) : `${flagOf(name)} <${argument}>`, text)
  return name.startsWith('limits.') ? option.hideHelp() : option
}

/** The configuration, or a CliError with every problem on a line of its own. */
export async function configOf(options: Options): Promise<Loaded> {
  const file = typeof options['config'] === 'string' ? options['config'] : undefined
  const flags = new Map<string, string>()
  for (const setting of allSettings) {
    const value = options[optionOf(setting).attributeName()]
    if (value !== undefined) flags.set(setting.name, String(value))
  }
  const result = await loadConfig({
    file,
    environment: process.env,
    flags,
    workingFolder: process.cwd(),
  })
  if (result.ok) return result
  const lines = result.problems.map(({ where, text }) => `  ${where}: ${text}`)
  const head = `the configuration has ${lines.length === 1 ? 'a problem' : `${lines.length} problems`}`
  throw new CliError(`${head}:\n${lines.join('\n')}`, exitUsage)
}
