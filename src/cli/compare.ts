/** `trilithon compare now|status|resolve`: whether the nodes have the same rows of all groups. */
import type { Command } from 'commander'
import { addResolveCommand } from './compare-resolve.ts'
import { counted } from './output.ts'
import { figureOf, flagOf, type RoundReport } from './round-asks.ts'
import type { RoundKind } from './round-follow.ts'
import { addRoundCommands } from './rounds.ts'

export function addCompareCommand(program: Command): void {
  const compare = program
    .command('compare')
    .description('whether the nodes have the same rows of all groups')
  addRoundCommands(compare, comparison, {
    now: "have each node compare its groups with the others' now, and say what it found",
  }).option(
    '--count-timeout <SECONDS>',
    'how long to wait for nodes that count their groups first, since they started lately',
    '600',
  )
  addResolveCommand(compare)
}

const comparison: RoundKind = {
  verb: 'compare',
  name: 'the comparison',
  progress: (report, before, nodes) => {
    if (isCounting(report)) return `counts its groups first, ${groupsCounted(report)} so far`
    const [rounds, groups] = ['rounds', 'groups'].map(
      (name) => figureOf(report, name) - figureOf(before, name),
    )
    const done = Math.min(rounds ?? 0, nodes - 1)
    return `${done} of ${nodes - 1} nodes, ${counted(groups ?? 0, 'group')} one by one`
  },
  head: ['rounds', 'groups', 'differences', 'mended', 'aside', 'undecided', 'unequal', 'left out'],
  row: (report, before) => {
    const since = ['rounds', 'groups', 'differences', 'mended'].map((name) =>
      String(figureOf(report, name) - figureOf(before, name)),
    )
    const asOfNow = ['aside', 'undecided', 'unequal', 'uncompared'].map((name) =>
      String(figureOf(report, name)),
    )
    return [...since, ...asOfNow]
  },
  faults: (report) => {
    const of = (name: string): number => figureOf(report, name)
    return [
      ...(of('open') > 0 ? [`${counted(of('open'), 'difference')} still looked at`] : []),
      ...(of('aside') > 0
        ? [`${counted(of('aside'), 'group')} put aside, until another node has sent it`]
        : []),
      ...(of('undecided') > 0
        ? [
            `${counted(of('undecided'), 'group')} without a majority for any rows: start the nodes that are down, or see trilithon compare resolve --help`,
          ]
        : []),
      ...(of('uncompared') > 0
        ? [`not compared with ${counted(of('uncompared'), 'node')}: ${whyNotCompared(report)}`]
        : []),
    ]
  },
  isSettling: (report) => figureOf(report, 'open') > 0 || figureOf(report, 'aside') > 0,
  isToBeRepeated: (report) => figureOf(report, 'uncompared') > 0,
  isCounting,
  allWell: 'the nodes have the same rows',
}

/** False also of a node of an earlier build, which does not say so. */
function isCounting(report: RoundReport): boolean {
  return flagOf(report, 'isCounting')
}

function groupsCounted(report: RoundReport): string {
  return counted(figureOf(report, 'countedGroups'), 'group')
}

function whyNotCompared(report: RoundReport): string {
  if (!isCounting(report)) return 'see trilithon status'
  return `this node still counts its groups, ${groupsCounted(report)} so far; run trilithon compare now again later, or with a longer --count-timeout`
}
