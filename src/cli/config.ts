/** `trilithon config print` and `config validate`: what a node or a gateway would run with, and from where. */
import type { Command } from 'commander'
import type { EffectiveSetting } from '../config/gather.ts'
import { describeOrigin } from '../config/source.ts'
import { gatewayConfigured } from '../gateway/gateway-config.ts'
import type { FileNames, PlacedWarning } from '../config/load.ts'
import {
  addConfigFlags,
  loadNodeConfig,
  configured,
  loadedFrom,
  nodeConfigured,
  type Configured,
} from './config-flags.ts'
import { exitUsage } from './exit.ts'
import { print, printJson, say, styled, styledData, table } from './output.ts'
import type { Options } from './options.ts'

export function addConfigCommand(program: Command): void {
  const config = program
    .command('config')
    .description('look at the configuration of a node, or of a gateway')
  addConfigFlags(config.command('print'))
    .description('print every setting with its value and where that came from')
    .option('--json', 'as JSON')
    .action(printConfig)
  addConfigFlags(config.command('validate'))
    .description('check a configuration, its files included, without starting anything')
    .option('--json', 'as JSON')
    .action(validateConfig)
  addConfigFlags(config.command('print-gateway'), gatewayConfigured)
    .description('print the settings of a gateway, as print does for a node')
    .option('--json', 'as JSON')
    .action(printGatewayConfig)
  addConfigFlags(config.command('validate-gateway'), gatewayConfigured)
    .description('check the configuration of a gateway, as validate does for a node')
    .option('--json', 'as JSON')
    .action(validateGatewayConfig)
}

async function printConfig(options: Options): Promise<void> {
  printSettings((await loadNodeConfig(options)).settings, options)
}

async function printGatewayConfig(options: Options): Promise<void> {
  printSettings((await configured(options, gatewayConfigured)).settings, options)
}

function printSettings(settings: readonly EffectiveSetting[], options: Options): void {
  if (options['json'] === true) {
    const byName = settings.map(({ name, value, origin }) => [name, { value, origin }])
    return printJson(Object.fromEntries(byName))
  }
  const rows = settings.map(({ name, value, origin }) => [
    `${name}:`,
    value,
    styledData('dim', `# ${describeOrigin(origin)}`),
  ])
  print(table(rows))
}

async function validateConfig(options: Options): Promise<void> {
  if (await isRefusedAsJson(options, nodeConfigured)) return
  const { config, warnings } = await loadNodeConfig(options)
  const { cluster, node, nodes } = config
  if (options['json'] === true) return printJson({ ok: true, cluster, node, nodes, warnings })
  sayWarnings(warnings)
  const count = `${nodes.length} node${nodes.length === 1 ? '' : 's'}`
  print(`ok: node ${node} of cluster ${cluster}, which has ${count}`)
}

async function validateGatewayConfig(options: Options): Promise<void> {
  if (await isRefusedAsJson(options, gatewayConfigured)) return
  const { config, warnings } = await configured(options, gatewayConfigured)
  const { name, nodes } = config
  if (options['json'] === true) return printJson({ ok: true, name, nodes, warnings })
  sayWarnings(warnings)
  print(`ok: gateway ${name}, which asks ${nodes.join(', ')}`)
}

/** With `--json` programs read problems in the same form as results. */
async function isRefusedAsJson<Config extends FileNames>(
  options: Options,
  what: Configured<Config>,
): Promise<boolean> {
  if (options['json'] !== true) return false
  const result = await loadedFrom(options, what)
  if (result.ok) return false
  printJson({ ok: false, problems: result.problems })
  process.exitCode = exitUsage
  return true
}

function sayWarnings(warnings: readonly PlacedWarning[]): void {
  for (const { where, text } of warnings) say(`${styled('yellow', 'warning:')} ${where}: ${text}`)
}
