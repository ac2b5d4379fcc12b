/** `sim explore`: every order of events within small scopes, on the real core. */
import { Option } from 'commander'
import { describeReport, describeTotals, explore, type ExploreReport } from '../explore/explore.ts'
import {
  describeExploreHunt,
  huntByExploring,
  huntByWalking,
  type ExploreHuntResult,
  type ScopeWalks,
  type WalkHuntResult,
} from '../explore/hunt.ts'
import { Model } from '../explore/model.ts'
import {
  compareSchedules,
  describeSchedule,
  type Schedule,
  type ScheduleResult,
} from '../explore/pct.ts'
import type { Scope } from '../explore/scope.ts'
import { scopes } from '../explore/scopes.ts'
import { mutants } from '../mutants/mutants.ts'
import { SeededRandom } from '../world/random.ts'
import { exitCodes } from '../result.ts'
import {
  knownName,
  parseCount,
  parsePositive,
  parseRule,
  parseTime,
  print,
  say,
  type AddCommand,
} from './flags.ts'
import { parseMutants } from './mutant-flags.ts'
import { ProgressLine } from './progress-line.ts'

interface ExploreFlags {
  readonly scope?: readonly string[]
  readonly seconds: number
  readonly time: number
  readonly rules?: readonly string[]
  readonly mutants?: readonly string[]
  readonly walks?: number
  readonly seed: number
  readonly json: boolean
}

/** Deeper ones spread a walk's few changes too thin to matter here. */
const schedules: readonly Schedule[] = [
  { kind: 'uniform' },
  { kind: 'pos' },
  ...[1, 2, 3, 4, 5].map((depth) => ({ kind: 'pct', depth }) as const),
]

const scopeNames: readonly string[] = scopes.map(({ name }) => name)

function parseScope(text: string, before: readonly string[] = []): readonly string[] {
  knownName('scope', text, scopeNames)
  return [...before, text]
}

export const addExplore: AddCommand = (program, finish) => {
  program
    .command('explore')
    .description('search small scopes of the core exhaustively')
    .option('--scope <names...>', `these only, of: ${scopeNames.join(' ')}`, parseScope)
    .option('--seconds <n>', 'time for each scope', parsePositive, 40)
    .addOption(
      new Option('--time <t>', 'time for all scopes together, such as 90s or 1h')
        .argParser(parseTime)
        .default(300, '5m'),
    )
    .option('--rules <ids...>', 'count breaches of these rules only', parseRule)
    .option(
      '--mutants <ids...>',
      'search copies in which these known bugs are planted',
      parseMutants,
    )
    .option(
      '--walks <n>',
      'instead of the search, run N random walks by each kind of schedule',
      parsePositive,
    )
    .option('--seed <n>', 'with --walks: where they come from', parseCount, 1)
    .option('--json', 'print the reports as JSON', false)
    .action(async (flags: ExploreFlags) => finish(await exploreNamed(flags)))
}

async function exploreNamed(flags: ExploreFlags): Promise<number> {
  const names = flags.scope ?? scopeNames
  const chosen = scopes.filter(({ name }) => names.includes(name))
  const { walks } = flags
  const { mutants: ids } = flags
  if (ids !== undefined) {
    return walks === undefined
      ? huntAll(names, flags, ids)
      : walkInMutants(names, flags, ids, walks)
  }
  return walks === undefined ? searchAll(chosen, flags) : walkAll(chosen, flags, walks)
}

function searchAll(chosen: readonly Scope[], flags: ExploreFlags): number {
  const { rules, json } = flags
  const startedAt = secondsNow()
  const reports: ExploreReport[] = []
  const progress = new ProgressLine()
  for (const scope of chosen) {
    const secondsMax = Math.min(flags.seconds, startedAt + flags.time - secondsNow())
    if (secondsMax <= 0) break
    progress.show(scope.name, `${scope.name}: ${scope.title}`)
    const report = explore({
      scope,
      secondsMax,
      seconds: secondsNow,
      ...(rules === undefined ? {} : { rules }),
      onDepth: (depth, states) => {
        progress.show(scope.name, `${scope.name}: depth ${depth}, ${states} states`)
      },
    })
    progress.end()
    reports.push(report)
    if (!json) print(describeReport(report))
    if (report.breach !== undefined) break
  }
  const isClean = reports.every((report) => report.breach === undefined)
  const isLookedAt = reports.some(({ states }) => states > 1)
  const notBegun = chosen.slice(reports.length).map(({ name }) => name)
  if (json) print(JSON.stringify({ isClean, scopes: reports, notBegun }))
  else print(describeTotals(reports, notBegun))
  if (!isClean) return exitCodes.safety
  if (isLookedAt) return exitCodes.clean
  say('error: no scope was begun in the time: nothing was looked at')
  return exitCodes.crash
}

async function huntAll(
  names: readonly string[],
  flags: ExploreFlags,
  ids: readonly string[],
): Promise<number> {
  const rules = flags.rules === undefined ? {} : { rules: flags.rules }
  const results: ExploreHuntResult[] = []
  for (const mutant of mutants.filter(({ id }) => ids.includes(id))) {
    say(`${mutant.id}: ${mutant.title}`)
    const options = { scopes: names, secondsMax: flags.seconds, timeMax: flags.time, ...rules }
    results.push(await huntByExploring(mutant, options))
  }
  const found = results.filter((result) => result.isAsExpected).length
  if (flags.json) print(JSON.stringify({ found, total: results.length, mutants: results }))
  else
    print(`${results.map(describeExploreHunt).join('\n')}\n${found}/${results.length} as expected`)
  return found === results.length ? 0 : exitCodes.crash
}

function walkAll(chosen: readonly Scope[], flags: ExploreFlags, walks: number): number {
  const rules = flags.rules === undefined ? {} : { rules: flags.rules }
  const results = chosen.map((scope): ScopeWalks => {
    const random = new SeededRandom(`${flags.seed}/explore/${scope.name}`)
    const found = compareSchedules(new Model(scope), random, schedules, { walks, ...rules })
    const result = { scope: scope.name, schedules: found }
    if (!flags.json) print(describeScopeWalks(result))
    return result
  })
  const isClean = results.every((one) => one.schedules.every(({ found }) => found === 0))
  if (flags.json) print(JSON.stringify({ isClean, scopes: results }))
  return isClean ? 0 : exitCodes.safety
}

/** Clean when every bug was found by some walk of some kind. */
async function walkInMutants(
  names: readonly string[],
  flags: ExploreFlags,
  ids: readonly string[],
  walks: number,
): Promise<number> {
  const { seed, seconds, time, rules } = flags
  const results: WalkHuntResult[] = []
  for (const mutant of mutants.filter(({ id }) => ids.includes(id))) {
    say(`${mutant.id}: ${mutant.title}`)
    const options = { scopes: names, secondsMax: seconds, timeMax: time, walks, seed }
    const result = await huntByWalking(mutant, { ...options, ...(rules && { rules }) })
    results.push(result)
    if (!flags.json) print(result.scopes.map(describeScopeWalks).join('\n') || 'not done in time')
  }
  if (flags.json) print(JSON.stringify({ mutants: results }))
  const isFound = ({ scopes: walked }: WalkHuntResult): boolean =>
    walked.some((one) => one.schedules.some(({ found }) => found > 0))
  return results.every(isFound) ? 0 : exitCodes.crash
}

function describeScopeWalks({ scope, schedules: found }: ScopeWalks): string {
  return `${scope}\n${found.map(describeWalks).join('\n')}`
}

function describeWalks({ schedule, walks, found, firstAt, breach }: ScheduleResult): string {
  const share = ((100 * found) / walks).toFixed(2)
  const first = breach === undefined ? '' : `, first in walk ${firstAt} by ${breach.rule}`
  return `  ${describeSchedule(schedule).padEnd(8)} ${found} of ${walks} walks (${share} %)${first}`
}

function secondsNow(): number {
  return Number(process.hrtime.bigint()) / 1e9
}
