/**
 * Running a function as a transaction: again after each conflict, with growing, drawn pauses, within
 * a deadline. A try that conflicted has had no effect, so all tries are attempts of one intent, and
 * that takes effect once (TXN-5). Sending again after a lost answer is the port's part.
 */
import { unreachable } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import { toStoreError, captureOutcome } from '../base/problem.ts'
import { movedError } from '../group/moved-error.ts'
import type { Random } from '../ports/random.ts'
import type { Intent, Outcome, Submission } from '../group/replica-port.ts'
import {
  defaultTransactionLimits,
  rerunDelayMaxMs,
  rerunDelayMs,
  rerunsMax,
  transactionTimeoutMs,
  type TransactionLimits,
} from './limits.ts'
import { CallIntent } from './call-intent.ts'
import { checkedIntent } from './intents.ts'
import { contentionError, type Conflict } from './conflict.ts'
import type { GroupPort } from '../group/group-port.ts'
import { RawTransaction } from './raw-transaction.ts'
import { noRoom } from './no-room.ts'
import { PortReads } from './reads.ts'
import type { ReadOptions } from './run-read.ts'
import type { IntentSource } from './session.ts'
import { signalled } from './signalled.ts'
import { pause, remainingOrTimeout } from '../time/moments.ts'
import { inTurn, inTurnUntil, Turn } from './turn.ts'

export interface TransactionOptions extends ReadOptions {
  readonly random: Random
  readonly intents: IntentSource
  /**
   * An intent under which this may have been tried before, by others too. Such a try and this one take
   * effect once: when the other one did, the function is run again after it, and has to find its work
   * done. Without it the transaction has an intent of its own.
   */
  readonly intent?: Intent | undefined
  /**
   * Where reads begin, 'current' if it is not said. At 'snapshot' the replica asked answers without
   * asking others. The writes rest on the reads all the same: a replica that is behind costs a rerun.
   * A function that writes nothing was then at some moment of the past.
   */
  readonly from?: 'current' | 'snapshot' | undefined
  readonly limits?: TransactionLimits | undefined
  readonly rerunsMax?: number | undefined
  /** A key in words, for messages. */
  readonly nameKey?: (key: Uint8Array) => string
}

export interface Committed<Value> {
  /** The value that the function gave, in the run that was committed. */
  readonly value: Value
  /** Where the group is with this transaction in it; of one that wrote nothing, what it read. */
  readonly position: Position
  /** Absent when it wrote nothing, and read nothing. */
  readonly timestamp: Timestamp | undefined
  /** One a number drawn, in the order of `allocate`. */
  readonly sequences: readonly number[]
  /** How often the function was run. */
  readonly runs: number
}

/** The result of one run of the function, and the transaction that it made. */
interface Run<Value> {
  readonly value: Value
  readonly transaction: RawTransaction
  readonly rows: PortReads
}

/** The function may be run several times: let it do nothing that counts but through its handle. */
export async function runTransaction<Value>(
  port: GroupPort,
  group: GroupId,
  options: TransactionOptions,
  run: (transaction: RawTransaction) => Promise<Value>,
): Promise<Committed<Value>> {
  const given = options.intent === undefined ? undefined : checkedIntent(options.intent)
  port.checkOpen?.()
  const intent = new CallIntent(options.intents, given)
  const { signal } = options
  const until = (signal && port.until?.(signal)) ?? port
  try {
    const own = { ...options, intent: given }
    const running = new Running<Value>(until, group, own, intent)
    return await (signal === undefined
      ? running.result(run)
      : signalled(signal, () => running.result(run)))
  } finally {
    intent.settle()
  }
}

class Running<Value> {
  readonly #port: GroupPort
  readonly #group: GroupId
  readonly #options: TransactionOptions
  readonly #intent: CallIntent
  readonly #timeoutMs: number
  readonly #deadlineMs: number
  /** By attempt: the log says which of them took effect. */
  readonly #runs = new Map<number, Run<Value>>()

  constructor(port: GroupPort, group: GroupId, options: TransactionOptions, intent: CallIntent) {
    this.#port = port
    this.#group = group
    this.#options = options
    this.#intent = intent
    const { clock, timeoutMs = transactionTimeoutMs } = options
    this.#timeoutMs = timeoutMs
    this.#deadlineMs = clock.monotonicMs() + timeoutMs
  }

  async result(run: (transaction: RawTransaction) => Promise<Value>): Promise<Committed<Value>> {
    const { clock, random, rerunsMax: most = rerunsMax } = this.#options
    let { atLeast } = this.#options
    for (let runs = 1; ; runs++) {
      const attempt = random.int(1, Number.MAX_SAFE_INTEGER)
      const one = await this.#run(run, atLeast).catch(unlessTooOld)
      if (one === undefined) {
        if (runs > most) throw tooOldTooOften(this.#group, runs)
        continue
      }
      this.#runs.set(attempt, one)
      const submission = await one.transaction.submission(() => this.#intent.open(), attempt)
      if (submission === undefined) return readOnly(one, runs)
      const outcome = await this.#commit(submission)
      if (outcome.kind === 'committed') {
        return this.#committed(outcome, runs) ?? (await this.#after(run, outcome.position, runs))
      }
      if (outcome.kind !== 'conflict')
        throw refusal(submission, outcome, this.#options.intent !== undefined)
      const delayMs = random.int(0, Math.min(rerunDelayMs * 2 ** (runs - 1), rerunDelayMaxMs))
      const isOver = clock.monotonicMs() + delayMs >= this.#deadlineMs
      if (runs > most || isOver) throw this.#conflict(submission.intent, outcome, runs)
      await pause(this.#options, delayMs)
      atLeast = Math.max(atLeast ?? 0, outcome.position)
    }
  }

  #run(
    run: (transaction: RawTransaction) => Promise<Value>,
    atLeast: Position | undefined,
  ): Promise<Run<Value>> {
    const { clock, limits = defaultTransactionLimits } = this.#options
    const rows = new PortReads(
      this.#port,
      this.#group,
      { kind: this.#options.from ?? 'current' },
      { clock, deadlineMs: this.#deadlineMs, atLeast },
    )
    const turn = new Turn('transaction')
    const transaction = new RawTransaction(rows, limits, turn)
    const work = (): Promise<Value> => run(transaction)
    const { signal } = this.#options
    const until = { clock, deadlineMs: this.#deadlineMs, timeoutMs: this.#timeoutMs, signal }
    const done =
      this.#options.isBounded === true ? inTurnUntil(turn, work, until) : inTurn(turn, work)
    return done.then((value) => ({ value, transaction, rows }))
  }

  async #commit(submission: Submission): Promise<Outcome> {
    const timeoutMs = remainingOrTimeout(this.#options.clock, this.#deadlineMs)
    const intent = this.#intent
    intent.mayTakeEffect = true
    try {
      const outcome = await this.#port.commit(submission, timeoutMs)
      intent.mayTakeEffect = outcome.kind === 'unknown'
      return outcome
    } catch (error) {
      // The port rejects when nothing has happened, and nothing will; a bug keeps no promises.
      if (error instanceof StoreError) intent.mayTakeEffect = false
      throw error
    }
  }

  /**
   * An earlier attempt than the last may have won: its answer was lost, and it was sent again.
   * Undefined when the attempt that took effect was none of these.
   */
  #committed(
    outcome: Outcome & { readonly kind: 'committed' },
    runs: number,
  ): Committed<Value> | undefined {
    const { attempt, position, timestamp, sequences } = outcome
    const won = this.#runs.get(attempt)
    if (won === undefined) return undefined
    return { value: won.value, position, timestamp, sequences, runs }
  }

  /** Another caller's try of a given intent took effect: the function finds its work done. */
  async #after(
    run: (transaction: RawTransaction) => Promise<Value>,
    position: Position,
    runs: number,
  ): Promise<Committed<Value>> {
    const { intent } = this.#options
    const group = this.#group
    if (intent === undefined) {
      const message = 'a replica answered for another transaction than it was given'
      throw new StoreError('corrupt', message, { group })
    }
    const read = await captureOutcome(() => this.#run(run, position))
    if (read.kind === 'problem') {
      const message = `the transaction was committed, but what it did could not be read: ${read.problem.message}`
      throw new StoreError('unknown-outcome', message, { group })
    }
    const again = await read.value.transaction.submission(() => intent, 0)
    if (again === undefined) return readOnly(read.value, runs + 1)
    const message =
      'this session has used the same sequence for something else; it must use a new one'
    throw new StoreError('invalid', message, { group })
  }

  #conflict(intent: Intent, conflict: Conflict, runs: number): StoreError {
    return contentionError(this.#group, intent, conflict, runs, this.#options.nameKey)
  }
}

/** The group forgot the view while the function read it: the function is run again, at a newer view. */
function unlessTooOld(error: unknown): undefined {
  if (error instanceof StoreError && error.code === 'snapshot-too-old') return undefined
  throw error
}

function tooOldTooOften(group: GroupId, runs: number): StoreError {
  const message = `what this transaction read was gone before it had read it, ${runs} times; keep history for longer (history_ms)`
  return new StoreError('snapshot-too-old', message, { group, attempts: runs })
}

/**
 * A current view is a state that was there: a transaction that only reads is committed by having
 * read.
 */
async function readOnly<Value>(run: Run<Value>, runs: number): Promise<Committed<Value>> {
  const opened = run.rows.openedView()
  const view = opened instanceof Promise ? await opened : opened
  const { position, asOf: timestamp } = view ?? { position: 0, asOf: undefined }
  return { value: run.value, position, timestamp, sequences: [], runs }
}

const tooOld = 'this transaction is too old and was never carried out'

const givenTooOld =
  'this intent is too old: nothing is carried out under it any more, and what became of an earlier try is not remembered'

function refusal(
  { group, intent }: Submission,
  outcome: Exclude<Outcome, { readonly kind: 'committed' | 'conflict' }>,
  isGiven: boolean,
): StoreError {
  switch (outcome.kind) {
    case 'expired':
      return new StoreError('expired', isGiven ? givenTooOld : tooOld, { group })
    case 'overloaded':
      return toStoreError(noRoom(group, outcome))
    case 'moved':
      return movedError(group, outcome.set)
    case 'unknown': {
      const message =
        'no majority of the replicas answered in time; the transaction may yet take effect: look before you do it again'
      const { session, sequence, expiresAt } = intent
      const detail = { group, intent: { session, sequence, expiresAt } }
      return new StoreError('unknown-outcome', message, detail)
    }
    default:
      return unreachable(outcome)
  }
}
