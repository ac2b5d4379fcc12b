/** Plants a bug in a copy of the sources and has the copy search its scopes for it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Mutant } from '../mutants/mutant.ts'
import { output, plant } from '../mutants/mutant-copy.ts'
import type { ExploreReport } from './explore.ts'
import type { ScheduleResult } from './pct.ts'

export interface ExploreHuntOptions {
  readonly scopes: readonly string[]
  /** For each scope. */
  readonly secondsMax: number
  /** For all of them; no bound of its own when absent. */
  readonly timeMax?: number
  readonly rules?: readonly string[]
  /** Ends the hunt, which rejects with its reason. */
  readonly signal?: AbortSignal | undefined
}

export interface ExploreHuntResult {
  readonly id: string
  readonly title: string
  /** Found, or, for a harmless one, not found in scopes that were searched whole. */
  readonly isAsExpected: boolean
  /** One a scope, up to the one in which it was found. */
  readonly reports: readonly ExploreReport[]
}

/** The report that `explore --json` prints. */
interface Printed {
  readonly isClean: boolean
  readonly scopes: readonly ExploreReport[]
  readonly notBegun: readonly string[]
}

/** The time that a copy may take beyond that of its searches before it is ended. */
const secondsMore = 60

export async function huntByExploring(
  mutant: Mutant,
  options: ExploreHuntOptions,
): Promise<ExploreHuntResult> {
  const { scopes, secondsMax, timeMax = scopes.length * secondsMax } = options
  const words = ['--seconds', String(secondsMax), '--time', `${timeMax}s`]
  const printed = await exploreThere(mutant, options, { words, secondsMax: timeMax })
  if (printed === '') return toResult(mutant, { isClean: true, scopes: [], notBegun: scopes })
  const found: Printed = JSON.parse(printed)
  return toResult(mutant, found)
}

/** How often walks of each kind find the bug, scope by scope. */
export interface WalkHuntResult {
  readonly id: string
  readonly scopes: readonly ScopeWalks[]
}

export interface ScopeWalks {
  readonly scope: string
  readonly schedules: readonly ScheduleResult[]
}

export interface WalkHuntOptions extends ExploreHuntOptions {
  readonly walks: number
  readonly seed: number
}

export async function huntByWalking(
  mutant: Mutant,
  options: WalkHuntOptions,
): Promise<WalkHuntResult> {
  const { walks, seed, scopes, secondsMax, timeMax = scopes.length * secondsMax } = options
  const words = ['--walks', String(walks), '--seed', String(seed)]
  const printed = await exploreThere(mutant, options, { words, secondsMax: timeMax })
  if (printed === '') return { id: mutant.id, scopes: [] }
  const found: Pick<WalkHuntResult, 'scopes'> = JSON.parse(printed)
  return { id: mutant.id, scopes: found.scopes }
}

/** The report that `explore` prints in a copy with the mutant; nothing when it did not end in time. */
async function exploreThere(
  mutant: Mutant,
  { scopes, rules = mutant.rules ?? [], signal }: ExploreHuntOptions,
  { words, secondsMax }: { readonly words: readonly string[]; readonly secondsMax: number },
): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), `trilithon-${mutant.id}-`))
  try {
    await plant(mutant, copy, signal)
    const main = join(copy, 'dist', 'sim', 'main.js')
    const counted = rules.length === 0 ? [] : ['--rules', ...rules]
    const all = ['explore', '--scope', ...scopes, ...words, '--json', ...counted]
    return await output([main, ...all], copy, { secondsMax: secondsMax + secondsMore, signal })
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

function toResult(mutant: Mutant, { isClean, scopes, notBegun }: Printed): ExploreHuntResult {
  const { id, title } = mutant
  const isWhole = notBegun.length === 0 && scopes.every((report) => report.isComplete)
  const isAsExpected = mutant.isHarmless === true ? isClean && isWhole : !isClean
  return { id, title, isAsExpected, reports: scopes }
}

/** One line, and the path in more, when there is one. */
export function describeExploreHunt({ id, reports }: ExploreHuntResult): string {
  const last = reports.at(-1)
  const states = reports.reduce((sum, report) => sum + report.states, 0)
  const seconds = reports.reduce((sum, report) => sum + report.seconds, 0)
  const figures = `${states} states in ${reports.length} scopes, ${seconds.toFixed(1)} s`
  if (last?.breach === undefined) return `${id.padEnd(8)} not found: ${figures}`
  const { rule, path } = last.breach
  return `${id.padEnd(8)} found in ${last.scope} by ${rule} in ${path.length} events, ${figures}`
}
