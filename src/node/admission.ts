/**
 * Decides which requests begin at this node, and when. All of a node runs in one event loop. If every request
 * began as it came, the turns of the loop would grow long. Everything would then wait for everything else:
 * also for messages of peers, without which no request ends. So a turn begins a bounded part of the requests
 * that have come; the others wait in lanes for a bounded time. The node refuses at once, without work, each
 * request that it cannot serve in time.
 *
 *   reads    wait for a turn.
 *   writes   wait for a turn, and for room among the writes at work: their number follows how long they take.
 *
 * See SPEC.md, "Overload": LOAD-1 to LOAD-5.
 */
import { assert } from '../base/assert.ts'
import { problem, type Problem } from '../base/problem.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import { Lane, type LaneLimits, type Waiting } from './lane.ts'
import { defaultWorkLimits, WorkLimit, type WorkEnd, type WorkLimits } from './work-limit.ts'

export interface AdmissionLimits extends LaneLimits {
  readonly work: WorkLimits
  /** The most requests that one turn of the loop begins. A turn that has lasted `turnMs` begins no more. */
  readonly turnBeginsMax: number
  readonly turnMs: number
  /** The bounds of the delay that a refusal names. */
  readonly retryAfterMsMin: number
  readonly retryAfterMsMax: number
}

export const defaultAdmissionLimits: AdmissionLimits = {
  targetMs: 200,
  intervalMs: 500,
  waitingMax: 20_000,
  fewMax: 32,
  work: defaultWorkLimits,
  turnBeginsMax: 64,
  turnMs: 10,
  retryAfterMsMin: 50,
  retryAfterMsMax: 1_000,
}

/** Turns that are shorter tell nothing of those who come in the next one. */
const longTurnMs = 20

export type LaneName = 'reads' | 'writes'

export interface Entrant {
  readonly lane: LaneName
  /** When it came to this process; absent: now. */
  readonly sinceMs?: number
  /** Its time, from when it came. */
  readonly timeoutMs: number
  /** Those that have come after it and are not taken up yet: they wait as those in a lane do. Absent: none. */
  readonly behind?: number
  /** Its turn has come, with the rest of its time. False: it ended at once, without waiting. */
  begin(leftMs: number): boolean
  refuse(why: Problem): void
}

interface Queued extends Waiting {
  readonly entrant: Entrant
}

/** Work that has begun; its owner reports here how it ended. */
export interface Pass {
  leave(end: WorkEnd): void
}

export interface AdmissionFigures {
  readonly waiting: Readonly<Record<LaneName, number>>
  /** Since the node started. */
  readonly refused: Readonly<Record<LaneName, number>>
  readonly writesAtWork: number
  readonly writesMax: number
}

export class Admission {
  readonly #clock: Clock
  readonly #limits: AdmissionLimits
  readonly #lanes: Readonly<Record<LaneName, Lane<Queued>>>
  readonly #work: WorkLimit
  readonly #refused = { reads: 0, writes: 0 }
  /** Begun and refused, in the window that is under way; refusals for each that was begun in the one before. */
  #begunLately = 0
  #refusedLately = 0
  #windowFromMs = 0
  #refusedPerBegun = 0
  #isTurnOpen = false
  #turnFromMs = 0
  #begunInTurn = 0
  /** How long the turn before took, where what is read now may have waited for its end. */
  #lateMs = 0
  #timer: Timer | undefined
  #timerMs = Number.POSITIVE_INFINITY

  constructor(clock: Clock, limits: AdmissionLimits = defaultAdmissionLimits) {
    this.#clock = clock
    this.#limits = limits
    this.#lanes = { reads: new Lane(limits), writes: new Lane(limits) }
    this.#work = new WorkLimit(limits.work)
  }

  get figures(): AdmissionFigures {
    const { reads, writes } = this.#lanes
    return {
      waiting: { reads: reads.length, writes: writes.length },
      refused: { ...this.#refused },
      writesAtWork: this.#work.atWork,
      writesMax: this.#work.max,
    }
  }

  /** The time of its clock, for callers that compute how much of a request's time is left. */
  get nowMs(): number {
    return this.#clock.monotonicMs()
  }

  /**
   * Begins the entrant now, queues it for its turn, or refuses it; calls `begin` or `refuse` of the entrant.
   * True: it waits for its turn.
   */
  enter(entrant: Entrant): boolean {
    const nowMs = this.#clock.monotonicMs()
    this.#openTurn(nowMs)
    const { lane: name, timeoutMs, sinceMs = nowMs, behind = 0 } = entrant
    const lane = this.#lanes[name]
    // It may have waited in its socket for as long as the turn before took.
    const deadlineMs = sinceMs + timeoutMs - this.#lateMs
    const isCalm = lane.length + behind <= this.#limits.fewMax
    const hasWaitedLong = !isCalm && nowMs - sinceMs > this.#limits.intervalMs
    if (hasWaitedLong) this.#refuse(entrant)
    else if (nowMs >= deadlineMs) this.#onLate({ entrant }, isCalm)
    else if (lane.length === 0 && this.#hasRoom(name) && this.#mayBegin(nowMs)) {
      this.#begin(entrant, Math.max(1, Math.floor(deadlineMs - nowMs)))
    } else if (lane.add({ entrant, sinceMs, deadlineMs }, nowMs)) {
      this.#watch(lane.dueMs)
      return true
    } else this.#refuse(entrant)
    return false
  }

  /** A write that begins: its end is to be told. */
  beginWork(): Pass {
    const fromMs = this.#clock.monotonicMs()
    this.#work.begin()
    let isOver = false
    return {
      leave: (end) => {
        assert(!isOver, 'LOAD-3: work ends twice')
        isOver = true
        const nowMs = this.#clock.monotonicMs()
        this.#work.end(nowMs, fromMs, end)
        if (this.#lanes.writes.length > 0) this.#openTurn(nowMs)
      },
    }
  }

  /** Of an HTTP request, say: resolves when its turn has come, or with why it does not come. */
  pass(lane: LaneName, timeoutMs: number): Promise<Pass | Problem> {
    return new Promise((resolve) => {
      this.enter({
        lane,
        timeoutMs,
        begin: () => {
          resolve(lane === 'writes' ? this.beginWork() : freePass)
          return true
        },
        refuse: resolve,
      })
    })
  }

  /** Why one that comes now would be refused, as far as is known: cheap, for who has nothing else to ask. */
  refusalNow(name: LaneName): Problem | undefined {
    const nowMs = this.#clock.monotonicMs()
    const lane = this.#lanes[name]
    if (!lane.isFull(nowMs)) return undefined
    this.#countRefusal(name)
    return this.overloaded()
  }

  /** The problem that answers a refused request. */
  overloaded(message: string = tooMuch): Problem {
    return problem('overloaded', message, { retryAfterMs: this.retryAfterMs() })
  }

  /**
   * After how long a client may try again: about the time that the waiting requests need to leave the lanes.
   * The more requests the node refuses for each one it serves, the longer clients should wait.
   */
  retryAfterMs(): number {
    const { retryAfterMsMin, retryAfterMsMax, targetMs } = this.#limits
    const nowMs = this.#clock.monotonicMs()
    const { reads, writes } = this.#lanes
    const isAnyStanding = reads.isStanding(nowMs) || writes.isStanding(nowMs)
    const leastMs = isAnyStanding ? targetMs : targetMs / 4
    const waitedMs = Math.max(reads.waitedMs(nowMs), writes.waitedMs(nowMs), leastMs)
    const afterMs = Math.round(waitedMs * (1 + this.#refusedPerBegun))
    return Math.min(retryAfterMsMax, Math.max(retryAfterMsMin, afterMs))
  }

  /** The node stops: it refuses each waiting request with this reason. */
  refuseAll(why: Problem): void {
    for (const lane of Object.values(this.#lanes)) lane.clear(({ entrant }) => entrant.refuse(why))
  }

  #hasRoom(name: LaneName): boolean {
    return name === 'reads' || this.#work.hasRoom
  }

  #mayBegin(nowMs: number): boolean {
    const { turnBeginsMax, turnMs } = this.#limits
    return this.#begunInTurn < turnBeginsMax && nowMs - this.#turnFromMs < turnMs
  }

  #begin(entrant: Entrant, leftMs: number): void {
    this.#begunLately += 1
    assert(this.#begunInTurn < this.#limits.turnBeginsMax, 'LOAD-4: a turn begins too much')
    if (entrant.begin(leftMs)) this.#begunInTurn += 1
  }

  #refuse(entrant: Entrant): void {
    this.#countRefusal(entrant.lane)
    const why = this.overloaded()
    assert((why.detail.retryAfterMs ?? 0) > 0, 'LOAD-5: a refusal does not say when to come again')
    entrant.refuse(why)
  }

  #countRefusal(name: LaneName): void {
    this.#refused[name] += 1
    this.#refusedLately += 1
  }

  #openTurn(nowMs: number): void {
    if (this.#isTurnOpen) return
    this.#isTurnOpen = true
    this.#turnFromMs = nowMs
    this.#begunInTurn = 0
    this.#clock.defer(() => this.#endTurn())
  }

  #endTurn(): void {
    const nowMs = this.#clock.monotonicMs()
    this.#isTurnOpen = false
    this.#noteTurn(nowMs - this.#turnFromMs)
    this.#noteWindow(nowMs)
    this.#shed(nowMs)
    const { reads, writes } = this.#lanes
    if (reads.length === 0 && (writes.length === 0 || !this.#work.hasRoom)) return
    // Requests that begin here count for the coming turn, so later arrivals find less of it left.
    this.#openTurn(nowMs)
    this.#beginWaiting()
  }

  #noteTurn(tookMs: number): void {
    this.#lateMs = tookMs >= longTurnMs ? tookMs : 0
    if (this.#lateMs > 0) this.#clock.defer(() => (this.#lateMs = 0))
  }

  /** In turns, lane by lane: neither waits for the end of the other. */
  #beginWaiting(): void {
    for (let isAny = true; isAny;) {
      isAny = false
      for (const name of ['writes', 'reads'] as const) {
        const nowMs = this.#clock.monotonicMs()
        if (!this.#mayBegin(nowMs)) return
        if (!this.#hasRoom(name)) continue
        const one = this.#lanes[name].next(nowMs, this.#onLate)
        if (one === undefined) continue
        isAny = true
        this.#begin(one.entrant, Math.max(1, Math.floor(one.deadlineMs - nowMs)))
      }
    }
  }

  /** A node that stood still, or has no majority, has not too much to do. */
  readonly #onLate = ({ entrant }: Pick<Queued, 'entrant'>, isCalm: boolean): void => {
    if (isCalm) entrant.refuse(tooLate)
    else this.#refuse(entrant)
  }

  #shed(nowMs: number): void {
    for (const lane of Object.values(this.#lanes)) {
      lane.shed(nowMs, this.#onLate)
      this.#watch(lane.dueMs)
    }
  }

  /** Perhaps no work ends for a long time. A timer then refuses waiting requests when their time is over. */
  #watch(atMs: number): void {
    if (atMs >= this.#timerMs) return
    this.#timer?.cancel()
    this.#timerMs = atMs
    // A part of a millisecond later: it is over then.
    const delayMs = Math.max(0, Math.ceil(atMs - this.#clock.monotonicMs()) + 1)
    this.#timer = this.#clock.setTimer(delayMs, () => {
      this.#timerMs = Number.POSITIVE_INFINITY
      this.#openTurn(this.#clock.monotonicMs())
    })
  }

  #noteWindow(nowMs: number): void {
    if (nowMs - this.#windowFromMs < this.#limits.intervalMs) return
    this.#refusedPerBegun = this.#refusedLately / Math.max(1, this.#begunLately)
    this.#begunLately = 0
    this.#refusedLately = 0
    this.#windowFromMs = nowMs
  }
}

const tooMuch = 'too much is at work at this node; try again later'

const tooLate = problem('unavailable', 'its time was over before its turn came; try again')

const freePass: Pass = { leave: () => undefined }
