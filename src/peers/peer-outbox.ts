/**
 * Messages for one peer at the end of a turn, as frames (`base/frame-queue.ts`): one is far below the bound
 * of a receiver. The names of groups that one renewal revokes are not weighed, and would have to be some
 * ten thousand long ones to matter.
 */
import { FrameQueue } from '../base/frame-queue.ts'
import type { Verdict } from '../group/outcome.ts'
import type { Message, SealedGroup } from '../replication/message.ts'

/** Bodies of one frame; above it a peer is supplied with nothing more in this turn. */
const peerFrameBytesMax: number = 8 * 1024 * 1024

/** The bytes that a message takes up beside its group and its bodies, about. */
const headBytes = 64
/** The same of an entry, a key, or a group that it names. */
const itemBytes = 32

export class PeerOutbox {
  readonly #queue = new FrameQueue<Message>({
    bytesMax: peerFrameBytesMax,
    messagesMax: Number.POSITIVE_INFINITY,
  })

  /** Whether it holds a frame's worth: an answer that is not urgent may wait until the peer asks again. */
  get isFull(): boolean {
    return this.#queue.bytes >= peerFrameBytesMax
  }

  add(message: Message): void {
    this.#queue.add(message, messageBytes(message))
  }

  /** Gives all of it as frames, in order; it is empty then. */
  take(): readonly (readonly Message[])[] {
    const frames: (readonly Message[])[] = []
    while (!this.#queue.isEmpty) frames.push(this.#queue.takeFrame().messages)
    return frames
  }
}

/** About what it takes up in a frame. */
function messageBytes(message: Message): number {
  const own = 'group' in message ? headBytes + message.group.length : headBytes
  return own + bodyBytes(message)
}

function bodyBytes(message: Message): number {
  switch (message.kind) {
    case 'accept':
      return message.value.length
    case 'promised':
      return message.accepted?.value.length ?? 0
    case 'accepted':
      return itemBytes * message.holders.length
    case 'entries':
      return sum(message.entries, ({ value }) => value.length)
    case 'forward':
      return (
        message.transaction.length +
        sum(message.reads, ({ length }) => length) +
        sum(message.ranges, ({ gte, lt }) => gte.length + lt.length)
      )
    case 'forward-reply':
      return verdictBytes(message.verdict)
    case 'digest':
      return sum(message.groups, ([{ length }]) => length)
    case 'seal-page':
      return sum(message.groups, sealedBytes)
    default:
      return 0
  }
}

function sealedBytes({ group, open = [] }: SealedGroup): number {
  return group.length + sum(open, ({ value }) => value.length)
}

function verdictBytes(verdict: Verdict): number {
  if (verdict.kind === 'committed') return itemBytes * verdict.sequences.length
  if (verdict.kind !== 'conflict') return 0
  return (verdict.key?.length ?? 0) + (verdict.by?.session.length ?? 0)
}

function sum<Item>(items: readonly Item[], sizeInBytes: (item: Item) => number): number {
  let bytes = itemBytes * items.length
  for (const item of items) bytes += sizeInBytes(item)
  return bytes
}
