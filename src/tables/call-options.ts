/** The options of the calls of typed tables. */
import type { GivenTime } from '../base/given-time.ts'
import type { Position } from '../base/ids.ts'
import type { TransactionOptions } from '../txn/run.ts'
import type { GlobalOptions } from './global-read.ts'

/** Names a group by the key of its root row. */
export interface RootKey {
  readonly table: string
  readonly key: unknown
}

export interface TransactionCallOptions
  extends CallOptions, Pick<TransactionOptions, 'from' | 'intent' | 'rerunsMax'> {
  /**
   * A lock to be taken first, by its name: of those who change the same rows of a hot group, one at a
   * time. A caller that cannot have it goes on without.
   */
  readonly lock?: string
}

export interface CallOptions {
  readonly timeoutMs?: number
  /** Gives the call up: it rejects with `closed`, or `unknown-outcome` where it may have written. */
  readonly signal?: AbortSignal
  /** A position of the group that has been seen already: nothing before it is shown. */
  readonly atLeast?: Position
}

export interface GlobalIndexOptions extends GlobalOptions {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Of the index's groups and of the rows: the newest, or what the replica asked has. */
  readonly level?: 'current' | 'snapshot'
}

/**
 * 'current', 'snapshot', 'inconsistent', a moment of the past: a Date, or microseconds since 1970; or a bound of staleness in
 * milliseconds, from 100: all that was acknowledged longer ago is seen.
 */
export type ReadLevel =
  | 'current'
  | 'snapshot'
  | 'inconsistent'
  | { readonly at: GivenTime }
  | { readonly maxStalenessMs: number }
