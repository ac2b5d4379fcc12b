/**
 * Failures merged by their signature: the rule that was broken first, and the checker's sentence,
 * which names no node, no time and no value. Seeds with the same signature mostly met the same bug.
 */
import type { RunResult } from './result.ts'

export interface Failure {
  readonly rule: string
  readonly sentence: string
  /** In the order they were given; the first stands for all. */
  readonly seeds: readonly number[]
  readonly first: RunResult
}

/** Seeds that a line of text names. */
const seedsNamedMax = 5

/** One for each signature, in the order of their first seeds. */
export function mergeFailures(failed: readonly RunResult[]): readonly Failure[] {
  const bySignature = new Map<string, Failure>()
  for (const result of failed) {
    const { rule = 'unknown', sentence = '' } = result.violations[0] ?? {}
    const signature = `${rule} ${sentence}`
    const known = bySignature.get(signature) ?? { rule, sentence, seeds: [], first: result }
    bySignature.set(signature, { ...known, seeds: [...known.seeds, result.seed] })
  }
  return [...bySignature.values()]
}

/** One line a person can read. */
export function describeFailure({ rule, sentence, seeds, first }: Failure): string {
  const named = seeds.slice(0, seedsNamedMax).join(', ')
  const rest = seeds.length > seedsNamedMax ? ', …' : ''
  const count = seeds.length === 1 ? '1 seed' : `${seeds.length} seeds`
  return `${rule}: ${sentence} ${count}, the first is ${first.seed}: ${named}${rest}`
}

/** As programs read it. */
export function failureAsJson({ rule, sentence, seeds }: Failure): unknown {
  return { rule, sentence, count: seeds.length, seeds }
}
