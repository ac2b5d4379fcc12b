/**
 * Whether a submission keeps the bounds of what one transaction may be. Checked where it enters, and
 * nowhere else: its caller hears of an excess from here alone.
 */
import { StoreError } from '../base/errors.ts'
import {
  keyBytesMax,
  rangeEndBytesMax,
  sessionCharsMax,
  submissionMutationsMax,
  transactionBytesMax,
  transactionMutationsMax,
  type Limits,
} from '../base/limits.ts'
import type { Transaction } from '../group/transaction.ts'
import type { Submission } from '../group/replica-port.ts'

/** As the log carries it; one shape for all. */
export function toTransaction({
  intent,
  attempt,
  allocations,
  mutations,
}: Submission): Transaction {
  const { session, sequence, floor, expiresAt } = intent
  return { session, sequence, attempt, floor, expiresAt, allocations, mutations }
}

/** The fault of a submission, or undefined. `bytes` is the transaction as it would be logged. */
export function findExcess(
  { group, intent, reads, ranges, allocations, mutations }: Submission,
  { length }: Uint8Array,
  { transactionReadsMax }: Limits,
): StoreError | undefined {
  const over = (
    what: string,
    limit: string,
    limitValue: number,
    actual: number,
  ): StoreError | undefined => {
    if (actual <= limitValue) return undefined
    const message = `${what} is too large: ${actual}, at most ${limitValue} (${limit})`
    return new StoreError('too-large', message, { group, limit, limitValue, actual })
  }
  const read = reads.length + ranges.length
  const written = mutations.length
  return (
    over('what a transaction reads', 'transactionReadsMax', transactionReadsMax, read) ??
    over('what a transaction writes', 'submissionMutationsMax', submissionMutationsMax, written) ??
    // Each is in the verdict, and its counter in the group's state for good.
    over(
      'what a transaction numbers',
      'transactionMutationsMax',
      transactionMutationsMax,
      allocations.length,
    ) ??
    over('a transaction', 'transactionBytesMax', transactionBytesMax, length) ??
    over('a key', 'keyBytesMax', keyBytesMax, longestKey(reads, mutations)) ??
    over('an end of a range', 'rangeEndBytesMax', rangeEndBytesMax, longestEnd(ranges)) ??
    over("a session's name", 'sessionCharsMax', sessionCharsMax, intent.session.length)
  )
}

function longestKey(
  reads: readonly Uint8Array[],
  mutations: readonly { readonly key: Uint8Array }[],
): number {
  let most = 0
  for (const { length } of reads) most = Math.max(most, length)
  for (const { key } of mutations) most = Math.max(most, key.length)
  return most
}

function longestEnd(ranges: Submission['ranges']): number {
  let most = 0
  for (const { gte, lt } of ranges) most = Math.max(most, gte.length, lt.length)
  return most
}
