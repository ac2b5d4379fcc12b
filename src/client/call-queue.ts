/**
 * Calls of one kind that a client holds back until a window has room, first come, first served, while their
 * time lasts. Pure: time is an argument.
 *
 * A program that makes thousands of calls at once is served by and by, as long as `heldPart` of their time is
 * enough. Where calls come faster than answers, a queue only makes all calls wait, and those most that come
 * after the load. So once answers come and calls come faster, the queue refuses a call as it comes if it
 * would wait longer than `standingMs`. It also refuses the last of the calls that came before it knew this.
 * No node has to refuse for that: to clients that make few calls at a time, nodes may just seem slow. A
 * client that makes few calls at once cannot tell. Its calls wait for `fewStandingMs` and then end, but only
 * where nodes refuse for load. Slow nodes that do not refuse may have stood still: such calls wait as the
 * others do.
 *
 * LOAD-9  A call that is held back begins in its order and in its time, or ends: with `overloaded` only where a
 *         node has refused for load, or where nodes answer and calls come faster.
 */
import { assert } from '../base/assert.ts'

export interface QueueLimits {
  /** The longest wait where calls come faster than they are answered. */
  readonly standingMs: number
  /** The longest wait of few calls where nodes refuse. */
  readonly fewStandingMs: number
  /** Up to this number, calls at once are few. */
  readonly fewMax: number
  /** A queue that has lasted for less than this is a burst, and tells nothing yet. */
  readonly burstMs: number
  /** How long after a refusal for load a node is taken to be overloaded still. */
  readonly loadMs: number
}

export interface Held {
  readonly cameMs: number
  readonly deadlineMs: number
  /** Until when it may wait; set when it is held back for the first time. */
  heldUntilMs: number | undefined
  /** Of few, set at the same time, or at a refusal where more comes than is answered: after it, it ends where nodes refuse. */
  fewUntilMs: number | undefined
  /** Some try of it may have been carried out: it is to find out. */
  readonly isUnsure: boolean
  /** It has ended while it waited: a late answer came. */
  readonly isOver: boolean
}

/** Calls and answers per millisecond, measured over `windowMs`. */
interface Rates {
  readonly came: number
  readonly answered: number
  readonly windowMs: number
}

/** Calls come faster than answers when they do so by this factor. */
const fasterFactor = 1.25
/** The part of the earlier rates that still counts after `burstMs`. */
const keptPart = 0.25
/** This many calls in one window tell nothing. */
const slackCalls = 1
/**
 * Fewer calls than this, those that came and those that were answered, tell little. They do tell where
 * `plainFactor` times as many came as were answered, or no more than were answered. Otherwise the window goes
 * on, for up to `longerFactor` times as long.
 */
const windowCallsMin = 32
const plainFactor = 3
const longerFactor = 4
/**
 * The number of windows in which nodes have to answer before the queue refuses calls that no node refuses.
 */
const answeredWindowsMin = 3
/** The part of its time for which a call may wait: the rest is for its nodes. */
const heldPart = 0.75
/** How often few are looked at that have waited for `fewStandingMs`, and no node has refused. */
const lookMs = 100
/** The number of empty places in front at which the queue gives them back. */
const compactAt = 1_024

export class CallQueue<One extends Held> {
  readonly #limits: QueueLimits
  #waiting: One[] = []
  #head = 0
  /** Those that a node has refused, and that came back: they are before all others. */
  #front: One[] = []
  /** Those that are to come back later. */
  #aside = 0
  #loadedUntilMs = Number.NEGATIVE_INFINITY
  #standsFromMs: number | undefined
  #windowFromMs = 0
  #came = 0
  #answered = 0
  /** While the queue stands; undefined: it has not for long enough. */
  #rates: Rates | undefined
  /** The number of windows, one after another, in which nodes answered something. */
  #answeredWindows = 0

  constructor(limits: QueueLimits) {
    this.#limits = limits
  }

  get length(): number {
    return this.#waiting.length - this.#head + this.#front.length
  }

  /** Nodes have too much to do: one has said so, or answers come, and calls come faster. */
  isLoaded(nowMs: number): boolean {
    return this.#isRefused(nowMs) || this.#isFaster(nowMs)
  }

  #isRefused(nowMs: number): boolean {
    return nowMs < this.#loadedUntilMs
  }

  /** A node has refused one for load. It comes back by `addFirst`, unless it ends before that. */
  onRefused(nowMs: number): void {
    this.#loadedUntilMs = nowMs + this.#limits.loadMs
  }

  setAside(nowMs: number): void {
    this.#aside += 1
    this.#note(nowMs)
  }

  takeBack(nowMs: number): void {
    this.#aside -= 1
    assert(this.#aside >= 0, 'LOAD-9: more calls come back than were set aside')
    this.#note(nowMs)
  }

  onAnswered(nowMs: number): void {
    this.#note(nowMs)
    this.#answered += 1
  }

  /**
   * Of a call that comes now and would have to wait: undefined, or how much later it would not wait for
   * too long, in milliseconds.
   */
  refusalMs(deadlineMs: number, nowMs: number): number | undefined {
    this.#note(nowMs)
    this.#came += 1
    const rates = this.#rates
    if (rates === undefined || !this.isLoaded(nowMs)) return undefined
    const heldMs = (deadlineMs - nowMs) * heldPart
    const mostMs = this.#isFaster(nowMs) ? Math.min(this.#limits.standingMs, heldMs) : heldMs
    const waitMs = (this.length + this.#aside) / rates.answered
    return waitMs > mostMs ? Math.max(1, waitMs - mostMs) : undefined
  }

  /** It cannot go now. `inFlight`: how many calls of this client are at nodes. */
  hold(one: One, nowMs: number, inFlight: number): void {
    const { cameMs, deadlineMs, heldUntilMs } = one
    if (heldUntilMs !== undefined) return
    const { fewStandingMs, fewMax } = this.#limits
    const isFew = this.length + this.#aside + inFlight <= fewMax
    one.heldUntilMs = cameMs + (deadlineMs - cameMs) * heldPart
    // The time that it was at a node before tells nothing of load.
    if (isFew) one.fewUntilMs = nowMs + fewStandingMs
  }

  /**
   * A node has refused it. Where more comes than is answered it is soon the turn of another one: else what came first
   * would be refused again and again, and nodes would have it for long after the load.
   */
  onRefusal(one: One, nowMs: number): void {
    if (one.isUnsure || one.fewUntilMs !== undefined || !this.#isFaster(nowMs)) return
    one.fewUntilMs = nowMs + this.#limits.fewStandingMs
  }

  /** When it may have waited for too long, as far as is known at `nowMs`. */
  dueMs(one: One, nowMs: number): number {
    const { fewUntilMs = Number.POSITIVE_INFINITY } = one
    const soonestMs = nowMs < fewUntilMs ? fewUntilMs : nowMs + lookMs
    return Math.min(findUntil(one), soonestMs)
  }

  isLate(one: One, nowMs: number): boolean {
    if (nowMs >= findUntil(one)) return true
    const { fewUntilMs = Number.POSITIVE_INFINITY } = one
    return nowMs >= fewUntilMs && this.#isRefused(nowMs)
  }

  addLast(one: One, nowMs: number): void {
    this.#waiting.push(one)
    this.#note(nowMs)
  }

  /** One that has waited here before. */
  addFirst(one: One, nowMs: number): void {
    this.#front.push(one)
    this.#note(nowMs)
  }

  /** The next one; it is still in the queue. Calls whose time is over are taken out on the way. */
  first(nowMs: number, onLate: (one: One) => void): One | undefined {
    for (let one = this.#first(); one !== undefined; one = this.#first()) {
      if (!one.isOver && !this.isLate(one, nowMs)) return one
      this.#takeFirst(nowMs)
      if (!one.isOver) onLate(one)
    }
    return undefined
  }

  /** Takes that one out: it begins. */
  take(one: One, nowMs: number): void {
    assert(this.#first() === one, 'LOAD-9: a call is served out of its turn')
    assert(!this.isLate(one, nowMs), 'LOAD-9: a call begins when its time is over')
    this.#takeFirst(nowMs)
  }

  /** Takes out those of whom it holds. */
  drop(isDropped: (one: One) => boolean, nowMs: number): readonly One[] {
    const waiting = this.#waiting.slice(this.#head)
    const isKept = (one: One): boolean => !one.isOver && !isDropped(one)
    const dropped = [...this.#front, ...waiting].filter((one) => !one.isOver && isDropped(one))
    this.#front = this.#front.filter(isKept)
    this.#waiting = waiting.filter(isKept)
    this.#head = 0
    this.#note(nowMs)
    return dropped
  }

  /** Takes out the last ones where they would wait for longer than `standingMs`. */
  shed(nowMs: number): readonly One[] {
    const rates = this.#rates
    if (rates === undefined || !this.#isFaster(nowMs)) return []
    const room = Math.max(1, Math.ceil(rates.answered * this.#limits.standingMs))
    const excess = this.length + this.#aside - room
    if (excess <= 0) return []
    const kept = Math.max(this.#head, this.#waiting.length - excess)
    const last = this.#waiting.splice(kept)
    const isShed = (one: One, at: number): boolean =>
      !one.isUnsure && at >= this.#front.length - (excess - last.length)
    const shed = [...this.#front.filter(isShed), ...last].filter(({ isOver }) => !isOver)
    this.#front = this.#front.filter((one, at) => !isShed(one, at))
    this.#note(nowMs)
    return shed
  }

  #isFaster(nowMs: number): boolean {
    if (this.#rates === undefined) return false
    // Nodes that have just answered nothing may have stood still: the client cannot know whether they are
    // overloaded.
    if (this.#answeredWindows < answeredWindowsMin && !this.#isRefused(nowMs)) return false
    const { came, answered, windowMs } = this.#rates
    return came > fasterFactor * answered + slackCalls / windowMs
  }

  #first(): One | undefined {
    return this.#front[0] ?? this.#waiting[this.#head]
  }

  #takeFirst(nowMs: number): void {
    if (this.#front.shift() === undefined) {
      this.#head += 1
      if (this.#head === this.#waiting.length || this.#head >= compactAt) {
        this.#waiting = this.#waiting.slice(this.#head)
        this.#head = 0
      }
    }
    this.#note(nowMs)
  }

  /**
   * Rates are of a queue that stands: calls that come to an empty one do not tell how much nodes could do.
   */
  #note(nowMs: number): void {
    if (this.length + this.#aside === 0) {
      this.#standsFromMs = undefined
      this.#rates = undefined
      this.#answeredWindows = 0
      return
    }
    if (this.#standsFromMs === undefined) {
      this.#standsFromMs = nowMs
      this.#startWindow(nowMs)
    }
    const passedMs = nowMs - this.#windowFromMs
    if (passedMs >= this.#windowMs()) this.#endWindow(nowMs, passedMs)
  }

  #windowMs(): number {
    const { burstMs } = this.#limits
    const [came, answered] = [this.#came, this.#answered]
    const isFirst = this.#rates === undefined
    const isMuch = came >= plainFactor * (answered + slackCalls)
    const isPlain = isMuch || came <= answered || came + answered >= windowCallsMin
    // Answers may come several at once, with nothing for a while between them.
    return isFirst || (isPlain && answered > 0) ? burstMs : longerFactor * burstMs
  }

  #endWindow(nowMs: number, passedMs: number): void {
    this.#answeredWindows = this.#answered > 0 ? this.#answeredWindows + 1 : 0
    const answered = this.#answered / passedMs
    // The calls of the first window may be a burst, with nothing behind it.
    const came = this.#rates === undefined ? answered : this.#came / passedMs
    const before = this.#rates ?? { came, answered }
    const kept = keptPart ** (passedMs / this.#limits.burstMs)
    this.#rates = {
      came: kept * before.came + (1 - kept) * came,
      answered: kept * before.answered + (1 - kept) * answered,
      windowMs: passedMs,
    }
    this.#startWindow(nowMs)
  }

  #startWindow(nowMs: number): void {
    this.#windowFromMs = nowMs
    this.#came = 0
    this.#answered = 0
  }
}

/** Until when it may wait at the longest. */
function findUntil({ heldUntilMs, deadlineMs }: Held): number {
  return heldUntilMs ?? deadlineMs
}
