/** `trilithon upgrade status|finalize`: the builds of all nodes, and the next cluster version. */
import type { Command } from 'commander'
import type { Versions } from '../base/cluster-version.ts'
import { CliError, exitFailure, exitUnavailable } from './exit.ts'
import { addAskFlags } from './node-asks.ts'
import type { Options } from './options.ts'
import { print, printJson, styledData, table } from './output.ts'
import { UpgradeAsks, type SetSeen, type UpgradeSeen } from './upgrade-asks.ts'

export function addUpgradeCommand(program: Command): void {
  const upgrade = program
    .command('upgrade')
    .description('the builds of all nodes, and the cluster version that they use')
  addAskFlags(upgrade.command('status'))
    .description('show each node, its build, and what hinders the next cluster version')
    .action(showStatus)
  addAskFlags(upgrade.command('finalize'))
    .description('use the formats of the new build from now on: no node goes back behind that')
    .option('--dry-run', 'only say what would be done, and what hinders it')
    .action(finalize)
}

async function showStatus(options: Options): Promise<void> {
  const seen = await (await UpgradeAsks.open(options)).look()
  if (options['json'] === true) return printJson(seen)
  const { nodes, target, hindrances } = seen
  print(styledData('bold', headline(seen)))
  const rows = nodes.map(({ id, set, build, supports, version, url }) => {
    return [id, set, build ?? 'no answer', rangeText(supports), String(version ?? '-'), url]
  })
  print(table([['node', 'set', 'build', 'supports', 'in force', 'url'], ...rows]))
  for (const { text } of hindrances) print(text)
  if (hindrances.length === 0 && isBelow(seen)) {
    print(`nothing hinders cluster version ${target}: trilithon upgrade finalize`)
  }
}

function rangeText(supports: Versions | undefined): string {
  if (supports === undefined) return '-'
  const { min, max } = supports
  return min === max ? String(min) : `${min} to ${max}`
}

function headline({ sets, nodes, target }: UpgradeSeen): string {
  const answered = new Set(nodes.filter(({ build }) => build !== undefined).map(({ set }) => set))
  const [told, silent] = [
    sets.filter(({ name }) => answered.has(name)),
    sets.filter(({ name }) => !answered.has(name)).map(({ name }) => name),
  ]
  const versions = [...new Set(told.map(({ version }) => version))].sort((a, b) => a - b)
  const unknown = silent.length === 0 ? '' : `; no answer from set ${silent.join(', ')}`
  const inForce = `cluster version ${versions.join(' and ')} in force${unknown}`
  return versions.every((one) => one >= target) ? inForce : `${inForce}, ${target} can follow`
}

function isBelow({ sets, target }: UpgradeSeen): boolean {
  return sets.some(({ version }) => version < target)
}

async function finalize(options: Options): Promise<void> {
  const asks = await UpgradeAsks.open(options)
  const seen = await asks.look()
  const isJson = options['json'] === true
  const { sets, target, hindrances } = seen
  const behind = sets.filter(({ version }) => version < target)
  if (behind.length > 0 && hindrances.length > 0) throw hindered(seen)
  const done = sets.map(({ name, version }) => ({ set: name, from: version }))
  if (options['dryRun'] === true) {
    if (isJson) return printJson({ version: target, sets: done, dryRun: true })
    return print(behind.length === 0 ? inForceText(seen) : planText(behind, target))
  }
  for (const set of behind) {
    await asks.raise(set, target)
    if (!isJson) print(`set ${set.name}: cluster version ${set.version} → ${target}`)
  }
  // A node that is away takes it up when it is back.
  if (behind.length > 0) await asks.follow(target)
  if (isJson) printJson({ version: target, sets: done })
  else print(inForceText(seen))
}

function inForceText({ target, hindrances }: UpgradeSeen): string {
  const inForce = `cluster version ${target} is in force`
  if (hindrances.length === 0) return `${inForce} at all nodes`
  return [`${inForce} in each replica set`, ...hindrances.map(({ text }) => text)].join('; ')
}

function planText(behind: readonly SetSeen[], target: number): string {
  const sets = behind.map(({ name, version }) => `set ${name} from ${version}`)
  return `would put cluster version ${target} in force: ${sets.join(', ')}; no node goes back to an earlier build then`
}

/** Nothing is written to any set while one of them is not ready. */
function hindered({ hindrances, target }: UpgradeSeen): CliError {
  const isDown = hindrances.some(({ kind }) => kind === 'down')
  const text = hindrances.map(({ text: one }) => one).join('; ')
  const message = `cluster version ${target} is not put in force: ${text}`
  return new CliError(message, isDown ? exitUnavailable : exitFailure)
}
