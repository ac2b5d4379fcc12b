/**
 * Plants a bug in a copy of the sources, builds the copy, runs seeds on it until it is found, and
 * then has the copy shrink what it found: outside the copy the seed does not fail.
 */
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { v8Flags } from '../campaign.ts'
import { huntByExploring } from '../explore/hunt.ts'
import type { Mutant } from './mutant.ts'
import { output, plant } from './mutant-copy.ts'

export interface HuntOptions {
  readonly from: number
  readonly to: number
  readonly secondsMax: number
  /** Time to shrink a find; 0: it is not shrunk. */
  readonly shrinkSeconds: number
  /** Where shrunk scenarios are kept, each under its mutant's id. */
  readonly keepIn?: string | undefined
  /** Ends the hunt, which rejects with its reason. */
  readonly signal?: AbortSignal | undefined
}

export interface HuntResult {
  readonly id: string
  readonly title: string
  /** Found, or, for a harmless one, not found. */
  readonly isAsExpected: boolean
  readonly foundAtSeed?: number
  readonly foundInScope?: string
  /** Scopes searched, for those that are looked for there and in no seeds. */
  readonly scopesTried?: readonly string[]
  /** The rule that the finder named. */
  readonly foundBy?: string
  readonly sentence?: string
  readonly seedsTried: number
  readonly seconds: number
  /** Of the shrunk scenario: faults, operations and options that differ. */
  readonly events?: number
  readonly shrinkSeconds?: number
}

/** A line of what `run --json` prints of each seed, as far as it is needed here. */
interface SeedReport {
  readonly seed: number
  readonly outcome: string
  readonly violations: readonly { readonly rule: string; readonly sentence: string }[]
}

interface Shrunk {
  readonly events: number
  readonly shrinkSeconds: number
}

export async function hunt(mutant: Mutant, options: HuntOptions): Promise<HuntResult> {
  const { scopes } = mutant
  return scopes === undefined ? huntInSeeds(mutant, options) : huntInScopes(mutant, scopes, options)
}

async function huntInSeeds(mutant: Mutant, options: HuntOptions): Promise<HuntResult> {
  const copy = await mkdtemp(join(tmpdir(), `trilithon-${mutant.id}-`))
  try {
    await plant(mutant, copy, options.signal)
    const startedAt = process.hrtime.bigint()
    const reports = await runSeeds(copy, mutant, options)
    const result = toResult(mutant, reports, secondsSince(startedAt))
    if (result.foundAtSeed === undefined || options.shrinkSeconds === 0) return result
    return { ...result, ...(await shrinkThere(copy, mutant, result.foundAtSeed, options)) }
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

/** The search says the shortest way, so there is nothing to shrink. */
async function huntInScopes(
  mutant: Mutant,
  scopes: readonly string[],
  { secondsMax, signal }: HuntOptions,
): Promise<HuntResult> {
  const limits = { secondsMax: secondsMax / scopes.length, timeMax: secondsMax, signal }
  const { id, title, isAsExpected, reports } = await huntByExploring(mutant, { scopes, ...limits })
  const seconds = reports.reduce((sum, report) => sum + report.seconds, 0)
  const scopesTried = reports.map(({ scope }) => scope)
  const common = { id, title, isAsExpected, seedsTried: 0, scopesTried, seconds }
  const last = reports.at(-1)
  if (last?.breach === undefined) return common
  const { rule, sentence, path } = last.breach
  const found = { foundInScope: last.scope, foundBy: rule, sentence }
  return { ...common, ...found, events: path.length }
}

function secondsSince(startedAt: bigint): number {
  return Number(process.hrtime.bigint() - startedAt) / 1e9
}

function toRuleFlags(mutant: Mutant): readonly string[] {
  return mutant.rules === undefined ? [] : ['--rules', ...mutant.rules]
}

/** Seeds until one fails or the time is up; a line each, so that those before the end count too. */
async function runSeeds(
  copy: string,
  mutant: Mutant,
  options: HuntOptions,
): Promise<readonly SeedReport[]> {
  const { from, secondsMax, signal } = options
  const to = Math.min(options.to, from + (mutant.seedsMax ?? Number.MAX_SAFE_INTEGER) - 1)
  const main = join(copy, 'dist', 'sim', 'main.js')
  const flags = [
    'run',
    '--seeds',
    `${from}..${to}`,
    '--stop',
    '--json-lines',
    ...toRuleFlags(mutant),
  ]
  // In one process, which is killed when the time is up.
  const command = [...v8Flags, main, ...flags]
  const printed = await output(command, copy, { secondsMax, signal })
  const lines = printed.split('\n').slice(0, -1)
  return lines.map((line) => {
    const report: SeedReport = JSON.parse(line)
    return report
  })
}

async function shrinkThere(
  copy: string,
  mutant: Mutant,
  seed: number,
  { shrinkSeconds, keepIn, signal }: HuntOptions,
): Promise<Shrunk | undefined> {
  const startedAt = process.hrtime.bigint()
  const main = join(copy, 'dist', 'sim', 'main.js')
  const file = join(copy, `${mutant.id}.json`)
  const flags = ['shrink', '--seed', String(seed), '-o', file, '--time', `${shrinkSeconds}s`]
  const command = [main, ...flags, '--json', '--quiet', ...toRuleFlags(mutant)]
  const printed = await output(command, copy, { secondsMax: 2 * shrinkSeconds + 60, signal })
  if (printed === '') return undefined
  const shrunk: { readonly events: number } = JSON.parse(printed)
  if (keepIn !== undefined) {
    await mkdir(keepIn, { recursive: true })
    await copyFile(file, join(keepIn, `${mutant.id}.json`))
  }
  return { events: shrunk.events, shrinkSeconds: secondsSince(startedAt) }
}

function toResult(mutant: Mutant, reports: readonly SeedReport[], seconds: number): HuntResult {
  const { id, title } = mutant
  const found = reports.find((report) => report.outcome !== 'clean')
  const violation = found?.violations[0]
  const common = { id, title, seedsTried: reports.length, seconds }
  if (found === undefined) {
    return { ...common, isAsExpected: mutant.isHarmless === true && reports.length > 0 }
  }
  return {
    ...common,
    isAsExpected: mutant.isHarmless !== true,
    foundAtSeed: found.seed,
    ...(violation === undefined ? {} : { foundBy: violation.rule, sentence: violation.sentence }),
  }
}
