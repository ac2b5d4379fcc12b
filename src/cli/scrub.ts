/** `trilithon scrub now|status`: checks all files and rows of the nodes for damage, and tells how far that check is. */
import type { Command } from 'commander'
import { byteText, counted } from './output.ts'
import { figureOf, type RoundReport } from './round-asks.ts'
import type { RoundKind } from './round-follow.ts'
import { addRoundCommands } from './rounds.ts'

export function addScrubCommand(program: Command): void {
  const scrub = program
    .command('scrub')
    .description('whether the files of the nodes, and the rows of all groups, are as written')
  addRoundCommands(scrub, scrubbing, {
    now: 'have each node read all of data/ and log/ and count the rows of all groups now',
  })
}

const scrubbing: RoundKind = {
  verb: 'scrub',
  name: 'the scrub',
  progress: (report) => {
    const [data, log, rows] = describe(report)
    return `data/ ${data}, log/ ${log}, rows of ${rows}`
  },
  head: ['data/', 'log/', 'rows counted', 'wrong rows', 'aside', 'damage in log/'],
  row: (report, before) => [
    ...describe(report),
    String(figureOf(report, 'rowScrubWrong') - figureOf(before, 'rowScrubWrong')),
    String(figureOf(report, 'aside')),
    String(figureOf(report, 'scrubLogDamages')),
  ],
  faults: (report) => {
    const of = (name: string): number => figureOf(report, name)
    return [
      ...(of('aside') > 0
        ? [`${counted(of('aside'), 'group')} put aside, until another node has sent it`]
        : []),
      ...(of('scrubLogDamages') > 0
        ? ['log/ was found damaged: see "A damaged log" in operating.md']
        : []),
    ]
  },
  isSettling: (report) => figureOf(report, 'aside') > 0,
  isToBeRepeated: () => false,
  isCounting: () => false,
  allWell: 'all files and rows are as they were written',
}

/** Of `data/`, of `log/`, and the groups. */
function describe(report: RoundReport): readonly [string, string, string] {
  const part = (of: string, bytes: string): string =>
    `${Math.floor(100 * figureOf(report, of))} % (${byteText(figureOf(report, bytes))})`
  return [
    part('scrubbedPart', 'scrubbedBytes'),
    part('logScrubbedPart', 'logScrubbedBytes'),
    counted(figureOf(report, 'rowScrubbedGroups'), 'group'),
  ]
}
