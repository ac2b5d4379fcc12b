/**
 * Sends requests to a node, and to another one when that does not answer, until there is an answer
 * or the time is up. Over ports only, so that the simulator runs it as it is.
 *
 * CALL-1  A call ends once, and no try begins for it after that. The answer to a try that was given up may
 *         end it; it never begins another try.
 * LOAD-7  A request that waits at a node on a live link is not sent again until it is answered, its link
 *         breaks, or the time that the client gave that node is over.
 *
 * All requests of one turn go in one frame. Calls under way are bounded; those without room wait in
 * `holding.ts`.
 */
import { assert } from '../base/assert.ts'
import type { Problem } from '../base/problem.ts'
import type { Pace } from '../ports/pace.ts'
import type { Endpoint } from '../ports/transport.ts'
import { requestBytes } from '../wire/client/client-bytes.ts'
import {
  isWrite,
  writtenBytes,
  type ClientFrame,
  type Operation,
  type Replied,
  type Request,
  type Response,
} from '../wire/client/client-message.ts'
import { Outbox } from '../wire/outbox.ts'
import type { Call, Try } from './call.ts'
import {
  asItIs,
  computeBackoffMs,
  inFlightCall,
  closed,
  givenUpInWrite,
  heldBack,
  isFree,
  leftMs,
  readLoad,
  refusal,
  computeTryMs,
  tooMuchUnderWay,
  waitToTheEnd,
  whenGone,
  type InFlight,
  type Lane,
  type Load,
} from './in-flight.ts'
import type { ClientLimits } from './client-limits.ts'
import type { ClientPorts } from './client-ports.ts'
import { classifyEnding, isRefused } from './ending.ts'
import { Holding, type HoldingFigures } from './holding.ts'
import { AbandonedAttempts } from './abandoned-attempts.ts'
import { Leaders } from './leaders.ts'
import { Links, type Ending, type LinkView } from './links.ts'
import { RingTable } from './ring-table.ts'
import { RetryBudget } from './retry-budget.ts'
import { groupLed, computeSpread } from './spread.ts'
import { TimeOut } from '../time/time-out.ts'

export class RequestSender {
  readonly #ports: ClientPorts
  readonly #limits: ClientLimits
  readonly #links: Links
  readonly #leaders = new Leaders()
  readonly #outbox: Outbox<Request>
  /** Requests that have been sent and not answered. */
  readonly #pending: RingTable<InFlight>
  readonly #late: AbandonedAttempts<InFlight>
  readonly #timeOut: TimeOut
  readonly #budget: RetryBudget
  readonly #holding: Holding
  #calls = 0
  #putBytes = 0
  #isClosed = false

  constructor(ports: ClientPorts, limits: ClientLimits) {
    this.#ports = ports
    this.#limits = limits
    const { avoidMs: openMs, avoidMaxMs } = limits
    const breaker = { ...limits, openMs, openMaxMs: Math.max(openMs, avoidMaxMs) }
    this.#links = new Links(ports.clock, breaker, ports.transport.addresses)
    this.#budget = new RetryBudget(limits, ports.clock.monotonicMs())
    this.#pending = new RingTable(limits.callsMax)
    this.#late = new AbandonedAttempts(limits.callsMax)
    this.#timeOut = new TimeOut(ports.clock, (nowMs) => this.#giveUp(nowMs))
    this.#holding = new Holding(
      {
        clock: ports.clock,
        send: (one, nowMs) => this.#sendIfRoom(one, nowMs),
        inFlight: (lane) => this.#links.inFlight(lane),
        roomAtMs: (lane, nowMs) => this.#links.roomAtMs(lane, nowMs),
        onLate: (one, isLoaded) =>
          this.#finish(one, isLoaded ? heldBack() : this.#links.noAnswer(one.tries)),
      },
      limits,
    )
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
      onUnreached: (...unreached) => this.#links.onUnreached(...unreached),
      onLink: (node, state, info) => this.#onLink(node, state, info.node),
      onFrame: (node, frame) => this.#onFrame(node, frame),
      onLeaving: (node) => this.#links.onLeaving(node),
      isIdle: (node) => this.#waitingAt(node).length === 0,
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

  /** Calls that wait here until nodes have room for them, and those that were refused here. */
  get held(): HoldingFigures {
    return this.#holding.figures
  }

  /** The node that would be asked now; undefined when no link is up. */
  findPlace(operation: Operation): Endpoint | undefined {
    return this.#pick(operation, this.#ports.clock.monotonicMs())
  }

  /** Ends all calls and gives the connections back. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const one of this.#holding.stop()) this.#finish(one, closed)
    for (const id of this.#pending.where(() => true)) this.#end(id, { kind: 'lost' })
    this.#timeOut.stop()
    this.#links.stop()
    await this.#ports.transport.close()
  }

  /** Resolves with what the call came to, at the latest when the time is up. */
  carryOut(
    operation: Operation,
    call: Call,
    timeoutMs: number,
    pace?: Pick<Pace, 'onGone'>,
  ): Promise<Replied> {
    return this.carryOutAs(operation, call, timeoutMs, asItIs, pace)
  }

  /**
   * The same, with what `conclude` makes of it. `pace`: of a call whose caller may go away. The client then
   * tells the node, where it reads (COST-4); a write that is under way may be carried out.
   */
  carryOutAs<Of extends Operation, Result>(
    operation: Of,
    call: Call,
    timeoutMs: number,
    conclude: (replied: Replied, operation: Of) => Result,
    pace?: Pick<Pace, 'onGone'>,
  ): Promise<Result> {
    const bytes = writtenBytes(operation)
    const refused = this.#refused(bytes)
    // One promise for all of it: what a try came to is handed on by calls.
    return new Promise((resolve, reject) => {
      if (refused !== undefined) return resolve(conclude(refusal(refused, call), operation))
      this.#calls += 1
      this.#putBytes += bytes
      const nowMs = this.#ports.clock.monotonicMs()
      const end = (replied: Replied): void => resolve(conclude(replied, operation))
      const one = inFlightCall({ call, operation, bytes, nowMs, timeoutMs, end, reject })
      if (pace !== undefined) one.forget = whenGone(pace, () => this.#abandon(one))
      // Given up already: then nothing is sent.
      if (one.isOver) return
      const refusedMs = this.#holding.enter(one, nowMs)
      if (refusedMs !== undefined) this.#finish(one, heldBack(refusedMs))
    })
  }

  /** Its caller waits no longer: its node need not go on. */
  #abandon(one: InFlight): void {
    if (one.isOver) return
    const { id, endpoint, operation: asked, sending } = one
    const isUnderWay = this.#pending.get(id) === one
    this.#leave(one)
    const mayBeDone = isUnderWay && isWrite(asked)
    if (mayBeDone) one.call.take({ kind: 'lost' }, sending)
    else if (isUnderWay && endpoint !== undefined) {
      const operation = { kind: 'cancel', request: id } as const
      this.#outbox.add(endpoint, { id: this.#pending.draw(), timeoutMs: 1, operation })
    }
    this.#finish(one, mayBeDone ? givenUpInWrite : closed)
  }

  #refused(bytes: number): Problem | undefined {
    if (this.#isClosed) return closed
    const { callsMax, putBytesMax } = this.#limits
    if (this.#calls >= callsMax) return tooMuchUnderWay('callsMax', callsMax, this.#calls)
    const sum = this.#putBytes + bytes
    if (bytes === 0 || sum <= putBytesMax) return undefined
    return tooMuchUnderWay('putBytesMax', putBytesMax, sum)
  }

  #finish(one: InFlight, why: Problem): void {
    this.#over(one)
    try {
      one.end(one.call.finish(why))
    } catch (error) {
      one.reject(error)
    }
  }

  #over(one: InFlight): void {
    assert(!one.isOver, 'CALL-1: a call ends twice')
    one.isOver = true
    one.forget?.()
    this.#late.drop(one)
    this.#calls -= 1
    this.#putBytes -= one.bytes
  }

  /** A bug of the call's: it ends all the same, and is not counted for good. */
  #fail(one: InFlight, error: unknown): void {
    this.#leave(one)
    if (!one.isOver) this.#over(one)
    one.reject(error)
  }

  /** To the node that it is best asked of, or to one that has room; false: none has. */
  #sendIfRoom(one: InFlight, nowMs: number): boolean {
    const { operation, lane, last } = one
    const picked = this.#pick(operation, nowMs, last)
    one.tryMs = Math.min(leftMs(one, nowMs), computeTryMs(one.tries + 1, this.#limits) + one.waitMs)
    if (picked === undefined) {
      if (this.#endHopeless(one)) return true
      void this.#links.whenUp(one.tryMs).then(() => this.#tryLater(one))
      return true
    }
    const isFreeOfLoad = lane === undefined || this.#links.hasRoom(picked, lane, nowMs)
    const endpoint = isFreeOfLoad
      ? picked
      : this.#links.roomy(lane, computeSpread(operation), nowMs, last)
    if (endpoint === undefined) return false
    one.tries += 1
    this.#send(one, endpoint, nowMs)
    return true
  }

  /** A link has come up, or the time of the try is over. */
  #tryLater(one: InFlight): void {
    if (one.isOver) return
    const nowMs = this.#ports.clock.monotonicMs()
    const isUp = this.#pick(one.operation, nowMs, one.last) !== undefined
    if (isUp && nowMs < one.deadlineMs) return this.#holding.enterAgain(one, nowMs)
    if (!isUp && this.#endHopeless(one)) return
    one.tries += 1
    one.endpoint = undefined
    this.#onTried(one, { kind: 'unsent' })
  }

  /** Nothing that a call could wait for: it ends at once. */
  #endHopeless(one: InFlight): boolean {
    const why = one.isUnsure ? undefined : this.#links.hopeless()
    if (why === undefined) return false
    this.#finish(one, why)
    return true
  }

  #send(one: InFlight, endpoint: Endpoint, nowMs: number): void {
    assert(!one.isOver, 'CALL-1: a call that is over is sent again')
    const id = this.#pending.add(one)
    this.#links.begin(endpoint, nowMs, one.lane)
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
  #onTried(one: InFlight, result: Try): void {
    try {
      const ending = this.#noteEnding(one, result)
      if (result.kind !== 'lost' || result.isLinkDown === true) one.waitsUntilMs = 0
      if (result.kind === 'lost') one.isUnsure = true
      if (one.isUnsure) waitToTheEnd(one)
      if (one.call.take(result, one.sending)) return this.#finish(one, closed)
      one.last = ending === 'answered' && !isRefused(result) ? undefined : one.endpoint
      this.#tryAgain(one, result)
    } catch (error) {
      this.#fail(one, error)
    } finally {
      this.#onRoom(one)
    }
  }

  #onRoom({ lane }: InFlight): void {
    if (lane !== undefined) this.#holding.onEnded(lane, this.#ports.clock.monotonicMs())
  }

  #noteEnding(one: InFlight, result: Try): Ending {
    const { endpoint, operation, lane, tryMs } = one
    if (endpoint === undefined) return 'inconclusive'
    const ending = classifyEnding(result, tryMs)
    this.#links.end(endpoint, ending, lane)
    const load = readLoad(result)
    if (lane !== undefined) this.#noteLoad(one, endpoint, lane, result, load)
    if (result.kind !== 'answered') return ending
    this.#leaders.noteFrom(operation, result.answered)
    if (ending === 'answered' && load === undefined) this.#budget.onAnswered()
    return ending
  }

  #noteLoad(one: InFlight, endpoint: Endpoint, lane: Lane, result: Try, load?: Load): void {
    const nowMs = this.#ports.clock.monotonicMs()
    const sentAtMs = one.lostAtMs - one.tryMs
    if (load?.isOfNode === true) {
      const retryAfterMs = this.#jittered(load.retryAfterMs)
      this.#links.onOverloaded(endpoint, lane, { nowMs, sentAtMs, retryAfterMs })
      this.#holding.onRefused(lane, nowMs)
    } else if (result.kind === 'answered') {
      this.#links.onTaken(endpoint, lane)
      this.#holding.onAnswered(lane, nowMs)
    } else if (result.kind === 'lost' && result.isLinkDown !== true) {
      this.#links.onLost(endpoint, lane, nowMs, sentAtMs)
    }
  }

  /** Calls that get the same wait do not come again at the same time. */
  #jittered(ms: number): number {
    return this.#ports.random.int(Math.ceil(ms), Math.ceil(ms * 1.25))
  }

  #tryAgain(one: InFlight, result: Try): void {
    if (this.#isClosed) return this.#finish(one, closed)
    const nowMs = this.#ports.clock.monotonicMs()
    const load = readLoad(result)
    if (load?.isOfNode === true) return this.#comeBack(one, load, nowMs)
    const isRefused = load !== undefined && !one.isUnsure
    if (!isFree(result) && !this.#budget.take(nowMs, isRefused)) {
      // It has its answer: its group has too many requests. An unsure call waits until the budget pays for
      // another try.
      if (isRefused) return this.#finish(one, this.#links.noAnswer(one.tries))
      return this.#waitForBudget(one, result, nowMs)
    }
    const { random } = this.#ports
    const afterMs = load?.retryAfterMs ?? 0
    const ms =
      afterMs > 0 ? this.#jittered(afterMs) : computeBackoffMs(one.tries, this.#limits, random)
    this.#tryAfter(one, ms, nowMs)
  }

  /** Refused for load: windows bound how often. */
  #comeBack(one: InFlight, { retryAfterMs }: Load, nowMs: number): void {
    const { lane } = one
    one.last = one.endpoint
    if (lane === undefined) return this.#tryAfter(one, this.#jittered(retryAfterMs), nowMs)
    const isElsewhere = this.#links.isAnyUnhurried(lane, nowMs)
    const delayMs = isElsewhere ? 0 : this.#jittered(retryAfterMs)
    if (!this.#holding.mayWait(one, lane, nowMs, nowMs + delayMs)) {
      return this.#finish(one, heldBack(retryAfterMs))
    }
    if (isElsewhere) return this.#holding.enterAgain(one, nowMs)
    this.#holding.setAside(lane, nowMs)
    this.#ports.clock.setTimer(delayMs, () => {
      const thenMs = this.#ports.clock.monotonicMs()
      this.#holding.takeBack(lane, thenMs)
      if (one.isOver) return
      if (this.#isClosed) return this.#finish(one, closed)
      this.#holding.enterAgain(one, thenMs)
    })
  }

  #waitForBudget(one: InFlight, result: Try, nowMs: number): void {
    const { backoffMaxMs } = this.#limits
    const delayMs = this.#ports.random.int(Math.ceil(backoffMaxMs / 2), backoffMaxMs)
    this.#after(one, delayMs, nowMs, () => this.#tryAgain(one, result))
  }

  #tryAfter(one: InFlight, delayMs: number, nowMs: number): void {
    if (delayMs === 0 && nowMs < one.deadlineMs) return this.#holding.enterAgain(one, nowMs)
    this.#after(one, delayMs, nowMs, () =>
      this.#holding.enterAgain(one, this.#ports.clock.monotonicMs()),
    )
  }

  #after(one: InFlight, delayMs: number, nowMs: number, next: () => void): void {
    if (nowMs + delayMs >= one.deadlineMs) return this.#finish(one, this.#links.noAnswer(one.tries))
    this.#ports.clock.setTimer(delayMs, () => {
      if (one.isOver) return
      if (this.#isClosed) this.#finish(one, closed)
      else next()
    })
  }

  #pick(operation: Operation, nowMs: number, not?: Endpoint): Endpoint | undefined {
    const led = groupLed(operation)
    const node = led && this.#leaders.of(led)
    // Clients that share the work ask the same node, which knows all of them.
    const isAlike = operation.kind === 'watch-worklist'
    return this.#links.pick(computeSpread(operation), nowMs, node, not, isAlike)
  }

  #end(id: number, result: Try): void {
    const one = this.#pending.take(id)
    if (one !== undefined) this.#onTried(one, result)
  }

  #onLink(node: Endpoint, state: 'up' | 'down', id: string | undefined): void {
    if (this.#isClosed) return
    if (state === 'up') {
      this.#links.onUp(node, id ?? node)
      return this.#holding.onUp(this.#ports.clock.monotonicMs())
    }
    this.#links.onDown(node)
    this.#outbox.drop(node)
    for (const id of this.#waitingAt(node)) this.#end(id, { kind: 'lost', isLinkDown: true })
  }

  #waitingAt(node: Endpoint): readonly number[] {
    return this.#pending.where(({ endpoint }) => endpoint === node)
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

  /** An answer that came twice, or is of a call that is over, belongs to no try. */
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

  /** The call gives up its latest try: that says nothing of its node. */
  #leave(one: InFlight): void {
    const { id, endpoint, lane } = one
    const isUnderWay = this.#pending.take(id) !== undefined
    if (!isUnderWay || endpoint === undefined) return
    this.#links.end(endpoint, 'inconclusive', lane)
    this.#onRoom(one)
  }
}
