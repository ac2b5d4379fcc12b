/**
 * Handles a queue in a process of an application, or of the simulator: looks after each group that is
 * listed under the queue's topic, and there runs transactions that take messages, call the handler and
 * delete what was handled. The commit is the acknowledgement.
 */
import { assert, AssertionError } from '../base/assert.ts'
import { errorText } from '../base/error-text.ts'
import { StoreError, type StoreErrorCode } from '../base/errors.ts'
import { wordsFor } from '../base/words.ts'
import type { GroupId } from '../base/ids.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Worklist } from '../group/replica-port.ts'
import {
  worklistBounds,
  WorklistWorker,
  type WorklistBounds,
  type Served,
} from '../worklist/worklist-worker.ts'
import { callTimeoutMsMax } from '../txn/limits.ts'
import type { GroupPort } from '../group/group-port.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { runTransaction, type Committed } from '../txn/run.ts'
import type { IntentSource } from '../txn/session.ts'
import {
  batchMessagesMax,
  errorCharsMax,
  consumeDefaults,
  retryMsMax,
  type HandleBounds,
  type ConsumeOptions,
} from './limits.ts'
import { noteFailure } from './failing.ts'
import { queueTopic } from './names.ts'
import { take, type Batch, type Taken } from './take.ts'

export interface QueueHandlerParts {
  readonly queue: string
  readonly worklist: Worklist
  readonly groups: GroupPort
  readonly clock: Clock
  readonly random: Random
  readonly intents: IntentSource
  readonly options?: ConsumeOptions
  /** Stops it. */
  readonly signal?: AbortSignal
  readonly worklistBounds?: Partial<WorklistBounds>
  /** Awaited before each taking of messages; when it fails, none of them has. */
  prepare?(): Promise<void> | undefined
  /** In the transaction that takes the messages; it may be called again for the same ones. */
  handle(transaction: RawTransaction, messages: readonly Taken[]): Promise<void>
  /**
   * A handler failed, or a group could not be looked after: to be told; it is tried again. What this
   * throws itself is passed over: it changes nothing of what is handled or counted.
   */
  onFailed(group: GroupId, error: unknown): void
  /** The transaction that handled these is committed. `onFailed` gets what this throws. */
  onHandled?(group: GroupId, messages: readonly Taken[]): void
}

/** Counts of a handler since it began. */
export interface HandledCounts {
  handled: number
  /** Calls of the handler that failed. */
  failures: number
  dead: number
}

/** Failures that pass by themselves, for every caller: none counts against the message. */
const outages: ReadonlySet<StoreErrorCode> = new Set<StoreErrorCode>([
  ...(['unavailable', 'unknown-outcome', 'timeout', 'overloaded', 'closed'] as const),
  ...(['contention', 'snapshot-too-old'] as const),
])

/** Nor of what the transaction around the handler met, which the handler could not help. */
const ofTheWorld: ReadonlySet<StoreErrorCode> = new Set<StoreErrorCode>([
  ...outages,
  ...(['expired', 'corrupt', 'forbidden', 'internal'] as const),
])

/** How one transaction went. */
interface Attempt {
  /** The messages that it had taken when it ended, or failed. */
  readonly batch: Batch
  /** Of the handler; absent: committed. */
  readonly failure?: { readonly error: unknown }
}

export class QueueHandler {
  readonly counts: HandledCounts = { handled: 0, failures: 0, dead: 0 }
  readonly #parts: QueueHandlerParts
  readonly #bounds: HandleBounds
  readonly #worker: WorklistWorker
  /**
   * Errors that the handler threw: they may say of other groups the same as its transaction says of this one.
   */
  readonly #thrown = new WeakSet<StoreError>()
  #isStopping = false
  readonly #onAbort = (): void => void this.stop()

  constructor(parts: QueueHandlerParts) {
    const { queue, worklist, clock, random, options = {} } = parts
    this.#parts = parts
    this.#bounds = checkedBounds(options)
    this.#worker = new WorklistWorker({
      topic: queueTopic(queue),
      worklist,
      clock,
      random,
      bounds: {
        ...worklistBounds,
        pageGroups: groupsListedAtOnce,
        ...parts.worklistBounds,
        groupsAtOnceMax: this.#bounds.concurrency,
      },
      serve: (group) => this.#serve(group),
      onFailed: (group, error) => this.#tellFailed(group, error),
    })
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  start(): void {
    this.#parts.signal?.addEventListener('abort', this.#onAbort, { once: true })
    this.#worker.start()
  }

  /** Takes nothing more, and resolves when what is under way has ended. */
  stop(): Promise<void> {
    this.#isStopping = true
    this.#parts.signal?.removeEventListener('abort', this.#onAbort)
    return this.#worker.stop()
  }

  async #serve(group: GroupId): Promise<Served> {
    const { batch, failure } = await this.#attempt(group, this.#bounds.batch)
    if (failure === undefined) return this.#next(batch)
    if (batch.messages.length === 1) await this.#fail(group, batch.messages, failure.error)
    else await this.#handleSingly(group, batch.messages.length)
    return { kind: 'again' }
  }

  /** One message of the batch failed: handles each by itself, so that the others still commit. */
  async #handleSingly(group: GroupId, count: number): Promise<void> {
    for (let i = 0; i < count && !this.#isStopping; i++) {
      const { batch, failure } = await this.#attempt(group, 1)
      if (failure !== undefined) await this.#fail(group, batch.messages, failure.error)
      if (batch.messages.length === 0) return
    }
  }

  #next({ messages, isFull, nextAt, position }: Batch): Served {
    if (isFull) return { kind: 'again' }
    if (nextAt !== undefined) {
      const delayMs = Math.max(1, Math.ceil((nextAt - this.#parts.clock.wallMicros()) / 1000))
      return { kind: 'later', delayMs: Math.min(delayMs, sleepMsMax), position }
    }
    // A message that came meanwhile wakes this, or is listed: a group that was handled needs no
    // further look.
    return { kind: 'empty', position: messages.length > 0 ? 0 : position }
  }

  /** Takes up to `most` messages, and handles them in one transaction. */
  async #attempt(group: GroupId, most: number): Promise<Attempt> {
    const { queue, clock } = this.#parts
    let taken: Batch | undefined
    try {
      await this.#transact(group, async (transaction) => {
        taken = undefined
        await this.#parts.prepare?.()
        const batch = await take(transaction, queue, clock.wallMicros(), most)
        taken = batch
        if (batch.messages.length === 0) return
        await this.#handle(transaction, batch.messages)
        for (const { key } of batch.messages) transaction.delete(key)
      })
    } catch (error) {
      const batch = asBatch(taken)
      if (batch === undefined || batch.messages.length === 0 || !this.#isOfHandler(error))
        throw error
      return { batch, failure: { error } }
    }
    const batch = asBatch(taken)
    assert(batch !== undefined, 'QUE-2: what is committed took its messages')
    this.counts.handled += batch.messages.length
    if (batch.messages.length > 0) this.#tellHandled(group, batch.messages)
    return { batch }
  }

  /** The handler's own time ends before the call's: a commit must still find some. */
  async #handle(transaction: RawTransaction, messages: readonly Taken[]): Promise<void> {
    const { clock, handle } = this.#parts
    const { timeoutMs } = this.#bounds
    let timer: Timer | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        timer = clock.setTimer(timeoutMs, () => {
          reject(new Error(`the handler did not end within ${timeoutMs} ms`))
        })
        handle(transaction, messages).then(() => resolve(), reject)
      })
    } catch (error) {
      if (error instanceof StoreError) this.#thrown.add(error)
      throw error
    } finally {
      timer?.cancel()
    }
  }

  #isOfHandler(error: unknown): boolean {
    if (error instanceof AssertionError) return false
    if (!(error instanceof StoreError)) return true
    return !(this.#thrown.has(error) ? outages : ofTheWorld).has(error.code)
  }

  async #fail(group: GroupId, messages: readonly Taken[], error: unknown): Promise<void> {
    const { queue, clock } = this.#parts
    const [taken] = messages
    assert(taken !== undefined && messages.length === 1, 'QUE-6: a message fails by itself')
    this.counts.failures += 1
    this.#tellFailed(group, error)
    const { value } = await this.#transact(group, (transaction) =>
      noteFailure(
        transaction,
        { queue, taken, now: clock.wallMicros(), error: errorText(error, errorCharsMax) },
        this.#bounds,
      ),
    )
    if (value === 'dead') this.counts.dead += 1
  }

  /** Handled messages stay handled, even when `onHandled` throws. */
  #tellHandled(group: GroupId, messages: readonly Taken[]): void {
    tell(
      () => this.#parts.onHandled?.(group, messages),
      (error) => this.#tellFailed(group, error),
    )
  }

  /** When `onFailed` itself throws, there is no further listener to tell. */
  #tellFailed(group: GroupId, error: unknown): void {
    tell(
      () => this.#parts.onFailed(group, error),
      () => undefined,
    )
  }

  #transact<Value>(
    group: GroupId,
    run: (transaction: RawTransaction) => Promise<Value>,
  ): Promise<Committed<Value>> {
    const { groups, clock, random, intents } = this.#parts
    const timeoutMs = commitMs + this.#bounds.timeoutMs
    return runTransaction(groups, group, { clock, random, intents, timeoutMs }, run)
  }
}

/** For the reads before the handler, and the commit after it. */
const commitMs = 10_000
const handlerTimeoutMsMax = callTimeoutMsMax - commitMs
/** Groups in one answer of who has something. */
const groupsListedAtOnce = 500
/** No timer is set for longer; the listing has what is due later. */
const sleepMsMax = 3_600_000

function checkedBounds(options: ConsumeOptions): HandleBounds {
  const bounds = { ...consumeDefaults, ...options }
  checkRetry(bounds, options.retryMaxMs !== undefined)
  const most = { batch: batchMessagesMax, timeoutMs: handlerTimeoutMsMax }
  for (const [name, value] of Object.entries(bounds)) {
    const bound = name === 'batch' || name === 'timeoutMs' ? most[name] : undefined
    if (Number.isFinite(value) && value >= 1 && value <= (bound ?? Infinity)) continue
    const end = bound === undefined ? '' : ` to ${bound}`
    const message = `a handler: ${name} is ${wordsFor(value)}; expected a number from 1${end}`
    throw new StoreError('invalid', message)
  }
  return bounds
}

function checkRetry({ retryMs, retryMaxMs }: HandleBounds, isNamed: boolean): void {
  const actual = Math.max(retryMs, retryMaxMs)
  if (!(actual > retryMsMax)) {
    if (!isNamed || !(retryMs > retryMaxMs)) return
    const order = `a handler: retryMs is ${retryMs} and retryMaxMs ${retryMaxMs}; the first wait is not longer than the longest one`
    throw new StoreError('invalid', order)
  }
  const message = `retryMs is ${retryMs} and retryMaxMs ${retryMaxMs}; a message is tried again after ${retryMsMax} milliseconds at most`
  throw new StoreError('invalid', message, { limit: 'retryMsMax', limitValue: retryMsMax, actual })
}

/**
 * Calls an application's function at once. It may throw, or be an async one, which this does not
 * await.
 */
function tell(call: () => void, onThrown: (error: unknown) => void): void {
  new Promise<void>((resolve) => resolve(call())).catch(onThrown)
}

/** Assigned in a function that was called meanwhile. */
function asBatch(batch: Batch | undefined): Batch | undefined {
  return batch
}
