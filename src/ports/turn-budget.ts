/**
 * The budget of a node's turns (`slices.ts`): the work done in this turn, the bytes held for answers, and the
 * clients that go on in the next turn.
 */
import { assert } from '../base/assert.ts'
import type { StoreError } from '../base/errors.ts'
import type { Clock } from './clock.ts'

export interface SliceLimits {
  /** A turn that has done `turnWorkMax` or lasted `turnMs` does no further step. */
  readonly turnWorkMax: number
  readonly turnMs: number
  /** Bytes of answers that are being made or wait to be sent; above it `growingMax` requests go on. */
  readonly answerBytesMax: number
  readonly growingMax: number
  /** Steps that have begun and wait for others, of one client and of all: above it no request begins. */
  readonly clientStepsMax: number
  readonly stepsMax: number
}

export const defaultSliceLimits: SliceLimits = {
  turnWorkMax: 400,
  turnMs: 5,
  answerBytesMax: 256 * 1024 * 1024,
  growingMax: 16,
  clientStepsMax: 256,
  stepsMax: 8_192,
}

/** Work of a turn below this is not timed: most turns do little, and looking at a clock takes time too. */
const untimedWorkMax = 32

/** Work that waits for a turn. */
export interface Waiter {
  readonly task: Holder | undefined
  readonly work: number
  readonly resolve: () => void
  readonly reject: (error: StoreError) => void
}

/** One request, among those that hold bytes of answers. */
export interface Holder {
  /** Rises with the order in which requests began. */
  readonly number: number
}

/** The waiting work of one client. */
export interface Queue {
  readonly isWaiting: boolean
  /** It does so for less to be held, or for fewer steps to be under way. */
  readonly isBlocked: boolean
  readonly isCrowded: boolean
  /** The work that goes on next; undefined: none of this client's does in this turn. */
  next(): Waiter | undefined
  waitForRoom(): void
}

/** The budget of one node. */
export class TurnBudget {
  readonly limits: SliceLimits
  readonly #clock: Clock
  /** Clients of whom something waits, and may go on; the next one first. */
  readonly #ready = new Set<Queue>()
  /** Those that go on when less is held. */
  readonly #blocked = new Set<Queue>()
  /** Those that begin something when fewer steps are under way. */
  readonly #crowded = new Set<Queue>()
  /** Requests that hold bytes, the oldest first. */
  readonly #holders = new Set<Holder>()
  readonly #openAt: number
  #answerBytes = 0
  #steps = 0
  #work = 0
  #largestStep = 0
  #isOpen = false
  #fromMs = 0
  #turn = 0
  #tasks = 0

  constructor(clock: Clock, limits: SliceLimits = defaultSliceLimits) {
    assert(limits.turnWorkMax >= 1 && limits.growingMax >= 1, 'COST-1: a turn does nothing at all')
    this.limits = limits
    this.#clock = clock
    this.#openAt = Math.min(untimedWorkMax, limits.turnWorkMax)
  }

  /** Held for answers that are being made or wait to be sent. */
  get answerBytes(): number {
    return this.#answerBytes
  }

  /** Nothing more is to be done in this turn. */
  get isSpent(): boolean {
    const { turnWorkMax, turnMs } = this.limits
    if (this.#work >= turnWorkMax) return true
    return this.#isOpen && this.#clock.monotonicMs() - this.#fromMs >= turnMs
  }

  /** Steps that are under way, of all clients. */
  get steps(): number {
    return this.#steps
  }

  count(steps: number): void {
    this.#steps += steps
    if (steps < 0 && this.#crowded.size > 0) this.#admit()
  }

  /** Begins when fewer steps are under way. */
  crowd(line: Queue): void {
    this.#crowded.add(line)
  }

  #admit(): void {
    if (this.#steps >= this.limits.stepsMax) return
    const [line] = this.#crowded
    if (line === undefined) return
    this.#crowded.delete(line)
    this.queue(line)
  }

  get isFull(): boolean {
    return this.#answerBytes > this.limits.answerBytesMax
  }

  /** The number of the turn, among those in which something waited. */
  get turn(): number {
    return this.#turn
  }

  /** This much is done in this turn. */
  note(work: number): void {
    this.#work += work
    if (work > this.#largestStep) this.#largestStep = work
    if (!this.#isOpen && this.#work >= this.#openAt) this.#openTurn()
  }

  nextTask(): number {
    return (this.#tasks += 1)
  }

  /** `task`: of the request that holds them, while that is being made. */
  hold(bytes: number, task?: Holder): void {
    this.#answerBytes += bytes
    assert(this.#answerBytes >= 0, 'COST-3: more bytes of answers are given back than were held')
    if (task !== undefined) this.#holders.add(task)
    if (bytes < 0 && this.#blocked.size > 0) this.#unblock()
  }

  letGo(task: Holder, bytes: number): void {
    this.#holders.delete(task)
    this.hold(-bytes)
  }

  /** While much is held: whether this request is one of the few that go on. */
  mayGrow(task: Holder): boolean {
    const { growingMax } = this.limits
    if (!this.isFull || (this.#holders.size < growingMax && !this.#holders.has(task))) return true
    let place = 0
    for (const one of this.#holders) {
      if (one === task) return true
      if ((place += 1) >= growingMax) break
    }
    return false
  }

  /** Something of the client waits, and may go on. */
  queue(line: Queue): void {
    this.#ready.add(line)
    if (!this.#isOpen) this.#openTurn()
  }

  unqueue(line: Queue): void {
    this.#ready.delete(line)
    this.#blocked.delete(line)
    this.#crowded.delete(line)
  }

  #unblock(): void {
    for (const line of this.#blocked) this.#ready.add(line)
    this.#blocked.clear()
    if (!this.#isOpen) this.#openTurn()
  }

  #openTurn(): void {
    this.#isOpen = true
    this.#turn += 1
    this.#fromMs = this.#clock.monotonicMs()
    this.#clock.defer(() => this.#endTurn())
  }

  #endTurn(): void {
    // Sums of parts are rounded: a sum a hair below the limit may reach it with the last step.
    const isBounded = this.#work <= this.limits.turnWorkMax + Math.max(1, this.#largestStep)
    assert(isBounded, 'COST-1: a turn has done more than it may')
    this.#isOpen = false
    this.#work = 0
    this.#largestStep = 0
    if (this.#ready.size > 0) this.#goOn()
  }

  /** Client by client, one step each. */
  #goOn(): void {
    this.#openTurn()
    const { turnWorkMax } = this.limits
    for (let passed = 0; passed < this.#ready.size && this.#work < turnWorkMax;) {
      const [line] = this.#ready
      if (line === undefined) break
      this.#ready.delete(line)
      const waiter = line.next()
      if (line.isBlocked) this.#blocked.add(line)
      else if (line.isCrowded) line.waitForRoom()
      else if (line.isWaiting) this.#ready.add(line)
      passed = waiter === undefined ? passed + 1 : 0
      if (waiter === undefined) continue
      this.note(waiter.work)
      waiter.resolve()
    }
  }
}
