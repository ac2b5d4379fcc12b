/** `trilithon config print` and `config validate`: what a node would run with, and from where. */
import type { Command } from 'commander'
import { describeOrigin } from '../node/config-source.ts'
import { addConfigFlags, configOf } from './config-flags.ts'
import { print, printJson, styledData, table } from './output.ts'
import type { Options } from './options.ts'

export function addConfigCommand(program: Command): void {
  const config = program.command('config').description('look at the configuration of a node')
  addConfigFlags(config.command('print'))
    .description('print every setting with its value and where that came from')
    .option('--json', 'as JSON')
    .action(printConfig)
  addConfigFlags(config.command('validate'))
    .description('check a configuration, its files included, without starting anything')
    .option('--json', 'as JSON')
    .action(validateConfig)
}

async function printConfig(options: Options): Promise<void> {
  const { settings } = await configOf(options)
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
  const { config } = await configOf(options)
  const { cluster, node, nodes } = config
  if (options['json'] === true) return printJson({ ok: true, cluster, node, nodes })
  const count = `${nodes.length} node${nodes.length === 1 ? '' : 's'}`
  print(`ok: node ${node} of cluster ${cluster}, which has ${count}`)
}
