/** The searched graph, as far as a check of what follows from a state walks on in it (`model.ts`). */
import type { Book } from './book.ts'
import type { Flight, Successor } from './flight.ts'
import type { NodeState } from './node-state.ts'
import type { Setting } from './setting.ts'
import type { ActionCode } from './state-vector.ts'

export interface Graph {
  readonly setting: Setting
  node(number: number): NodeState
  nodes(vector: readonly number[]): readonly NodeState[]
  book(vector: readonly number[]): Book
  flight(number: number): Flight
  actions(vector: readonly number[]): readonly ActionCode[]
  successor(vector: readonly number[], code: ActionCode): Successor
}
