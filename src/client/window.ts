/**
 * How many requests of one kind a client has at one node at a time. The client does not know what the node
 * can do, nor how many other clients ask it. As in TCP the window grows with the answers, and halves when the
 * node refuses for want of room, or is silent. Silence alone leaves room for a few: the node may have stood
 * still for a moment. A call that has no place in it waits in the client (`call-queue.ts`), where it costs
 * the node nothing. Pure: time is an argument.
 *
 * LOAD-8  No more requests are at a node than its window; it halves once a round trip, and is never below one.
 */
import { assert } from '../base/assert.ts'

export interface WindowLimits {
  /** Requests at a node that has answered none yet: doubled by each round trip that is not refused. */
  readonly windowStart: number
  readonly windowMax: number
  /** Requests that are not answered in time halve the window down to this size. */
  readonly fewMax: number
}

/**
 * Once a node has refused, a round trip adds one of this many parts of the window, and one request at least.
 */
const growthParts = 8

export class Window {
  readonly #limits: WindowLimits
  #size: number
  /** Below it the window doubles; above it grows by parts. */
  #doublesBelow = Number.POSITIVE_INFINITY
  #inFlight = 0
  #halvedAtMs = Number.NEGATIVE_INFINITY
  /** The node is taken for overloaded. */
  #untilMs = Number.NEGATIVE_INFINITY

  constructor(limits: WindowLimits) {
    this.#limits = limits
    this.#size = limits.windowStart
  }

  get size(): number {
    return Math.floor(this.#size)
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** It has said so, and not long enough ago to be asked again. */
  isHurried(nowMs: number): boolean {
    return nowMs < this.#untilMs
  }

  /** A window of one is as much as many clients together need to keep a node from its work: it rests in between. */
  hasRoom(nowMs: number): boolean {
    return this.#inFlight < this.size && nowMs >= this.roomAtMs
  }

  /** Before this time there is no room, whatever is answered. */
  get roomAtMs(): number {
    return this.#size < 2 ? this.#untilMs : Number.NEGATIVE_INFINITY
  }

  begin(nowMs: number): void {
    assert(this.hasRoom(nowMs), 'LOAD-8: a node is asked for more than its window')
    this.#inFlight += 1
  }

  end(): void {
    this.#inFlight -= 1
    assert(this.#inFlight >= 0, 'LOAD-8: more requests have ended than began')
  }

  /** The node has taken one. A window that is not filled is not known to be too small. */
  onTaken(): void {
    if (2 * this.#inFlight < this.#size) return
    const growth = this.#size < this.#doublesBelow ? this.#size : this.#size / growthParts
    this.#size = Math.min(this.#limits.windowMax, this.#size + Math.max(1, growth) / this.#size)
  }

  /** The node has refused one for want of room, which it was sent at `sentAtMs`. */
  onRefused(nowMs: number, sentAtMs: number, retryAfterMs: number): void {
    this.#untilMs = Math.max(this.#untilMs, nowMs + retryAfterMs)
    if (this.#halve(nowMs, sentAtMs, 1)) this.#doublesBelow = this.#size
  }

  /** The node has not answered one in its time, on a link that is up. How much it can do is as unknown as before. */
  onLost(nowMs: number, sentAtMs: number): void {
    if (this.#size > this.#limits.fewMax) this.#halve(nowMs, sentAtMs, this.#limits.fewMax)
  }

  #halve(nowMs: number, sentAtMs: number, least: number): boolean {
    // A request that was sent before the window last halved tells of the window before.
    if (sentAtMs < this.#halvedAtMs) return false
    this.#halvedAtMs = nowMs
    // This one itself is at the node no more.
    this.#size = Math.max(least, Math.min(this.#size, this.#inFlight + 1) / 2)
    assert(this.size >= 1, 'LOAD-8: a window is closed for good')
    return true
  }

  /** The link is new: nothing is known. The caller of `begin` also ends a request that is under way. */
  reset(): void {
    this.#size = this.#limits.windowStart
    this.#doublesBelow = Number.POSITIVE_INFINITY
    this.#halvedAtMs = Number.NEGATIVE_INFINITY
    this.#untilMs = Number.NEGATIVE_INFINITY
  }
}
