/** `trilithon compare resolve`: an operator decides which node's rows are right, where no majority has the same ones. */
import type { Command } from 'commander'
import { CliError, exitFailure, exitUnavailable, exitUsage } from './exit.ts'
import { addAskFlags } from './node-asks.ts'
import type { Options } from './options.ts'
import { print, printJson } from './output.ts'
import { namesOf, RoundAsks, type NodeAnswer } from './round-asks.ts'

export function addResolveCommand(compare: Command): void {
  addAskFlags(compare.command('resolve <GROUP>'))
    .description(
      'where no majority has the same rows of a group: the other nodes take those of one node',
    )
    .requiredOption('--from <NODE>', 'the node whose rows are right')
    .option('--yes', 'do it; without this, the command only says what it would do')
    .action(resolveGroup)
}

async function resolveGroup(group: string, options: Options): Promise<void> {
  const from = String(options['from'])
  const asks = await RoundAsks.open(options)
  const ids = asks.nodes.map(({ id }) => id)
  if (!ids.includes(from)) {
    throw new CliError(`--from: there is no node "${from}", only ${ids.join(', ')}`, exitUsage)
  }
  const answers = await asks.all('GET', '/compare')
  const source = answers.find(({ id }) => id === from)
  if (source?.report === undefined) {
    const why = source?.why ?? 'no answer'
    throw new CliError(`node ${from}: ${why}; start it, or name another`, exitUnavailable)
  }
  const takers = findTakers(group, from, answers)
  const names = takers.map(({ id }) => id).join(', ')
  if (options['yes'] !== true) {
    const text = `the rows of group ${group} at ${names} would be replaced by those of ${from}, for good; add --yes to do it`
    throw new CliError(text, exitUsage)
  }
  const query = new URLSearchParams({ group, from })
  const told = await asks.all('POST', `/compare/resolve?${query.toString()}`, takers)
  const failed = told.filter(({ report }) => report === undefined)
  if (options['json'] === true) {
    printJson({ group, from, nodes: told.map(({ id, why }) => ({ id, ...(why && { why }) })) })
  } else {
    const taking = told.filter(({ report }) => report !== undefined)
    for (const { id } of taking) print(`${id} takes the rows of ${from}`)
  }
  if (failed.length === 0) return
  const why = failed.map((one) => `${one.id}: ${one.why ?? 'no answer'}`).join('; ')
  const isRefused = failed.every((one) => one.isRefused === true)
  throw new CliError(why, isRefused ? exitFailure : exitUnavailable)
}

/** The other nodes at which the group has no majority. */
function findTakers(
  group: string,
  from: string,
  answers: readonly NodeAnswer[],
): readonly NodeAnswer[] {
  if (answers.every(({ report }) => report?.['undecidedGroups'] === undefined)) {
    const text = 'names of groups take the secret of the cluster: name it by --secret-file'
    throw new CliError(text, exitFailure)
  }
  const undecided = ({ report }: NodeAnswer): readonly string[] =>
    namesOf(report, 'undecidedGroups')
  const takers = answers.filter((one) => one.id !== from && undecided(one).includes(group))
  if (takers.length > 0) return takers
  const all = [...new Set(answers.flatMap(undecided))]
  const are = all.length === 0 ? 'no group is' : `these are: ${all.join(', ')}`
  const text = `group ${group} is not undecided at a node beside ${from}; ${are}`
  throw new CliError(text, exitFailure)
}
