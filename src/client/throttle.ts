/**
 * What is not even sent: to a node that has just said that it has too much to do, a client sends about as
 * much as the node lately took, and refuses the rest itself. To be refused costs a node a part of what
 * serving costs, and where ten times too much comes, that is all that the node would do ("Handling
 * Overload", Site Reliability Engineering, ch. 21). Pure: time and chance are arguments.
 *
 * A node takes it back by saying nothing: a while after its last refusal all goes to it again.
 */

export interface ThrottleLimits {
  /** For each request that a node took, so many are sent to it. */
  readonly sentPerTaken: number
  /** Requests are counted for about so long. */
  readonly windowMs: number
}

const millionth = 1_000_000

export class Throttle {
  readonly #limits: ThrottleLimits
  /** Of the window that is under way, and of the one before. */
  #asked = 0
  #taken = 0
  #askedBefore = 0
  #takenBefore = 0
  #windowFromMs = 0
  #untilMs = Number.NEGATIVE_INFINITY

  constructor(limits: ThrottleLimits) {
    this.#limits = limits
  }

  /** For how much longer the node is taken for overloaded; 0 or less: it is not. */
  leftMs(nowMs: number): number {
    return this.#untilMs - nowMs
  }

  /** A request is meant for the node, whether or not it is sent. */
  onAsked(nowMs: number): void {
    this.#turn(nowMs)
    this.#asked += 1
  }

  /** The node has answered, and not that it has too much to do. */
  onTaken(nowMs: number): void {
    this.#turn(nowMs)
    this.#taken += 1
  }

  onRefused(nowMs: number, retryAfterMs: number): void {
    this.#untilMs = Math.max(this.#untilMs, nowMs + retryAfterMs)
  }

  /** The link is new: nothing is known. */
  reset(): void {
    this.#untilMs = Number.NEGATIVE_INFINITY
  }

  /** Whether one more goes to it. `chance`: draws true for so many of a million. */
  maySend(nowMs: number, chance: (millionths: number) => boolean): boolean {
    if (this.leftMs(nowMs) <= 0) return true
    this.#turn(nowMs)
    const { sentPerTaken, windowMs } = this.#limits
    const before = 1 - Math.min(1, (nowMs - this.#windowFromMs) / windowMs)
    const asked = this.#asked + before * this.#askedBefore
    const taken = this.#taken + before * this.#takenBefore
    const held = Math.max(0, (asked - sentPerTaken * taken) / (asked + 1))
    return held === 0 || !chance(Math.floor(held * millionth))
  }

  #turn(nowMs: number): void {
    const { windowMs } = this.#limits
    const passedMs = nowMs - this.#windowFromMs
    if (passedMs < windowMs) return
    const isNext = passedMs < 2 * windowMs
    this.#askedBefore = isNext ? this.#asked : 0
    this.#takenBefore = isNext ? this.#taken : 0
    this.#asked = 0
    this.#taken = 0
    this.#windowFromMs = isNext ? this.#windowFromMs + windowMs : nowMs
  }
}
