/**
 * Completeness: what stood in an index from before a query began until it ended is in the answer.
 *
 * IDX-10  However small its pages, a query leaves out nothing that stood all the while.
 */
import type { Referee } from './referee.ts'

/** Of a query while entries come and go, and of an index that has just been built. */
export type WholeRule = 'IDX-10' | 'IDX-6'

/** A query that was followed to its end, and what it should have shown at least. */
export interface WholeAnswer {
  readonly index: string
  readonly query: unknown
  /** Entries that stood before it and until after it, each as a text. */
  readonly standing: readonly string[]
  readonly found: readonly string[]
}

export function checkWhole(referee: Referee, rule: WholeRule, answer: WholeAnswer): void {
  const { index, query, standing } = answer
  const found = new Set(answer.found)
  const missing = standing.filter((entry) => !found.has(entry))
  const sentence = 'A query of an index left out what stood in it all the while.'
  referee.check(missing.length === 0, rule, sentence, () => ({ index, query, missing }))
}
