/**
 * Messages from group to group against the logs: each transaction that takes effect says in rows of
 * its own its sent, handled and dead messages, in plain text, so no code under test takes part.
 *
 * QUE-1  A message is handled in the group and queue that it was sent to, by a transaction that
 *        took effect.
 * QUE-2  It is handled once, or dead, and the handled ones add up.
 * QUE-3  Those of one sender to one queue of one group, equally delayed, are handled in their
 *        order.
 * QUE-4  Once sessions stop, all are handled, and nothing is left on any worklist.
 * QUE-6  It is dead only when its handler has failed often enough, since it was brought back if it
 *        was dead before.
 * QUE-7  It is handled no sooner than its delay after the commit that sent it.
 */
import { decodeTopic, findTopicText } from '../../src/group/worklist-key.ts'
import { latin1 } from '../../src/base/bytes.ts'
import type { Mutation } from '../../src/group/transaction.ts'
import type { Coverage } from '../coverage.ts'
import type { LogModel, ModelEffect } from './log-model.ts'
import type { Referee } from './referee.ts'

/** A message that a session is about to send. */
export interface SentMessage {
  /** Unlike that of any other; it is the message's body, and says what its handler is to do. */
  readonly name: string
  readonly receiver: string
  readonly queue: string
  readonly delayMs: number
}

/** The form of a message's name in the bytes of a row. */
export const messageName: RegExp = /m:[a-z0-9-]+\.\d+\.\d+\/\d+:(?:plain|poison|shaky)/
/** Keys of the rows that list a transaction's messages. */
export const sentMark = 'sent/'
export const handledMark = 'handled/'
export const totalKey = 'total'

interface Known extends SentMessage {
  readonly stream: Known[]
  readonly sender: string
  /** Of the commit that sent it. */
  readonly sentAt: number
  handled: number
  /** Times that it died. */
  deaths: number
}

export class QueueChecker {
  readonly #referee: Referee
  readonly #coverage: Coverage
  readonly #attemptsMax: number
  readonly #groups = new Set<string>()
  /** The messages of each run of each sending operation. */
  readonly #runs = new Map<string, readonly SentMessage[]>()
  readonly #messages = new Map<string, Known>()
  readonly #streams = new Map<string, Known[]>()
  readonly #totals = new Map<string, number>()
  readonly #failures = new Map<string, number>()
  #open = 0

  constructor(referee: Referee, coverage: Coverage, attemptsMax: number) {
    this.#referee = referee
    this.#coverage = coverage
    this.#attemptsMax = attemptsMax
  }

  onGroup(group: string): void {
    this.#groups.add(group)
  }

  /** Messages that were sent, and are neither handled nor dead. */
  get open(): number {
    return this.#open
  }

  get sent(): number {
    return this.#messages.size
  }

  /** Every message was handled: also those that were dead. */
  get isAllHandled(): boolean {
    return [...this.#messages.values()].every(({ handled }) => handled > 0)
  }

  /** A run of a sending operation was made, and may be committed. */
  onRun(operation: string, run: number, messages: readonly SentMessage[]): void {
    this.#runs.set(`${operation} ${run}`, messages)
  }

  /** A handler was called with the message, and threw. */
  onThrown(name: string): void {
    this.#failures.set(name, (this.#failures.get(name) ?? 0) + 1)
  }

  /** A handler is called with the message; `now`: of its process's wall clock. */
  onCalled(name: string, now: number): void {
    const known = this.#messages.get(name)
    if (known === undefined || known.delayMs === 0 || known.deaths > 0) return
    const due = known.sentAt + known.delayMs * 1_000
    const sentence = 'A message is handled before its delay is over.'
    this.#check(now >= due, 'QUE-7', sentence, { name, now, due })
    const isOwn = known.sender === known.receiver
    this.#coverage.count(isOwn ? 'queues: own delayed called' : 'queues: delayed called')
  }

  onEffect({ group, position, timestamp, transaction }: ModelEffect): void {
    if (!this.#groups.has(group)) return
    const where = { group, position }
    let handledCount = 0
    let total: number | undefined
    for (const mutation of transaction.mutations) {
      const key = latin1(mutation.key)
      if (key.startsWith(sentMark)) this.#onSent(group, key, mutation, { ...where, timestamp })
      if (key.startsWith(handledMark)) handledCount += this.#onHandled(group, key, mutation, where)
      if (key === totalKey) total = Number(readText(mutation))
      const topic = decodeTopic(findTopicText(key) ?? '')
      if (topic !== undefined) this.#onWorklist(topic, mutation, where)
    }
    if (total === undefined) return
    const sum = (this.#totals.get(group) ?? 0) + handledCount
    this.#totals.set(group, sum)
    const sentence = 'What handlers added up is not what they handled.'
    this.#check(total === sum, 'QUE-2', sentence, { ...where, total, sum })
  }

  #onSent(
    group: string,
    key: string,
    mutation: Mutation,
    where: { readonly timestamp: number },
  ): void {
    const run = readText(mutation)
    const messages = this.#runs.get(`${key.slice(sentMark.length)} ${run}`)
    const sentence = 'The log holds a transaction that no sender made.'
    this.#check(messages !== undefined, 'TXN-4', sentence, { ...where, key, run })
    for (const message of messages ?? []) {
      const { receiver, queue, delayMs, name } = message
      const streamName = JSON.stringify([group, receiver, queue, delayMs])
      const stream = this.#streams.get(streamName) ?? []
      this.#streams.set(streamName, stream)
      const { timestamp: sentAt } = where
      const known = { ...message, stream, sender: group, sentAt, handled: 0, deaths: 0 }
      stream.push(known)
      this.#messages.set(name, known)
      this.#open += 1
      this.#coverage.count(group === receiver ? 'queues: sent to itself' : 'queues: sent')
      if (delayMs > 0) this.#coverage.count('queues: delayed')
    }
  }

  #onHandled(group: string, key: string, mutation: Mutation, where: object): number {
    const queue = key.slice(handledMark.length, key.lastIndexOf('/'))
    const names = readText(mutation).split(' ')
    for (const name of names) {
      const known = this.#messages.get(name)
      const isSent = known?.receiver === group && known.queue === queue
      const sentence = 'A message was handled that was not sent, or not to there.'
      this.#check(isSent, 'QUE-1', sentence, { ...where, name, queue })
      if (known === undefined) continue
      this.#onOne(known, where)
    }
    if (names.length > 1) this.#coverage.count('queues: batch')
    return names.length
  }

  #onOne(known: Known, where: object): void {
    const { name, handled, deaths, stream, queue } = known
    this.#check(handled === 0, 'QUE-2', 'A message was handled twice.', { ...where, name })
    if (handled === 0 && deaths === 0) this.#open -= 1
    known.handled += 1
    this.#coverage.count('queues: handled')
    if (deaths > 0) return this.#coverage.count('queues: redriven')
    const before = stream.slice(0, stream.indexOf(known))
    const passed = before.find((one) => one.handled === 0 && one.deaths === 0)
    const sentence = 'A message was handled before an earlier one.'
    const detail = { ...where, name, queue, passed: passed?.name }
    this.#check(passed === undefined, 'QUE-3', sentence, detail)
    const failures = this.#failures.get(name) ?? 0
    if (failures > 0) this.#coverage.count('queues: handled after failures')
  }

  #onWorklist(topic: string, mutation: Mutation, where: object): void {
    if (!topic.startsWith('dead/') || mutation.value === undefined) return
    const [name = ''] = messageName.exec(latin1(mutation.value)) ?? []
    const known = this.#messages.get(name)
    const isWhole = known !== undefined && known.handled === 0 && `dead/${known.queue}` === topic
    const sentence = 'A message is dead that was not sent there, or was handled.'
    this.#check(isWhole, 'QUE-2', sentence, { ...where, name, topic })
    if (known === undefined) return
    const failures = this.#failures.get(name) ?? 0
    const early = 'A message was given up before its attempts were over.'
    const isTried = failures >= this.#attemptsMax
    this.#check(isTried, 'QUE-6', early, { ...where, name, failures })
    if (known.deaths === 0) this.#open -= 1
    known.deaths += 1
    this.#failures.delete(name)
    this.#coverage.count(known.deaths > 1 ? 'queues: dead again' : 'queues: dead')
  }

  /** Everybody has done their work: nothing is left. */
  onDrained(model: LogModel): void {
    const left = [...this.#messages.values()].filter(({ handled }) => handled !== 1)
    const names = left.slice(0, 5).map(({ name, receiver, queue }) => ({ name, receiver, queue }))
    const sentence = 'A message was lost: nobody has handled it.'
    this.#check(left.length === 0, 'QUE-4', sentence, { count: left.length, names })
    for (const group of this.#groups) {
      const topics = [...model.of(group).rows.keys()].flatMap((key) => findTopicText(key) ?? [])
      const rest = 'Rows are left on the worklist of a group that has nothing to do.'
      this.#check(topics.length === 0, 'QUE-4', rest, { group, topics: topics.slice(0, 5) })
    }
  }

  /** The messages that remain. */
  leftOvers(): object {
    const left = [...this.#messages.values()].filter(({ handled }) => handled === 0)
    const names = left.slice(0, 5).map(({ name, deaths, delayMs }) => ({ name, deaths, delayMs }))
    return { left: left.length, open: this.#open, names }
  }

  #check(holds: boolean, rule: string, sentence: string, detail: object): void {
    this.#referee.check(holds, rule, sentence, () => ({ ...detail }))
  }
}

function readText({ value }: Mutation): string {
  return value === undefined ? '' : latin1(value)
}
