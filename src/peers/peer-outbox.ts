/**
 * What waits for one peer at the end of a turn, and how it is cut into frames: one is far below what a
 * receiver takes. A single message may be larger than the others of a frame together; the names of groups
 * that one renewal revokes are not weighed, and would have to be some ten thousand long ones to matter.
 */
import type { Verdict } from '../group/outcome.ts'
import type { Message } from '../replication/message.ts'

/** Bodies of one frame; above it a peer is supplied with nothing more in this turn. */
export const frameBodiesBytesMax: number = 8 * 1024 * 1024

/** What a message takes up beside its group and its bodies, about. */
const headBytes = 64
/** The same of an entry, a key, or a group that it names. */
const itemBytes = 32

export class PeerOutbox {
  #messages: Message[] = []
  #bytes = 0

  /** Whether it holds a frame's worth: what is not urgent may wait until it is asked for again. */
  get isFull(): boolean {
    return this.#bytes >= frameBodiesBytesMax
  }

  add(message: Message): void {
    this.#messages.push(message)
    this.#bytes += messageBytes(message)
  }

  /** Gives all of it as frames, in order; it is empty then. */
  take(): readonly (readonly Message[])[] {
    const messages = this.#messages
    const isOneFrame = this.#bytes <= frameBodiesBytesMax
    if (messages.length === 0) return []
    this.#messages = []
    this.#bytes = 0
    return isOneFrame ? [messages] : framesOf(messages)
  }
}

function framesOf(messages: readonly Message[]): Message[][] {
  const frames: Message[][] = []
  let frame: Message[] = []
  let bytes = 0
  for (const message of messages) {
    const more = messageBytes(message)
    if (frame.length > 0 && bytes + more > frameBodiesBytesMax) {
      frames.push(frame)
      frame = []
      bytes = 0
    }
    frame.push(message)
    bytes += more
  }
  return [...frames, frame]
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
    default:
      return 0
  }
}

function verdictBytes(verdict: Verdict): number {
  if (verdict.kind === 'committed') return itemBytes * verdict.sequences.length
  if (verdict.kind !== 'conflict') return 0
  return (verdict.key?.length ?? 0) + (verdict.by?.session.length ?? 0)
}

function sum<Item>(items: readonly Item[], bytesOf: (item: Item) => number): number {
  let bytes = itemBytes * items.length
  for (const item of items) bytes += bytesOf(item)
  return bytes
}
