/** Dead letters of a queue: listed over all groups, inspected, and brought back. */
import {
  checkArgument,
  checkOptions,
  listOf,
  readGiven,
  upperLimit,
  wholeFrom,
  type Rule,
} from '../base/arguments.ts'
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import { isReadable } from '../base/readable.ts'
import type { Random } from '../ports/random.ts'
import { keyAfter } from '../txn/key-range.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { runTransaction } from '../txn/run.ts'
import type { IntentSource } from '../txn/session.ts'
import { signalRules, type SignalOptions } from '../txn/signalled.ts'
import { batchBytesMax, deadLettersMax } from './limits.ts'
import { groupsUnder, rowsUnder, type InspectParts } from './inspect.ts'
import { decodeDead, type DeadMessage } from './message.ts'
import { deadKey, deadTopic, decodeNumber } from './names.ts'
import { putNew } from './send.ts'

export interface DeadLettersParts extends InspectParts {
  readonly queue: string
  readonly random: Random
  readonly intents: IntentSource
  /** Throws `not-found` for a name that no queue has. A call that found no letter asks it. */
  checkKnown(options: SignalOptions): Promise<void>
}

export interface DeadLetter {
  readonly group: GroupId
  /** With the group, its name. */
  readonly id: number
  readonly message: DeadMessage
  readonly diedAt: Timestamp
}

const groupRule: Rule = {
  accepts: (value) => typeof value === 'string' && value !== '',
  words: 'the name of a group, as a dead letter has it',
}

/** A dead letter, or its group and id. */
function checkPlace(call: string, after: unknown): void {
  const isObject = typeof after === 'object' && after !== null && isReadable(after)
  const { group, id } = isObject
    ? readGiven(`${call}: after`, () => ({ ...noPlace, ...after }))
    : noPlace
  if (groupRule.accepts(group) && wholeFrom(0).accepts(id)) return
  throw new StoreError('invalid', `${call}: after is a dead letter, with its group and its id`)
}

const noPlace = { group: undefined, id: undefined }

/** Letters redriven by one transaction, if they have no more than `batchBytesMax`; one alone may. */
const redrivenAtOnce = 20

/** How many letters a transaction has looked at, and how many of them were there. */
interface Redriven {
  readonly passed: number
  readonly redriven: number
}

/** Letters that one call has redriven so far. */
interface Count {
  redriven: number
}

/** How many letters `work` redrives. A call that is given up between two of its steps says that it has written. */
async function counting(
  signal: AbortSignal | undefined,
  work: (count: Count) => Promise<void>,
): Promise<number> {
  const count = { redriven: 0 }
  try {
    await work(count)
    return count.redriven
  } catch (error) {
    if (signal?.aborted !== true || count.redriven === 0) throw error
    const cause: unknown = signal.reason
    const message = `this call was given up by its signal when it had redriven ${count.redriven} letters, or some more: look before you do it again`
    throw new StoreError('unknown-outcome', message, {}, { cause })
  }
}

export class DeadLetters {
  readonly #parts: DeadLettersParts
  readonly #topic: string

  constructor(parts: DeadLettersParts) {
    this.#parts = parts
    this.#topic = deadTopic(parts.queue)
  }

  /**
   * By group, the longest dead first; at most `limit`, and in no case more than 1,000; those behind `after`.
   * Groups are those that one node lists, and a node may be behind for a while. A caller that must be sure
   * that none is left asks again.
   */
  async list(
    limit: number,
    after?: Pick<DeadLetter, 'group' | 'id'>,
    options: SignalOptions = {},
  ): Promise<readonly DeadLetter[]> {
    checkArgument('deadLetters.list', 'limit', limit, upperLimit)
    if (after !== undefined) checkPlace('deadLetters.list', after)
    checkOptions('deadLetters.list', options, signalRules)
    const { signal } = options
    const parts = { ...this.#parts, signal }
    const most = Math.min(limit, deadLettersMax)
    const found: DeadLetter[] = []
    const take = async (group: GroupId, behind: number | undefined): Promise<void> => {
      found.push(...(await this.#of(parts, group, most - found.length, behind)))
    }
    if (after !== undefined) await take(after.group, after.id)
    for await (const group of groupsUnder(parts, this.#topic, after?.group)) {
      if (found.length >= most) return found
      await take(group, undefined)
    }
    if (found.length === 0 && after === undefined) await this.#parts.checkKnown(options)
    return found
  }

  /** Those of one group, as of now. */
  async of(
    group: GroupId,
    limit: number,
    after?: number,
    options: SignalOptions = {},
  ): Promise<readonly DeadLetter[]> {
    checkArgument('deadLetters.of', 'the group', group, groupRule)
    checkArgument('deadLetters.of', 'limit', limit, upperLimit)
    if (after !== undefined) checkArgument('deadLetters.of', 'after', after, wholeFrom(0))
    checkOptions('deadLetters.of', options, signalRules)
    const { signal } = options
    const found = await this.#of({ ...this.#parts, signal }, group, limit, after)
    if (found.length === 0 && after === undefined) await this.#parts.checkKnown(options)
    return found
  }

  async #of(
    parts: DeadLettersParts,
    group: GroupId,
    limit: number,
    after?: number,
  ): Promise<readonly DeadLetter[]> {
    if (limit < 1) return []
    const { queue } = parts
    const gte = after === undefined ? undefined : keyAfter(deadKey(queue, after))
    const rows = await rowsUnder(parts, group, this.#topic, limit, gte)
    return rows.map(({ key, value: bytes, timestamp }) => ({
      group,
      id: decodeNumber(key),
      message: decodeDead(bytes),
      diedAt: timestamp ?? 0,
    }))
  }

  /** Puts these of one group at the end of the queue; resolves with how many were there. */
  async redrive(
    group: GroupId,
    ids: readonly number[],
    options: SignalOptions = {},
  ): Promise<number> {
    checkArgument('deadLetters.redrive', 'the group', group, groupRule)
    checkArgument('deadLetters.redrive', 'the ids', ids, listOf(wholeFrom(1)))
    checkOptions('deadLetters.redrive', options, signalRules)
    const { signal } = options
    this.#parts.groups.checkOpen?.()
    return this.#counted(options, (count) => this.#redriveThese(count, group, ids, signal))
  }

  /** All that are dead, in this group or in those that are listed; resolves with how many. */
  async redriveAll(only?: GroupId, options: SignalOptions = {}): Promise<number> {
    if (only !== undefined) checkArgument('deadLetters.redriveAll', 'the group', only, groupRule)
    checkOptions('deadLetters.redriveAll', options, signalRules)
    const { signal } = options
    return this.#counted(options, async (count) => {
      if (only !== undefined) return this.#redriveGroup(count, only, signal)
      for await (const group of groupsUnder({ ...this.#parts, signal }, this.#topic)) {
        await this.#redriveGroup(count, group, signal)
      }
    })
  }

  async #counted(options: SignalOptions, work: (count: Count) => Promise<void>): Promise<number> {
    const redriven = await counting(options.signal, work)
    if (redriven === 0) await this.#parts.checkKnown(options)
    return redriven
  }

  async #redriveGroup(
    count: Count,
    group: GroupId,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const parts = { ...this.#parts, signal }
    for (let last: number | undefined; ;) {
      const letters = await this.#of(parts, group, redrivenAtOnce, last)
      last = letters.at(-1)?.id
      if (last === undefined) return
      const ids = letters.map(({ id }) => id)
      await this.#redriveThese(count, group, ids, signal)
    }
  }

  async #redriveThese(
    count: Count,
    group: GroupId,
    ids: readonly number[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const all = [...new Set(ids)]
    for (let at = 0; at < all.length;) {
      const some = all.slice(at, at + redrivenAtOnce)
      const run = (transaction: RawTransaction): Promise<Redriven> =>
        this.#redrive(transaction, some)
      const done = await this.#transact(group, run, signal)
      assert(done.passed > 0, 'queues: of letters that are redriven one always fits')
      count.redriven += done.redriven
      at += done.passed
    }
  }

  /** The first ones, as many as one transaction may hold. */
  async #redrive(transaction: RawTransaction, ids: readonly number[]): Promise<Redriven> {
    const { queue } = this.#parts
    const rows = await transaction.getMany(ids.map((id) => deadKey(queue, id)))
    let bytes = 0
    let redriven = 0
    for (const [passed, row] of rows.entries()) {
      if (row === undefined) continue
      const { error: _error, ...message } = decodeDead(row.value)
      bytes += message.body.length
      if (bytes > batchBytesMax && redriven > 0) return { passed, redriven }
      assert(message.notBefore === 0, 'QUE-6: who is dead is not waited for')
      transaction.delete(row.key)
      putNew(transaction, queue, { ...message, failures: 0, redriven: message.redriven + 1 })
      redriven += 1
    }
    return { passed: rows.length, redriven }
  }

  async #transact<Value>(
    group: GroupId,
    run: (transaction: RawTransaction) => Promise<Value>,
    signal: AbortSignal | undefined,
  ): Promise<Value> {
    const { groups, clock, random, intents, timeoutMs } = this.#parts
    const options = { clock, random, intents, timeoutMs, signal }
    return (await runTransaction(groups, group, options, run)).value
  }
}
