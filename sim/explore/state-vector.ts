/**
 * A searched state as a vector of numbers: the three nodes' states, the observer's book, what may
 * still happen, then the messages in flight, ascending. And actions as single numbers.
 */
import { present } from '../../src/base/assert.ts'

/** An action, packed: kind, node and argument. Dense enough to be a key, readable by `unpack`. */
export type ActionCode = number

const actionKinds = ['deliver', 'repeat', 'flush', 'timer', 'crash', 'submit', 'read'] as const
export type ActionKind = (typeof actionKinds)[number]

export function packAction(kind: ActionKind, node: number, argument: number): ActionCode {
  return actionKinds.indexOf(kind) + 8 * (node + 4 * argument)
}

export interface Action {
  readonly kind: ActionKind
  readonly node: number
  readonly argument: number
}

export function unpackAction(code: ActionCode): Action {
  const kind = present(actionKinds[code % 8], 'explore: an action of no kind')
  const rest = Math.floor(code / 8)
  return { kind, node: rest % 4, argument: Math.floor(rest / 4) }
}

export const bookAt = 3
export const budgetAt = 4
/** Where messages begin in a state vector. */
export const flightAt = 5

/** How often something may still happen; what was submitted and read, as bits. */
export interface Budget {
  readonly timeouts: number
  readonly crashes: number
  readonly duplicates: number
  readonly submitted: number
  readonly answered: number
  readonly read: number
}

export function packBudget(budget: Budget): number {
  const { timeouts, crashes, duplicates, submitted, answered, read } = budget
  return (
    timeouts |
    (crashes << 4) |
    (duplicates << 7) |
    (submitted << 10) |
    (answered << 15) |
    (read << 20)
  )
}

export function unpackBudget(packed: number): Budget {
  return {
    timeouts: packed & 15,
    crashes: (packed >> 4) & 7,
    duplicates: (packed >> 7) & 7,
    submitted: (packed >> 10) & 31,
    answered: (packed >> 15) & 31,
    read: (packed >> 20) & 31,
  }
}
