/** Plants a bug in a copy of the sources and has the copy search its scopes for it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Mutant } from '../mutant.ts'
import { build, output, plant } from '../mutant-copy.ts'
import type { ExploreReport } from './explore.ts'

export interface ExploreHuntOptions {
  readonly scopes: readonly string[]
  /** For each scope. */
  readonly secondsMax: number
  readonly rules?: readonly string[]
}

export interface ExploreHuntResult {
  readonly id: string
  readonly title: string
  /** Found, or, for a harmless one, not found in scopes that were searched whole. */
  readonly isAsExpected: boolean
  /** One a scope, up to the one in which it was found. */
  readonly reports: readonly ExploreReport[]
}

/** What `explore --json` prints. */
interface Printed {
  readonly isClean: boolean
  readonly scopes: readonly ExploreReport[]
}

/** What a copy may take beyond the time of its searches before it is ended. */
const secondsMore = 60

export async function huntByExploring(
  mutant: Mutant,
  options: ExploreHuntOptions,
): Promise<ExploreHuntResult> {
  const copy = await mkdtemp(join(tmpdir(), `trilithon-${mutant.id}-`))
  try {
    await plant(mutant, copy)
    await build(copy)
    return resultOf(mutant, await exploreThere(copy, mutant, options))
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

async function exploreThere(
  copy: string,
  mutant: Mutant,
  options: ExploreHuntOptions,
): Promise<Printed> {
  const { scopes, secondsMax } = options
  const rules = options.rules ?? mutant.rules ?? []
  const flags = ['--scope', ...scopes, '--seconds', String(secondsMax), '--json']
  const words = ['explore', ...flags, ...(rules.length === 0 ? [] : ['--rules', ...rules])]
  const main = join(copy, 'dist', 'sim', 'main.js')
  const allowed = scopes.length * secondsMax + secondsMore
  const printed = await output(process.execPath, [main, ...words], copy, allowed)
  if (printed === '') return { isClean: true, scopes: [] }
  const found: Printed = JSON.parse(printed)
  return found
}

function resultOf(mutant: Mutant, { isClean, scopes }: Printed): ExploreHuntResult {
  const { id, title } = mutant
  const isWhole = scopes.length > 0 && scopes.every((report) => report.isComplete)
  const isAsExpected = mutant.isHarmless === true ? isClean && isWhole : !isClean
  return { id, title, isAsExpected, reports: scopes }
}

/** One line, and the path in more, when there is one. */
export function describeExploreHunt({ id, reports }: ExploreHuntResult): string {
  const last = reports.at(-1)
  const states = reports.reduce((sum, report) => sum + report.states, 0)
  const seconds = reports.reduce((sum, report) => sum + report.seconds, 0)
  const figures = `${states} states, ${seconds.toFixed(1)} s`
  if (last?.breach === undefined)
    return `${id.padEnd(8)} not found in ${reports.length} scopes, ${figures}`
  const { rule, path } = last.breach
  return `${id.padEnd(8)} found in ${last.scope} by ${rule} in ${path.length} events, ${figures}`
}
