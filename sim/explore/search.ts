/**
 * Breadth-first search of a scope: every state once, depth by depth, so that the first breach found
 * has a shortest path.
 */
import { present } from '../../src/base/assert.ts'
import { Frontier } from './frontier.ts'
import { Model } from './model.ts'
import type { ActionCode } from './state-vector.ts'
import type { Breach } from './observation.ts'
import type { Scope } from './scope.ts'
import { Visited } from './visited.ts'

export interface SearchOptions {
  /** Only breaches of these rules count; nodes that stop themselves by another just stop. */
  readonly rules?: readonly string[]
  readonly statesMax?: number
  /** Asked now and then: whether the search should end where it is. */
  readonly isOver?: () => boolean
  readonly onDepth?: (depth: number, states: number) => void
}

export interface FoundBreach extends Breach {
  /** The actions from the first state; the last one breaks the rule. */
  readonly path: readonly ActionCode[]
}

export interface SearchResult {
  /** Every state within the scope was seen. A search that found a breach ended there. */
  readonly isComplete: boolean
  readonly states: number
  readonly transitions: number
  /** Of the last state looked at. */
  readonly depth: number
  readonly breach?: FoundBreach
}

/** How many states are looked at between two questions whether it is over. */
const statesPerQuestion = 1024

export function search(model: Model, options: SearchOptions = {}): SearchResult {
  return new Search(model, options).run()
}

class Search {
  readonly #model: Model
  readonly #options: SearchOptions
  readonly #visited = new Visited()
  #transitions = 0
  #looked = 0
  #depth = 0
  #breach: FoundBreach | undefined

  constructor(model: Model, options: SearchOptions) {
    this.#model = model
    this.#options = options
  }

  run(): SearchResult {
    let frontier = new Frontier()
    frontier.push(this.#visited.add(this.#model.initial, -1), this.#model.initial)
    while (frontier.count > 0) {
      const next = new Frontier()
      for (const { ordinal, vector } of frontier) {
        if (!this.#look(ordinal, vector, next)) return this.#result(false)
      }
      this.#depth += next.count > 0 ? 1 : 0
      this.#options.onDepth?.(this.#depth, this.#visited.count)
      frontier = next
    }
    return this.#result(true)
  }

  #result(isComplete: boolean): SearchResult {
    const [states, transitions, depth] = [this.#visited.count, this.#transitions, this.#depth]
    const counts = { isComplete, states, transitions, depth }
    return this.#breach === undefined ? counts : { ...counts, breach: this.#breach }
  }

  /** False when the search ends here. */
  #look(ordinal: number, vector: readonly number[], next: Frontier): boolean {
    const { statesMax, isOver } = this.#options
    this.#looked += 1
    if (this.#looked % statesPerQuestion === 0 && isOver?.() === true) return false
    if (this.#visited.count >= (statesMax ?? Number.POSITIVE_INFINITY)) return false
    for (const code of this.#model.actions(vector)) {
      const successor = this.#model.successor(vector, code)
      this.#transitions += 1
      const breach = countedBreach(successor.breaches, this.#options.rules)
      if (breach !== undefined) {
        this.#breach = { ...breach, path: [...this.#pathTo(ordinal), code] }
        return false
      }
      if (successor.isHalted) continue
      const found = this.#visited.add(successor.vector, ordinal)
      if (found < 0) continue
      next.push(found, successor.vector)
      const unended = countedBreach(this.#model.endBreaches(successor.vector), this.#options.rules)
      if (unended !== undefined) {
        this.#breach = { ...unended, path: [...this.#pathTo(ordinal), code] }
        return false
      }
    }
    return true
  }

  /** Found again from the first state: each next state is the one whose ordinal is on the path. */
  #pathTo(ordinal: number): readonly ActionCode[] {
    const path: ActionCode[] = []
    let vector = this.#model.initial
    for (const wanted of this.#visited.pathTo(ordinal).slice(1)) {
      const code = this.#model.actions(vector).find((one) => {
        const { vector: next, isHalted } = this.#model.successor(vector, one)
        return !isHalted && this.#visited.find(next) === wanted
      })
      path.push(present(code, 'explore: a path has a gap'))
      vector = this.#model.successor(vector, path.at(-1) ?? 0).vector
    }
    return path
  }
}

/** The first breach that counts. An error of another rule is what a node stopped by. */
export function countedBreach(
  breaches: readonly Breach[],
  rules: readonly string[] | undefined,
): Breach | undefined {
  return breaches.find(({ rule }) => rules === undefined || rules.includes(rule))
}

export function searchScope(scope: Scope, options: SearchOptions = {}): SearchResult {
  return search(new Model(scope), options)
}
