/** Sending: rows of the transaction that sends, so that they are there iff it takes effect (QUE-1). */
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import { keyBytesMax } from '../base/limits.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { delayMsMax, messageBytesMax, sentMessagesMax } from './limits.ts'
import { encodeInbox, encodeOutbox, type InboxMessage } from './message.ts'
import {
  checkQueueName,
  inboxCounter,
  inboxKey,
  outboxCounter,
  outboxKey,
  type NumberedKey,
} from './names.ts'

export interface SendOptions {
  /** Handlers take it no sooner than this after the commit. */
  readonly delayMs?: number
}

/** The messages that a transaction sends. */
export class Sender {
  readonly #transaction: RawTransaction
  #sent = 0

  constructor(transaction: RawTransaction) {
    this.#transaction = transaction
  }

  /** Messages of a group to one queue of another are handled in the order of these calls. */
  send(
    queue: string,
    receiver: GroupId,
    body: Uint8Array,
    { delayMs = 0 }: SendOptions = {},
  ): void {
    checkQueueName(queue)
    checkReceiver(receiver)
    checkDelay(delayMs)
    checkBody(body)
    this.#count()
    if (receiver === this.#transaction.group && delayMs === 0) {
      return putNew(this.#transaction, queue, { ...nothingBefore, body })
    }
    const delayMicros = Math.ceil(delayMs * 1000)
    const value = encodeOutbox({ queue, receiver, body, delayMicros })
    putNumbered(this.#transaction, outboxKey(), outboxCounter, value)
  }

  #count(): void {
    this.#sent += 1
    if (this.#sent <= sentMessagesMax) return
    const detail = { limit: 'sentMessagesMax', limitValue: sentMessagesMax, actual: this.#sent }
    const message = `this transaction sends too many messages; sentMessagesMax is ${sentMessagesMax}: send them in several`
    throw new StoreError('too-large', message, detail)
  }
}

/** Of the group itself, fresh. */
const nothingBefore = {
  sender: undefined,
  number: 0,
  sentAt: 0,
  failures: 0,
  notBefore: 0,
  redriven: 0,
}

/** At the end of its lane of the inbox. */
export function putNew(
  transaction: RawTransaction,
  queue: string,
  message: InboxMessage,
  due?: number,
): void {
  putNumbered(transaction, inboxKey(queue, due), inboxCounter, encodeInbox(message))
}

function putNumbered(
  transaction: RawTransaction,
  { key, offset }: NumberedKey,
  counter: number,
  value: Uint8Array,
): void {
  const allocation = transaction.allocate(counter)
  transaction.put(key, value, [{ allocation, at: 'key', offset }])
}

function checkReceiver(receiver: GroupId): void {
  if (receiver.length >= 1 && receiver.length <= keyBytesMax) return
  const message = `a message is sent to a group, whose name is from 1 to ${keyBytesMax} bytes`
  throw new StoreError('invalid', message)
}

function checkDelay(delayMs: number): void {
  if (delayMs >= 0 && delayMs <= delayMsMax) return
  const message = `delayMs is ${delayMs}; a message is delayed by 0 to ${delayMsMax} milliseconds`
  throw new StoreError('invalid', message, { limit: 'delayMsMax', limitValue: delayMsMax })
}

function checkBody({ length: actual }: Uint8Array): void {
  if (actual <= messageBytesMax) return
  const message = `a message of ${actual} bytes is too large; messageBytesMax is ${messageBytesMax}: put it into a row, and send its key`
  const detail = { limit: 'messageBytesMax', limitValue: messageBytesMax, actual }
  throw new StoreError('too-large', message, detail)
}
