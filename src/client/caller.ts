/**
 * Sends requests to a node, and to another one when that does not answer, until there is an answer
 * or the time is up. Over ports only, so that the simulator runs it as it is.
 *
 * All that one turn of the loop asks goes in one frame. Calls under way are bounded in number and
 * bytes; above that a call is refused with `overloaded` at once.
 */
import { unreachable } from '../base/assert.ts'
import type { GroupId } from '../base/ids.ts'
import { problem, type Problem } from '../base/problem.ts'
import { isRowKey } from '../cells/cell.ts'
import { isIndexOperation, type IndexOperation } from '../cells/operation.ts'
import { shardGroup, shardOf } from '../cells/shard.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Endpoint, Transport } from '../ports/transport.ts'
import { isAgendaOperation, type AgendaOperation } from '../queues/agenda-operation.ts'
import { groupOf, isGroupOperation } from '../txn/group-operation.ts'
import { schemaTrustMs } from '../tables/bounds.ts'
import type { TransactionScope } from '../txn/scope.ts'
import { pause, remainingMs } from '../txn/time.ts'
import {
  writtenBytes,
  type ClientFrame,
  type Operation,
  type Replied,
  type Request,
  type Response,
} from '../wire/client-message.ts'
import { Outbox } from '../wire/outbox.ts'
import { isDamageOf, type Call, type Sending, type Try } from './call.ts'
import { Leaders } from './leaders.ts'
import { Links, type Ending, type LinkView } from './links.ts'

export interface ClientPorts {
  readonly transport: Transport<ClientFrame>
  readonly clock: Clock
  readonly random: Random
  /** Tells code inside the function of a transaction from other code; without it, it is not told. */
  readonly scope?: TransactionScope
}

export interface ClientLimits {
  /** A call that names no time-out of its own ends after this. */
  readonly timeoutMs: number
  /** One node is given so long, then another one is asked; longer after every third try. */
  readonly tryTimeoutMs: number
  /** So many tries in a row that a node did not answer open its breaker: others are asked then. */
  readonly failuresMax: number
  /** It stays open for so long at first, then twice as long after each probe in vain, up to the maximum. */
  readonly avoidMs: number
  readonly avoidMaxMs: number
  /** Before the second retry; doubled at each further one up to the maximum, half of it by chance. */
  readonly backoffMs: number
  readonly backoffMaxMs: number
  /** Calls under way. */
  readonly callsMax: number
  /** Bodies of the puts under way. */
  readonly putBytesMax: number
  /** A schema that was opened is looked at again before something is written so long after. */
  readonly schemaTrustMs: number
}

export const defaultClientLimits: ClientLimits = {
  timeoutMs: 10_000,
  tryTimeoutMs: 2_000,
  failuresMax: 1,
  avoidMs: 2_000,
  avoidMaxMs: 16_000,
  backoffMs: 20,
  backoffMaxMs: 1_000,
  callsMax: 4_096,
  putBytesMax: 64 * 1024 * 1024,
  schemaTrustMs,
}

/** Tries that one node is given `tryTimeoutMs` for; then twice as long, and so on. */
const triesBeforeLonger = 3

/** A try that had less time says nothing of the node. */
const tellingTryMs = 20

/** A request that has been sent and not answered. */
interface Pending {
  readonly endpoint: Endpoint
  readonly resolve: (result: Try) => void
}

export class Caller {
  readonly #ports: ClientPorts
  readonly #limits: ClientLimits
  readonly #links: Links
  readonly #leaders = new Leaders()
  readonly #outbox: Outbox<Request>
  readonly #pending = new Map<number, Pending>()
  #drawn = 0
  #calls = 0
  #putBytes = 0
  #isClosed = false

  constructor(ports: ClientPorts, limits: ClientLimits) {
    this.#ports = ports
    this.#limits = limits
    const { failuresMax, avoidMs, avoidMaxMs } = limits
    const openMaxMs = Math.max(avoidMs, avoidMaxMs)
    this.#links = new Links(ports.clock, { failuresMax, openMs: avoidMs, openMaxMs })
    this.#outbox = new Outbox<Request>({
      clock: ports.clock,
      send: (to, requests) => ports.transport.send(to, { kind: 'requests', requests }),
      bodyBytes: ({ operation }) => writtenBytes(operation),
      onDropped: (_, requests) => {
        for (const { id } of requests) this.#end(id, { kind: 'unsent' })
      },
    })
    ports.transport.start({
      self: () => ({}),
      admit: () => undefined,
      onRefused: (node, reason) => this.#links.onRefused(node, reason),
      onLink: (node, state, info) => this.#onLink(node, state, info.node),
      onFrame: (node, frame) => this.#onFrame(node, frame),
    })
  }

  /** The nodes that were linked, and how they have answered. */
  nodes(): readonly LinkView[] {
    return this.#links.views()
  }

  /** Calls under way. */
  get calls(): number {
    return this.#calls
  }

  /** The node that would be asked now; undefined when no link is up. */
  placeOf(operation: Operation): Endpoint | undefined {
    return this.#pick(operation)
  }

  /** Ends all calls and gives the connections back. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const id of [...this.#pending.keys()]) this.#end(id, { kind: 'lost' })
    this.#links.stop()
    await this.#ports.transport.close()
  }

  /** Resolves with what the call came to, at the latest when the time is up. */
  async carryOut(operation: Operation, call: Call, timeoutMs: number): Promise<Replied> {
    if (this.#isClosed) return refusal(closed, call)
    const bytes = writtenBytes(operation)
    const { callsMax, putBytesMax } = this.#limits
    const isFull = this.#calls >= callsMax || (bytes > 0 && this.#putBytes + bytes > putBytesMax)
    if (isFull) return refusal(tooManyCalls, call)
    this.#calls += 1
    this.#putBytes += bytes
    try {
      return await this.#tryUntilDone(call, operation, timeoutMs)
    } finally {
      this.#calls -= 1
      this.#putBytes -= bytes
    }
  }

  async #tryUntilDone(call: Call, operation: Operation, timeoutMs: number): Promise<Replied> {
    const { clock } = this.#ports
    const deadlineMs = clock.monotonicMs() + timeoutMs
    const waitMs = 'waitMs' in operation ? operation.waitMs : 0
    let last: Endpoint | undefined
    for (let tries = 1; ; tries++) {
      const tryMs = Math.min(remainingMs(clock, deadlineMs), this.#tryMs(tries) + waitMs)
      const { endpoint, result, wasInVain } = await this.#tryOnce(call, tryMs, operation, last)
      if (call.take(result)) return call.finish(closed)
      last = wasInVain ? endpoint : undefined
      if (this.#isClosed) return call.finish(closed)
      const delayMs = this.#backoffMs(tries)
      if (clock.monotonicMs() + delayMs >= deadlineMs) return call.finish(this.#noAnswer(tries))
      if (delayMs > 0) await pause(this.#ports, delayMs)
    }
  }

  /** Longer and longer: on a network slower than thought, no try would ever be long enough. */
  #tryMs(tries: number): number {
    const doublings = Math.floor((tries - 1) / triesBeforeLonger)
    return this.#limits.tryTimeoutMs * 2 ** Math.min(doublings, 16)
  }

  /** The first retry is at once: at another node, where there is one. */
  #backoffMs(tries: number): number {
    if (tries === 1) return 0
    const { backoffMs, backoffMaxMs } = this.#limits
    const longestMs = Math.min(backoffMaxMs, backoffMs * 2 ** Math.min(tries - 2, 16))
    return this.#ports.random.int(Math.ceil(longestMs / 2), longestMs)
  }

  #noAnswer(attempts: number): Problem {
    const { refusal: reason } = this.#links
    if (reason !== undefined) {
      return problem('unavailable', `no node takes this client; ${reason}`, { attempts })
    }
    const isDown = this.#links.pick(0) === undefined
    const what = isDown ? 'no node could be reached in time' : 'no node answered in time'
    return problem('unavailable', `${what}; try again`, { attempts })
  }

  /** `last`: the node that this call has just asked in vain. */
  async #tryOnce(
    call: Call,
    tryMs: number,
    operation: Operation,
    last: Endpoint | undefined,
  ): Promise<EndedTry> {
    if (this.#pick(operation, last) === undefined) await this.#links.whenUp(tryMs)
    const endpoint = this.#pick(operation, last)
    if (endpoint === undefined) return { endpoint, result: { kind: 'unsent' }, wasInVain: true }
    this.#links.begin(endpoint)
    const result = await this.#send(endpoint, call.next(), tryMs)
    const ending = endingOf(result, tryMs)
    this.#links.end(endpoint, ending)
    if (result.kind === 'answered') this.#noteLeaders(operation, result.answered)
    return { endpoint, result, wasInVain: ending !== 'answered' }
  }

  #noteLeaders(operation: Operation, { answer, leaders = [] }: Replied): void {
    if (isGroupOperation(operation) && 'leader' in answer && answer.leader !== undefined) {
      this.#leaders.note(groupOf(operation), answer.leader)
    }
    if (!('datastore' in operation)) return
    for (const [shard, leader] of leaders) {
      this.#leaders.note(shardGroup(operation.datastore, shard), leader)
    }
  }

  /** What changes something goes to the leader; of a batch, the first one says where. */
  #pick(operation: Operation, not?: Endpoint): Endpoint | undefined {
    const led = groupLed(operation)
    const node = led && this.#leaders.of(led)
    return this.#links.pick(spreadOf(operation), {
      ...(node !== undefined && { node }),
      ...(not !== undefined && { not }),
      // Who shares the work asks the same node, which knows all of them.
      isAlike: operation.kind === 'watch-agenda',
    })
  }

  #send(endpoint: Endpoint, sending: Sending, tryMs: number): Promise<Try> {
    const id = (this.#drawn += 1)
    return new Promise((resolve) => {
      const timer = this.#ports.clock.setTimer(tryMs, () => this.#end(id, { kind: 'lost' }))
      this.#pending.set(id, {
        endpoint,
        resolve: (result) => {
          timer.cancel()
          resolve(result)
        },
      })
      // The node is to say what it knows before it is given up.
      const timeoutMs = Math.max(1, tryMs - Math.min(200, Math.ceil(tryMs / 10)))
      this.#outbox.add(endpoint, { id, timeoutMs, ...sending })
    })
  }

  #end(id: number, result: Try): void {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    pending?.resolve(result)
  }

  #onLink(node: Endpoint, state: 'up' | 'down', id: string | undefined): void {
    if (this.#isClosed) return
    if (state === 'up') return this.#links.onUp(node, id ?? node)
    this.#links.onDown(node)
    this.#outbox.drop(node)
    for (const [id, { endpoint }] of [...this.#pending]) {
      if (endpoint === node) this.#end(id, { kind: 'lost' })
    }
  }

  #onFrame(node: Endpoint, frame: ClientFrame): void {
    if (frame.kind !== 'responses') return
    for (const response of frame.responses) this.#onResponse(node, response)
  }

  #onResponse(node: Endpoint, response: Response): void {
    const { id, ...answered } = response
    // Late and doubled answers find nobody who waits.
    if (this.#pending.get(id)?.endpoint !== node) return
    this.#end(id, { kind: 'answered', answered })
  }
}

function groupLed(operation: Operation): GroupId | undefined {
  if (isGroupOperation(operation)) {
    return operation.kind === 'read-group' ? undefined : groupOf(operation)
  }
  if (operation.kind === 'purge') return shardGroup(operation.datastore, operation.shard)
  if (operation.kind !== 'put') return undefined
  const [first] = operation.items
  if (first === undefined || !isRowKey(first.rowKey)) return undefined
  return shardGroup(operation.datastore, shardOf(first.rowKey))
}

/** Row keys are random, so their digits spread calls over the nodes; equal ones go to the same. */
function spreadOf(operation: Operation): number {
  if (isGroupOperation(operation)) return spreadOfText(groupOf(operation))
  if (isAgendaOperation(operation)) return spreadOfTopic(operation)
  if (isIndexOperation(operation)) return spreadOfIndex(operation)
  switch (operation.kind) {
    case 'put':
    case 'get':
      return spreadOfRow(operation.items[0]?.rowKey)
    case 'row':
    case 'versions':
      return spreadOfRow(operation.rowKey)
    case 'log':
      return operation.items[0]?.shard ?? 0
    case 'purge':
      return operation.shard
    case 'status':
      return 0
    default:
      return unreachable(operation)
  }
}

function spreadOfIndex(operation: IndexOperation): number {
  if (operation.kind !== 'index') return spreadOfText(operation.datastore)
  return spreadOfText(`${operation.name} ${String(operation.where[0]?.value)}`)
}

function spreadOfTopic(operation: AgendaOperation): number {
  return operation.kind === 'watch-agenda' ? spreadOfText(operation.topic) : (operation.turn ?? 0)
}

function spreadOfText(text: string): number {
  let spread = 0
  for (let i = 0; i < text.length; i++) spread = (spread * 31 + text.charCodeAt(i)) % 65_536
  return spread
}

function spreadOfRow(rowKey = ''): number {
  const digits = Number.parseInt(rowKey.slice(-4), 16)
  return Number.isNaN(digits) ? 0 : digits
}

const closed: Problem = problem('closed', 'this client is closed')

const tooManyCalls: Problem = problem(
  'overloaded',
  'too many calls are under way in this client; wait for some of them',
)

/** It was not begun, and has come to its end all the same. */
function refusal(refused: Problem, call: Call): Replied {
  call.finish(refused)
  return { answer: { kind: 'problem', problem: refused }, positions: [] }
}

/** A try with its end, and the node it was made at. */
interface EndedTry {
  readonly endpoint: Endpoint | undefined
  readonly result: Try
  readonly wasInVain: boolean
}

function endingOf(result: Try, tryMs: number): Ending {
  if (result.kind === 'unsent') return 'untold'
  if (result.kind === 'lost') return tryMs < tellingTryMs ? 'untold' : 'lost'
  return isUseless(result.answered) ? 'useless' : 'answered'
}

/** The node cannot answer: it is cut off from the others, or stopping. */
function isUseless({ answer }: Replied): boolean {
  if (answer.kind === 'problem') return isOutage(answer.problem)
  if (answer.kind === 'commit-group') return answer.outcome.kind === 'unknown'
  if (!('items' in answer)) return false
  return answer.items.every((item) => item.kind === 'problem' && isOutage(item.problem))
}

function isOutage(problem: Problem): boolean {
  const { code } = problem
  const isSilent = code === 'unavailable' || code === 'closed' || code === 'unknown-outcome'
  return isSilent || isDamageOf(problem)
}
