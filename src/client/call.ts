/**
 * The state of one call over its tries, without any waiting in it. It decides what the client sends next,
 * what an answer changes, and which outcome the caller gets when time is up.
 *
 * A put is sent again under the same intents, cell by cell, until each has an outcome that is known. A try
 * that was lost, or whose node does not know, leaves its cells unsure: then only the cell itself tells what
 * became of it, and if it never does so the caller gets `unknown-outcome`, and nothing else (CELL-4).
 */
import { present } from '../base/assert.ts'
import type { StoreErrorCode } from '../base/errors.ts'
import type { Written } from '../cells/cell.ts'
import type { Answered, PutCells } from '../cells/operation.ts'
import { problem, type Outcome, type Problem } from '../base/problem.ts'
import type { CommitGroup } from '../txn/group-operation.ts'
import type { Intents } from '../txn/intents.ts'
import type { OpenIntents } from '../txn/session.ts'
import type { Operation, Replied, Reply } from '../wire/client/client-message.ts'

/** How a try ended. */
export type Try =
  | { readonly kind: 'answered'; readonly answered: Replied }
  /** It never left: nothing happened. */
  | { readonly kind: 'unsent' }
  /** Time-out, or the link broke: it may have been carried out. */
  | { readonly kind: 'lost'; readonly isLinkDown?: boolean }

export interface Sending {
  readonly operation: Operation
  readonly intents?: Intents
  /** Of a put: which of the call's items it brings, in their order. */
  readonly places?: readonly number[]
}

export interface Call {
  /** For the next try. */
  next(): Sending
  /**
   * True when the call is at its end. `sending`: what that try sent, which need not be the latest; absent
   * for one that sent nothing.
   */
  take(result: Try, sending?: Sending): boolean
  /** The result as it is known now; `why` stands where nothing is known. */
  finish(why: Problem): Replied
}

/** May the same request, or the same intent, be sent again after this? */
const retried: Readonly<Record<StoreErrorCode, boolean>> = {
  unavailable: true,
  'unknown-outcome': true,
  timeout: true,
  overloaded: true,
  contention: true,
  closed: true,
  immutable: false,
  'not-found': false,
  'already-exists': false,
  invalid: false,
  'schema-mismatch': false,
  'too-large': false,
  'snapshot-too-old': false,
  expired: false,
  corrupt: false,
  forbidden: false,
  internal: false,
}

/** A node whose own disk is damaged says so before it stops; the others have what it lost. */
export function isDamageOf(problem: Problem): boolean {
  return problem.code === 'corrupt' && problem.detail.store !== undefined
}

/** The node has too much to do, for this request or for any; when to come again, where it says so. */
export function findOverload(answer: Reply): Problem | undefined {
  if (answer.kind === 'problem') return isOverload(answer) ? answer.problem : undefined
  if (!('items' in answer)) return undefined
  const items: readonly Outcome<unknown>[] = answer.items
  const [first] = items
  if (first?.kind !== 'problem' || !items.every(isOverload)) return undefined
  return first.problem
}

function isOverload(outcome: Outcome<unknown>): boolean {
  return outcome.kind === 'problem' && outcome.problem.code === 'overloaded'
}

/** Every node says so, however well it works, until the index is built. */
export function isUnbuilt(problem: Problem): boolean {
  return problem.code === 'unavailable' && problem.detail.index !== undefined
}

export function mayBeRetried(problem: Problem): boolean {
  return (retried[problem.code] && !isUnbuilt(problem)) || isDamageOf(problem)
}

/**
 * An error of the node that answers, which it may have met after it had carried the request out. Nodes of
 * before there was `internal` say `corrupt`.
 */
export function isOwnError(problem: Problem): boolean {
  if (problem.code === 'internal') return true
  return problem.code === 'corrupt' && problem !== notAnAnswer && !isDamageOf(problem)
}

export const notAnAnswer: Problem = problem(
  'corrupt',
  'the node answered something else than was asked',
)

/** The operations that change nothing, or nothing more when they are sent again. */
export type ReadOperation = Exclude<Operation, PutCells | CommitGroup>

/** A read, or a question about the node: sent again as it is. */
export class ReadCall implements Call {
  readonly #operation: ReadOperation
  #last: Replied | undefined

  constructor(operation: ReadOperation) {
    this.#operation = operation
  }

  next(): Sending {
    return { operation: this.#operation }
  }

  take(result: Try): boolean {
    if (result.kind !== 'answered') return false
    const { answer, positions } = result.answered
    const fits = answer.kind === 'problem' || isAnswerTo(answer, this.#operation)
    this.#last = fits
      ? result.answered
      : { answer: { kind: 'problem', problem: notAnAnswer }, positions }
    return !isWorthAnotherTry(this.#last.answer)
  }

  finish(why: Problem): Replied {
    const last = this.#last
    if (last === undefined || isClosed(last.answer)) {
      return { answer: { kind: 'problem', problem: why }, positions: [] }
    }
    const answer = withoutClosed(last.answer)
    return answer === last.answer ? last : { ...last, answer }
  }
}

/** A node that stops is no reason of the caller's: to it, `closed` says that the client is. */
export function isClosed(answer: Reply | Outcome<unknown>): boolean {
  return answer.kind === 'problem' && answer.problem.code === 'closed'
}

/** The same of items: of several replica sets one may be stopping. */
function withoutClosed(answer: Reply): Reply {
  if (answer.kind === 'get' && answer.items.some(isClosed)) {
    return { kind: 'get', items: answer.items.map(unlessClosed) }
  }
  if (answer.kind === 'log' && answer.items.some(isClosed)) {
    return { kind: 'log', items: answer.items.map(unlessClosed) }
  }
  return answer
}

function unlessClosed<Value>(outcome: Outcome<Value>): Outcome<Value> {
  return isClosed(outcome) ? { kind: 'problem', problem: stopping } : outcome
}

const stopping: Problem = problem(
  'unavailable',
  'the nodes that were asked are stopping; try again',
)

function isAnswerTo(answer: Reply, sent: ReadOperation): boolean {
  const operation = sent.kind === 'pass-group' ? sent.operation : sent
  if (answer.kind !== operation.kind) return false
  if (answer.kind === 'read-group' && operation.kind === 'read-group') {
    const { keys, range } = operation
    const { rows, page } = answer
    const isFair = rows.length <= keys.length && (rows.length > 0 || keys.length === 0)
    return isFair && (page === undefined) === (range === undefined)
  }
  const hasItems = 'items' in answer && 'items' in operation
  return !hasItems || answer.items.length === operation.items.length
}

function isWorthAnotherTry(answer: Reply): boolean {
  switch (answer.kind) {
    case 'problem':
      return mayBeRetried(answer.problem)
    case 'get':
      return answer.items.some(isRetried)
    case 'log':
      // Cells of some shards are not held back by others that cannot be read.
      return answer.items.some(isRetried) && !answer.items.some(hasCells)
    default:
      return false
  }
}

function isRetried(outcome: Outcome<unknown>): boolean {
  return outcome.kind === 'problem' && mayBeRetried(outcome.problem)
}

function hasCells(outcome: Outcome<{ readonly cells: readonly unknown[] }>): boolean {
  return outcome.kind === 'ok' && outcome.value.cells.length > 0
}

const unknownOutcome: Problem = problem(
  'unknown-outcome',
  'it is not known whether the cell was written; read it, or put it again',
)

/** One cell of a put. */
interface Item {
  outcome: Outcome<Written> | undefined
  /** Some try of it may have been, or may yet be, carried out. */
  isUnsure: boolean
  /** A node has met an error of its own with it: no other one is to meet the same. */
  isGivenUp: boolean
  lastProblem: Problem | undefined
}

export class PutCall implements Call {
  readonly #operation: PutCells
  readonly #open: OpenIntents
  readonly #items: readonly Item[]
  readonly #positions: Answered['positions'][number][] = []

  constructor(operation: PutCells, open: OpenIntents) {
    this.#operation = operation
    this.#open = open
    this.#items = operation.items.map((): Item => ({
      outcome: undefined,
      isUnsure: false,
      isGivenUp: false,
      lastProblem: undefined,
    }))
  }

  next(): Sending {
    const places = [...this.#items.keys()].filter((place) => isOpen(this.#item(place)))
    const pick = <Value>(values: readonly Value[]): Value[] =>
      values.filter((_, place) => isOpen(this.#item(place)))
    const operation: PutCells = { ...this.#operation, items: pick(this.#operation.items) }
    return { operation, intents: this.#open.intents(pick(this.#open.sequences)), places }
  }

  #item(place: number): Item {
    return present(this.#items[place], 'client: an item has its place')
  }

  take(result: Try, sending?: Sending): boolean {
    if (result.kind === 'unsent') return false
    const places = present(sending?.places, 'client: what was sent of a put is known')
    const items = places.map((place) => this.#item(place))
    if (result.kind === 'lost') {
      for (const item of items) item.isUnsure = true
      return false
    }
    const { answer, positions } = result.answered
    this.#positions.push(...positions)
    if (answer.kind === 'problem') {
      for (const item of items) note(item, answer)
    } else if (answer.kind === 'put' && answer.items.length === items.length) {
      for (const [i, item] of items.entries()) {
        const outcome = answer.items[i]
        if (outcome !== undefined) note(item, outcome)
      }
    } else {
      for (const item of items) note(item, { kind: 'problem', problem: notAnAnswer })
    }
    return !this.#items.some(isOpen)
  }

  finish(why: Problem): Answered {
    const isKnown = this.#items.every((item) => item.outcome !== undefined || !item.isUnsure)
    this.#open.settle(isKnown)
    const items = this.#items.map((item): Outcome<Written> => {
      if (item.outcome !== undefined) return item.outcome
      if (item.isUnsure) return { kind: 'problem', problem: unknownOutcome }
      return { kind: 'problem', problem: item.lastProblem ?? why }
    })
    return { answer: { kind: 'put', items }, positions: this.#positions }
  }
}

function isOpen({ outcome, isGivenUp }: Item): boolean {
  return outcome === undefined && !isGivenUp
}

function note(item: Item, outcome: Outcome<Written>): void {
  // Another try has told it, the answer to which came before.
  if (item.outcome !== undefined) return
  if (outcome.kind === 'ok' || isFinal(item, outcome.problem)) {
    item.outcome = outcome
    return
  }
  const { problem: refused } = outcome
  if (refused.code !== 'closed') item.lastProblem = refused
  if (leavesUnsure(refused)) item.isUnsure = true
  if (isOwnError(refused)) item.isGivenUp = true
}

/**
 * Only the cell tells whether a node carried out an unsure put: it is there, or another one is in its place.
 * A node that refuses the put now, by its own clock say, tells nothing of the try before.
 */
function isFinal({ isUnsure }: Item, refused: Problem): boolean {
  if (mayBeRetried(refused) || saysNothing(refused)) return false
  return !isUnsure || refused.code === 'immutable'
}

function leavesUnsure(refused: Problem): boolean {
  const { code } = refused
  return code === 'unknown-outcome' || code === 'timeout' || saysNothing(refused)
}

/** Of what became of the item. */
function saysNothing({ code }: Problem): boolean {
  return code === 'corrupt' || code === 'internal'
}
