/**
 * The one closed list of error codes. Only public edges throw; protocol code returns outcomes.
 */
import type { GroupId, Timestamp } from './ids.ts'

/**
 * The meaning of an error, which decides what a caller can do. The CLI and HTTP map each to a code of theirs.
 */
export type StoreErrorCode =
  /** A transaction lost against other writers in each of its runs, and did nothing. */
  | 'contention'
  /** A cell or key that is written once has other content, or was purged. */
  | 'immutable'
  | 'unavailable'
  | 'unknown-outcome'
  | 'timeout'
  | 'not-found'
  | 'already-exists'
  | 'invalid'
  | 'schema-mismatch'
  | 'too-large'
  | 'overloaded'
  | 'snapshot-too-old'
  | 'expired'
  | 'closed'
  | 'corrupt'
  | 'forbidden'
  | 'internal'

/** May the same request be sent again: at once, after asking what became of it, or not at all. */
export type Retry = 'safe' | 'check-first' | 'never'

export const retryByCode: Readonly<Record<StoreErrorCode, Retry>> = {
  contention: 'safe',
  immutable: 'never',
  unavailable: 'safe',
  'unknown-outcome': 'check-first',
  timeout: 'check-first',
  'not-found': 'never',
  'already-exists': 'never',
  invalid: 'never',
  'schema-mismatch': 'never',
  'too-large': 'never',
  overloaded: 'safe',
  'snapshot-too-old': 'never',
  expired: 'never',
  closed: 'never',
  corrupt: 'never',
  forbidden: 'never',
  internal: 'check-first',
}

/** The states of an index in which it is not asked (`../indexes/state.ts`). */
export const unreadyIndexes = ['declared', 'known', 'building', 'dropping'] as const
export type UnreadyIndex = (typeof unreadyIndexes)[number]
/**
 * The same over HTTP, where one process answers for itself: one that says `closed` has done nothing, and another one, or
 * this one when it runs again, takes the same request.
 */
export const retryOverHttp: Readonly<Record<StoreErrorCode, Retry>> = {
  ...retryByCode,
  closed: 'safe',
}

/** Facts besides the code. All of them are plain data and may be sent over a wire. */
export interface StoreErrorDetail {
  /** The entity group concerned. */
  readonly group?: GroupId
  /** The limit that was hit, by its name in `limits.ts`, its value and the given value. */
  readonly limit?: string
  readonly limitValue?: number
  readonly actual?: number
  /** Which store of a node is damaged: the log, or what is derived from it. */
  readonly store?: 'log' | 'data'
  /** The state of the index of the query: no node has an answer before an operator has built it. */
  readonly index?: UnreadyIndex
  /** Of `overloaded`: asked sooner than this it would be refused again, as it seems. */
  readonly retryAfterMs?: number
  /** How often it was tried before this was said. */
  readonly attempts?: number
  /** The intent of a transaction whose outcome is not known; `groups.outcome` finds the outcome by it. */
  readonly intent?: {
    readonly session: string
    readonly sequence: number
    readonly expiresAt: Timestamp
  }
}

/** The only error that public promises reject with. `message` says what to do. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: StoreErrorCode
  readonly retry: Retry
  readonly detail: StoreErrorDetail

  constructor(
    code: StoreErrorCode,
    message: string,
    detail: StoreErrorDetail = {},
    options?: { readonly cause?: unknown },
  ) {
    super(message, options)
    this.code = code
    this.retry = retryByCode[code]
    this.detail = detail
  }
}

export function isStoreErrorCode(text: string): text is StoreErrorCode {
  return Object.hasOwn(retryByCode, text)
}
