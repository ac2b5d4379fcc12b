/** Whether a submission keeps the bounds of what one transaction may be. Checked where it enters. */
import { StoreError } from '../base/errors.ts'
import {
  keyBytesMax,
  rangeEndBytesMax,
  sessionCharsMax,
  transactionBytesMax,
  type Limits,
} from '../base/limits.ts'
import type { Submission } from './local-replica.ts'

/** What is wrong with it, or undefined. `bytes` is the transaction as it would be logged. */
export function excessOf(
  submission: Submission,
  bytes: Uint8Array,
  limits: Limits,
): StoreError | undefined {
  const { group, intent, reads, ranges = [] } = submission
  const tooLarge = (what: string): StoreError => new StoreError('too-large', what, { group })
  const { transactionReadsMax } = limits
  if (reads.length + ranges.length > transactionReadsMax) {
    return tooLarge(`a transaction reads ${transactionReadsMax} keys and ranges at most`)
  }
  if (bytes.length > transactionBytesMax) {
    return tooLarge(`a transaction has ${transactionBytesMax} bytes at most`)
  }
  if (reads.some((key) => key.length > keyBytesMax)) {
    return tooLarge(`a key has ${keyBytesMax} bytes at most`)
  }
  const isLong = (end: Uint8Array): boolean => end.length > rangeEndBytesMax
  if (ranges.some(({ gte, lt }) => isLong(gte) || isLong(lt))) {
    return tooLarge(`an end of a range has ${rangeEndBytesMax} bytes at most`)
  }
  if (intent.session.length > sessionCharsMax) {
    return tooLarge(`a session's name has ${sessionCharsMax} characters at most`)
  }
  return undefined
}
