/** `sim explore`: every order of events within small scopes, on the real core. */
import { describeReport, explore, type ExploreReport } from '../explore/explore.ts'
import { describeExploreHunt, huntByExploring, type ExploreHuntResult } from '../explore/hunt.ts'
import { Model } from '../explore/model.ts'
import {
  compareSchedules,
  describeSchedule,
  type Schedule,
  type ScheduleResult,
} from '../explore/pct.ts'
import { scopeNamed, scopes, type Scope } from '../explore/scope.ts'
import { mutants } from '../mutants.ts'
import { SeededRandom } from '../random.ts'
import { exitCodes } from '../result.ts'
import { parseCount, print, refuse, say, type AddCommand } from './flags.ts'

interface ExploreFlags {
  readonly scope?: readonly string[]
  readonly seconds: number
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

export const addExplore: AddCommand = (program, finish) => {
  program
    .command('explore')
    .description('search small scopes of the core exhaustively')
    .option('--scope <names...>', `these only, of: ${scopes.map(({ name }) => name).join(' ')}`)
    .option('--seconds <n>', 'time for each scope', parseCount, 600)
    .option('--rules <ids...>', 'count breaches of these rules only')
    .option('--mutants <ids...>', 'search copies in which these known bugs are planted')
    .option('--walks <n>', 'no search: so many random walks by each kind of schedule', parseCount)
    .option('--seed <n>', 'with --walks: where they come from', parseCount, 1)
    .option('--json', 'print the reports as JSON', false)
    .action(async (flags: ExploreFlags) => finish(await exploreNamed(flags)))
}

async function exploreNamed(flags: ExploreFlags): Promise<number> {
  const names = flags.scope ?? scopes.map(({ name }) => name)
  const unknown = names.find((name) => scopeNamed(name) === undefined)
  if (unknown !== undefined) return refuse(`no scope is named ${unknown}`)
  const chosen = scopes.filter(({ name }) => names.includes(name))
  const { walks } = flags
  if (flags.mutants !== undefined) return huntAll(names, flags, flags.mutants)
  return walks === undefined ? searchAll(chosen, flags) : walkAll(chosen, flags, walks)
}

function searchAll(chosen: readonly Scope[], flags: ExploreFlags): number {
  const reports: ExploreReport[] = []
  for (const scope of chosen) {
    say(`${scope.name}: ${scope.title}`)
    const report = explore({
      ...{ scope, secondsMax: flags.seconds, seconds: secondsNow },
      ...(flags.rules === undefined ? {} : { rules: flags.rules }),
    })
    reports.push(report)
    if (!flags.json) print(describeReport(report))
    if (report.breach !== undefined) break
  }
  const isClean = reports.every((report) => report.breach === undefined)
  if (flags.json) print(JSON.stringify({ isClean, scopes: reports }))
  return isClean ? 0 : exitCodes.safety
}

async function huntAll(
  names: readonly string[],
  flags: ExploreFlags,
  ids: readonly string[],
): Promise<number> {
  const unknown = ids.find((id) => mutants.every((mutant) => mutant.id !== id))
  if (unknown !== undefined) return refuse(`no mutant is named ${unknown}`)
  const rules = flags.rules === undefined ? {} : { rules: flags.rules }
  const results: ExploreHuntResult[] = []
  for (const mutant of mutants.filter(({ id }) => ids.includes(id))) {
    say(`${mutant.id}: ${mutant.title}`)
    const options = { scopes: names, secondsMax: flags.seconds, ...rules }
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
  const results = chosen.map((scope) => {
    const random = new SeededRandom(`${flags.seed}/explore/${scope.name}`)
    const found = compareSchedules(new Model(scope), random, schedules, { walks, ...rules })
    if (!flags.json) print(`${scope.name}\n${found.map(describeWalks).join('\n')}`)
    return { scope: scope.name, schedules: found }
  })
  const isClean = results.every((one) => one.schedules.every(({ found }) => found === 0))
  if (flags.json) print(JSON.stringify({ isClean, scopes: results }))
  return isClean ? 0 : exitCodes.safety
}

function describeWalks({ schedule, walks, found, firstAt, breach }: ScheduleResult): string {
  const share = ((100 * found) / walks).toFixed(2)
  const first = breach === undefined ? '' : `, first in walk ${firstAt} by ${breach.rule}`
  return `  ${describeSchedule(schedule).padEnd(8)} ${found} of ${walks} walks (${share} %)${first}`
}

function secondsNow(): number {
  return Number(process.hrtime.bigint()) / 1e9
}
