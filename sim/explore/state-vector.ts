/**
 * A searched state as a vector of numbers: the nodes' states (four; where a scope uses three, 0 for the last), the observer's book, what may
 * still happen, then the messages in flight, ascending. And actions as single numbers.
 */
import { present } from '../../src/base/assert.ts'
import type { Scope } from './scope.ts'

/** An action, packed: kind, node and argument. Dense enough to be a key, readable by `unpack`. */
export type ActionCode = number

// prettier-ignore
const actionKinds = [
  'deliver', 'repeat', 'flush', 'timer', 'crash', 'submit', 'read', 'renew', 'lapse', 'expire', 'snapshot',
  'lose', 'restore', 'hear', 'seal', 'learn', 'tell',
] as const
export type ActionKind = (typeof actionKinds)[number]

/** Room for kinds in an action's number. */
const kindsMax = 32

/** The same action at another node than the first. */
export function actionAt(code: ActionCode, node: number): ActionCode {
  return code + kindsMax * node
}

export function isOfKind(code: ActionCode, kind: ActionKind): boolean {
  return actionKinds[code % kindsMax] === kind
}

export function packAction(kind: ActionKind, node: number, argument: number): ActionCode {
  return actionKinds.indexOf(kind) + kindsMax * (node + 4 * argument)
}

export interface Action {
  readonly kind: ActionKind
  readonly node: number
  readonly argument: number
}

export function unpackAction(code: ActionCode): Action {
  const kind = present(actionKinds[code % kindsMax], 'explore: an action of no kind')
  const rest = Math.floor(code / kindsMax)
  return { kind, node: rest % 4, argument: Math.floor(rest / 4) }
}

export const bookAt = 4
export const budgetAt = 5
/** Where messages begin in a state vector. */
export const flightAt = 6

/** The events that may still happen; submissions and reads already made, as bits. */
export interface Budget {
  readonly timeouts: number
  readonly crashes: number
  readonly duplicates: number
  readonly submitted: number
  readonly answered: number
  readonly read: number
  /** Renewals of leases, and times that a holder counts a lease as over. */
  readonly renewals: number
  readonly lapses: number
  /** Snapshots that are sent: one at most, since a vector has 32 bits for all of this. */
  readonly snapshots: number
  /** Data stores that are lost: one at most, for the same reason. */
  readonly losses: number
}

/** The budget of a scope before anything has happened. */
export function wholeBudget(scope: Scope): Budget {
  const { timeouts, crashes, duplicates, snapshots = 0, losses = 0 } = scope
  const { renewals = 0, lapses = 0 } = scope.leases ?? {}
  const made = { submitted: 0, answered: 0, read: 0 }
  return { timeouts, crashes, duplicates, ...made, renewals, lapses, snapshots, losses }
}

export function packBudget(budget: Budget): number {
  const { timeouts, crashes, duplicates, submitted, answered, read, renewals, lapses } = budget
  return (
    timeouts |
    (crashes << 4) |
    (duplicates << 7) |
    (budget.losses << 9) |
    (submitted << 10) |
    (answered << 15) |
    (read << 20) |
    (renewals << 25) |
    (lapses << 28) |
    (budget.snapshots << 31)
  )
}

/** The events that may still happen after the action. */
export function spend(before: Budget, { kind, argument }: Action): Budget {
  const { timeouts, crashes, duplicates, submitted, read, renewals, lapses } = before
  const less = (count: number, spender: ActionKind): number => count - (kind === spender ? 1 : 0)
  return {
    timeouts: less(timeouts, 'timer'),
    crashes: less(crashes, 'crash'),
    duplicates: less(duplicates, 'repeat'),
    submitted: submitted | (kind === 'submit' ? 1 << argument : 0),
    answered: before.answered,
    read: read | (kind === 'read' ? 1 << argument : 0),
    renewals: less(renewals, 'renew'),
    lapses: less(lapses, 'lapse'),
    snapshots: less(before.snapshots, 'snapshot'),
    losses: less(before.losses, 'lose'),
  }
}

/** Nodes may still restart this often, with their data store or without it. */
export function restartsLeft({ crashes, losses }: Budget): number {
  return crashes + losses
}

export function unpackBudget(packed: number): Budget {
  return {
    timeouts: packed & 15,
    crashes: (packed >> 4) & 7,
    duplicates: (packed >> 7) & 3,
    submitted: (packed >> 10) & 31,
    answered: (packed >> 15) & 31,
    read: (packed >> 20) & 31,
    renewals: (packed >> 25) & 7,
    lapses: (packed >> 28) & 7,
    snapshots: packed >>> 31,
    losses: (packed >> 9) & 1,
  }
}
