/**
 * Keys of a group's worklist: rows that a worker has to act on, and then take away (messages on their
 * way, entries of an index elsewhere). Each is under a topic, and every node lists the groups that
 * have rows under it (`store/worklist-index.ts`), so that who serves a topic need not know the groups.
 *
 *   ff <topic, as a tuple> <what the topic's owner puts there>
 *
 * No table's number and no tuple begins with ff.
 */
import { assert } from '../base/assert.ts'
import { fromLatin1 } from '../base/bytes.ts'
import { afterPrefix, decodeTuple, encodeTuple, isWholeText } from '../base/tuple.ts'

export const topicBytesMax = 256
const worklistByte = 0xff
const worklistText = '\u00ff'
/** A tuple of one text ends so; inside, 00 is followed by ff. */
const endOfTopic = '\u0000\u0001'

/** The keys of all rows on a worklist begin so. */
export const worklistStart: Uint8Array = Uint8Array.of(worklistByte)

/** Whether a topic may have this name. */
export function isTopic(name: string): boolean {
  if (name.length === 0 || name.length > topicBytesMax || !isWholeText(name)) return false
  return encodeTuple([name]).length <= topicBytesMax
}

/** Opens the keys of all rows under a topic. */
export function worklistPrefix(topic: string): Uint8Array {
  assert(topic.length >= 1, 'worklist: a topic has a name')
  const named = encodeTuple([topic])
  assert(named.length <= topicBytesMax, 'worklist: the name of a topic is too long')
  return Buffer.concat([Uint8Array.of(worklistByte), named])
}

/** The first key beyond all rows under the topic. */
export function afterWorklist(topic: string): Uint8Array {
  const end = afterPrefix(worklistPrefix(topic))
  assert(end !== undefined, 'worklist: something comes after every topic')
  return end
}

/** The name of the topic that has this prefix, as latin1; undefined where none has. */
export function decodeTopic(prefix: string): string | undefined {
  const [topic] = decodeTuple(fromLatin1(prefix.slice(1))) ?? []
  return typeof topic === 'string' && isTopic(topic) ? topic : undefined
}

/**
 * The topic's prefix of a row's key, both as latin1; undefined when the row is on no worklist. Keys are
 * whatever clients write: there may be no topic that has this prefix, and then no worker serves the row.
 */
export function findTopicText(key: string): string | undefined {
  if (!key.startsWith(worklistText)) return undefined
  const end = key.indexOf(endOfTopic)
  return end < 0 ? undefined : key.slice(0, end + endOfTopic.length)
}
