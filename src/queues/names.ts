/**
 * Names of queues, and the keys of their rows. All but the highest numbers are under a topic on the
 * worklist of their group.
 */
import { assert } from '../base/assert.ts'
import { worklistPrefix } from '../group/worklist-key.ts'
import { readCount, sha256, writeCount } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import { bytesOfGroup, type GroupId, type Timestamp } from '../base/ids.ts'
import { encodeTuple } from '../base/tuple.ts'
import { wordsFor } from '../base/words.ts'
import { queueNameCharsMax } from './limits.ts'

export const outboxTopic = 'outbox'
const queueTopicStart = 'queue/'
const deadTopicStart = 'dead/'

/** Counters of a group that numbers are drawn from. Those of tables are below 2^16. */
export const outboxCounter: number = 0x1_0001
export const inboxCounter: number = 0x1_0002

const namePattern = /^[A-Za-z0-9_.-]+$/
const countBytes = 8
/** Behind the topic of an inbox: due at once, or by when it is due. */
const atOnceLane = 0
const delayedLane = 1
const highestByte = 0xfe

export function checkQueueName(name: string): string {
  const isText = typeof name === 'string'
  if (isText && namePattern.test(name) && name.length <= queueNameCharsMax) return name
  const message = `${wordsFor(name)} is no name of a queue; it is 1 to ${queueNameCharsMax} of A-Z a-z 0-9 _ . -`
  throw new StoreError('invalid', message)
}

export function queueTopic(queue: string): string {
  return queueTopicStart + checkQueueName(queue)
}

export function deadTopic(queue: string): string {
  return deadTopicStart + checkQueueName(queue)
}

/** The content of a topic: a queue's messages, or its dead letters; undefined for any other. */
export function queueOfTopic(
  topic: string,
): { readonly queue: string; readonly isDead: boolean } | undefined {
  for (const start of [queueTopicStart, deadTopicStart]) {
    if (!topic.startsWith(start)) continue
    return { queue: topic.slice(start.length), isDead: start === deadTopicStart }
  }
  return undefined
}

/** A key with room for the number that is drawn at commit, and where that is. */
export interface NumberedKey {
  readonly key: Uint8Array
  readonly offset: number
}

export function outboxKey(): NumberedKey {
  return numbered(worklistPrefix(outboxTopic))
}

/** `due`: of a message that is delayed. */
export function inboxKey(queue: string, due?: Timestamp): NumberedKey {
  const lane = lanePrefix(queue, due === undefined ? atOnceLane : delayedLane)
  return numbered(due === undefined ? lane : Buffer.concat([lane, encodeCount(due)]))
}

/** The keys of the messages that are due at once, or of those that are delayed, open so. */
export function atOncePrefix(queue: string): Uint8Array {
  return lanePrefix(queue, atOnceLane)
}

export function delayedPrefix(queue: string): Uint8Array {
  return lanePrefix(queue, delayedLane)
}

/** A dead letter keeps the number that it had in the inbox. */
export function deadKey(queue: string, id: number): Uint8Array {
  return Buffer.concat([worklistPrefix(deadTopic(queue)), encodeCount(id)])
}

/** The number that ends a key. */
export function decodeNumber(key: Uint8Array): number {
  assert(key.length > countBytes, 'queues: a key ends with a number')
  return readCount(Buffer.from(key), key.length - countBytes)
}

/** When the message of a key in the delayed lane is due. */
export function decodeDue(key: Uint8Array): Timestamp {
  assert(key.length > 2 * countBytes, 'queues: a delayed message has two numbers in its key')
  return readCount(Buffer.from(key), key.length - 2 * countBytes)
}

/** Where a group has how far it has received a sender's messages to a queue. */
export function highestKey(sender: GroupId, queue: string): Uint8Array {
  // A sender's name may be as long as a key.
  const named = encodeTuple([sha256(bytesOfGroup(sender)), queue])
  return Buffer.concat([Uint8Array.of(highestByte), named])
}

function lanePrefix(queue: string, lane: number): Uint8Array {
  return Buffer.concat([worklistPrefix(queueTopic(queue)), Uint8Array.of(lane)])
}

function numbered(prefix: Uint8Array): NumberedKey {
  return { key: Buffer.concat([prefix, encodeCount(0)]), offset: prefix.length }
}

function encodeCount(value: number): Uint8Array {
  const bytes = Buffer.alloc(countBytes)
  writeCount(bytes, value, 0)
  return bytes
}
