/** The fate of a message whose handler failed: tried again later, or dead (QUE-6). */
import { assert } from '../base/assert.ts'
import type { Timestamp } from '../base/ids.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import type { HandleBounds } from './limits.ts'
import { decodeInbox, encodeDead, encodeInbox } from './message.ts'
import { deadKey } from './names.ts'
import type { Taken } from './take.ts'

export interface Failure {
  readonly queue: string
  readonly taken: Taken
  /** Of the wall clock. */
  readonly now: Timestamp
  /** In words, `errorCharsMax` of them at most. */
  readonly error: string
}

/** Resolves with what it is now; 'gone' when another handler had it meanwhile. */
export async function noteFailure(
  transaction: RawTransaction,
  { queue, taken, now, error }: Failure,
  bounds: Pick<HandleBounds, 'attemptsMax' | 'retryMs' | 'retryMaxMs'>,
): Promise<'waiting' | 'dead' | 'gone'> {
  const row = await transaction.get(taken.key)
  const message = row && decodeInbox(row.value)
  if (message === undefined || message.failures !== taken.message.failures) return 'gone'
  const failures = message.failures + 1
  const { sentAt } = taken
  if (failures < bounds.attemptsMax) {
    const delayMs = Math.min(bounds.retryMaxMs, bounds.retryMs * 2 ** (failures - 1))
    const notBefore = now + Math.ceil(delayMs * 1000)
    transaction.put(taken.key, encodeInbox({ ...message, sentAt, failures, notBefore }))
    return 'waiting'
  }
  assert(failures >= bounds.attemptsMax, 'QUE-6: a message is dead after all its attempts')
  const key = deadKey(queue, taken.id)
  assert((await transaction.get(key)) === undefined, 'QUE-6: a message dies once in its place')
  transaction.delete(taken.key)
  const dead = { ...message, sentAt, failures, notBefore: 0, error }
  transaction.put(key, encodeDead(dead))
  return 'dead'
}
