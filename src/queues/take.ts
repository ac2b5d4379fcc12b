/**
 * Taking messages in a transaction: those that are due, in order, up to a batch. They count as read,
 * so that of two who take one message only one commits (QUE-2). A message that failed and is not to be
 * tried again yet holds up those of its sender behind it, and nobody else's (QUE-3).
 */
import { assert } from '../base/assert.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import { prefixRange, keyAfter } from '../txn/key-range.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import type { StoredRow } from '../txn/reads.ts'
import { batchBytesMax, lookedAtMax } from './bounds.ts'
import { decodeInbox, sentAtOf, type InboxMessage } from './message.ts'
import { atOncePrefix, delayedPrefix, dueOf, numberOf } from './names.ts'

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
  let [first, second] = await Promise.all([atOnce.next(), delayed.next()])
  const messages: Taken[] = []
  let bytes = 0
  while (messages.length < most) {
    first ??= await atOnce.next()
    second ??= await delayed.next()
    const isFirst = first !== undefined && (second === undefined || first.sentAt <= timeOf(second))
    const one = isFirst ? first : second
    if (one === undefined) break
    bytes += one.message.body.length
    if (bytes > batchBytesMax && messages.length > 0) break
    messages.push(one)
    if (isFirst) first = undefined
    else second = undefined
  }
  transaction.relyOn(messages.map(({ key }) => key))
  const isTakenOnce = new Set(messages.map(({ id }) => id)).size === messages.length
  assert(isTakenOnce, 'QUE-2: a transaction takes a message once')
  const later = [atOnce.nextAt, delayed.nextAt].filter((at) => at !== undefined)
  const nextAt = later.length === 0 ? undefined : Math.min(...later)
  const isCut = atOnce.isCut || delayed.isCut || first !== undefined || second !== undefined
  const isFull = messages.length === most || (isCut && messages.length > 0)
  const { position } = await transaction.view()
  return { messages, isFull, nextAt, position }
}

function timeOf({ due, sentAt }: Taken): Timestamp {
  return due ?? sentAt
}

/** What is due of one lane, one after another. */
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

  /** So many were looked at that the rest was not. */
  get isCut(): boolean {
    return !this.#isEnd && !this.#isLastPage && this.#looked >= lookedAtMax
  }

  async next(): Promise<Taken | undefined> {
    for (;;) {
      const row = await this.#row()
      if (row === undefined) return undefined
      const due = this.#isDelayed ? dueOf(row.key) : undefined
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
      return { id: numberOf(row.key), key: row.key, message, sentAt: sentAtOf(message, row), due }
    }
  }

  async #row(): Promise<StoredRow | undefined> {
    if (this.#at === this.#page.length && !this.#isLastPage && !this.#isEnd) await this.#turnPage()
    const row = this.#isEnd ? undefined : this.#page[this.#at]
    if (row !== undefined) this.#at += 1
    return row
  }

  /** Behind so many that are held up nobody looks: when these are tried again, it goes on. */
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
