/**
 * Requests of one kind that wait for their turn, first come, first served, each for a bounded time. Pure:
 * time is an argument.
 *
 * As in CoDel ("Controlling Queue Delay", Nichols and Jacobson) a queue is judged by how long those at its
 * head have waited. One that is empty now and then takes up a burst: `intervalMs` of waiting is let pass. A
 * queue whose head has waited for longer than `targetMs` for a whole interval stands: waiting in it helps no
 * client. Then no request waits for longer than the target, and a request that would is refused as it comes.
 *
 * The last `fewMax` are no queue, however long they wait: their node has stood still for a moment, or is
 * slow. They delay no other request, and wait while their time lasts.
 *
 * LOAD-1  Nothing begins that has waited for longer than `intervalMs`, but for the last few.
 * LOAD-2  Nothing begins whose deadline has passed.
 */
import { assert } from '../base/assert.ts'

export interface LaneLimits {
  readonly targetMs: number
  readonly intervalMs: number
  /** Requests. */
  readonly waitingMax: number
  /** Up to this many requests are not refused for how long they wait. */
  readonly fewMax: number
}

export interface Waiting {
  /** When the request came to this node, and when its client stops waiting for the answer. */
  readonly sinceMs: number
  readonly deadlineMs: number
}

/** `isCalm`: its time is over, and few waited: that is not for load. */
export type OnLate<One> = (one: One, isCalm: boolean) => void

/** How many empty places in front are kept before they are given back. */
const compactAt = 1_024

export class Lane<One extends Waiting> {
  readonly #limits: LaneLimits
  #waiting: One[] = []
  #head = 0
  /** Since when the head has waited for longer than the target; undefined: it has not. */
  #lateSinceMs: number | undefined
  /** In the interval that is under way, and how many in each millisecond of the one before. */
  #begun = 0
  #begunFromMs = 0
  #begunPerMs = 0

  constructor(limits: LaneLimits) {
    this.#limits = limits
  }

  get length(): number {
    return this.#waiting.length - this.#head
  }

  /** How long the first in line has waited. */
  waitedMs(nowMs: number): number {
    const first = this.#waiting[this.#head]
    return first === undefined ? 0 : nowMs - first.sinceMs
  }

  /** No more wait than are let wait for as long as their time lasts. */
  get isCalm(): boolean {
    return this.length <= this.#limits.fewMax
  }

  /** Until when the first in line may wait, or, of few, any of them; `Infinity` when the lane is empty. */
  get dueMs(): number {
    if (this.length === 0) return Number.POSITIVE_INFINITY
    if (this.isCalm) {
      const deadlines = this.#waiting.slice(this.#head).map(({ deadlineMs }) => deadlineMs)
      return Math.min(...deadlines)
    }
    const first = this.#waiting[this.#head]
    if (first === undefined) return Number.POSITIVE_INFINITY
    return Math.min(first.sinceMs + this.#limits.intervalMs, first.deadlineMs)
  }

  isStanding(nowMs: number): boolean {
    const { intervalMs } = this.#limits
    return this.#lateSinceMs !== undefined && nowMs - this.#lateSinceMs >= intervalMs
  }

  /** In one that stands there is room for what begins within the target. */
  isFull(nowMs: number): boolean {
    const { targetMs, waitingMax, fewMax } = this.#limits
    if (this.length >= waitingMax) return true
    if (this.length < fewMax) return false
    return this.isStanding(nowMs) && this.length >= this.#begunPerMs * targetMs
  }

  /** Whether this one waits from now on; else it is to be refused at once: its turn would come too late. */
  add(one: One, nowMs: number): boolean {
    if (this.isFull(nowMs)) return false
    const waitMs = this.length < this.#limits.fewMax ? 0 : this.waitedMs(nowMs)
    if (nowMs + waitMs >= one.deadlineMs) return false
    this.#waiting.push(one)
    return true
  }

  /** The next request to begin. Calls `onLate` for those before it that have waited for too long. */
  next(nowMs: number, onLate: OnLate<One>): One | undefined {
    this.shed(nowMs, onLate)
    const { isCalm } = this
    const one = this.#take()
    if (one === undefined) return undefined
    this.#begun += 1
    const isInTime = isCalm || nowMs - one.sinceMs <= this.#limits.intervalMs
    assert(isInTime, 'LOAD-1: it has waited for too long')
    assert(nowMs < one.deadlineMs, 'LOAD-2: nobody waits for it any more')
    return one
  }

  /** Tells those that have waited for too long, and takes them out. */
  shed(nowMs: number, onLate: OnLate<One>): void {
    this.#note(nowMs)
    while (this.#isLate(nowMs)) {
      const { isCalm } = this
      const one = this.#take()
      if (one !== undefined) onLate(one, isCalm)
      this.#note(nowMs)
    }
    if (nowMs >= this.dueMs) this.#shedFew(nowMs, onLate)
  }

  /** Of few, whose times are their own. */
  #shedFew(nowMs: number, onLate: OnLate<One>): void {
    const waiting = this.#waiting.slice(this.#head)
    this.#waiting = waiting.filter(({ deadlineMs }) => nowMs < deadlineMs)
    this.#head = 0
    for (const one of waiting) if (nowMs >= one.deadlineMs) onLate(one, true)
    this.#note(nowMs)
  }

  /** Takes all of them out. */
  clear(onOut: (one: One) => void): void {
    for (let one = this.#take(); one !== undefined; one = this.#take()) onOut(one)
  }

  /** One that stands does so until it is well below the target: else it would be taken for a burst again. */
  #note(nowMs: number): void {
    this.#noteRate(nowMs)
    const { targetMs } = this.#limits
    const waitedMs = this.waitedMs(nowMs)
    const calmMs = this.isStanding(nowMs) ? targetMs / 2 : targetMs
    if (waitedMs < calmMs) this.#lateSinceMs = undefined
    else this.#lateSinceMs ??= nowMs
  }

  #noteRate(nowMs: number): void {
    const passedMs = nowMs - this.#begunFromMs
    if (passedMs < this.#limits.intervalMs) return
    this.#begunPerMs = this.#begun / passedMs
    this.#begun = 0
    this.#begunFromMs = nowMs
  }

  #isLate(nowMs: number): boolean {
    const first = this.#waiting[this.#head]
    if (first === undefined) return false
    const { targetMs, intervalMs } = this.#limits
    if (nowMs >= first.deadlineMs) return true
    const boundMs = this.isStanding(nowMs) ? targetMs : intervalMs
    return !this.isCalm && nowMs - first.sinceMs > boundMs
  }

  #take(): One | undefined {
    const one = this.#waiting[this.#head]
    if (one === undefined) return undefined
    this.#head += 1
    if (this.#head === this.#waiting.length || this.#head >= compactAt) {
      this.#waiting = this.#waiting.slice(this.#head)
      this.#head = 0
    }
    return one
  }
}
