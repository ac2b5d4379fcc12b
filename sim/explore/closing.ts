/** The steps of the row of the buckets in the searched graph (`bucket.ts`), and whether a group that has begun ends its entry. */
import { isSettled, mayLearn } from './bucket.ts'
import { canonicalText, Interner } from './canonical.ts'
import { unendedBreaches } from './close-end.ts'
import type { Graph } from './graph.ts'
import type { Breach } from './observation.ts'
import type { Setting } from './setting.ts'
import { budgetAt, packAction, type ActionCode } from './state-vector.ts'
import type { SharesRow } from '../../src/placement/shares.ts'

const none: readonly Breach[] = []

export class Closing {
  readonly #setting: Setting
  readonly #rows = new Interner<SharesRow>()
  /** Nodes and book of the states from which the nodes end each entry that one of them has begun. */
  readonly #ended = new Set<string>()

  constructor(setting: Setting) {
    this.#setting = setting
  }

  row(number: number): SharesRow {
    return this.#rows.at(number)
  }

  /** A node that has sealed the first epoch applies the row, and tells the groups that may have begun. */
  actions(model: Graph, vector: readonly number[]): readonly ActionCode[] {
    const { closed } = this.#setting
    if (closed === undefined) return []
    const { row = closed } = model.book(vector)
    return model.nodes(vector).flatMap(({ change, log }, at) => {
      if (!change.isSealed) return []
      const next = change.row === undefined ? closed : row
      const number = this.#rows.number(canonicalText(next), next)
      if (mayLearn(this.#setting, { change, log }, row)) return [packAction('learn', at, number)]
      return isSettled(row) ? [] : [packAction('tell', at, number)]
    })
  }

  /** The fault of a state from which the nodes, or all but one of them, do not end what they have begun. */
  endBreaches(model: Graph, vector: readonly number[]): readonly Breach[] {
    if (this.#setting.closed === undefined || !isSettled(model.book(vector).row)) return none
    const key = vector.slice(0, budgetAt).join(' ')
    if (this.#ended.has(key)) return none
    this.#ended.add(key)
    return unendedBreaches(model, vector)
  }
}
