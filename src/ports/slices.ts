/**
 * How a node's turns are shared. All of a node runs in one event loop: while one request works, the node
 * hears no other client. So a request does long work in slices: it says what its next step costs, and goes on
 * at once or in a later turn. All requests of the node share one budget, and the node serves those that wait
 * client by client.
 *
 * Work is counted, in units of about 10 µs, and timed: the count ends a slice also where a clock stands still.
 *
 * COST-1  What one turn begins and goes on with is bounded in work and in time, but for its last step.
 * COST-3  What is held of answers, made or being made, is bounded for the node: above that only a few grow.
 * COST-4  Nothing goes on for a client that is gone.
 */
import { assert } from '../base/assert.ts'
import { gone, type Pace } from './pace.ts'
import { TurnBudget, type Holder, type Queue, type Waiter } from './turn-budget.ts'

/** Of one node. */
export class Slices extends TurnBudget {
  /** For the requests of one client. */
  open(): Line {
    return new Line(this)
  }
}

/**
 * The work under way for one client. Steps that wait for a turn go on in the order in which their requests
 * began.
 */
export class Line implements Queue {
  readonly #slices: TurnBudget
  readonly #going: Waiter[] = []
  #beginning: Waiter | undefined
  /** The last turn in which something of it went on. */
  #servedIn = -1
  #isHeld = false
  #isClosed = false
  #steps = 0
  readonly #ends = new Set<() => void>()

  constructor(slices: TurnBudget) {
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

  /** A client with nothing under way may begin a request, however much the others have. */
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

  /** The work that goes on next; undefined: none of this client's does in this turn. */
  next(): Waiter | undefined {
    const slices = this.#slices
    assert(!this.#isHeld && !this.#isClosed, 'COST-3: a client that is held goes on')
    const at = this.#growing()
    if (at >= 0) {
      this.#servedIn = slices.turn
      return this.#going.splice(at, 1)[0]
    }
    // A request that went on in this turn may not have reached its next step yet.
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

  /** The client does not wait for the request any more: its waiting steps end. */
  end(task: Task): void {
    const ended = this.#going.filter((waiter) => waiter.task === task)
    const left = this.#going.filter((waiter) => waiter.task !== task)
    this.#going.splice(0, this.#going.length, ...left)
    for (const { reject } of ended) reject(gone())
  }

  /** The client is gone: its waiting steps and requests end. */
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
export class Task implements Pace, Holder {
  /** Rises with the order in which requests began. */
  readonly number: number
  readonly #slices: TurnBudget
  readonly #line: Line
  #bytes = 0
  #isOver = false
  #isCancelled = false
  readonly #ends = new Set<() => void>()

  constructor(slices: TurnBudget, line: Line) {
    this.#slices = slices
    this.#line = line
    this.number = slices.nextTask()
  }

  get isGone(): boolean {
    return this.#isCancelled || this.#line.isClosed
  }

  spend(work: number): Promise<void> | undefined {
    if (this.#isCancelled) throw gone()
    return this.#line.spend(this, work)
  }

  enter(): void {
    this.#line.count(1)
  }

  leave(): void {
    this.#line.count(-1)
  }

  onGone(end: () => void): () => void {
    if (this.#isCancelled) throw gone()
    const forget = this.#line.onClose(end)
    this.#ends.add(end)
    return () => {
      this.#ends.delete(end)
      forget()
    }
  }

  /**
   * The client does not wait for this request any more, but goes on with others. For this one it counts as
   * gone.
   */
  cancel(): void {
    if (this.#isOver || this.isGone) return
    this.#isCancelled = true
    this.#line.end(this)
    for (const end of [...this.#ends]) end()
  }

  take(bytes: number): void {
    // A step that is still under way after its request has ended holds nothing for it.
    if (this.#isOver) return
    this.#bytes += bytes
    this.#slices.hold(bytes, this)
  }

  /** Its answer is made, or there is none. From now on the sender of the answer holds the bytes. */
  end(): void {
    this.#isOver = true
    this.#slices.letGo(this, this.#bytes)
    this.#bytes = 0
  }
}
