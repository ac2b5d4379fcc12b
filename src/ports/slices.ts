/**
 * How a node's turns are shared. All of a node is one loop: while a request works nobody else is heard. So
 * what takes long goes on in slices: a request says what its next step costs, and goes on at once or in a
 * later turn. One budget is for all requests of the node, and who waits for it is served client by client.
 *
 * Work is counted, in units of about 10 µs, and timed: the count ends a slice also where a clock stands still.
 *
 * COST-1  What one turn begins and goes on with is bounded in work and in time, but for its last step.
 * COST-3  What is held of answers, made or being made, is bounded for the node: above that only a few grow.
 * COST-4  Nothing goes on for a client that is gone.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { Clock } from './clock.ts'

export interface SliceLimits {
  /** A turn goes on with nothing more when it has done so much, or lasted so long. */
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

/** One request, as it goes on, and whether anybody waits for its answer. */
export interface Pace {
  readonly isGone: boolean
  /**
   * Before a step that costs so much. Undefined: it may be done at once; else when the promise resolves.
   * Throws, or rejects, with `closed` when whoever asked has gone.
   */
  spend(work: number): Promise<void> | undefined
  /** So many bytes more are held for its answer; given back by whoever sends that. */
  take(bytes: number): void
  /** A step has begun that may wait for others, or has ended. */
  enter(): void
  leave(): void
  /** Calls `end` once, when nobody waits for the answer any more; returns a canceller. Throws if that is so. */
  onGone(end: () => void): () => void
}

interface Waiter {
  readonly task: Task | undefined
  readonly work: number
  readonly resolve: () => void
  readonly reject: (error: StoreError) => void
}

/** The budget of one node. */
export class Slices {
  readonly limits: SliceLimits
  readonly #clock: Clock
  /** Clients of whom something waits, and may go on; the next one first. */
  readonly #ready = new Set<Line>()
  /** Those that go on when less is held. */
  readonly #blocked = new Set<Line>()
  /** Those that begin something when fewer steps are under way. */
  readonly #crowded = new Set<Line>()
  /** Requests that hold bytes, the oldest first. */
  readonly #holders = new Set<Task>()
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
  crowd(line: Line): void {
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

  /** For the requests of one client. */
  open(): Line {
    return new Line(this)
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
  hold(bytes: number, task?: Task): void {
    this.#answerBytes += bytes
    assert(this.#answerBytes >= 0, 'COST-3: more bytes of answers are given back than were held')
    if (task !== undefined) this.#holders.add(task)
    if (bytes < 0 && this.#blocked.size > 0) this.#unblock()
  }

  letGo(task: Task, bytes: number): void {
    this.#holders.delete(task)
    this.hold(-bytes)
  }

  /** While much is held: whether this request is one of the few that go on. */
  mayGrow(task: Task): boolean {
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
  queue(line: Line): void {
    this.#ready.add(line)
    if (!this.#isOpen) this.#openTurn()
  }

  unqueue(line: Line): void {
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
    const isBounded = this.#work < this.limits.turnWorkMax + Math.max(1, this.#largestStep)
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

/** What is under way for one client: what waits for a turn goes on in the order in which it was begun. */
export class Line {
  readonly #slices: Slices
  readonly #going: Waiter[] = []
  #beginning: Waiter | undefined
  /** The last turn in which something of it went on. */
  #servedIn = -1
  #isHeld = false
  #isClosed = false
  #steps = 0
  readonly #ends = new Set<() => void>()

  constructor(slices: Slices) {
    this.#slices = slices
  }

  onClose(end: () => void): () => void {
    if (this.#isClosed) throw gone()
    this.#ends.add(end)
    return () => this.#ends.delete(end)
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get isHeld(): boolean {
    return this.#isHeld
  }

  get isWaiting(): boolean {
    return this.#going.length > 0 || this.#beginning !== undefined
  }

  /** All that waits does so for less to be held. */
  get isBlocked(): boolean {
    return this.#going.length > 0 && this.#growing() < 0
  }

  /** Whether a request that comes now begins at once. */
  get mayBegin(): boolean {
    if (this.isWaiting || this.#isHeld || this.#slices.isSpent) return false
    return this.#steps === 0 || this.#hasRoom
  }

  /** All that waits is a request that may not begin yet. */
  get isCrowded(): boolean {
    return this.#going.length === 0 && this.#beginning !== undefined && !this.#hasRoom
  }

  /** Whoever has nothing under way may begin something, however much the others have. */
  get #hasRoom(): boolean {
    if (this.#steps === 0) return true
    const { clientStepsMax, stepsMax } = this.#slices.limits
    return this.#steps < clientStepsMax && this.#slices.steps < stepsMax
  }

  /** Its own steps end, or others'. */
  waitForRoom(): void {
    if (this.#steps < this.#slices.limits.clientStepsMax) this.#slices.crowd(this)
  }

  count(steps: number): void {
    this.#steps += steps
    this.#slices.count(steps)
    if (steps < 0 && this.#beginning !== undefined && this.#hasRoom) this.#queue()
  }

  /** For one request that has begun. */
  task(): Task {
    return new Task(this.#slices, this)
  }

  /**
   * Before a request begins: once nothing waits that began before it. True: now; else the promise tells
   * when. Never, when the client is gone. One waits at a time.
   */
  begin(work: number): true | Promise<void> {
    assert(this.#beginning === undefined, 'COST-2: two requests of a client begin at once')
    if (this.mayBegin) {
      this.#slices.note(work)
      return true
    }
    return new Promise((resolve, reject) => {
      this.#beginning = { task: undefined, work, resolve, reject }
      this.#queue()
    })
  }

  /** For a step of a request that has begun. */
  spend(task: Task, work: number): Promise<void> | undefined {
    if (this.#isClosed) throw gone()
    const slices = this.#slices
    if (!this.#isHeld && !slices.isSpent && slices.mayGrow(task)) {
      slices.note(work)
      return undefined
    }
    return new Promise((resolve, reject) => {
      const { number } = task
      let at = this.#going.length
      while (at > 0 && (this.#going[at - 1]?.task?.number ?? 0) > number) at -= 1
      this.#going.splice(at, 0, { task, work, resolve, reject })
      this.#queue()
    })
  }

  /** What goes on next; undefined: nothing of it does in this turn. */
  next(): Waiter | undefined {
    const slices = this.#slices
    assert(!this.#isHeld && !this.#isClosed, 'COST-3: a client that is held goes on')
    const at = this.#growing()
    if (at >= 0) {
      this.#servedIn = slices.turn
      return this.#going.splice(at, 1)[0]
    }
    // What went on in this turn may not have come to its next step yet.
    if (this.#going.length > 0 || this.#servedIn === slices.turn) return undefined
    if (!this.#hasRoom) return undefined
    const beginning = this.#beginning
    this.#beginning = undefined
    return beginning
  }

  /** Nothing more is done for it until it has taken what it was answered. */
  hold(): void {
    this.#isHeld = true
    this.#slices.unqueue(this)
  }

  release(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    if (this.isWaiting) this.#queue()
  }

  /** The client is gone: what waits ends. */
  close(): void {
    this.#isClosed = true
    this.#slices.unqueue(this)
    const waiting = this.#going.splice(0)
    if (this.#beginning !== undefined) waiting.push(this.#beginning)
    this.#beginning = undefined
    for (const { reject } of waiting) reject(gone())
    for (const end of this.#ends) end()
    this.#ends.clear()
  }

  #growing(): number {
    if (!this.#slices.isFull) return this.#going.length > 0 ? 0 : -1
    return this.#going.findIndex(({ task }) => task === undefined || this.#slices.mayGrow(task))
  }

  #queue(): void {
    if (!this.#isHeld && !this.#isClosed) this.#slices.queue(this)
  }
}

/** One request under way. */
export class Task implements Pace {
  /** Rises with the order in which requests began. */
  readonly number: number
  readonly #slices: Slices
  readonly #line: Line
  #bytes = 0
  #isOver = false

  constructor(slices: Slices, line: Line) {
    this.#slices = slices
    this.#line = line
    this.number = slices.nextTask()
  }

  get isGone(): boolean {
    return this.#line.isClosed
  }

  spend(work: number): Promise<void> | undefined {
    return this.#line.spend(this, work)
  }

  enter(): void {
    this.#line.count(1)
  }

  leave(): void {
    this.#line.count(-1)
  }

  onGone(end: () => void): () => void {
    return this.#line.onClose(end)
  }

  take(bytes: number): void {
    // What is still under way when its request has ended holds nothing for it.
    if (this.#isOver) return
    this.#bytes += bytes
    this.#slices.hold(bytes, this)
  }

  /** Its answer is made, or there is none: what it holds is somebody else's from now on. */
  end(): void {
    this.#isOver = true
    this.#slices.letGo(this, this.#bytes)
    this.#bytes = 0
  }
}

/** What ends that was asked by somebody who is not there any more; nobody hears of it. */
export function gone(): StoreError {
  return new StoreError('closed', 'whoever asked has gone')
}
