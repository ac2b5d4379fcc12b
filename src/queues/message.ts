/** The rows that a message is on its way, and their bytes: MessagePack lists, a format first. */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { keyBytesMax } from '../base/limits.ts'
import { bytesOfGroup, groupOfBytes, type GroupId, type Timestamp } from '../base/ids.ts'
import { pack, unpack } from '../base/pack.ts'
import { isCount } from '../group/transaction.ts'
import type { StoredRow } from '../txn/reads.ts'
import { delayMsMax } from './limits.ts'
import { decodeNumber, outboxKey } from './names.ts'

const format = 1
const outboxKeyBytes = outboxKey().key.length
const delayMicrosMax = delayMsMax * 1000

/** On its way to another group, or to be delayed. */
export interface OutboxMessage {
  readonly queue: string
  readonly receiver: GroupId
  readonly body: Uint8Array
  readonly delayMicros: number
}

/** In the group that it was sent to. */
export interface InboxMessage {
  /** Undefined: the group itself. */
  readonly sender: GroupId | undefined
  /** The sender's number; 0 for one of the group itself that never was in an outbox. */
  readonly number: number
  /** Log time of the sender's commit; 0: that of the row. */
  readonly sentAt: Timestamp
  readonly body: Uint8Array
  /** How often its handler has failed. */
  readonly failures: number
  /** Not to be tried before, by the clock of who handles. */
  readonly notBefore: Timestamp
  /** How often it was dead, and brought back. */
  readonly redriven: number
}

export interface DeadMessage extends InboxMessage {
  /** The error that its handler failed with last. */
  readonly error: string
}

export function encodeOutbox({ queue, receiver, body, delayMicros }: OutboxMessage): Uint8Array {
  return pack([format, queue, bytesOfGroup(receiver), body, delayMicros])
}

/** Throws `corrupt` where it is none: rows are whatever clients write. */
export function decodeOutbox({
  key,
  value,
}: StoredRow): OutboxMessage & { readonly number: number } {
  const [queue, receiver, body, delayMicros] = unpackFields(value, 4)
  const isWhole =
    key.length === outboxKeyBytes &&
    typeof queue === 'string' &&
    body instanceof Uint8Array &&
    isCount(delayMicros) &&
    delayMicros <= delayMicrosMax
  if (!isWhole) throw unreadable()
  const number = decodeNumber(key)
  if (!isCount(number) || number === 0) throw unreadable()
  return { number, queue, receiver: groupFrom(receiver), body, delayMicros }
}

function groupFrom(bytes: unknown): GroupId {
  const isGroup = bytes instanceof Uint8Array && bytes.length > 0 && bytes.length <= keyBytesMax
  if (!isGroup) throw unreadable()
  return groupOfBytes(bytes)
}

export function encodeInbox(message: InboxMessage): Uint8Array {
  return pack([format, ...packInbox(message)])
}

export function encodeDead(message: DeadMessage): Uint8Array {
  return pack([format, ...packInbox(message), message.error])
}

function packInbox(message: InboxMessage): (Uint8Array | number | undefined)[] {
  const { sender, number, sentAt, body, failures, notBefore, redriven } = message
  const from = sender === undefined ? undefined : bytesOfGroup(sender)
  return [from, number, sentAt, body, failures, notBefore, redriven]
}

export function decodeInbox(value: Uint8Array): InboxMessage {
  return unpackInbox(unpackFields(value, 7))
}

export function decodeDead(value: Uint8Array): DeadMessage {
  const fields = unpackFields(value, 8)
  const error = fields[7]
  if (typeof error !== 'string') throw unreadable()
  return { ...unpackInbox(fields), error }
}

function unpackInbox(fields: readonly unknown[]): InboxMessage {
  const [from, number, sentAt, body, failures, notBefore, redriven] = fields
  const isOwn = from === null || from === undefined
  if (!(body instanceof Uint8Array)) throw unreadable()
  const isCounted = isCount(number) && isCount(sentAt) && isCount(failures) && isCount(notBefore)
  if (!isCounted || !isCount(redriven)) throw unreadable()
  const sender = isOwn ? undefined : groupFrom(from)
  return { sender, number, sentAt, body, failures, notBefore, redriven }
}

/** How far a sender's messages to a queue were received; the name is for an operator who looks. */
export function encodeHighest(number: number, sender: GroupId): Uint8Array {
  return pack([format, number, bytesOfGroup(sender)])
}

export function decodeHighest(value: Uint8Array): number {
  const [number] = unpackFields(value, 2)
  if (!isCount(number)) throw unreadable()
  return number
}

function unpackFields(value: Uint8Array, count: number): readonly unknown[] {
  const fields = unpack(value)
  if (!Array.isArray(fields)) throw unreadable()
  const [version, ...rest]: unknown[] = fields
  if (version === format && rest.length === count) return rest
  if (version === format) throw unreadable()
  const message = `a message is stored in format ${String(version)}, and this program knows ${format}; use a newer one`
  throw new StoreError('schema-mismatch', message)
}

function unreadable(): StoreError {
  return new StoreError('corrupt', 'what is stored as a message is none')
}

/** When the message was sent, by its row. */
export function readSentAt({ sentAt }: InboxMessage, row: StoredRow): Timestamp {
  if (sentAt > 0) return sentAt
  assert(row.timestamp !== undefined, 'queues: a message that is taken is stored')
  return row.timestamp
}
