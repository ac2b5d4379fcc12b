/**
 * A StoreError as plain data: what one item of a batch, or a whole request, came to instead of a
 * result. Sent over the wire and made an error again at the other end.
 */
import { isStoreErrorCode, StoreError } from './errors.ts'
import type { StoreErrorCode, StoreErrorDetail } from './errors.ts'

export interface Problem {
  readonly code: StoreErrorCode
  readonly message: string
  readonly detail: StoreErrorDetail
}

/** One item's result, or why there is none. */
export type Outcome<Value> =
  | { readonly kind: 'ok'; readonly value: Value }
  | { readonly kind: 'problem'; readonly problem: Problem }

export function toProblem(error: StoreError): Problem {
  const { code, message, detail } = error
  return { code, message, detail }
}

export function toStoreError(problem: Problem): StoreError {
  return new StoreError(problem.code, problem.message, problem.detail)
}

export function problem(
  code: StoreErrorCode,
  message: string,
  detail: StoreErrorDetail = {},
): Problem {
  return { code, message, detail }
}

/** `work`'s result, or the StoreError it threw as a problem; anything else it throws is a bug. */
export async function captureOutcome<Value>(work: () => Promise<Value>): Promise<Outcome<Value>> {
  try {
    return { kind: 'ok', value: await work() }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return { kind: 'problem', problem: toProblem(error) }
  }
}

/** The same of work that is done in this call. */
export function outcomeNow<Value>(work: () => Value): Outcome<Value> {
  try {
    return { kind: 'ok', value: work() }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return { kind: 'problem', problem: toProblem(error) }
  }
}

/** The value, or the problem thrown as the error it stands for. */
export function unwrapOutcome<Value>(outcome: Outcome<Value>): Value {
  if (outcome.kind === 'ok') return outcome.value
  throw toStoreError(outcome.problem)
}

/** Earlier builds have one word for both; in frames and rows it stands for either, with a mark. */
const sharedWord = 'conflict'

/** The word of a code in frames and rows, which earlier builds of the same protocol read as well. */
export function wordOfCode(code: StoreErrorCode): string {
  return isOfSharedWord(code) ? sharedWord : code
}

/** Tells the two codes of one word apart. Earlier builds pass over it. */
export function markOfCode(code: StoreErrorCode): string | undefined {
  return isOfSharedWord(code) ? code : undefined
}

/** The code that a word stands for; undefined for a word that is none. An earlier build gives no mark. */
export function codeOfWord(word: unknown, mark?: unknown): StoreErrorCode | undefined {
  if (word === sharedWord) return mark === 'contention' ? mark : 'immutable'
  return typeof word === 'string' && isStoreErrorCode(word) ? word : undefined
}

function isOfSharedWord(code: StoreErrorCode): boolean {
  return code === 'contention' || code === 'immutable'
}
