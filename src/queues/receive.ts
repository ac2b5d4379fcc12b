/**
 * Receives the messages of one sender in a group, in one transaction: each message that was not received
 * before goes into its inbox, and with it how far the sender's messages were received (QUE-2).
 */
import { assert } from '../base/assert.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { decodeHighest, encodeHighest, type OutboxMessage } from './message.ts'
import { highestKey } from './names.ts'
import { putNew } from './send.ts'

/** A message as it is read from an outbox. */
export interface Delivered extends OutboxMessage {
  readonly number: number
  /** Log time of the commit that sent it. */
  readonly sentAt: Timestamp
}

/** All of one sender, by rising numbers. Resolves with how many are new. */
export async function receive(
  transaction: RawTransaction,
  sender: GroupId,
  messages: readonly Delivered[],
): Promise<number> {
  const queues = [...new Set(messages.map(({ queue }) => queue))]
  const keys = queues.map((queue) => highestKey(sender, queue))
  const rows = await transaction.getMany(keys)
  let count = 0
  for (const [index, queue] of queues.entries()) {
    const key = keys[index]
    assert(key !== undefined, 'QUE-2: each queue has its own highest number')
    const row = rows[index]
    const before = row === undefined ? 0 : decodeHighest(row.value)
    const own = messages.filter((one) => one.queue === queue)
    const fresh = own.filter(({ number }) => number > before)
    if (fresh.length === 0) continue
    putAll(transaction, sender, fresh)
    const highest = fresh.at(-1)?.number ?? before
    assert(highest > before, 'QUE-2: what was received only rises')
    transaction.put(key, encodeHighest(highest, sender))
    count += fresh.length
  }
  return count
}

function putAll(
  transaction: RawTransaction,
  sender: GroupId,
  messages: readonly Delivered[],
): void {
  let last = 0
  for (const { queue, number, sentAt, body, delayMicros } of messages) {
    assert(number > last, 'QUE-3: messages are received in the order of their numbers')
    last = number
    const never = { failures: 0, notBefore: 0, redriven: 0 }
    const from = sender === transaction.group ? undefined : sender
    const due = delayMicros === 0 ? undefined : sentAt + delayMicros
    putNew(transaction, queue, { number, sentAt, body, sender: from, ...never }, due)
  }
}
