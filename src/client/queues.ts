/** Queues of a cluster, as bytes: handling their messages, and the calls for operators. */
import {
  callback,
  checkArgument,
  checkOptions,
  givenMember,
  readGiven,
  wrongArgument,
  type Rule,
} from '../base/arguments.ts'
import { StoreError } from '../base/errors.ts'
import { toStoreError } from '../base/problem.ts'
import { isReadable } from '../base/readable.ts'
import { unknownWord } from '../base/suggest.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { AskWorklist } from '../worklist/worklist-operation.ts'
import { DeadLetters } from '../queues/dead-letters.ts'
import type { HandleCall, QueueSource } from '../queues/handle-call.ts'
import { listWaiting, type WaitingMessage } from '../queues/inspect.ts'
import { QueueHandler } from '../queues/handler.ts'
import { handleCallNames } from '../queues/rules.ts'
import { computeSums, type QueueSum } from '../queues/queue-sum.ts'
import { RemoteWorklist } from '../worklist/remote-worklist.ts'
import type { GroupPort } from '../group/group-port.ts'
import type { IntentSource } from '../txn/session.ts'
import {
  checkSignal,
  signalled,
  signalRule,
  signalRules,
  type SignalOptions,
} from '../txn/signalled.ts'
import { KnownQueues, type KnownQueuesParts } from './known-queues.ts'
import { notAnAnswer } from './call.ts'
import { closed } from './in-flight.ts'
import { limitProblem } from './group-check.ts'
import { checkText } from './rules.ts'

const optional: Rule = {
  accepts: (value) => value === undefined || callback.accepts(value),
  words: callback.words,
}

/** The call, of which each member was read once. */
function readHandleCall(call: HandleCall): HandleCall {
  checkHandleCall(call)
  const copy = readGiven('queues.consume: the call', () => ({ ...call }))
  checkHandleCall(copy)
  return copy
}

function checkHandleCall(given: unknown): void {
  const call = 'queues.consume'
  if (typeof given !== 'object' || given === null || !isReadable(given)) {
    throw wrongArgument(call, 'the call', given, 'an object of queue, handle, and options')
  }
  const names = readGiven(`${call}: the call`, () => Object.keys(given))
  const unknown = names.find((name) => !handleCallNames.includes(name))
  if (unknown !== undefined) {
    throw new StoreError('invalid', `${call}: ${unknownWord('member', unknown, handleCallNames)}`)
  }
  const member = (name: string): unknown => givenMember(`${call}: the call`, given, name)
  checkText(call, 'queue', member('queue'))
  checkArgument(call, 'handle', member('handle'), callback)
  for (const name of ['prepare', 'onHandled', 'onFailed']) {
    checkArgument(call, name, member(name), optional)
  }
  const signal = member('signal')
  if (signal !== undefined) checkArgument(call, 'signal', signal, signalRule)
}

export interface QueuesParts {
  readonly ask: AskWorklist
  readonly groups: GroupPort
  readonly clock: Clock
  readonly random: Random
  readonly intents: IntentSource
  readonly timeoutMs: number
  readonly hasSchema: KnownQueuesParts['hasSchema']
}

export class Queues implements QueueSource {
  readonly #parts: QueuesParts
  readonly #handlers = new Set<QueueHandler>()
  readonly #known: KnownQueues
  #isClosed = false

  constructor(parts: QueuesParts) {
    this.#parts = parts
    const { hasSchema } = parts
    this.#known = new KnownQueues({ hasSchema, list: (options) => this.list(options) })
  }

  /** Ends all handlers: without their client they would go on in vain, and keep the process alive. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#handlers].map((handler) => handler.stop()))
  }

  /** Begins to handle a queue's messages in all groups, until it is stopped. */
  consume(given: HandleCall): QueueHandler {
    if (this.#isClosed) throw toStoreError(closed)
    const { ask, groups, clock, random, intents } = this.#parts
    const { queue, prepare, handle, onHandled, signal, ...rest } = readHandleCall(given)
    const { onFailed = () => undefined, ...options } = rest
    checkSignal(signal)
    // It lists all groups every second: those of a set that is away must not keep it from the others.
    const worklist = new RemoteWorklist({ ask, clock, random, isPartial: true })
    const parts = {
      queue,
      worklist,
      groups,
      clock,
      random,
      intents,
      options,
      handle,
      onFailed,
      ...(signal && { signal }),
      ...(prepare && { prepare }),
      ...(onHandled && { onHandled }),
    }
    const handler = new QueueHandler(parts)
    handler.start()
    this.#known.add(queue)
    for (const one of this.#handlers) if (one.isStopping) this.#handlers.delete(one)
    this.#handlers.add(handler)
    return handler
  }

  /** All queues that have something, counted at one node. */
  async list(options: SignalOptions = {}): Promise<readonly QueueSum[]> {
    checkOptions('queues.list', options, signalRules)
    const { signal } = options
    const { ask, timeoutMs } = this.#parts
    const operation = { kind: 'sum-worklist', prefix: '' } as const
    const answer = await signalled(signal, () => ask(operation, timeoutMs, signal))
    checkSignal(signal)
    if (answer.kind === 'sum-worklist') return computeSums(answer.topics)
    throw toStoreError(answer.kind === 'problem' ? answer.problem : notAnAnswer)
  }

  /**
   * Messages of a queue that no handler has ended yet, in all groups; `limit` at most. Rejects with `not-found`
   * where no schema has such a queue and it has nothing.
   */
  async waiting(
    queue: string,
    limit: number,
    options: SignalOptions = {},
  ): Promise<readonly WaitingMessage[]> {
    checkText('queues.waiting', 'the queue', queue)
    const refused = limitProblem(limit)
    if (refused !== undefined) throw toStoreError(refused)
    checkOptions('queues.waiting', options, signalRules)
    const { signal } = options
    const { ask, groups, clock, random, timeoutMs } = this.#parts
    const worklist = new RemoteWorklist({ ask, clock, random })
    const parts = { worklist, groups, clock, timeoutMs, signal }
    const found = await listWaiting(parts, queue, limit)
    if (found.length > 0) this.#known.add(queue)
    else await this.#known.check(queue, { ...(signal && { signal }) })
    return found
  }

  /**
   * Messages that were given up, of one queue in all groups. Calls that find none reject with `not-found` where
   * no schema has such a queue and it has nothing.
   */
  deadLetters(queue: string): DeadLetters {
    checkText('queues.deadLetters', 'the queue', queue)
    const { ask, groups, clock, random, intents, timeoutMs } = this.#parts
    const worklist = new RemoteWorklist({ ask, clock, random })
    const parts = { queue, worklist, groups, clock, random, intents, timeoutMs }
    return new DeadLetters({
      ...parts,
      checkKnown: (options) => this.#known.check(queue, options),
    })
  }
}
