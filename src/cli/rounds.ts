/** Commands that have all nodes begin a round of comparing or of scrubbing, follow it to its end, and show its findings. */
import type { Command } from 'commander'
import { parseNumber } from './client.ts'
import { CliError, exitFailure, exitUnavailable } from './exit.ts'
import { addAskFlags } from './node-asks.ts'
import type { Options } from './options.ts'
import { print, printJson, say, table } from './output.ts'
import { RoundAsks, type NodeAnswer } from './round-asks.ts'
import {
  areCounting,
  followedRounds,
  followRounds,
  type Followed,
  type RoundKind,
} from './round-follow.ts'
import { onStopSignals } from './signals.ts'

const countSecondsMax = 86_400

/** Gives the command that begins rounds, for flags of its own. */
export function addRoundCommands(
  of: Command,
  kind: RoundKind,
  words: { readonly now: string },
): Command {
  const now = addAskFlags(of.command('now'))
    .description(words.now)
    .option('--no-wait', 'begin, and do not wait for the end')
    .action((options: Options) => beginRounds(kind, options))
  addAskFlags(of.command('status'))
    .description(`how far ${kind.name} is at each node, and what it found; begins nothing`)
    .action((options: Options) => showRounds(kind, options))
  return now
}

async function showRounds(kind: RoundKind, options: Options): Promise<void> {
  const asks = await RoundAsks.open(options)
  const answers = await asks.all('GET', `/${kind.verb}`)
  finish(
    kind,
    options,
    answers.map((answer) => ({ answer })),
    false,
  )
}

async function beginRounds(kind: RoundKind, options: Options): Promise<void> {
  const { countTimeout = '0' } = options
  const countMs = 1000 * parseNumber('--count-timeout', countTimeout, 0, countSecondsMax)
  const asks = await RoundAsks.open(options)
  const begun = await asks.all('POST', `/${kind.verb}`)
  if (options['wait'] === false) return showBegun(kind, options, begun)
  const nodes = followedRounds(begun)
  onStopSignals({
    stop: (signal) => {
      const what = areCounting(kind, nodes)
        ? `the nodes go on counting their groups; run trilithon ${kind.verb} now again later`
        : `${kind.name} goes on at the nodes; see trilithon ${kind.verb} status`
      say(`${signal}: ${what}`)
      process.exit(exitFailure)
    },
  })
  for (const { id, report } of begun) {
    if (report?.isJoined === true) say(`${id}: a round was under way: this is its end`)
  }
  await followRounds(kind, asks, nodes, countMs)
  finish(kind, options, nodes, true)
}

function showBegun(kind: RoundKind, options: Options, begun: readonly NodeAnswer[]): void {
  if (options['json'] === true) {
    printJson({
      nodes: begun.map(({ id, report, why }) =>
        report === undefined ? { id, why } : { id, round: report.round, joined: report.isJoined },
      ),
    })
  } else {
    for (const { id, report } of begun) {
      if (report !== undefined) print(`${id}: ${report.isJoined === true ? 'under way' : 'begun'}`)
    }
  }
  refuseSilent(begun, options['json'] === true)
  say(`see trilithon ${kind.verb} status`)
}

/** Prints the table, and sets the exit code: 0 without a fault, 1 with one, 4 where a node does not answer. */
function finish(
  kind: RoundKind,
  options: Options,
  nodes: readonly Pick<Followed, 'answer' | 'before'>[],
  isAfterRound: boolean,
): void {
  const answers = nodes.map(({ answer }) => answer)
  const found = answers.map(({ id, report, why }) => {
    const faults = report === undefined ? [why ?? 'no answer'] : kind.faults(report)
    return { id, ...report, faults }
  })
  const isJson = options['json'] === true
  if (isJson) printJson({ ok: found.every(({ faults }) => faults.length === 0), nodes: found })
  else {
    const rows = nodes.flatMap(({ answer: { id, report }, before }) =>
      report === undefined ? [[id, 'no answer']] : [[id, ...kind.row(report, before)]],
    )
    print(table([['node', ...kind.head], ...rows]))
    for (const { id, faults } of found) for (const fault of faults) say(`${id}: ${fault}`)
  }
  refuseSilent(answers, true)
  const faulty = found.filter(({ faults }) => faults.length > 0).map(({ id }) => id)
  if (faulty.length > 0) {
    throw new CliError(`not all is well at ${faulty.join(', ')}`, exitFailure)
  }
  if (!isJson && isAfterRound) print(kind.allWell)
}

function refuseSilent(answers: readonly NodeAnswer[], isTold: boolean): void {
  const silent = answers.filter(({ report }) => report === undefined)
  if (silent.length === 0) return
  if (!isTold) for (const { id, why } of silent) say(`${id}: ${why ?? 'no answer'}`)
  const names = silent.map(({ id }) => id).join(', ')
  if (silent.every(({ isRefused }) => isRefused === true)) {
    throw new CliError(`refused by ${names}: ${silent[0]?.why ?? ''}`, exitFailure)
  }
  throw new CliError(`no answer of ${names}`, exitUnavailable)
}
