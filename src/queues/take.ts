/**
 * Taking messages in a transaction: those that are due, in order, up to a batch. They count as read,
 * so that of two who take one message only one commits (QUE-2). A message that failed and is not to be
 * tried again yet holds up those of its sender behind it, and no other sender's (QUE-3).
 */
import { assert } from '../base/assert.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import { prefixRange, keyAfter } from '../txn/key-range.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import type { StoredRow } from '../txn/reads.ts'
import { batchBytesMax, lookedAtMax } from './limits.ts'
import { decodeInbox, readSentAt, type InboxMessage } from './message.ts'
import { atOncePrefix, delayedPrefix, decodeDue, decodeNumber } from './names.ts'

export interface Taken {
  /** Names the message among those of its group. */
  readonly id: number
  readonly key: Uint8Array
  readonly message: InboxMessage
  readonly sentAt: Timestamp
  /** Of one that was delayed. */
  readonly due: Timestamp | undefined
}

export interface Batch {
  readonly messages: readonly Taken[]
  /** There may be more that are due. */
  readonly isFull: boolean
  /** When the next one falls due, of those that were looked at. */
  readonly nextAt: Timestamp | undefined
  /** Of the view in which they were found. */
  readonly position: Position
}

/** `now`: of the wall clock. */
export async function take(
  transaction: RawTransaction,
  queue: string,
  now: Timestamp,
  most: number,
): Promise<Batch> {
  const atOnce = new Lane(transaction, atOncePrefix(queue), now, most, false)
  const delayed = new Lane(transaction, delayedPrefix(queue), now, most, true)
  await Promise.all([atOnce.fill(), delayed.fill()])
  const messages = await takeFrom(atOnce, delayed, most)
  transaction.relyOn(messages.map(({ key }) => key))
  const isTakenOnce = new Set(messages.map(({ id }) => id)).size === messages.length
  assert(isTakenOnce, 'QUE-2: a transaction takes a message once')
  assert(
    messages.every(({ due = now }) => due <= now),
    'QUE-7: a message is taken before its delay is over',
  )
  const later = [atOnce.nextAt, delayed.nextAt].filter((at) => at !== undefined)
  const nextAt = later.length === 0 ? undefined : Math.min(...later)
  const isCut = messages.length > 0 && (atOnce.isCut || delayed.isCut)
  const { position } = await transaction.view()
  return { messages, isFull: isCut || messages.length === most, nextAt, position }
}

async function takeFrom(atOnce: Lane, delayed: Lane, most: number): Promise<readonly Taken[]> {
  const messages: Taken[] = []
  for (let bytes = 0; messages.length < most;) {
    const lane = earlier(atOnce, delayed)
    const one = lane.head
    if (one === undefined) return messages
    bytes += one.message.body.length
    if (bytes > batchBytesMax && messages.length > 0) return messages
    messages.push(one)
    lane.pop()
    if (messages.length < most) await lane.fill()
  }
  return messages
}

function earlier(atOnce: Lane, delayed: Lane): Lane {
  if (delayed.head === undefined) return atOnce
  if (atOnce.head === undefined) return delayed
  const { due, sentAt } = delayed.head
  return atOnce.head.sentAt <= (due ?? sentAt) ? atOnce : delayed
}

/** The due messages of one lane, one after another. */
class Lane {
  readonly #transaction: RawTransaction
  readonly #now: Timestamp
  readonly #pageRows: number
  readonly #isDelayed: boolean
  readonly #end: Uint8Array
  #from: Uint8Array
  #page: readonly StoredRow[] = []
  #at = 0
  #looked = 0
  #head: Taken | undefined
  #isLastPage = false
  #isEnd = false
  readonly #heldUp = new Set<GroupId | undefined>()
  /** Of each sender, the last number that was not brought back from the dead. */
  readonly #lasts = new Map<GroupId | undefined, number>()
  #nextAt: Timestamp | undefined

  constructor(
    transaction: RawTransaction,
    prefix: Uint8Array,
    now: Timestamp,
    pageRows: number,
    isDelayed: boolean,
  ) {
    const { gte, lt } = prefixRange(prefix)
    this.#transaction = transaction
    this.#from = gte
    this.#end = lt
    this.#now = now
    this.#pageRows = pageRows
    this.#isDelayed = isDelayed
  }

  get nextAt(): Timestamp | undefined {
    return this.#nextAt
  }

  /** The next one to be taken, once it was looked for. */
  get head(): Taken | undefined {
    return this.#head
  }

  pop(): void {
    this.#head = undefined
  }

  async fill(): Promise<void> {
    this.#head ??= await this.#next()
  }

  /** There is more, or the look reached its bound before the end. */
  get isCut(): boolean {
    if (this.#head !== undefined) return true
    return !this.#isEnd && !this.#isLastPage && this.#looked >= lookedAtMax
  }

  async #next(): Promise<Taken | undefined> {
    for (;;) {
      const row = await this.#row()
      if (row === undefined) return undefined
      const due = this.#isDelayed ? decodeDue(row.key) : undefined
      if (due !== undefined && due > this.#now) {
        this.#wake(due)
        this.#isEnd = true
        return undefined
      }
      const message = decodeInbox(row.value)
      const { sender, notBefore } = message
      if (this.#heldUp.has(sender)) continue
      if (notBefore > this.#now) {
        this.#heldUp.add(sender)
        this.#wake(notBefore)
        continue
      }
      if (!this.#isDelayed) this.#checkOrder(message)
      return {
        id: decodeNumber(row.key),
        key: row.key,
        message,
        sentAt: readSentAt(message, row),
        due,
      }
    }
  }

  async #row(): Promise<StoredRow | undefined> {
    if (this.#at === this.#page.length && !this.#isLastPage && !this.#isEnd) await this.#turnPage()
    const row = this.#isEnd ? undefined : this.#page[this.#at]
    if (row !== undefined) this.#at += 1
    return row
  }

  /**
   * Stops looking behind `lookedAtMax` messages that are held up: it goes on when these are tried
   * again.
   */
  async #turnPage(): Promise<void> {
    if (this.#looked >= lookedAtMax) return
    const range = { gte: this.#from, lt: this.#end, limit: this.#pageRows }
    const { rows, isWhole } = await this.#transaction.peek(range)
    const last = rows.at(-1)
    if (last !== undefined) this.#from = keyAfter(last.key)
    this.#isLastPage = isWhole
    this.#looked += rows.length
    this.#page = rows
    this.#at = 0
  }

  #checkOrder({ sender, number, redriven }: InboxMessage): void {
    if (redriven > 0 || number === 0) return
    const last = this.#lasts.get(sender) ?? 0
    assert(number > last, "QUE-3: a sender's messages are taken in the order of their numbers")
    this.#lasts.set(sender, number)
  }

  #wake(at: Timestamp): void {
    this.#nextAt = Math.min(this.#nextAt ?? at, at)
  }
}
