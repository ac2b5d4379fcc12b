/**
 * Sends requests to a node, and to another one when that does not answer, until there is an answer
 * or the time is up. Over ports only, so that the simulator runs it as it is.
 *
 * CALL-1  A call ends once, and no try begins for it after that. The answer to a try that was given up may
 *         end it; it never begins another try.
 * LOAD-7  What waits at a node on a live link is not sent again: not before it is answered, its link
 *         breaks, or the time that its node was told is over.
 *
 * What a turn asks goes in one frame. Calls under way are bounded; above that one is refused at once.
 */
import { assert } from '../base/assert.ts'
import { problem, type Problem } from '../base/problem.ts'
import { shardGroup } from '../cells/shard.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Endpoint, Transport } from '../ports/transport.ts'
import { groupOf, isGroupOperation } from '../txn/group-operation.ts'
import { schemaTrustMs } from '../tables/bounds.ts'
import type { TransactionScope } from '../txn/scope.ts'
import { requestBytes } from '../wire/client-bytes.ts'
import {
  isWrite,
  writtenBytes,
  type ClientFrame,
  type Operation,
  type Replied,
  type Request,
  type Response,
} from '../wire/client-message.ts'
import { Outbox } from '../wire/outbox.ts'
import { overloadOf, type Call, type Try } from './call.ts'
import {
  asItIs,
  closed,
  isFree,
  leftMs,
  refusal,
  tooManyCalls,
  tooMuchToDo,
  type Calling,
} from './calling.ts'
import { endingOf, isRefused } from './ending.ts'
import { LateTries } from './late-tries.ts'
import { Leaders } from './leaders.ts'
import { Links, type Ending, type LinkView } from './links.ts'
import { Numbered } from './numbered.ts'
import { RetryBudget, type RetryLimits } from './retry-budget.ts'
import { groupLed, spreadOf } from './spread.ts'
import type { ThrottleLimits } from './throttle.ts'
import { TimeOut } from './time-out.ts'

export interface ClientPorts {
  readonly transport: Transport<ClientFrame>
  readonly clock: Clock
  readonly random: Random
  /** Tells code inside the function of a transaction from other code; without it, it is not told. */
  readonly scope?: TransactionScope
}

export interface ClientLimits extends RetryLimits, ThrottleLimits {
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
  retriesPerAnswer: 0.2,
  retriesMax: 1_024,
  retriesFree: 16,
  freeEveryMs: 10_000,
  sentPerTaken: 1.5,
  windowMs: 2_000,
}

/** Tries that one node is given `tryTimeoutMs` for; then twice as long, and so on. */
const triesBeforeLonger = 3

export class Caller {
  readonly #ports: ClientPorts
  readonly #limits: ClientLimits
  readonly #links: Links
  readonly #leaders = new Leaders()
  readonly #outbox: Outbox<Request>
  /** Requests that have been sent and not answered. */
  readonly #pending: Numbered<Calling>
  readonly #late: LateTries<Calling>
  readonly #timeOut: TimeOut
  readonly #budget: RetryBudget
  #calls = 0
  #putBytes = 0
  #isClosed = false

  constructor(ports: ClientPorts, limits: ClientLimits) {
    this.#ports = ports
    this.#limits = limits
    const { failuresMax, avoidMs, avoidMaxMs } = limits
    const openMaxMs = Math.max(avoidMs, avoidMaxMs)
    const breaker = { failuresMax, openMs: avoidMs, openMaxMs }
    this.#links = new Links(ports.clock, { ...limits, ...breaker })
    this.#budget = new RetryBudget(limits, ports.clock.monotonicMs())
    this.#pending = new Numbered(limits.callsMax)
    this.#late = new LateTries(limits.callsMax)
    this.#timeOut = new TimeOut(ports.clock, (nowMs) => this.#giveUp(nowMs))
    this.#outbox = new Outbox<Request>({
      clock: ports.clock,
      send: (to, requests) => ports.transport.send(to, { kind: 'requests', requests }),
      bodyBytes: ({ operation }) => requestBytes(operation),
      onDropped: (_, requests) => {
        for (const { id } of requests) this.#end(id, { kind: 'unsent' })
      },
    })
    ports.transport.start({
      self: () => ({}),
      admit: () => undefined,
      onRefused: (...refused) => this.#links.onRefused(...refused),
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
    return this.#pick(operation, this.#ports.clock.monotonicMs())
  }

  /** Ends all calls and gives the connections back. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const id of this.#pending.where(() => true)) this.#end(id, { kind: 'lost' })
    this.#timeOut.stop()
    this.#links.stop()
    await this.#ports.transport.close()
  }

  /** Resolves with what the call came to, at the latest when the time is up. */
  carryOut(operation: Operation, call: Call, timeoutMs: number): Promise<Replied> {
    return this.carryOutAs(operation, call, timeoutMs, asItIs)
  }

  /** The same, with what `conclude` makes of it. */
  carryOutAs<Of extends Operation, Result>(
    operation: Of,
    call: Call,
    timeoutMs: number,
    conclude: (replied: Replied, operation: Of) => Result,
  ): Promise<Result> {
    const bytes = writtenBytes(operation)
    const refused = this.#refused(bytes)
    // One promise for all of it: what a try came to is handed on by calls.
    return new Promise((resolve, reject) => {
      if (refused !== undefined) return resolve(conclude(refusal(refused, call), operation))
      this.#calls += 1
      this.#putBytes += bytes
      const nowMs = this.#ports.clock.monotonicMs()
      // Spelled out: spreading objects takes longer than all the rest of a try.
      const one: Calling = {
        call,
        operation,
        bytes,
        deadlineMs: nowMs + timeoutMs,
        waitMs: 'waitMs' in operation ? operation.waitMs : 0,
        end: (replied) => resolve(conclude(replied, operation)),
        reject,
        tries: 0,
        tryMs: 0,
        lostAtMs: 0,
        endpoint: undefined,
        last: undefined,
        id: 0,
        sending: undefined,
        waitsUntilMs: 0,
        isUnsure: false,
        isOver: false,
      }
      this.#try(one, nowMs)
    })
  }

  #refused(bytes: number): Problem | undefined {
    if (this.#isClosed) return closed
    const { callsMax, putBytesMax } = this.#limits
    const isFull = this.#calls >= callsMax || (bytes > 0 && this.#putBytes + bytes > putBytesMax)
    return isFull ? tooManyCalls : undefined
  }

  #finish(one: Calling, why: Problem): void {
    this.#over(one)
    try {
      one.end(one.call.finish(why))
    } catch (error) {
      one.reject(error)
    }
  }

  #over(one: Calling): void {
    assert(!one.isOver, 'CALL-1: a call ends twice')
    one.isOver = true
    this.#late.drop(one)
    this.#calls -= 1
    this.#putBytes -= one.bytes
  }

  /** A bug of the call's: it ends all the same, and is not counted for good. */
  #fail(one: Calling, error: unknown): void {
    this.#leave(one)
    if (!one.isOver) this.#over(one)
    one.reject(error)
  }

  #try(one: Calling, nowMs: number): void {
    one.tries += 1
    one.tryMs = Math.min(leftMs(one, nowMs), this.#tryMs(one.tries) + one.waitMs)
    const endpoint = this.#pick(one.operation, nowMs, one.last)
    if (endpoint !== undefined) return this.#sendIfFree(one, endpoint, nowMs)
    void this.#links.whenUp(one.tryMs).then(() => this.#tryLater(one))
  }

  /** A link has come up, or the time of the try is over. */
  #tryLater(one: Calling): void {
    if (one.isOver) return
    const nowMs = this.#ports.clock.monotonicMs()
    const endpoint = this.#pick(one.operation, nowMs, one.last)
    // The wait for a link is not made up for after the deadline.
    one.tryMs = Math.min(one.tryMs, leftMs(one, nowMs))
    if (endpoint !== undefined) return this.#sendIfFree(one, endpoint, nowMs)
    one.endpoint = undefined
    this.#onTried(one, { kind: 'unsent' })
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
    const isDown = this.#links.pick(0, this.#ports.clock.monotonicMs()) === undefined
    if (isDown && reason !== undefined) {
      return problem('unavailable', `no node takes this client; ${reason}`, { attempts })
    }
    const what = isDown ? 'no node could be reached in time' : 'no node answered in time'
    return problem('unavailable', `${what}; try again`, { attempts })
  }

  /** To the node picked, to another one where that is overloaded, or to nobody where all are. */
  #sendIfFree(one: Calling, picked: Endpoint, nowMs: number): void {
    const { operation } = one
    const isOfWrites = isWrite(operation)
    const endpoint = this.#links.unhurried(picked, isOfWrites, spreadOf(operation), nowMs)
    const throttle = this.#links.throttleOf(endpoint, isOfWrites)
    throttle?.onAsked(nowMs)
    const chance = (millionths: number): boolean =>
      this.#ports.random.int(1, 1_000_000) <= millionths
    const mayGo = operation.kind === 'status' || throttle?.maySend(nowMs, chance) !== false
    if (mayGo) return this.#send(one, endpoint, nowMs)
    one.endpoint = undefined
    const retryAfterMs = Math.max(1, Math.ceil(throttle?.leftMs(nowMs) ?? 0))
    this.#onHeld(one, retryAfterMs, nowMs)
  }

  /** All nodes have too much to do: nothing is sent. Of what is unsure more is to be found out. */
  #onHeld(one: Calling, retryAfterMs: number, nowMs: number): void {
    if (one.isUnsure) return this.#tryAfter(one, this.#jittered(retryAfterMs), nowMs)
    this.#finish(one, problem('overloaded', tooMuchToDo, { retryAfterMs, attempts: one.tries - 1 }))
  }

  #send(one: Calling, endpoint: Endpoint, nowMs: number): void {
    assert(!one.isOver, 'CALL-1: a call that is over is sent again')
    const id = this.#pending.add(one)
    this.#links.begin(endpoint, nowMs)
    one.id = id
    one.endpoint = endpoint
    one.lostAtMs = nowMs + one.tryMs
    this.#timeOut.by(one.lostAtMs)
    // The node is to say what it knows before it is given up.
    const timeoutMs = Math.max(1, one.tryMs - Math.min(200, Math.ceil(one.tryMs / 10)))
    assert(nowMs >= one.waitsUntilMs, 'LOAD-7: what waits on a live link is sent again')
    one.waitsUntilMs = nowMs + timeoutMs
    one.sending = one.call.next()
    const { operation, intents } = one.sending
    const own = intents === undefined ? {} : { intents }
    this.#outbox.add(endpoint, { id, timeoutMs, operation, ...own })
  }

  /** Gives up what was not answered in its time; tells when the next one is due. */
  #giveUp(nowMs: number): number {
    let next = Number.POSITIVE_INFINITY
    const late = this.#pending.where(({ lostAtMs }) => {
      const isLate = lostAtMs <= nowMs
      if (!isLate) next = Math.min(next, lostAtMs)
      return isLate
    })
    for (const id of late) this.#giveUpOne(id)
    return next
  }

  #giveUpOne(id: number): void {
    const one = this.#pending.get(id)
    const { endpoint, sending } = one ?? {}
    if (one !== undefined && endpoint !== undefined && sending !== undefined) {
      this.#late.keep(id, { one, endpoint, sending })
    }
    this.#end(id, { kind: 'lost' })
  }

  /** The try of a call has ended: that was it, or there is another one. */
  #onTried(one: Calling, result: Try): void {
    try {
      const ending = this.#noteEnding(one, result)
      if (result.kind !== 'lost' || result.isLinkDown === true) one.waitsUntilMs = 0
      if (result.kind === 'lost') one.isUnsure = true
      if (one.call.take(result, one.sending)) return this.#finish(one, closed)
      one.last = ending === 'answered' && !isRefused(result) ? undefined : one.endpoint
      this.#tryAgain(one, result)
    } catch (error) {
      this.#fail(one, error)
    }
  }

  #noteEnding({ endpoint, operation, tryMs }: Calling, result: Try): Ending {
    if (endpoint === undefined) return 'untold'
    const ending = endingOf(result, tryMs)
    this.#links.end(endpoint, ending)
    if (result.kind !== 'answered') return ending
    this.#noteLeaders(operation, result.answered)
    this.#noteLoad(endpoint, operation, result.answered, ending)
    return ending
  }

  /** What is refused for a group's sake tells nothing of the node's other groups. */
  #noteLoad(endpoint: Endpoint, operation: Operation, { answer }: Replied, ending: Ending): void {
    const throttle = this.#links.throttleOf(endpoint, isWrite(operation))
    const nowMs = this.#ports.clock.monotonicMs()
    const { retryAfterMs, group } = overloadOf(answer)?.detail ?? {}
    if (retryAfterMs !== undefined && group === undefined) {
      return throttle?.onRefused(nowMs, this.#jittered(retryAfterMs))
    }
    throttle?.onTaken(nowMs)
    if (ending === 'answered') this.#budget.onAnswered()
  }

  /** Those who are told the same do not come again at the same time. */
  #jittered(ms: number): number {
    return this.#ports.random.int(Math.ceil(ms), Math.ceil(ms * 1.25))
  }

  #tryAgain(one: Calling, result: Try): void {
    if (this.#isClosed) return this.#finish(one, closed)
    const nowMs = this.#ports.clock.monotonicMs()
    const overload = result.kind === 'answered' ? overloadOf(result.answered.answer) : undefined
    const isRefused = overload !== undefined && !one.isUnsure
    if (!isFree(result) && !this.#budget.take(nowMs, isRefused)) {
      // It has its answer: too much is asked. What is unsure waits until another try may be paid for.
      if (isRefused) return this.#finish(one, this.#noAnswer(one.tries))
      return this.#waitForBudget(one, result, nowMs)
    }
    const { retryAfterMs = 0 } = overload?.detail ?? {}
    const isElsewhere = retryAfterMs === 0 || this.#isAnyUnhurried(one, nowMs)
    const backoffMs = this.#backoffMs(one.tries)
    this.#tryAfter(one, isElsewhere ? backoffMs : this.#jittered(retryAfterMs), nowMs)
  }

  #isAnyUnhurried({ operation, endpoint }: Calling, nowMs: number): boolean {
    if (endpoint === undefined) return false
    const isOfWrites = isWrite(operation)
    return this.#links.unhurried(endpoint, isOfWrites, spreadOf(operation), nowMs) !== endpoint
  }

  #waitForBudget(one: Calling, result: Try, nowMs: number): void {
    const { backoffMaxMs } = this.#limits
    const delayMs = this.#ports.random.int(Math.ceil(backoffMaxMs / 2), backoffMaxMs)
    this.#after(one, delayMs, nowMs, () => this.#tryAgain(one, result))
  }

  #tryAfter(one: Calling, delayMs: number, nowMs: number): void {
    if (delayMs === 0 && nowMs < one.deadlineMs) return this.#try(one, nowMs)
    this.#after(one, delayMs, nowMs, () => this.#try(one, this.#ports.clock.monotonicMs()))
  }

  #after(one: Calling, delayMs: number, nowMs: number, next: () => void): void {
    if (nowMs + delayMs >= one.deadlineMs) return this.#finish(one, this.#noAnswer(one.tries))
    this.#ports.clock.setTimer(delayMs, () => {
      if (one.isOver) return
      if (this.#isClosed) this.#finish(one, closed)
      else next()
    })
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

  #pick(operation: Operation, nowMs: number, not?: Endpoint): Endpoint | undefined {
    const led = groupLed(operation)
    const node = led && this.#leaders.of(led)
    // Who shares the work asks the same node, which knows all of them.
    const isAlike = operation.kind === 'watch-agenda'
    return this.#links.pick(spreadOf(operation), nowMs, node, not, isAlike)
  }

  #end(id: number, result: Try): void {
    const one = this.#pending.take(id)
    if (one !== undefined) this.#onTried(one, result)
  }

  #onLink(node: Endpoint, state: 'up' | 'down', id: string | undefined): void {
    if (this.#isClosed) return
    if (state === 'up') return this.#links.onUp(node, id ?? node)
    this.#links.onDown(node)
    this.#outbox.drop(node)
    for (const id of this.#pending.where(({ endpoint }) => endpoint === node)) {
      this.#end(id, { kind: 'lost', isLinkDown: true })
    }
  }

  #onFrame(node: Endpoint, frame: ClientFrame): void {
    if (frame.kind !== 'responses') return
    for (const response of frame.responses) this.#onResponse(node, response)
  }

  #onResponse(node: Endpoint, response: Response): void {
    const { id } = response
    const one = this.#pending.get(id)
    if (one === undefined) return this.#onLate(node, response)
    if (one.endpoint === node) this.#end(id, { kind: 'answered', answered: response })
  }

  /** Of what is doubled, or answers a call that is over, nobody is found. */
  #onLate(node: Endpoint, answered: Response): void {
    const late = this.#late.take(answered.id, node)
    if (late === undefined) return
    const { one, sending } = late
    try {
      // If that was not it, a newer try is under way, or will begin in its time.
      if (!one.call.take({ kind: 'answered', answered }, sending)) return
      this.#leave(one)
      this.#finish(one, closed)
    } catch (error) {
      this.#fail(one, error)
    }
  }

  /** Nobody waits for the latest try any more: it says nothing of its node. */
  #leave({ id, endpoint }: Calling): void {
    const isUnderWay = this.#pending.take(id) !== undefined
    if (isUnderWay && endpoint !== undefined) this.#links.end(endpoint, 'untold')
  }
}
