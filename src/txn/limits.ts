/** Limits and delays of calls, intents and transactions, beside those of `base/limits.ts`. */
import { assert } from '../base/assert.ts'
import {
  defaultLimits,
  submissionMutationsMax,
  transactionBytesMax,
  transactionMutationsMax,
} from '../base/limits.ts'

/** Contents of one answer, together; a page ends before, a batch's later items are refused. */
export const answerBytesMax: number = 4 * 1024 * 1024
/** Rows asked for at once. */
export const pageRowsMax = 1000
/** The longest that a call may take. */
export const callTimeoutMsMax: number = 5 * 60 * 1000
/** An intent that has not taken effect this long after it was made never will, in log time. */
export const intentLifetimeMs: number = 10 * 60 * 1000
/**
 * Intents that claim to live longer are refused: groups would have to remember them, and the builder of an
 * index waits this long (IDX-6). The part above `intentLifetimeMs` is for clients whose clocks are ahead.
 */
export const intentLifetimeMsMax: number = 15 * 60 * 1000
/** Intents of a session that are settled and not to be forgotten, as one before them is open: then another begins. */
export const sessionHeldUpMax = 4_096
/**
 * But no sooner than this after the last one: groups remember a session left behind for `intentLifetimeMs`.
 */
export const sessionMsMin = 60_000

/** How often one call runs its function again after a conflict. */
export const rerunsMax = 20
/** The first wait before a rerun; doubled each time up to the maximum, and drawn below that. */
export const rerunDelayMs = 5
export const rerunDelayMaxMs = 500
/** From the first try to the last answer, when the caller names no other time. */
export const transactionTimeoutMs = 10_000

/** Bounds of one transaction; tests pass smaller ones. */
export interface TransactionLimits {
  /** Keys and values written, and keys read, in bytes. */
  readonly transactionBytesMax: number
  readonly transactionMutationsMax: number
  readonly submissionMutationsMax: number
  /** Keys and ranges read: all of them are sent and compared. */
  readonly transactionReadsMax: number
}

export const defaultTransactionLimits: TransactionLimits = {
  transactionBytesMax,
  transactionMutationsMax,
  submissionMutationsMax,
  transactionReadsMax: defaultLimits.transactionReadsMax,
}

assert(callTimeoutMsMax < intentLifetimeMs, 'limits: an intent ends before its call')
assert(
  2 * sessionHeldUpMax < defaultLimits.sessionOutcomesMax,
  'limits: a group is full before the session that fills it is held up',
)
