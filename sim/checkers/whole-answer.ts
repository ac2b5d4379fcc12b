/**
 * Completeness: an entry in an index from before a query began until it ended is in the answer.
 *
 * IDX-10  However small its pages, a query leaves out nothing that stood all the while.
 * IDX-6   Neither does an index that has just been built, and it has nothing of rows that are gone.
 */
import { globalEntries, type GlobalIndexModel } from './global-model.ts'
import type { Referee } from './referee.ts'
import type { TableState } from './table-model.ts'

/** Of a query while entries come and go, and of an index that has just been built. */
export type WholeRule = 'IDX-10' | 'IDX-6'

/** A query that was followed to its end, and the entries that it must show at least. */
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

/** Entries, as texts, that the rows had in each of a store's states, one after another. */
export function standingIn(
  states: readonly TableState[],
  index: GlobalIndexModel,
): readonly string[] {
  const [first = [], ...later] = states.map((state) => globalEntries(state, index))
  return first.filter((text) => later.every((texts) => texts.includes(text)))
}

/** Every entry that was found was one of some state's rows since the build of the index began. */
export function checkNoneGone(
  referee: Referee,
  index: GlobalIndexModel,
  states: readonly TableState[],
  found: readonly string[],
): void {
  const known = new Set(states.flatMap((state) => globalEntries(state, index)))
  const gone = found.filter((text) => !known.has(text))
  const sentence = 'An index was asked that has entries of rows that are gone.'
  referee.check(gone.length === 0, 'IDX-6', sentence, () => ({ index: index.name, gone }))
}
